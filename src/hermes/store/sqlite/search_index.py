"""Index transcripts for full-text search, in a file that can be rebuilt.

Plain blocking functions over one connection; ``agent.session_search`` runs them off the loop. Trigrams find Chinese
text too; a word of one or two letters is looked for without the index.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.core.i18n.failures import sentence
from hermes.store.sqlite.file import APPLICATION_ID, error_code, is_damage

FILE = "search.db"
VERSION = 1
MIN_INDEXED_CHARS = 3
BUSY_SECONDS = 5.0

_SCHEMA = """
CREATE VIRTUAL TABLE IF NOT EXISTS lines USING fts5(
    text, session_id UNINDEXED, seq UNINDEXED, person_id UNINDEXED, role UNINDEXED, at UNINDEXED, tokenize = 'trigram');
CREATE TABLE IF NOT EXISTS progress (session_id TEXT PRIMARY KEY, seq INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS mark (id INTEGER PRIMARY KEY CHECK (id = 1), updated_at REAL NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class IndexedLine:
    session_id: str
    seq: int
    person_id: str
    role: str
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class IndexHit:
    session_id: str
    seq: int
    role: str
    at: float
    snippet: str


class _OtherVersionError(sqlite3.DatabaseError):
    """The index is of another version: made anew."""


def open_index(folder: Path) -> sqlite3.Connection:
    """Open the index, rebuilt if missing, damaged or outdated. GatewayError, and no change, if it is in use."""
    path = folder / FILE
    try:
        return _opened(path)
    except sqlite3.DatabaseError as error:
        code = error_code(error)
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise GatewayError(f"{FILE} is locked by another process. Nothing is searched until it ends.") from error
        if not is_damage(error) and not isinstance(error, _OtherVersionError):
            raise GatewayError(f"{FILE} cannot be used: {sentence(str(error))}") from error
        for name in (path, path.with_name(f"{path.name}-journal")):
            with contextlib.suppress(FileNotFoundError):
                name.unlink()
        return _opened(path)


def _opened(path: Path) -> sqlite3.Connection:
    is_new = not path.exists() or path.stat().st_size == 0
    if is_new:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        if not is_new and db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise GatewayError(f"{path} is not ours, so it is left alone and nothing is searched. Move it away.")
        if not is_new and db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            raise _OtherVersionError("another version of the index")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("PRAGMA synchronous = OFF")  # it is derived: what a power cut takes is indexed again
        db.execute("PRAGMA journal_mode = TRUNCATE")
        db.executescript(_SCHEMA)
    except BaseException:
        db.close()
        raise
    return db


def mark(db: sqlite3.Connection) -> float:
    """Sessions used since this time may have lines that are not indexed yet."""
    found = db.execute("SELECT updated_at FROM mark").fetchone()
    return float(found[0]) if found else 0.0


def set_mark(db: sqlite3.Connection, updated_at: float) -> None:
    db.execute(
        "INSERT OR REPLACE INTO mark (id, updated_at) VALUES (1, ?)",
        (updated_at,),
    )


def indexed_up_to(db: sqlite3.Connection, session_id: str) -> int:
    found = db.execute("SELECT seq FROM progress WHERE session_id = ?", (session_id,)).fetchone()
    return int(found[0]) if found else 0


def progress(db: sqlite3.Connection, session_ids: Sequence[str]) -> dict[str, int]:
    """Tell how far each of these sessions is indexed; one that is not there has nothing indexed."""
    return {session_id: indexed_up_to(db, session_id) for session_id in session_ids}


def add(db: sqlite3.Connection, session_id: str, lines: Iterable[IndexedLine], *, up_to: int) -> None:
    """Add lines of a session and note how far it is indexed, together. Lines noted before are not added again."""
    db.execute("BEGIN IMMEDIATE")
    try:
        have = indexed_up_to(db, session_id)
        db.executemany(
            "INSERT INTO lines (text, session_id, seq, person_id, role, at) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (line.text, line.session_id, line.seq, line.person_id, line.role, line.at)
                for line in lines
                if line.seq > have
            ],
        )
        db.execute(
            "INSERT OR REPLACE INTO progress (session_id, seq) VALUES (?, ?)",
            (session_id, max(up_to, have)),
        )
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def known_sessions(db: sqlite3.Connection, after: str, limit: int) -> list[str]:
    """Return so many of the sessions that are indexed, in the order of their ids, from behind this id."""
    rows = db.execute(
        "SELECT session_id FROM progress WHERE session_id > ? ORDER BY session_id LIMIT ?", (after, limit)
    )
    return [str(row[0]) for row in rows]


def forget(db: sqlite3.Connection, session_ids: Sequence[str]) -> None:
    """Sessions that were deleted are found no more."""
    for session_id in session_ids:
        db.execute("DELETE FROM lines WHERE session_id = ?", (session_id,))
        db.execute("DELETE FROM progress WHERE session_id = ?", (session_id,))


def erase(db: sqlite3.Connection, session_ids: Sequence[str]) -> None:
    """Forget sessions, and write the index anew: until then their words stand in old segments and free pages."""
    forget(db, session_ids)
    db.execute("INSERT INTO lines (lines) VALUES ('optimize')")
    db.execute("VACUUM")


def find(db: sqlite3.Connection, query: str, *, person_id: str, limit: int, after: int = 0) -> list[IndexHit]:
    """Lines of this person's turns that hold every word of the query, the best match first; '' for everybody's."""
    words = query.split()
    indexed = [word for word in words if len(word) >= MIN_INDEXED_CHARS]
    others = [word for word in words if len(word) < MIN_INDEXED_CHARS]
    conditions, values = ["(person_id = ? OR ? = '')"], [person_id, person_id]
    if indexed:
        conditions.append("lines MATCH ?")
        values.append(" AND ".join('"' + word.replace('"', '""') + '"' for word in indexed))
    for word in others:
        conditions.append("instr(lower(text), lower(?)) > 0")
        values.append(word)
    snippet = "snippet(lines, 0, '»', '«', ' … ', 40)" if indexed else "substr(text, 1, 200)"
    order = "rank" if indexed else "at DESC"
    rows = db.execute(
        f"SELECT session_id, seq, role, at, {snippet} FROM lines WHERE {' AND '.join(conditions)} "
        f"ORDER BY {order} LIMIT ? OFFSET ?",
        (*values, limit, after),
    )
    return [IndexHit(str(session), int(seq), str(role), float(at), str(text)) for session, seq, role, at, text in rows]
