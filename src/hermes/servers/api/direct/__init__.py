"""Answer what needs the model alone: embeddings, and the background tasks of chat clients. No turn, no session."""
