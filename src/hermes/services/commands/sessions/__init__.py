"""Slash commands over a session: start, stop, list, retry, undo, compress."""
