"""Write ``sessions/sessions.json``: each session key and its current session.

The database is the truth; this file is for people and programs that look into the folder, in the form in which
hermes-agent writes it. Requests of the API and subtasks are nobody's chat, and are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from hermes.core.keys import SessionKey
from hermes.core.lane import DOORS
from hermes.store import home
from hermes.store.db import Tx
from hermes.store.private_files import write_private

FILE = "sessions.json"
WRITE_SECONDS = 10.0
"""So often the file is written while conversations go on; the end of the process writes it too."""

MAX_SESSIONS = 10_000
"""The latest conversations; an index of more would be read by nobody."""

_IS_CHAT = " AND ".join(f"lanes.key NOT LIKE 'agent:%:{door}:%'" for door in sorted(DOORS))
_LATEST = (
    "SELECT lanes.key, sessions.id, title, created_at, updated_at"
    f" FROM lanes JOIN sessions ON sessions.id = lanes.session_id WHERE {_IS_CHAT}"
    " ORDER BY updated_at DESC LIMIT :most"
)


class SessionIndex:
    """Writes the file of one folder, off the write path. Used by one thread at a time."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = folder / FILE
        self._clock = clock
        self._is_due = False
        self._written_at = -WRITE_SECONDS

    def note(self, tx: Tx, session_ids: Collection[str]) -> None:
        """Sessions have changed or are gone: the file is due, unless none of them belongs to a chat."""
        if self._is_due or not session_ids:
            return
        ids = orjson.dumps(list(session_ids)).decode()
        keys = tx.all("SELECT key FROM sessions WHERE id IN (SELECT value FROM json_each(:ids))", _parsed, ids=ids)
        self._is_due = len(keys) < len(session_ids) or any(key is None or key.platform not in DOORS for key in keys)

    def hurry(self) -> None:
        """Have the file written at the next look."""
        self._is_due, self._written_at = True, -WRITE_SECONDS

    def due_in(self) -> float | None:
        """Seconds until the file should be written; None when it tells everything."""
        return max(0.0, self._written_at + WRITE_SECONDS - self._clock()) if self._is_due else None

    def write(self, tx: Tx) -> None:
        """Replace the file in one step. Raises OSError; it stays due then."""
        entries = tx.all(_LATEST, _entry, most=MAX_SESSIONS)
        lines = [orjson.dumps(entry["session_key"]) + b": " + orjson.dumps(entry) for entry in entries if entry]
        home.make_private_folder(self._path.parent)
        write_private(self._path, b"{\n" + b",\n".join(lines) + b"\n}\n")
        self._is_due, self._written_at = False, self._clock()


def _entry(key: str, session_id: str, title: str, created_at: float, updated_at: float) -> dict[str, Any]:
    """Empty for a row that is damaged."""
    where = _parsed(key)
    if where is None:
        return {}
    try:
        times = {"created_at": _iso(created_at), "updated_at": _iso(updated_at)}
    except (TypeError, ValueError, OverflowError, OSError):  # SQLite keeps anything in any column
        return {}
    return {
        "session_key": key,
        "session_id": str(session_id),
        "title": str(title),
        "platform": where.platform,
        "chat_type": where.kind.value,
        **times,
    }


def _parsed(key: str) -> SessionKey | None:
    try:
        return SessionKey.parse(key)
    except ValueError:
        return None


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
