"""Keep a session's to-do list: storage and rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Literal

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.core.ports import Clock
from hermes.core.text import storable
from hermes.store.db import Database, Tx
from hermes.store.sessions import todos

State = Literal["pending", "in_progress", "done"]

MAX_ITEMS = 50
TEXT_CHARACTERS = 300
ID_CHARACTERS = 40
_MARKS: dict[State, str] = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}


@dataclass(frozen=True, slots=True)
class Item:
    id: str
    text: str = ""
    state: State = "pending"


class TodoLists:
    """The lists of all sessions."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def get(self, session_id: str) -> tuple[Item, ...]:
        return load(await self._db.read(todos.get, session_id))

    def put(self, tx: Tx, session_id: str, items: Sequence[Item]) -> None:
        """For the effect of a call: it is stored with the call's result."""
        todos.put(tx, session_id, dump(items), now=self._clock.now())


def dump(items: Sequence[Item]) -> str:
    return storable(json.dumps([asdict(item) for item in items], ensure_ascii=False))


def load(stored: str) -> tuple[Item, ...]:
    """Parse a stored list; an unreadable one is empty, and the model writes it again."""
    try:
        return tuple(Item(**item) for item in json.loads(stored)) if stored else ()
    except (ValueError, TypeError):
        return ()


def merged(have: Sequence[Item], given: Sequence[Item]) -> tuple[Item, ...]:
    """Return the list with these items changed or added at the end. An item without a text keeps the one it has."""
    found = {item.id: item for item in have}
    for item in given:
        known = found.get(item.id)
        found[item.id] = replace(item, text=known.text) if known is not None and not item.text else item
    return tuple(found.values())


def checked(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the list as it may be stored; ToolError says what is wrong with it."""
    if len(items) > MAX_ITEMS:
        raise ToolError(f"The list would have {len(items)} items; at most {MAX_ITEMS}. Join or drop some.")
    seen: set[str] = set()
    for item in items:
        if not item.id.strip() or len(item.id) > ID_CHARACTERS or item.id in seen:
            raise ToolError(f"Each item needs an 'id' of its own, 1 to {ID_CHARACTERS} characters; see {item.id!r}.")
        if not item.text.strip() or len(item.text) > TEXT_CHARACTERS:
            raise ToolError(f"Item {item.id!r} needs a 'text' of 1 to {TEXT_CHARACTERS} characters.")
        seen.add(item.id)
    return tuple(items)


def short_form(items: Sequence[Item]) -> str:
    if not items:
        return "The list is empty."
    lines = [f"{_MARKS.get(item.state, '[ ]')} {item.id}: {' '.join(item.text.split())}" for item in items]
    done = sum(item.state == "done" for item in items)
    return "\n".join([*lines, f"{done} of {len(items)} done."])
