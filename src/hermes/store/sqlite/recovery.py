"""Recover what a damaged database still holds, and report what it lost.

The damaged set is copied, never opened itself, and the copy is read by ``salvage``. Who is who and who may do what is
taken from whole pages and from the mirror alone. What is still missing comes from the mirror, from the transcripts
written as JSONL and, without a map of the pages, from the newest backup. Rows stream; nothing is held whole.

The new file is built beside the old one and takes its name only when it is complete, so that a kill at any moment
leaves either the damaged set or a finished recovery.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hermes.store import home, migrate
from hermes.store.sqlite import backup, mirror, schema_repair, transcript_files
from hermes.store.sqlite.file import (
    SUFFIXES,
    apply_migrations,
    beside,
    finished_recovery,
    set_aside,
    transaction,
    tx_of,
)
from hermes.store.sqlite.losses import LAST_CHANGES, Loss, Report, as_json, from_json
from hermes.store.sqlite.salvage import Salvaged, damaged_copy, insert_rows, rows_in, salvage

log = logging.getLogger(__name__)

WORK = frozenset({"inbox", "lanes", "turns", "tool_calls", "outbox", "targets", "approvals"})
"""Never taken from an old backup: what was open then has long been settled, and would be answered again."""

_PENDING = "recovered"
"""In ``meta`` of a recovered file: its report, until the owner was told."""


def rebuild(
    path: Path, steps: Sequence[migrate.Migration], now: float, *, reason: str = "", rescued: Path | None = None
) -> None:
    """Put a new database in the place of a damaged or missing one, with every row that can be read.

    ``rescued`` is a copy of the content as it was just now, if there is one: then nothing is lost. No connection to
    ``path`` may be open in this process.
    """
    new = beside(path, ".rebuilding")
    for suffix in (*SUFFIXES, "-journal"):
        beside(new, suffix).unlink(missing_ok=True)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    report = Report(path.name, reason, now)
    with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as target:
        target.execute("PRAGMA synchronous = OFF")  # it has no name yet: made durable as a whole, at the end
        target.execute("PRAGMA journal_mode = MEMORY")
        if rescued is not None:
            apply_migrations(target, steps, path.name)
            _import(rescued, target, [name for name in schema_repair.tables(target) if name != "meta"])
        else:
            with damaged_copy(path) as copy:
                found = salvage(copy, path, target, steps)
            _fill_gaps(path, target, found)
            _wake_open_work(target)
            report.losses, report.notes = _losses(target, found), found.notes
        report.rows = sum(rows_in(target, table) for table in schema_repair.tables(target) if table != "meta")
        with transaction(target):
            migrate.note(tx_of(target), _PENDING, as_json(report))
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.replace(finished_recovery(path))
    adopt(path, now)


def untold_report(connection: sqlite3.Connection, path: Path) -> Report:
    """The report of a recovered file that nobody was told of yet."""
    (text,) = connection.execute("SELECT value FROM meta WHERE key = ?", [_PENDING]).fetchone()
    report = from_json(text)
    kept = [entry for entry in path.parent.glob(f"{path.name}.corrupt.*") if not entry.name.endswith(SUFFIXES[1:])]
    report.kept_as = max((entry.name for entry in kept), default="")
    return report


def forget_report(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM meta WHERE key = ?", [_PENDING])


def adopt(path: Path, now: float) -> Path:
    """Set the damaged set aside and put the finished recovery in its place. Also ends one that was interrupted."""
    kept = set_aside(path, "corrupt", now)
    os.rename(finished_recovery(path), path)
    return kept


def carry_over(rescued: Path, target: sqlite3.Connection) -> None:
    """Let what was going on go on in a sound file that was put in the place of ours, mostly an older copy.

    Messages, their names, turns, answers and who is who are as they were just now: else what arrived since the copy
    would be lost, and what was answered since would be answered again. So are the sessions that lanes are in. All
    else is the new file's.
    """
    have = set(schema_repair.tables(target))
    with contextlib.closing(home.read_only(rescued)) as source, transaction(target):
        for table in [name for name in (*WORK, *mirror.MIRRORED, "dedupe") if name in have]:
            _replace(source, target, table, "")
        if {"lanes", "sessions", "transcript", "revisions"} <= have:
            for table, key in (("sessions", "id"), ("transcript", "session_id"), ("revisions", "session_id")):
                _replace(source, target, table, f"WHERE {key} IN (SELECT session_id FROM lanes)")


def _replace(source: sqlite3.Connection, target: sqlite3.Connection, table: str, where: str) -> None:
    names = ", ".join(column.name for column in schema_repair.columns(target, table))
    rows = source.execute(f"SELECT {names} FROM {table} {where}")
    cursor = ", ".join("?" * (names.count(",") + 1))
    target.executemany(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({cursor})", rows)


# The other sources


def _fill_gaps(path: Path, target: sqlite3.Connection, found: Salvaged) -> None:
    """Take from mirror, transcripts and backup what the file itself did not give."""
    kept = mirror.read(path.parent)
    tables = schema_repair.tables(target)
    for table in [name for name in sorted(kept.tables) if name in tables and found.is_short(name, target)]:
        # Where the last changes are lost, a row of the file may be older than the mirror's: a role that was taken away.
        _insert_mirrored(target, table, kept.of(table), is_newer=found.lost_changes)
        if found.lost_changes:
            keys = kept.deleted(table)
            names = [column.name for column in schema_repair.columns(target, table) if column.primary]
            where = " AND ".join(f"{name} = ?" for name in names)
            target.executemany(f"DELETE FROM {table} WHERE {where}", keys)
    if {"sessions", "transcript"} <= set(tables) and any(
        found.is_short(table, target) for table in ("sessions", "transcript", "revisions")
    ):
        transcript_files.restore(path.parent / "sessions", target)
    if found.is_known:
        return  # a backup is older than what is known: its rows may have been changed or deleted since
    empty = [name for name in tables if name not in WORK and name not in kept.tables and name != "meta"]
    wanted = [name for name in empty if found.is_short(name, target) and not rows_in(target, name)]
    for copy in backup.newest(path)[:1] if wanted else []:
        if count := _import(copy, target, wanted):
            found.notes.append(f"{count:,} rows are as they were in the backup {copy.name}.")


def _losses(target: sqlite3.Connection, found: Salvaged) -> list[Loss]:
    """What is missing now, table by table."""
    losses = []
    for table, expected in found.tables.items():
        missing = max(0, expected.rows - rows_in(target, table))
        is_exact = expected.is_exact
        if not missing and (is_exact or (found.lost_changes and not expected.gaps)):
            continue
        since = [gap.since for gap in expected.gaps]
        until = [gap.until for gap in expected.gaps]
        losses.append(Loss(table, missing, is_exact, _extreme(min, since), _extreme(max, until)))
    if found.lost_changes:
        losses.append(Loss(LAST_CHANGES, 0, is_exact=False))
    return losses


def _extreme(which: Any, times: Sequence[float | None]) -> float | None:
    """None where one of them is open."""
    known = [at for at in times if at is not None]
    return which(known) if known and len(known) == len(times) else None


def _wake_open_work(target: sqlite3.Connection) -> None:
    """Make the queue again of messages and deliveries that are open and whose queue is gone: else they wait forever."""
    have = set(schema_repair.tables(target))
    for table, key, queue, states in (
        ("inbox", "lane", "lanes", "'queued', 'acting', 'taken'"),
        ("outbox", "target", "targets", "'ready', 'unknown', 'parked'"),
    ):
        if {table, queue} <= have:
            target.execute(
                f"INSERT OR IGNORE INTO {queue} (key, seq, next_at) SELECT {key}, max(seq), 0 FROM {table}"
                f" GROUP BY {key} HAVING sum(state IN ({states}))"
            )


def _insert_mirrored(
    target: sqlite3.Connection, table: str, rows: Iterable[mirror.Row], *, is_newer: bool = False
) -> int:
    """Lines of different ages may tell of different columns."""
    names = [column.name for column in schema_repair.columns(target, table)]
    by_columns: dict[tuple[str, ...], list[Sequence[object]]] = {}
    for row in rows:
        present = tuple(name for name in names if name in row)
        by_columns.setdefault(present, []).append([row[name] for name in present])
    return sum(
        insert_rows(target, table, present, values, conflict="REPLACE" if is_newer else "IGNORE")
        for present, values in by_columns.items()
        if present
    )


def _import(copy: Path, target: sqlite3.Connection, tables: Sequence[str]) -> int:
    """Copy whole tables from a sound file; tables and columns it lacks are passed over."""
    count = 0
    try:
        with contextlib.closing(home.read_only(copy)) as source:
            for table in tables:
                present = {column.name for column in schema_repair.columns(source, table)}
                names = [column.name for column in schema_repair.columns(target, table) if column.name in present]
                if names:
                    rows = source.execute(f"SELECT {', '.join(names)} FROM {table}")
                    count += insert_rows(target, table, names, rows)
    except sqlite3.DatabaseError as error:
        log.warning("Backup not read", extra={"path": str(copy), "reason": str(error)})
    return count
