"""Mirror people, grants and cursors beside the store: ``mirror.jsonl``.

The first line names the tables. Each line after it is ``{"table", "key", "row"}``: a row as it was after a change, or
null where it is gone; of one key, the last line counts. So a newcomer costs a line, however many people there are. The
file is written whole at the first change after a start, since a kill may have cut off what was due, and again when
what was appended outweighs it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import orjson

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx
from hermes.store.private_files import write_private
from hermes.store.sqlite import schema_repair

log = logging.getLogger(__name__)

NAME = "mirror.jsonl"
MIRRORED = ("people", "person_accounts", "pairings", "grants", "cursors", "api_keys")
"""Small tables that say who is who and where we stand."""

_APPENDED_AT_LEAST = 1000
"""Lines that may be appended to a small file before it is written whole again."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Columns:
    names: Sequence[str]
    key: Sequence[str]


class Mirror:
    """Writes the file. Used by one thread at a time, except for ``name_of``."""

    def __init__(self, folder: Path, *, appended_at_least: int = _APPENDED_AT_LEAST) -> None:
        self._path = folder / NAME
        self._appended_at_least = appended_at_least
        self._tables: list[str] = []
        self._is_whole = False
        self._rows = 0
        self._appended = 0

    def triggers(self, connection: sqlite3.Connection, function: str) -> Iterator[tuple[str, str]]:
        """When, and with which calls of ``function(table, key…)``, a connection tells what to mirror."""
        present = set(schema_repair.tables(connection))
        self._tables = [name for name in MIRRORED if name in present]
        self._is_whole = False  # whatever was written down was of another connection, perhaps of another file
        for table in self._tables:
            key = [column.name for column in schema_repair.columns(connection, table) if column.primary]
            old, new = (
                f"{function}('{table}', {', '.join(f'{side}.{name}' for name in key)})" for side in ("OLD", "NEW")
            )
            yield f"AFTER INSERT ON main.{table}", new
            yield f"AFTER UPDATE ON main.{table}", f"{old}, {new}"
            yield f"AFTER DELETE ON main.{table}", old

    @staticmethod
    def name_of(table: str, *key: str | int) -> str:
        """A changed row's name for ``write``."""
        return orjson.dumps([table, *key]).decode()

    def outdate(self) -> None:
        """Have the next ``write`` write everything."""
        self._is_whole = False

    def is_missing(self) -> bool:
        return bool(self._tables) and not self._path.exists()

    def write(self, tx: Tx, changed: Iterable[str]) -> None:
        """Write down how the rows named ``changed`` are now. Raises OSError; then the next call writes everything."""
        is_heavy = self._appended > max(self._rows, self._appended_at_least)
        if not self._is_whole or is_heavy or not self._path.exists():
            lines = [orjson.dumps({"tables": self._tables})]
            for table in self._tables:
                lines += _lines(tx, table)
            write_private(self._path, b"\n".join([*lines, b""]))
            self._is_whole, self._rows, self._appended = True, len(lines), 0
        else:
            self._append(tx, changed)

    def _append(self, tx: Tx, changed: Iterable[str]) -> None:
        keys: dict[str, list[list[str | int]]] = {}
        for name in changed:
            table, *key = orjson.loads(name)
            keys.setdefault(table, []).append(key)
        lines = [line for table in keys for line in _lines(tx, table, keys[table])]
        self._is_whole = False  # until all of it is on the disk: half a line must not be appended to
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        with open(descriptor, "ab") as file:
            file.write(b"\n".join([*lines, b""]))
            file.flush()
            os.fsync(descriptor)
        self._is_whole = True
        self._appended += len(lines)


def _lines(tx: Tx, table: str, keys: Sequence[Sequence[str | int]] | None = None) -> list[bytes]:
    """The lines of the rows with these keys, or of all rows."""
    columns = _columns(tx, table)
    select = f"SELECT {', '.join(columns.names)} FROM {table}"

    def row(*values: object) -> Row:
        return dict(zip(columns.names, values, strict=True))

    if keys is None:
        return [_line(table, [found[name] for name in columns.key], found) for found in tx.all(select, row)]
    where = " AND ".join(f"{name} = :{name}" for name in columns.key)
    return [
        _line(table, key, tx.one(f"{select} WHERE {where}", row, **dict(zip(columns.key, key, strict=True))))
        for key in keys
    ]


def _line(table: str, key: Sequence[object], row: Row | None) -> bytes:
    return orjson.dumps({"table": table, "key": key, "row": row})


def _columns(tx: Tx, table: str) -> _Columns:
    """Asked each time, because a column that was missing may have been added meanwhile."""
    found = tx.all("SELECT name, pk FROM pragma_table_info(:table) ORDER BY cid", lambda *column: column, table=table)
    return _Columns([name for name, _ in found], [name for name, place in found if place])


# Reading


@dataclass(slots=True)
class MirroredTables:
    """What the file tells: the tables it covers, be they empty, and their rows."""

    tables: set[str] = field(default_factory=set)
    rows: dict[tuple[object, ...], Row] = field(default_factory=dict)
    gone: set[tuple[object, ...]] = field(default_factory=set)

    def deleted(self, table: str) -> list[Sequence[object]]:
        """The keys of rows that were deleted since the file was written whole."""
        return [key for name, *key in self.gone if name == table]

    def of(self, table: str) -> list[Row]:
        return [row for (name, *_), row in self.rows.items() if name == table]


def read(folder: Path) -> MirroredTables:
    """Read the file back; a line that cannot be read is passed over."""
    kept = MirroredTables()
    broken = 0
    try:
        with (folder / NAME).open("rb") as file:
            for raw in file:
                try:
                    _take(kept, orjson.loads(raw))
                except (ValueError, KeyError, TypeError):
                    broken += 1
    except FileNotFoundError:
        return kept
    except OSError as error:
        log.warning("Mirror not read", extra={"path": str(folder / NAME), "reason": str(error)})
    if broken:
        log.warning("Mirror lines skipped", extra={"path": str(folder / NAME), "count": broken})
    return kept


def _take(kept: MirroredTables, line: dict[str, Any]) -> None:
    if "tables" in line:
        kept.tables.update(name for name in line["tables"] if name in MIRRORED)
        return
    table, row = line["table"], line["row"]
    if table not in MIRRORED:
        return
    kept.tables.add(table)
    name = (table, *line["key"])
    if row is None:
        kept.rows.pop(name, None)
        kept.gone.add(name)
    else:
        kept.rows[name] = dict(row)
        kept.gone.discard(name)
