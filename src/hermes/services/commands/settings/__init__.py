"""Slash commands that set how a chat is answered: model, reasoning, voice, language."""
