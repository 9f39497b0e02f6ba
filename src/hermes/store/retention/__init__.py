"""Prune old rows, and delete sessions with all their text."""
