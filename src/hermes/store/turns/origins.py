"""Name where a turn was begun: the chat of a platform, or the dashboard."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey
from hermes.core.lane import DOORS
from hermes.core.text import one_line
from hermes.store import people
from hermes.store.api.api_keys import DEFAULT_NAME, PLATFORM, sender_id_of
from hermes.store.db import Tx
from hermes.store.turns import turns
from hermes.store.turns.turns import Turn

DASHBOARD = "dashboard"
MAX_NAME_CHARS = 40


@dataclass(frozen=True, slots=True)
class Origin:
    """``platform`` is ``dashboard`` for what was written through the API; ``name`` is the writer's, '' if unknown."""

    platform: str
    name: str


def origins_of(tx: Tx, turn_ids: Iterable[str]) -> dict[str, Origin]:
    """Return the origin of each of these turns that are known."""
    found = (turns.get(tx, turn_id) for turn_id in set(turn_ids) if turn_id)
    return {turn.id: origin_of(tx, turn) for turn in found if turn is not None}


def origin_of(tx: Tx, turn: Turn) -> Origin:
    platform = SessionKey.parse(turn.lane).platform
    first = tx.one(
        "SELECT kind, sender_id FROM inbox WHERE turn_id = :id AND turn_id <> '' ORDER BY seq LIMIT 1",
        lambda *row: row,
        id=turn.id,
    )
    if platform not in DOORS and first is not None and first[0] == "request":
        sender = str(first[1])
        writer = people.find(tx, PLATFORM, sender) if sender != sender_id_of(DEFAULT_NAME) else None
        return Origin(DASHBOARD, one_line(writer.name, MAX_NAME_CHARS) if writer is not None else "")
    names = [account.name for account in people.accounts(tx, turn.person_id) if account.platform == platform]
    return Origin(platform, one_line(next(filter(None, names), ""), MAX_NAME_CHARS))
