"""Add what a file's schema lacks against the migrations; remove nothing."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from hermes.core.dataclasses import dataclass
from hermes.store import home, migrate
from hermes.store.sqlite.file import apply_migrations, transaction, tx_of


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    not_null: bool
    default: str | None
    primary: int

    @property
    def addition(self) -> str:
        """Its definition, as ADD COLUMN allows it: a column that may not be NULL needs a default."""
        default = self.default
        if self.not_null and default is None:
            default = "''" if "TEXT" in self.type.upper() else "0"
        parts = [self.name, self.type, "NOT NULL" if self.not_null else "", f"DEFAULT {default}" if default else ""]
        return " ".join(part for part in parts if part)


def lacks_column_or_table(error: BaseException | None) -> bool:
    """Whether a statement failed because the file lacks what it names."""
    text = str(error) if isinstance(error, sqlite3.Error) else ""
    return text.startswith(("no such column", "no such table")) or "has no column named" in text


def columns(connection: sqlite3.Connection, table: str) -> list[Column]:
    rows = connection.execute(
        'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?) ORDER BY cid', [table]
    )
    return [Column(name, kind, bool(not_null), default, primary) for name, kind, not_null, default, primary in rows]


def tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    )
    return [name for (name,) in rows]


def count_rows(path: Path) -> dict[str, int]:
    """The rows of every table of a file that is only read."""
    with contextlib.closing(home.read_only(path)) as file:
        quoted = {name: '"' + name.replace('"', '""') + '"' for name in tables(file)}
        counted = {name: file.execute(f"SELECT count(*) FROM {table}").fetchone() for name, table in quoted.items()}
        return {name: int(count) for name, (count,) in counted.items()}


@functools.lru_cache(maxsize=8)
def expected(steps: tuple[migrate.Migration, ...]) -> tuple[tuple[str, str, str, tuple[Column, ...]], ...]:
    """What the migrations make: (kind, name, SQL, columns), made in memory once."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        apply_migrations(memory, steps, "memory")
        found = memory.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
        return tuple(
            (kind, name, sql, tuple(columns(memory, name)) if kind == "table" else ()) for kind, name, sql in found
        )


def mend(connection: sqlite3.Connection, steps: Sequence[migrate.Migration]) -> list[str]:
    """Add the missing tables, columns and indexes, and say which in words."""
    have = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    added = []
    for kind, name, sql, wanted in expected(tuple(steps)):
        if name not in have:
            added += _add(connection, f"{kind} {name}", sql)
        elif kind == "table":
            present = {column.name for column in columns(connection, name)}
            for column in wanted:
                if column.name not in present:
                    statement = f"ALTER TABLE {name} ADD COLUMN {column.addition}"
                    added += _add(connection, f"column {name}.{column.name}", statement)
    return added


def mend_unless_known(
    connection: sqlite3.Connection, steps: Sequence[migrate.Migration], *, is_fresh: bool
) -> list[str]:
    """Mend unless this schema was compared before, which would be most of opening a file, or is fresh."""
    known = connection.execute("SELECT value FROM meta WHERE key = 'compared'").fetchone()
    if known == (_comparison(connection, steps),):
        return []
    added = [] if is_fresh else mend(connection, steps)
    with transaction(connection):
        migrate.note(tx_of(connection), "compared", _comparison(connection, steps))
    return added


def _comparison(connection: sqlite3.Connection, steps: Sequence[migrate.Migration]) -> str:
    """SQLite counts every change of the schema, whoever makes it."""
    (schema,) = connection.execute("PRAGMA schema_version").fetchone()
    migrations = hashlib.sha256("".join(statement for step in steps for statement in step.statements).encode())
    return f"{schema} {migrations.hexdigest()}"


def _add(connection: sqlite3.Connection, change: str, statement: str) -> list[str]:
    try:
        with transaction(connection):
            connection.execute(statement)
    except sqlite3.OperationalError as error:
        if "duplicate column" in str(error) or "already exists" in str(error):
            return []  # another process was quicker
        raise
    return [change]
