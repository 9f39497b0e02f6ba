"""Chats named in text: targets that people type, patterns in settings."""
