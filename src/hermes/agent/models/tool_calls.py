"""Assemble tool calls from deltas, whatever providers do with index and id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.messages import ToolCall


@dataclass(slots=True)
class _PartialCall:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        if not self.pieces:
            return False
        # Relays that repeat the name have this asked with every delta: an object that is open is not read each time.
        first, last = self.pieces[0].lstrip(), self.pieces[-1].rstrip()
        if first.startswith("{") and last and not last.endswith("}"):
            return False
        return _is_json(self.arguments)

    def add_name(self, piece: str) -> None:
        """Names come at once, in pieces, growing, or again with every delta."""
        if piece.startswith(self.name):
            self.name = piece
        elif not self.pieces:
            self.name += piece

    def add_arguments(self, piece: Any) -> None:
        if isinstance(piece, str):
            if piece:
                self.pieces.append(piece)
        elif piece is not None:  # an object instead of its text: always the whole
            self.pieces = [orjson.dumps(piece).decode()]


class ToolCalls:
    """Learns which delta belongs to which call.

    Neither ``index`` nor ``id`` can be trusted alone: Ollama gives every call index 0, Gemini leaves the index
    out, relays repeat ids, make up a new one for every delta, or give the tail of a call another index.
    So calls are kept in the order they began, and a delta starts a new one only if it names a tool.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._calls: list[_PartialCall] = []
        self._by_index: dict[object, _PartialCall] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def has(self, index: object) -> bool:
        return index in self._by_index

    def add(self, deltas: Sequence[Any]) -> None:
        """Take the ``tool_calls`` of one delta, or of a whole message."""
        for delta in deltas:
            if isinstance(delta, dict):
                self._add(delta, among_others=len(deltas) > 1)

    def _add(self, delta: dict[str, Any], *, among_others: bool) -> None:
        function = delta.get("function")
        if not isinstance(function, dict):
            function = {}
        index, name, arguments = delta.get("index"), str(function.get("name") or ""), function.get("arguments")
        call_id = str(delta.get("id") or "")
        call = self._continued(index, call_id, name, arguments, among_others=among_others)
        if call is None:
            call = _PartialCall(call_id)
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        call.id = call.id or call_id
        if name:
            call.add_name(name)
        call.add_arguments(arguments)

    def _continued(
        self, index: Any, call_id: str, name: str, arguments: Any, *, among_others: bool
    ) -> _PartialCall | None:
        """Return the call that this delta goes on with, or None if it starts a new one."""
        last = self._calls[-1] if self._calls else None
        if not name:
            return self._with_id(call_id) or self._by_index.get(index, last)
        found = self._with_id(call_id)
        if found is None:
            found = self._by_index.get(index) if index is not None else None
            if found is not None and call_id and found.id:
                return None  # another id under an index already used
            if index is None and not call_id and not among_others:
                found = last
        if found is not None and arguments and found.is_whole:
            return None  # named again, and the call before it is complete
        return found

    def _with_id(self, call_id: str) -> _PartialCall | None:
        if not call_id:
            return None
        return next((call for call in reversed(self._calls) if call.id == call_id), None)

    def finished(self) -> tuple[ToolCall, ...]:
        """Return every call that has a name; ids are made up where they are missing or not unique."""
        seen: set[str] = set()
        calls = []
        for call in self._calls:
            if not call.name:
                continue
            call_id = call.id if call.id and call.id not in seen else self._new_id()
            seen.add(call_id)
            calls.append(ToolCall(call_id, call.name, _mended(call.arguments)))
        return tuple(calls)


def _mended(arguments: str) -> str:
    """No arguments at all are an empty object; an empty object that a relay put before the real one goes."""
    text = arguments.strip()
    if not text:
        return "{}"
    if text.startswith("{}") and len(text) > 2 and _is_json(text[2:]):
        return text[2:].strip()
    return arguments


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
