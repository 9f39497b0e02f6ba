"""The OpenAI-compatible API: one file for each family of routes."""
