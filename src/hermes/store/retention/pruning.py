"""Prune settled rows that are too old, a bite at a time.

Nothing goes that is unfinished or waits: an open turn, a delivery that may still be sent, a pending approval. The names
by which repeated messages are recognized stand in ``dedupe``, which has an age of its own.

Each function looks at the rows behind ``after`` in the order of their age, deletes what may go and returns how many
that were and where the next bite begins; None once all old rows were looked at. A bite ends early when it has taken
``MAX_SECONDS``: on a slow disk a single row may take as long as a hundred do elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx

BITE = 200
MAX_SECONDS = 0.005

Row = tuple[str, float, int]
"""Id, time, and whether it may go."""
Place = tuple[float, str]
START: Place = (0.0, "")


@dataclass(frozen=True, slots=True)
class Bite:
    """``pruned`` rows are gone; ``after`` is where to go on, None at the end."""

    pruned: int
    after: Place | None


def prune_inbox(tx: Tx, *, before: float, after: Place = START, bite: int = BITE) -> Bite:
    """Delete messages that were answered, refused or set aside."""
    may_go = "state <> 'queued' AND state <> 'acting' AND state <> 'taken'"
    return _prune(tx, "inbox", "received_at", may_go, before=before, after=after, bite=bite)


def prune_outbox(tx: Tx, *, before: float, after: Place = START, bite: int = BITE) -> Bite:
    """Delete deliveries that were sent or given up, and texts that went out with another row."""
    may_go = """state <> 'ready' AND state <> 'unknown' AND state <> 'parked' AND NOT EXISTS (
        SELECT 1 FROM outbox AS carrier WHERE carrier.id = outbox.joined_to AND outbox.joined_to <> ''
            AND (carrier.state = 'ready' OR carrier.state = 'unknown' OR carrier.state = 'parked'))"""
    found = _old(tx, "outbox", "created_at", may_go, before=before, after=after, bite=bite)

    def delete(row_id: str) -> int:
        tx.run("DELETE FROM files_out WHERE outbox_id = :id", id=row_id)
        return tx.run("DELETE FROM outbox WHERE id = :id", id=row_id)

    return _delete(found, bite, delete)


def prune_approvals(tx: Tx, *, before: float, after: Place = START, bite: int = BITE) -> Bite:
    """Delete approvals that were answered, cancelled or have expired."""
    return _prune(tx, "approvals", "created_at", "state <> 'pending'", before=before, after=after, bite=bite)


def prune_turns(tx: Tx, *, before: float, after: Place = START, bite: int = BITE) -> Bite:
    """Delete the tool calls of ended turns, and the turns themselves.

    Of a session that is there, the newest turn of each person stays: it says whose session that is.
    """
    may_go = "state <> 'running' AND state <> 'waiting' AND COALESCE(ended_at, created_at) < :before"
    found = _old(tx, "turns", "created_at", may_go, before=before, after=after, bite=bite)

    def delete(turn_id: str) -> int:
        pruned = tx.run("DELETE FROM tool_calls WHERE turn_id = :id", id=turn_id)
        return pruned + tx.run(
            """
            DELETE FROM turns WHERE id = :id AND (
                NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = turns.session_id)
                OR EXISTS (SELECT 1 FROM turns AS newer WHERE newer.session_id = turns.session_id
                    AND newer.person_id = turns.person_id AND newer.created_at > turns.created_at))
            """,
            id=turn_id,
        )

    return _delete(found, bite, delete)


def prune_pictures(tx: Tx, *, before: float, after: Place = START, bite: int = 20) -> Bite:
    """Delete pictures that no request has brought for so long; a message that names one goes on without it."""
    found: list[Row] = tx.all(
        """
        SELECT hash, created_at, 1 FROM pictures WHERE created_at < :before
            AND (created_at > :at OR (created_at = :at AND hash > :after))
        ORDER BY created_at, hash LIMIT :bite
        """,
        lambda *row: row,
        before=before,
        at=after[0],
        after=after[1],
        bite=bite,
    )
    return _delete(found, bite, lambda name: tx.run("DELETE FROM pictures WHERE hash = :hash", hash=name))


PRUNED: Mapping[str, Callable[..., Bite]] = {
    "inbox": prune_inbox,
    "outbox": prune_outbox,
    "approvals": prune_approvals,
    "turns": prune_turns,
    "pictures": prune_pictures,
}
"""In this order: what belongs to a turn goes before the turn."""


def old_requests(tx: Tx, *, before: float, after: Place = START, bite: int = BITE) -> tuple[list[str], Place | None]:
    """Sessions of the API and of subtasks that nobody named or went on with, last used before then.

    A session whose name the client chose is kept, and one with a title: somebody may come back to it.
    """
    rows: list[tuple[str, float, str]] = tx.all(
        """
        SELECT id, updated_at, key FROM sessions WHERE updated_at < :before AND title = ''
            AND (updated_at > :at OR (updated_at = :at AND id > :after))
        ORDER BY updated_at, id LIMIT :bite
        """,
        lambda *row: row,
        before=before,
        at=after[0],
        after=after[1],
        bite=bite,
    )
    found = [session_id for session_id, _, key in rows if _is_one_shot(key) and not _is_open(tx, key)]
    return found, (rows[-1][1], rows[-1][0]) if len(rows) == bite else None


def _is_one_shot(key: str) -> bool:
    from hermes.core.keys import SessionKey

    try:
        where = SessionKey.parse(key)
    except ValueError:
        return False
    return where.platform == "task" or (where.platform == "api" and where.chat.startswith("s_"))


def _is_open(tx: Tx, key: str) -> bool:
    """Whether a turn runs or a message waits in this lane."""
    lane = tx.value("SELECT 1 FROM lanes WHERE key = :key AND (turn_id <> '' OR next_at IS NOT NULL)", key=key)
    return lane is not None


def forget_lane(tx: Tx, key: str) -> None:
    """Delete the queue of a one-shot session that is gone."""
    tx.run(
        """
        DELETE FROM lanes WHERE key = :key AND owner IS NULL AND turn_id = '' AND session_id = '' AND next_at IS NULL
            AND NOT EXISTS (SELECT 1 FROM inbox WHERE lane = :key
                AND (state = 'queued' OR state = 'acting' OR state = 'taken'))
        """,
        key=key,
    )


# Sizes


def stored(tx: Tx) -> dict[str, Any]:
    """What the store takes: ``bytes`` in all, ``free`` of them unused, and ``oldest``, the first message kept."""
    oldest = tx.value("SELECT MIN(received_at) FROM inbox")
    if tx.dialect.name == "sqlite":
        page = int(tx.value("PRAGMA page_size"))
        size, free = int(tx.value("PRAGMA page_count")) * page, int(tx.value("PRAGMA freelist_count")) * page
    else:
        size, free = int(tx.value("SELECT pg_database_size(current_database())")), 0
    return {"bytes": size, "free": free, "oldest": oldest}


# One table


def _old(tx: Tx, table: str, age: str, may_go: str, *, before: float, after: Place, bite: int) -> list[Row]:
    """The next rows that are old enough: id, time, and whether each may go."""
    return tx.all(
        f"""
        SELECT id, {age}, CASE WHEN {may_go} THEN 1 ELSE 0 END FROM {table}
        WHERE {age} < :before AND {age} >= :at AND ({age} > :at OR id > :after)
        ORDER BY {age}, id LIMIT :bite
        """,
        lambda *row: row,
        before=before,
        at=after[0],
        after=after[1],
        bite=bite,
    )


def _prune(tx: Tx, table: str, age: str, may_go: str, *, before: float, after: Place, bite: int) -> Bite:
    found = _old(tx, table, age, may_go, before=before, after=after, bite=bite)
    return _delete(found, bite, lambda row_id: tx.run(f"DELETE FROM {table} WHERE id = :id", id=row_id))


def _delete(found: Sequence[Row], bite: int, delete: Callable[[str], int]) -> Bite:
    """Delete what may go, until the time is over."""
    until = time.monotonic() + MAX_SECONDS
    pruned = 0
    for row_id, at, is_over in found:
        if is_over:
            pruned += delete(row_id)
            if time.monotonic() > until:
                return Bite(pruned, (at, row_id))
    return Bite(pruned, (found[-1][1], found[-1][0]) if len(found) == bite else None)
