"""Write transcripts as JSONL: ``sessions/<id>.jsonl``, a line for each row.

A line is ``{"session", "seq", "at", "role", "turn", "kind", "body"}``; lines with the role ``session`` tell the
session's own row (key, title, end). The database is the truth; these files are for people to read, and for the
day the database is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, field
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.store import home
from hermes.store.db import Tx
from hermes.store.sessions import revisions
from hermes.store.sqlite import schema_repair

Json = dict[str, Any]

LOST = "lost: the store was damaged before this call's result was written down"
_ROWS_AT_ONCE = 500
_ENDS_KEPT = 512
_BLOCK = 64 * 1024
_PLAIN_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,120}")
_SESSION_COLUMNS = ("key", "title", "created_at", "updated_at", "ended_at", "end_reason", "heard")


@dataclass(slots=True)
class Rebuilt:
    """A transcript as its file tells it: every line from the first to the last without a gap."""

    session_id: str
    session: Json = field(default_factory=dict)
    lines: list[Json] = field(default_factory=list)

    @property
    def last_seq(self) -> int:
        return int(self.lines[-1]["seq"]) if self.lines else 0


@dataclass(frozen=True, slots=True)
class _FileEnd:
    """Where a file ends that we have written: as long as size and time are these, nobody else has touched it."""

    size: int
    written_at: int
    last: int


class Journal:
    """Appends to the files of one folder. Used by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ends = BoundedDict[str, _FileEnd](_ENDS_KEPT)  # of the files that were written last

    def path(self, session_id: str) -> Path | None:
        """Where a session's file is; None for an id that is no file name."""
        return self._folder / f"{session_id}.jsonl" if _PLAIN_ID.fullmatch(session_id) else None

    def catch_up(self, tx: Tx, session_id: str) -> int:
        """Append what follows the last whole line, and say how many lines that was. A torn line is cut off."""
        if not _PLAIN_ID.fullmatch(session_id):
            return 0
        path = f"{self._folder}/{session_id}.jsonl"
        descriptor = self._open(path)
        try:
            end = self._end_of(session_id, descriptor)
            head = b""
            if end.size == 0:
                row = _session_row(tx, session_id)
                if row is None:  # deleted meanwhile
                    os.unlink(path)
                    return 0
                head = _dump(_session_line(session_id, 0, row))
            size, last, count = end.size, end.last, 0
            for rows in _rows_after(tx, session_id, end.last):
                size += _write_at(descriptor, size, b"".join([head, *map(_dump, rows)]))
                head, last, count = b"", rows[-1]["seq"], count + len(rows)
            size += _write_at(descriptor, size, head)
            self._ends[session_id] = _FileEnd(size, os.fstat(descriptor).st_mtime_ns, last)
            return count
        finally:
            os.close(descriptor)

    def _end_of(self, session_id: str, descriptor: int) -> _FileEnd:
        """Where the file goes on. Read from it, unless it is new or as we left it; a torn line is cut off."""
        found = os.fstat(descriptor)
        if not found.st_size:  # most are new, since every API request has a session of its own
            return _FileEnd(0, 0, 0)
        known = self._ends.get(session_id)
        if known is not None and (known.size, known.written_at) == (found.st_size, found.st_mtime_ns):
            return known
        with open(descriptor, "r+b", closefd=False) as file:
            size, last = _last_whole_line(file)
            file.truncate(size)
        return _FileEnd(size, 0, last)

    def _open(self, path: str) -> int:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            home.make_private_folder(self._folder)
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def note_session(self, tx: Tx, session_id: str) -> None:
        """Append a line that tells the session's title and end as they are now."""
        self.catch_up(tx, session_id)
        path = self.path(session_id)
        row = _session_row(tx, session_id)
        if path is None or row is None or not path.exists():
            return
        with path.open("r+b") as file:
            end, last = _last_whole_line(file)
            file.seek(end)
            file.write(_dump(_session_line(session_id, last, row)))

    def remove(self, tx: Tx, session_id: str) -> None:
        """Remove the file of a session that is gone. One that is there all the same: its deletion was undone."""
        self._ends.pop(session_id, None)
        if (path := self.path(session_id)) and _session_row(tx, session_id) is None:
            path.unlink(missing_ok=True)

    def rebuild(self, session_id: str) -> Rebuilt:
        """Read a transcript back: up to the first gap, with every open tool call closed."""
        path = self.path(session_id)
        if path is None:
            return Rebuilt(session_id)
        found = read(path)
        found.lines += closing_lines(found)
        return found


