"""Recover one file into a new one: ``hermes store recover FILE``. The file itself is not changed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.store import home, migrate
from hermes.store.sqlite import recovery, schema_repair
from hermes.store.sqlite.file import SUFFIXES, beside
from hermes.store.sqlite.losses import Loss, Report
from hermes.store.sqlite.salvage import TableReader, insert_rows

BESIDE = (*SUFFIXES, "-journal", ".head", ".pages")
"""What may lie beside a store and help to read it."""


@dataclass(frozen=True, slots=True)
class RecoveredFile:
    """``kind`` is the store that the file is, '' for another program's. ``tables``: the rows that came back."""

    kind: str
    path: Path
    tables: Mapping[str, int]
    report: Report


def recover_file(source: Path, target: Path, stores: Mapping[str, str], now: float) -> RecoveredFile:
    """Build ``target`` from what ``source`` still holds. ``stores``: our file names, each with its migrations.

    Raises GatewayError where there is nothing to read, or ``target`` exists.
    """
    if not source.is_file():
        raise GatewayError(f"There is no file {source}.")
    if os.path.lexists(target):
        raise GatewayError(f"{target} exists already. Name another file: --to PATH")
    with _work_folder(target) as folder:
        kind = _kind_of(source, folder, stores)
        copy = folder / (kind or "damaged.db")
        _copy_set(source, copy)
        if kind:
            recovery.rebuild(copy, migrate.load(stores[kind]), now, reason="recovered on request")
            report = _take_report(copy)
        else:
            report = _salvage_any(copy, folder / "new.db", source.name, now)
            copy = folder / "new.db"
        tables = {name: rows for name, rows in schema_repair.count_rows(copy).items() if name != "meta"}
        os.replace(copy, target)
    return RecoveredFile(kind, target, tables, report)


@contextlib.contextmanager
def _work_folder(target: Path) -> Iterator[Path]:
    folder = target.with_name(f".{target.name}.recovery")
    shutil.rmtree(folder, ignore_errors=True)
    home.make_private_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_set(source: Path, copy: Path) -> None:
    for suffix in BESIDE:
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(beside(source, suffix), beside(copy, suffix))


def _kind_of(source: Path, folder: Path, stores: Mapping[str, str]) -> str:
    """Which of our stores a file is: by its tables, else by its name."""
    by_name = next((name for name in stores if source.name.startswith(name)), "")
    copy = folder / "look.db"
    _copy_set(source, copy)
    try:
        with contextlib.closing(sqlite3.connect(copy)) as file:
            found = set(schema_repair.tables(file))
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return by_name
    finally:
        for suffix in BESIDE:
            beside(copy, suffix).unlink(missing_ok=True)
    if not found:
        return by_name
    shares = {name: len(found & _tables_of(steps)) / len(found) for name, steps in stores.items()}
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] > 0.5 else ""


def _tables_of(steps: str) -> set[str]:
    return {name for kind, name, _, _ in schema_repair.expected(tuple(migrate.load(steps))) if kind == "table"}


def _take_report(path: Path) -> Report:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
        report = recovery.untold_report(file, path)
        recovery.forget_report(file)
        report.kept_as = ""
        return report


def _salvage_any(copy: Path, new: Path, name: str, now: float) -> Report:
    """Copy every table of another program's file, row by row, around what is broken."""
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    report = Report(name, "recovered on request", now)
    try:
        with (
            contextlib.closing(sqlite3.connect(copy)) as source,
            contextlib.closing(sqlite3.connect(new, isolation_level=None)) as target,
        ):
            for table in schema_repair.tables(source):
                report.rows += _copy_table(source, target, table, report)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise GatewayError(f"{name} is no store of Hermes, and its schema cannot be read ({error}).") from error
    return report


def _copy_table(source: sqlite3.Connection, target: sqlite3.Connection, table: str, report: Report) -> int:
    quoted = '"' + table.replace('"', '""') + '"'
    (sql,) = source.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", [table]).fetchone()
    try:
        target.execute(sql)
        names = [f'"{column.name}"' for column in schema_repair.columns(source, table)]
        reader = TableReader(source, quoted, names)
        count = insert_rows(target, quoted, names, reader.rows())
    except sqlite3.DatabaseError as error:
        report.losses.append(Loss(table, 0, is_exact=False))
        report.notes.append(f"The table {table} could not be read ({error}).")
        return 0
    if reader.is_broken:
        report.losses.append(Loss(table, 0, is_exact=False))
    return count
