"""Set up models and platforms, question by question."""
