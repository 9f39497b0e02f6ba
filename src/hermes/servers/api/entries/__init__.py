"""Serve jobs and the board of tasks over HTTP."""
