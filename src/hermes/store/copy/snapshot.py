"""Read every row of a store from one snapshot, read-only, on either database."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError, StoreIsDownError
from hermes.core.text import storable
from hermes.store import home, migrate
from hermes.store.db import Tx
from hermes.store.sqlite import schema_repair
from hermes.store.sqlite.file import beside, tx_of

if TYPE_CHECKING:
    import psycopg

Row = tuple[Any, ...]

FETCHED = 1000
_MODULUS = 1 << 256


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table as the migrations make it. ``kinds`` are the declared types of its columns."""

    name: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    key: tuple[str, ...]

    def key_of(self, row: Row) -> list[Any]:
        return [row[self.columns.index(name)] for name in self.key]


@dataclass(frozen=True, slots=True)
class Digest:
    """How many rows a table holds, and a checksum that does not depend on their order or on the database."""

    rows: int
    checksum: str


def tables_of(steps: Sequence[migrate.Migration]) -> list[TableShape]:
    """List every table that these migrations make, in the order of their making."""
    found = []
    for kind, name, _sql, columns in schema_repair.expected(tuple(steps)):
        if kind == "table" and name != "meta":  # the database's own notes: its version, its repairs
            keys = sorted((column for column in columns if column.primary), key=lambda column: column.primary)
            names, kinds = (tuple(column.name for column in columns), tuple(column.type.upper() for column in columns))
            found.append(TableShape(name, names, kinds, tuple(column.name for column in keys)))
    return found


def fitted(table: TableShape, row: Row) -> Row:
    """Return the row as both databases hold it: each value of its declared type, text without NUL."""
    return tuple(_fit(value, kind) for value, kind in zip(row, table.kinds, strict=True))


def _fit(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "TEXT":
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        return storable(value if isinstance(value, str) else str(value))
    try:
        return float(value) + 0.0 if kind == "DOUBLE PRECISION" else int(value)  # + 0.0: there is one zero
    except (ValueError, OverflowError, TypeError):
        return 0.0 if kind == "DOUBLE PRECISION" else 0  # a damaged row of SQLite, which checks no types


def digest(rows: Iterator[Row]) -> Digest:
    """Count the rows and add up their checksums."""
    total, count = 0, 0
    for row in rows:
        written = orjson.dumps([value.hex() if isinstance(value, float) else value for value in row])
        total += int.from_bytes(hashlib.sha256(written).digest(), "big")
        count += 1
    return Digest(count, f"{total % _MODULUS:064x}")


class Snapshot(ABC):
    """One consistent view of a database, read without changing anything. Used by one thread at a time."""

    name: str
    """The database in words, without a password."""

    @abstractmethod
    def tx(self) -> Tx: ...

    @abstractmethod
    def has(self, table: str) -> bool: ...

    @abstractmethod
    def raw_rows(self, table: TableShape, after: Sequence[Any]) -> Iterator[Row]: ...

    @abstractmethod
    def close(self) -> None: ...

    def rows(self, table: TableShape, after: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows behind this key in the order of their keys, byte by byte; all without one."""
        if self.has(table.name):
            for row in self.raw_rows(table, after):
                yield fitted(table, row)


class SqliteSnapshot(Snapshot):
    def __init__(self, path: Path) -> None:
        self.name = str(path)
        log = beside(path, "-wal")
        if log.exists() and log.stat().st_size:
            uri = f"file:{quote(str(path.absolute()))}?mode=ro"
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        else:
            self._connection = home.read_only(path, check_same_thread=False)
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self._connection.execute("BEGIN")
        self._tables = set(schema_repair.tables(self._connection))

    def tx(self) -> Tx:
        return tx_of(self._connection)

    def has(self, table: str) -> bool:
        return table in self._tables

    def raw_rows(self, table: TableShape, after: Sequence[Any]) -> Iterator[Row]:
        where = ""
        if after:
            where = f"WHERE ({', '.join(table.key)}) > ({', '.join('?' * len(table.key))})"
        order = ", ".join(table.key)
        cursor = self._connection.execute(
            f"SELECT {', '.join(table.columns)} FROM {table.name} {where} ORDER BY {order}", list(after)
        )
        with contextlib.closing(cursor):
            yield from cursor

    def close(self) -> None:
        self._connection.close()


class PostgresSnapshot(Snapshot):
    def __init__(self, url: str) -> None:
        self.name = described(url)
        self._connection = connect(url)
        self._connection.execute("SET statement_timeout = 0")
        self._connection.execute("SET idle_in_transaction_session_timeout = 0")
        self._connection.commit()
        import psycopg

        self._connection.read_only = True
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        found = self._connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        self._tables = {name for (name,) in found}

    def tx(self) -> Tx:
        from hermes.store import postgres

        return postgres.tx_of(self._connection)

    def has(self, table: str) -> bool:
        return table in self._tables

    def raw_rows(self, table: TableShape, after: Sequence[Any]) -> Iterator[Row]:
        # Text is compared byte by byte, as SQLite does: the server's own order depends on its language.
        kinds = dict(zip(table.columns, table.kinds, strict=True))
        key = ", ".join(f'{name} COLLATE "C"' if kinds[name] == "TEXT" else name for name in table.key)
        where = f"WHERE ({key}) > ({', '.join(['%s'] * len(table.key))})" if after else ""
        sql = f"SELECT {', '.join(table.columns)} FROM {table.name} {where} ORDER BY {key}"
        with self._connection.cursor(name="snapshot") as cursor:
            cursor.itersize = FETCHED
            cursor.execute(sql.encode(), list(after))
            yield from cursor

    def close(self) -> None:
        self._connection.close()


def connect(url: str) -> psycopg.Connection[Row]:
    """Connect to PostgreSQL, or say what is wrong: ConfigError for the address, StoreIsDownError for the server."""
    import psycopg

    try:
        return psycopg.connect(url, connect_timeout=10, application_name="hermes")
    except psycopg.OperationalError as error:
        reason = next(iter(str(error).splitlines()), "")
        raise StoreIsDownError(f"PostgreSQL cannot be reached: {reason}") from error
    except psycopg.Error as error:
        raise ConfigError("The PostgreSQL address cannot be read. It looks like postgresql://user@host/name") from error


def described(url: str) -> str:
    """Name a PostgreSQL database without its password."""
    import psycopg.conninfo

    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return "PostgreSQL"
    where = ":".join(str(parts[part]) for part in ("host", "port") if parts.get(part))
    schema = str(parts.get("options") or "").partition("search_path=")[2].split(" ")[0]
    return "/".join(part for part in ("postgresql:/", where, str(parts.get("dbname") or ""), schema) if part)
