"""Answer requests that need only the model: embeddings, background tasks of chat clients. No turn, no session."""
