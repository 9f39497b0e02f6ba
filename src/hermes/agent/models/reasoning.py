"""Store reasoning blocks and their order, to send them back to the model.

Providers sign or seal these pieces and refuse a conversation in which one was moved or changed, so the order is kept.
They mean nothing to another dialect or provider, which gets the message without them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson

from hermes.core.messages import ChatMessage, Json, ToolCall

Part = str | ToolCall | Json
"""A piece of an assistant's message: what it said, what it called, or a thought as the provider wrote it."""


class ReasoningBlocks:
    """The pieces of an answer in the order in which they came."""

    __slots__ = ("_by", "_parts")

    def __init__(self, by: str) -> None:
        self._by = by
        self._parts: list[Any] = []  # a number: so many letters of the text; None: the next call; else a thought

    def add_text(self, text: str) -> None:
        if self._parts and isinstance(self._parts[-1], int):
            self._parts[-1] += len(text)
        else:
            self._parts.append(len(text))

    def called(self) -> None:
        self._parts.append(None)

    def thought(self, block: Json) -> None:
        """The block may grow until ``dump`` is called."""
        self._parts.append(block)

    def dump(self, seals: Collection[str]) -> str:
        """As text for ``ChatMessage.thought``; empty without a thought. One without any of its seals is left out."""
        parts = [part for part in self._parts if not isinstance(part, dict) or any(map(part.get, seals))]
        if not any(isinstance(part, dict) for part in parts):
            return ""
        return orjson.dumps({"by": self._by, "parts": parts}).decode()


def parts_of(message: ChatMessage, by: str) -> list[Part]:
    """Return the pieces of a message as ``by`` wrote them; what was said and then the calls, where it wrote nothing."""
    without: list[Part] = [message.text] if message.text else []
    without += message.tool_calls
    kept = _parse_stored(message.thought, by)
    if not kept:
        return without
    thoughts: list[Part] = [part for part in kept if isinstance(part, dict)]
    letters = sum(part for part in kept if isinstance(part, int))
    if letters != len(message.text) or kept.count(None) != len(message.tool_calls):
        return thoughts + without  # the message was changed since; the thoughts come first in every dialect
    return _in_order(message, kept)


def _parse_stored(thought: str, by: str) -> list[Any]:
    if not thought:
        return []
    try:
        found = orjson.loads(thought)
        return list(found["parts"]) if found["by"] == by else []
    except (orjson.JSONDecodeError, KeyError, TypeError):  # written by another version
        return []


def _in_order(message: ChatMessage, kept: list[Any]) -> list[Part]:
    parts: list[Part] = []
    calls, start = iter(message.tool_calls), 0
    for part in kept:
        if part is None:
            parts.append(next(calls))
        elif isinstance(part, int):
            if part:
                parts.append(message.text[start : start + part])
            start += part
        else:
            parts.append(part)
    return parts
