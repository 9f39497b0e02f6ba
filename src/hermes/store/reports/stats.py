"""Count what the store holds, and check that it is sound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes.store import approvals, outbox, people
from hermes.store.db import Tx

DAY_SECONDS = 86400.0


def check(tx: Tx) -> dict[str, Any]:
    """Ask the database itself. ``words`` is its first complaint, "" when it is sound."""
    if tx.dialect.name != "sqlite":
        return {"engine": tx.dialect.name, "is_sound": tx.value("SELECT 1") == 1, "words": ""}
    words = str(tx.value("PRAGMA quick_check(1)"))
    size = int(tx.value("PRAGMA page_count")) * int(tx.value("PRAGMA page_size"))
    return {"engine": "sqlite", "is_sound": words == "ok", "words": "" if words == "ok" else words, "bytes": size}


def touch(tx: Tx) -> None:
    """Do nothing, as a write: before every write the file is looked at, and recovered if it is damaged."""
    tx.value("SELECT 1")


def insist_on_schema(tx: Tx, tables: Mapping[str, Sequence[str]]) -> None:
    """Name every column of these tables: a store that lacks one adds it then."""
    for table, columns in tables.items():
        tx.all(f"SELECT {', '.join(columns)} FROM {table} LIMIT 0", lambda *row: row)


def open_work(tx: Tx, *, now: float) -> dict[str, Any]:
    """What waits, for whom and since when, and how the jobs do: ``hermes doctor`` judges it."""
    open_inbox = "(state = 'queued' OR state = 'acting' OR state = 'taken')"
    open_outbox = "(state = 'ready' OR state = 'unknown' OR state = 'parked')"
    waiting = tx.all(
        f"""
        SELECT inbox.lane, COUNT(*), MIN(inbox.received_at), MAX(COALESCE(turns.state, ''))
        FROM inbox LEFT JOIN turns ON turns.id = inbox.turn_id AND inbox.turn_id <> ''
        WHERE {open_inbox.replace("state", "inbox.state")} GROUP BY inbox.lane ORDER BY 3 LIMIT 20
        """,
        lambda *row: row,
    )
    unsent = tx.all(
        f"SELECT target, COUNT(*), MIN(created_at), MAX(reason) FROM outbox WHERE {open_outbox}"
        " GROUP BY target ORDER BY 3 LIMIT 20",
        lambda *row: row,
    )
    jobs = tx.all(
        "SELECT id, name, state, reason, failures, undelivered, next_at FROM jobs WHERE state <> 'done' LIMIT 1000",
        lambda *row: row,
    )
    names = ("id", "name", "state", "reason", "failures", "undelivered", "next_at")
    return {
        "now": now,
        "messages": [
            {"lane": str(lane), "count": int(number), "since": float(since), "turn": str(turn)}
            for lane, number, since, turn in waiting
        ],
        "answers": [
            {"target": str(target), "count": int(number), "since": float(since), "reason": str(reason)}
            for target, number, since, reason in unsent
        ],
        "approvals": approvals.pending_count(tx),
        "jobs": [dict(zip(names, row, strict=True)) for row in jobs],
    }


def counts(tx: Tx, *, now: float) -> dict[str, Any]:
    roles = tx.all("SELECT role, COUNT(*) FROM people GROUP BY role", lambda *row: row)
    return {
        "sessions": int(tx.value("SELECT COUNT(*) FROM sessions")),
        "people": {str(role): int(number) for role, number in roles},
        "has_owner": people.has_owner(tx),
        "dead_letters": dead_letter_count(tx),
        "today": outbox_counts(tx, since=now - DAY_SECONDS),
        "oldest": tx.value("SELECT MIN(received_at) FROM inbox"),
        "deleting": int(tx.value("SELECT COUNT(*) FROM deleted_sessions")),
    }


def oldest_waiting(tx: Tx, *, now: float) -> dict[str, float]:
    """Seconds that the oldest message, answer and approval have waited; 0 where nothing waits."""
    first = {
        "messages": "SELECT MIN(received_at) FROM inbox WHERE state = 'queued' OR state = 'acting' OR state = 'taken'",
        "answers": "SELECT MIN(created_at) FROM outbox WHERE state = 'ready' OR state = 'unknown' OR state = 'parked'",
        "approvals": "SELECT MIN(created_at) FROM approvals WHERE state = 'pending'",
    }
    found = {queue: tx.value(sql) for queue, sql in first.items()}
    return {queue: max(0.0, now - at) if at is not None else 0.0 for queue, at in found.items()}


def sizes(tx: Tx) -> dict[str, int]:
    """Bytes of the database, ``free`` ones among them, and how many deliveries were given up."""
    from hermes.store.retention import pruning  # loaded when somebody asks

    found = pruning.stored(tx)
    return {"bytes": found["bytes"], "free": found["free"], "dead_letters": dead_letter_count(tx)}


# The outbox


def outbox_counts(tx: Tx, *, since: float) -> dict[str, int]:
    """How many rows are in each state, of those made since then or still open."""
    rows = tx.all(
        "SELECT state, COUNT(*) FROM outbox WHERE created_at >= :since GROUP BY state", lambda *row: row, since=since
    )
    return {str(state): int(count) for state, count in rows}


def sent_counts(tx: Tx, *, since: float, before: float) -> dict[str, int]:
    """How many rows each target was sent in that time, of those made up to an hour before it."""
    rows = tx.all(
        """
        SELECT target, COUNT(*) FROM outbox WHERE created_at >= :made_since AND created_at < :before
            AND state = 'sent' AND settled_at >= :since AND settled_at < :before GROUP BY target
        """,
        lambda *row: row,
        made_since=since - 3600.0,
        since=since,
        before=before,
    )
    return {str(target): int(count) for target, count in rows}


def unsent_count(tx: Tx) -> int:
    """How many deliveries are not settled: ready, under way or parked."""
    return int(tx.value("SELECT COUNT(*) FROM outbox WHERE (state = 'ready' OR state = 'unknown' OR state = 'parked')"))


def dead_letter_count(tx: Tx) -> int:
    return int(tx.value(f"SELECT COUNT(*) FROM outbox WHERE {outbox.IS_DEAD_LETTER}"))