# Writing


def _write_at(descriptor: int, position: int, data: bytes) -> int:
    """Write all of it there, and say how much that was."""
    written = 0
    while written < len(data):
        written += os.pwrite(descriptor, data[written:] if written else data, position + written)
    return written


def _rows_after(tx: Tx, session_id: str, last: int) -> Iterator[list[Json]]:
    while rows := tx.all(
        "SELECT session_id, seq, turn_id, kind, body, at FROM transcript"
        " WHERE session_id = :id AND seq > :last ORDER BY seq LIMIT :limit",
        _line,
        id=session_id,
        last=last,
        limit=_ROWS_AT_ONCE,
    ):
        yield rows
        if len(rows) < _ROWS_AT_ONCE:
            return
        last = rows[-1]["seq"]


def _line(session_id: str, seq: int, turn_id: str, kind: str, body: str, at: float) -> Json:
    try:
        data = orjson.loads(body)
    except ValueError:
        data = body
    role = data.get("role", kind) if isinstance(data, dict) else kind
    return {"session": session_id, "seq": seq, "at": at, "role": role, "turn": turn_id, "kind": kind, "body": data}


def _session_row(tx: Tx, session_id: str) -> Json | None:
    return tx.one(
        f"SELECT {', '.join(_SESSION_COLUMNS)} FROM sessions WHERE id = :id",
        lambda *row: dict(zip(_SESSION_COLUMNS, row, strict=True)),
        id=session_id,
    )


def _session_line(session_id: str, seq: int, row: Json) -> Json:
    return {"session": session_id, "seq": seq, "at": row["updated_at"], "role": "session", "body": row}


def _dump(line: Json) -> bytes:
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def _last_whole_line(file: BinaryIO) -> tuple[int, int]:
    """Where the last whole line ends, and its seq. A line that cannot be read counts as torn, with all after it."""
    end = file.seek(0, 2)
    while end:
        start = end
        tail = b""
        while start and b"\n" not in tail[:-1]:
            step = min(_BLOCK, start)
            start -= step
            file.seek(start)
            tail = file.read(step) + tail
        if not tail.endswith(b"\n"):
            end = start + tail.rfind(b"\n") + 1  # torn: cut back to the line before
            continue
        begin = tail.rfind(b"\n", 0, -1) + 1
        line = _parse(tail[begin:])
        if line is not None:
            return end, int(line["seq"])
        end = start + begin
    return 0, 0


# Reading


def _parse(raw: bytes) -> Json | None:
    try:
        line = orjson.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) and isinstance(line.get("seq"), int) else None


def read(path: Path) -> Rebuilt:
    """Read a file up to the first line that is torn or does not follow its forerunner."""
    found = Rebuilt(path.stem)
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        for raw in file:
            line = _parse(raw)
            if line is None:
                break
            if line.get("role") == "session":
                found.session = line.get("body") or {}
            elif found.lines and line["seq"] <= found.last_seq:
                continue  # written twice: the first one stands
            elif line["seq"] != found.last_seq + 1:
                break
            else:
                found.lines.append(line)
    return found


