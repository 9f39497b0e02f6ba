"""Count what the store holds, and check that it is sound."""

from __future__ import annotations

from typing import Any

from hermes.store import outbox, people
from hermes.store.db import Tx

DAY_SECONDS = 86400.0


def check(tx: Tx) -> dict[str, Any]:
    """Ask the database itself. ``words`` is its first complaint, "" when it is sound."""
    if tx.dialect.name != "sqlite":
        return {"engine": tx.dialect.name, "is_sound": tx.value("SELECT 1") == 1, "words": ""}
    words = str(tx.value("PRAGMA quick_check(1)"))
    size = int(tx.value("PRAGMA page_count")) * int(tx.value("PRAGMA page_size"))
    return {"engine": "sqlite", "is_sound": words == "ok", "words": "" if words == "ok" else words, "bytes": size}


def counts(tx: Tx, *, now: float) -> dict[str, Any]:
    roles = tx.all("SELECT role, COUNT(*) FROM people GROUP BY role", lambda *row: row)
    return {
        "sessions": int(tx.value("SELECT COUNT(*) FROM sessions")),
        "people": {str(role): int(number) for role, number in roles},
        "has_owner": people.has_owner(tx),
        "dead_letters": int(tx.value(f"SELECT COUNT(*) FROM outbox WHERE {outbox.IS_DEAD_LETTER}")),  # noqa: S608
        "today": outbox.counts(tx, since=now - DAY_SECONDS),
    }
