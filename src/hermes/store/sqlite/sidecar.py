"""Write beside the database what a recovery would need, after each change.

``mirror.jsonl`` holds who is who and where the adapters stand; ``sessions/<id>.jsonl`` the transcripts, and
``sessions/sessions.json`` is their index. Triggers that live in the writer's connection alone say what changed, so no
store function has to remember it.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes.store.db import Tx
from hermes.store.sqlite import schema_repair
from hermes.store.sqlite.mirror import Mirror
from hermes.store.sqlite.session_index import SessionIndex
from hermes.store.sqlite.transcript_files import Journal

log = logging.getLogger(__name__)

Change = tuple[str, str]

_MIRROR = "mirror"
_EVERYTHING: Change = (_MIRROR, "")

_AT_START = 200
"""Sessions whose files may lack their last lines after a kill: the most recent ones."""


class SidecarWriter:
    def __init__(self, folder: Path) -> None:
        self._mirror = Mirror(folder)
        self._journal = Journal(folder / "sessions")
        self._index = SessionIndex(folder / "sessions")
        self._lock = threading.Lock()
        self._keeping = threading.Lock()
        self._seen: set[Change] = set()
        self._due: set[Change] = set()
        self._unwritten: set[Change] = set()
        self._logged = ""
        self._has_sessions = False

    def watch(self, connection: sqlite3.Connection) -> None:
        """Learn of every change this connection makes."""
        tables = set(schema_repair.tables(connection))
        connection.create_function("hermes_changed", 2, self._note)
        connection.create_function("hermes_mirrored", -1, self._note_row)
        for when, calls in self._mirror.triggers(connection, "hermes_mirrored"):
            _trigger(connection, when, calls)
        self._has_sessions = {"transcript", "sessions"} <= tables
        if self._has_sessions:
            _trigger(connection, "AFTER INSERT ON main.transcript", "hermes_changed('lines', NEW.session_id)")
            noted = "AFTER UPDATE OF title, ended_at, heard ON main.sessions"
            _trigger(connection, noted, "hermes_changed('session', NEW.id)")
            _trigger(connection, "AFTER DELETE ON main.sessions", "hermes_changed('deleted', OLD.id)")
            recent = connection.execute("SELECT id FROM sessions ORDER BY updated_at DESC LIMIT ?", [_AT_START])
            self._seen.update(("lines", session_id) for (session_id,) in recent)
        if self._mirror.is_missing():
            self._seen.add(_EVERYTHING)

    def _note(self, kind: str, which: str) -> None:
        self._seen.add((kind, which))

    def _note_row(self, table: str, *key: str | int) -> None:
        self._seen.add((_MIRROR, self._mirror.name_of(table, *key)))

    def committed(self) -> bool:
        """Called by the writer after COMMIT. Returns whether there is something new to write down."""
        if not self._seen:
            return False
        with self._lock:
            was_idle = not self._due
            self._due |= self._seen
        self._seen.clear()
        return was_idle

    def write_anew(self) -> None:
        """Have the mirror and the index written whole with the next change: they hold rows that are gone by now."""
        if self._has_sessions:
            self._mirror.outdate()
            self._index.hurry()
            self._seen.add(_EVERYTHING)

    def index_due_in(self) -> float | None:
        """Seconds until ``keep`` would write the index of sessions; None when nothing of it waits."""
        return self._index.due_in()

    def keep(self, tx: Tx, *, is_last: bool = False) -> None:
        """Write what is due from one snapshot; failures are retried at the next change. ``is_last``: the index too."""
        with self._keeping:  # two at once could write the same lines twice
            self._keep(tx, is_last=is_last)

    def _keep(self, tx: Tx, *, is_last: bool) -> None:
        with self._lock:
            due = self._unwritten = self._due | self._unwritten
            self._due = set()
        failed = self._keep_rows(tx, [change for change in due if change[0] == _MIRROR])
        work: dict[str, Callable[[str], object]] = {
            "lines": lambda session_id: self._journal.catch_up(tx, session_id),
            "session": lambda session_id: self._journal.note_session(tx, session_id),
            "deleted": lambda session_id: self._journal.remove(tx, session_id),
        }
        written: set[str] = set()
        for kind, which in sorted(change for change in due if change[0] != _MIRROR):
            try:
                work[kind](which)
                written.add(which)
            except OSError as error:
                failed[kind, which] = error
        self._index.note(tx, written)
        self._unwritten = set(failed)
        self._say(next(iter(failed.values()), None) or self._keep_index(tx, is_last=is_last))

    def _keep_index(self, tx: Tx, *, is_last: bool) -> OSError | None:
        seconds = self._index.due_in()
        if seconds is None or (seconds > 0 and not is_last):
            return None
        try:
            self._index.write(tx)
        except OSError as error:
            return error
        return None

    def _keep_rows(self, tx: Tx, changed: Sequence[Change]) -> dict[Change, OSError]:
        """All changed rows in one append."""
        if not changed:
            return {}
        try:
            self._mirror.write(tx, sorted(which for _, which in changed if which))
        except OSError as error:
            return dict.fromkeys(changed, error)
        return {}

    def _say(self, error: OSError | None) -> None:
        """Once for each reason."""
        earlier, self._logged = self._logged, str(error or "")
        if error is not None and earlier != self._logged:
            log.warning("Sidecar not written", extra={"reason": str(error)})


def _trigger(connection: sqlite3.Connection, when: str, calls: str) -> None:
    name = "hermes_" + "_".join(word.strip(",").replace(".", "_") for word in when.lower().split())
    connection.execute(f"CREATE TEMP TRIGGER {name} {when} BEGIN SELECT {calls}; END")