def closing_lines(found: Rebuilt) -> list[Json]:
    """An answer for every tool call that has none, so that a model accepts the transcript."""
    open_calls: dict[str, Json] = {}
    for line in found.lines:
        body = line.get("body")
        if not isinstance(body, dict):
            continue
        for call in body.get("tool_calls") or ():
            open_calls[call["id"]] = line
        open_calls.pop(body.get("tool_call_id", ""), None)
    return [
        {
            **{name: line.get(name) for name in ("session", "at", "turn", "kind")},
            "seq": found.last_seq + number,
            "role": "tool",
            "body": {"role": "tool", "text": LOST, "tool_call_id": call_id},
        }
        for number, (call_id, line) in enumerate(open_calls.items(), 1)
    ]


def restore(folder: Path, target: sqlite3.Connection) -> int:
    """Put back sessions and lines that a recovered database lacks. Returns how many rows that was."""
    before = target.total_changes
    for path in sorted(folder.glob("*.jsonl")):
        found = target.execute(
            "SELECT seq, (SELECT count(*) FROM transcript WHERE session_id = sessions.id) FROM sessions WHERE id = ?",
            [path.stem],
        ).fetchone()
        if found is None or found[0] != found[1]:
            _restore_one(read(path), target)
    # Make the rows of revisions again that the lines tell of and the table lacks.
    sentence = (
        "SELECT session_id, seq, kind, body, at FROM transcript WHERE kind IN ('revision', 'undo') ORDER BY session_id"
    )
    rows = target.execute(f"{sentence}, seq").fetchall()
    names = ", ".join(f":{name}" for name in revisions.COLUMNS.split(", "))
    for session_id, lines in groupby(rows, key=lambda row: row[0]):
        target.executemany(
            f"INSERT OR IGNORE INTO revisions (session_id, {revisions.COLUMNS}) VALUES (:session_id, {names})",
            [{"session_id": session_id, **asdict(made)} for made in revisions.revisions_of(line[1:] for line in lines)],
        )
    return target.total_changes - before


def _restore_one(found: Rebuilt, target: sqlite3.Connection) -> None:
    is_new = target.execute("SELECT 1 FROM sessions WHERE id = ?", [found.session_id]).fetchone() is None
    if is_new:
        found.lines += closing_lines(found)
    if not found.lines or (is_new and not found.session.get("key")):
        return
    target.execute("BEGIN IMMEDIATE")
    if is_new:
        row = {"title": "", "ended_at": None, "end_reason": "", "heard": "", **found.session}
        row = {"created_at": found.lines[0]["at"], "updated_at": found.lines[-1]["at"], **row}
        there = {column.name for column in schema_repair.columns(target, "sessions")}  # perhaps of an older schema
        names = [name for name in _SESSION_COLUMNS if name in there]
        target.execute(
            f"INSERT INTO sessions (id, {', '.join(names)}) VALUES (:id, :{', :'.join(names)})",
            {"id": found.session_id, **{name: row[name] for name in names}},
        )
        if row["ended_at"] is None:
            # The conversation goes on where it was, unless its lane survived and says otherwise.
            target.execute(
                "INSERT OR IGNORE INTO lanes (key, session_id) VALUES (?, ?)", [row["key"], found.session_id]
            )
    target.executemany(
        "INSERT OR IGNORE INTO transcript (session_id, seq, turn_id, kind, body, at) VALUES (?, ?, ?, ?, ?, ?)",
        [_row(found.session_id, line) for line in found.lines],
    )
    target.execute(
        "UPDATE sessions SET seq = (SELECT max(seq) FROM transcript WHERE session_id = :id)"
        " WHERE id = :id AND seq < (SELECT max(seq) FROM transcript WHERE session_id = :id)",
        {"id": found.session_id},
    )
    target.execute("COMMIT")


def _row(session_id: str, line: Json) -> tuple[Any, ...]:
    body = line["body"] if isinstance(line["body"], str) else json.dumps(line["body"], ensure_ascii=False)
    return session_id, line["seq"], line.get("turn") or "", line.get("kind") or "message", body, line["at"]
