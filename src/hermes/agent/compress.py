"""Making a long talk shorter: when, where it is cut, and what the model is asked for. Nothing here reads or writes."""

from __future__ import annotations

from hermes.core.messages import ChatMessage, Role

OPENING = "[Summary of what was said before, written by Hermes itself. The lines it stands for are not shown.]"


def summary_message(summary: str) -> ChatMessage:
    """How the model reads a summary: in the place of the lines it stands for."""
    return ChatMessage(Role.USER, f"{OPENING}\n{summary}")


def is_summary(message: ChatMessage) -> bool:
    return message.role is Role.USER and message.text.startswith(OPENING)
