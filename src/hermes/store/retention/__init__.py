"""Prune what is old, and delete sessions with all their words."""
