"""Copy a whole store into another database, resumable, with counts and checksums.

The rows of a chunk and the place that the copy has reached are stored in one transaction of the destination. So a copy
that was killed goes on behind the last row that arrived, and no row arrives twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError, GatewayError
from hermes.store import migrate
from hermes.store.api import responses
from hermes.store.copy.snapshot import (
    Digest,
    PostgresSnapshot,
    Row,
    Snapshot,
    SqliteSnapshot,
    TableShape,
    connect,
    described,
    digest,
    tables_of,
)
from hermes.store.db import Database, Tx
from hermes.store.kanban import open as kanban
from hermes.store.open import DEFAULT_MIGRATIONS, is_postgres, open_database, prepare_family

if TYPE_CHECKING:
    import psycopg

CHUNK_ROWS = 1000
CHUNK_BYTES = 4_000_000
VALUES_PER_STATEMENT = 1800

NOTE = migrate.UNFINISHED_COPY


@dataclass(frozen=True, slots=True)
class StorePlace:
    """Where a store is: a PostgreSQL address, or the ``state.db`` of a home with the other stores beside it."""

    address: str

    @property
    def is_postgres(self) -> bool:
        return is_postgres(self.address)

    @property
    def path(self) -> Path:
        return Path(self.address)

    def beside(self, file: str) -> Path:
        """Where a family of tables has its own file, in the same home."""
        return self.path.parent / file


@dataclass(frozen=True, slots=True)
class CopiedTable:
    name: str
    digest: Digest


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """``task`` is copy or compare; ``rows`` have been dealt with of ``of`` in this table."""

    task: str
    table: str
    rows: int
    of: int


@dataclass(slots=True)
class _Part:
    """The tables of one migration family: in a file of their own on SQLite, together on PostgreSQL."""

    family: str
    tables: list[TableShape]
    source: Snapshot | None
    into: Database
    where: str
    done: list[str] = field(default_factory=list)

    @property
    def note_key(self) -> str:
        return f"{self.family}.{NOTE}" if self.family and self.into.dialect.name == "postgres" else NOTE


async def copy_store(
    source: StorePlace, destination: StorePlace, *, show: Callable[[CopyProgress], None], replaces: bool = False
) -> list[CopiedTable]:
    """Copy every row, compare both sides and return what was copied.

    The caller has made sure that no gateway works on either side. The destination must be empty, or hold the beginning
    of a copy from the same source; ``replaces`` deletes its rows first. Until the copy is complete, no gateway opens
    the destination.
    """
    async with contextlib.AsyncExitStack() as stack:
        parts = await _open(stack, source, destination)
        # The main part is the last to lose its note: while a note is there, the store cannot be opened.
        for part in reversed(parts):
            await _prepare(part, parts[0], replaces=replaces)
        for part in parts:
            for table in part.tables:
                await _copy_table(part, table, show)
        copied = [await _compared(part, table, show) for part in parts for table in part.tables]
        for part in reversed(parts):
            await part.into.alone(_finish, part.note_key)
        return copied


# Opening


@dataclass(frozen=True, slots=True)
class _Family:
    """Tables that live apart on SQLite: their file and migrations, and a table by which they are recognized."""

    name: str
    file: str
    migrations: str
    table: str


FAMILIES = (
    _Family(responses.FAMILY, responses.FILE, responses.MIGRATIONS, "responses"),
    _Family(kanban.FAMILY, kanban.FILE, kanban.MIGRATIONS, "tasks"),
)


async def _open(stack: contextlib.AsyncExitStack, source: StorePlace, destination: StorePlace) -> list[_Part]:
    main_steps = migrate.load(DEFAULT_MIGRATIONS)
    main = await _snapshot(stack, source.address)
    _refuse_other_schema(main, main_steps, "")
    into = await open_database(destination.address, for_copy=True)
    stack.push_async_callback(into.close)
    parts = [_Part("", tables_of(main_steps), main, into, destination.address)]
    for family in FAMILIES:
        parts.append(await _open_family(stack, family, source, destination, main, into))
    return parts


async def _open_family(
    stack: contextlib.AsyncExitStack,
    family: _Family,
    source: StorePlace,
    destination: StorePlace,
    main: Snapshot,
    into: Database,
) -> _Part:
    steps = migrate.load(family.migrations)
    of_family: Snapshot | None = main
    if not source.is_postgres:
        path = source.beside(family.file)
        of_family = await _snapshot(stack, str(path)) if await asyncio.to_thread(path.exists) else None
    if of_family is not None and not of_family.has(family.table):
        of_family = None  # nobody has used these tables
    if of_family is not None:
        _refuse_other_schema(of_family, steps, family.name if source.is_postgres else "")
    if destination.is_postgres:
        await into.alone(prepare_family, steps, family.name)
        return _Part(family.name, tables_of(steps), of_family, into, destination.address)
    where = str(destination.beside(family.file))
    opened = await open_database(where, migrations=family.migrations, for_copy=True)
    stack.push_async_callback(opened.close)
    return _Part(family.name, tables_of(steps), of_family, opened, where)


async def _snapshot(stack: contextlib.AsyncExitStack, address: str) -> Snapshot:
    opened = await asyncio.to_thread(open_snapshot, address)
    stack.callback(opened.close)
    return opened


def open_snapshot(address: str) -> Snapshot:
    return PostgresSnapshot(address) if is_postgres(address) else SqliteSnapshot(Path(address))


def _refuse_other_schema(source: Snapshot, steps: Sequence[migrate.Migration], family: str) -> None:
    newest = steps[-1].number
    if not source.has("meta"):
        raise ConfigError(f"{source.name} holds no store of Hermes.")
    have = migrate.version(source.tx(), family=family)
    if have > newest:
        raise ConfigError(
            f"{source.name} was written by a newer Hermes (schema {have}, this program knows {newest}).\n"
            "  Update Hermes, then copy."
        )
    if have < newest:
        raise ConfigError(
            f"{source.name} has an older schema ({have}, this program {newest}), and a copy changes nothing there.\n"
            "  Run `hermes sessions list` with it once, which brings it up to date, then copy."
        )


# Copying


async def _prepare(part: _Part, main: _Part, *, replaces: bool) -> None:
    assert main.source is not None  # noqa: S101 - the main part always has one
    if replaces:
        await part.into.alone(_empty, part.tables, part.note_key)
    noted = await part.into.read(_noted, part.note_key)
    if noted is None:
        if full := await part.into.read(_first_full, part.tables):
            raise ConfigError(
                f"The destination holds data already (table {full}). I have changed nothing there.\n"
                "  Name an empty database, or add --replace to delete what is there."
            )
        noted = {"source": main.source.name, "done": [], "table": "", "after": []}
        await part.into.alone(migrate.note, part.note_key, orjson.dumps(noted).decode())
    elif noted["source"] != main.source.name:
        raise ConfigError(
            f"The destination holds the beginning of a copy from {noted['source']}.\n"
            "  Copy from there to go on, or add --replace to begin anew."
        )
    part.done = list(noted["done"])


async def _copy_table(part: _Part, table: TableShape, show: Callable[[CopyProgress], None]) -> None:
    if table.name in part.done:
        return
    if part.source is None:  # no request was ever stored there
        part.done.append(table.name)
        return
    noted = await part.into.read(_noted, part.note_key) or {}
    after = noted["after"] if noted.get("table") == table.name else []
    copied = int(noted.get("rows", 0)) if after else 0
    of = await asyncio.to_thread(_count, part.source, table)
    source = {"source": noted["source"], "done": part.done, "table": table.name}
    async with _chunks(part.source.rows(table, after)) as next_chunk:
        while rows := await asyncio.to_thread(next_chunk):
            copied += len(rows)
            note = orjson.dumps({**source, "after": table.key_of(rows[-1]), "rows": copied}).decode()
            await part.into.alone(_put, table, rows, part.note_key, note)
            show(CopyProgress("copy", table.name, copied, of))
    part.done.append(table.name)
    note = orjson.dumps({**source, "done": part.done, "table": "", "after": []}).decode()
    await part.into.alone(migrate.note, part.note_key, note)


@contextlib.asynccontextmanager
async def _chunks(rows: Iterator[Row]) -> AsyncIterator[Callable[[], list[Row]]]:
    def next_chunk() -> list[Row]:
        chunk: list[Row] = []
        size = 0
        for row in itertools.islice(rows, CHUNK_ROWS):
            chunk.append(row)
            size += sum(len(value) for value in row if isinstance(value, str))
            if size >= CHUNK_BYTES:
                break
        return chunk

    try:
        yield next_chunk
    finally:
        rows.close()  # type: ignore[attr-defined]  # a generator: its cursor ends with it


def _count(source: Snapshot, table: TableShape) -> int:
    return int(source.tx().value(f"SELECT COUNT(*) FROM {table.name}")) if source.has(table.name) else 0


def _put(tx: Tx, table: TableShape, rows: Sequence[Row], note_key: str, note: str) -> None:
    """Insert a chunk and note how far the copy has come."""
    width = len(table.columns)
    step = max(1, VALUES_PER_STATEMENT // width)
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        values = ", ".join(
            f"({', '.join(f':p{number}' for number in range(first, first + width))})"
            for first in range(0, width * len(some), width)
        )
        params = {f"p{number}": value for number, value in enumerate(itertools.chain.from_iterable(some))}
        tx.run(f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES {values}", **params)
    migrate.note(tx, note_key, note)


def _noted(tx: Tx, note_key: str) -> dict[str, Any] | None:
    found = tx.value("SELECT value FROM meta WHERE key = :key", key=note_key)
    return None if found is None else orjson.loads(found)


def _first_full(tx: Tx, tables: Sequence[TableShape]) -> str:
    for table in tables:
        if tx.value(f"SELECT 1 FROM {table.name} LIMIT 1") is not None:
            return table.name
    return ""


def _empty(tx: Tx, tables: Sequence[TableShape], note_key: str) -> None:
    for table in reversed(tables):
        tx.run(f"DELETE FROM {table.name}")
    _finish(tx, note_key)


def _finish(tx: Tx, note_key: str) -> None:
    tx.run("DELETE FROM meta WHERE key = :key", key=note_key)


# Comparing


async def _compared(part: _Part, table: TableShape, show: Callable[[CopyProgress], None]) -> CopiedTable:
    """Compare a table on both sides; one that differs is copied anew, once: its source changed since it was copied."""
    wanted, found = await asyncio.to_thread(_digests, part, table, show)
    if wanted != found:
        part.done.remove(table.name)
        await part.into.alone(_empty_table, table)
        await _copy_table(part, table, show)
        wanted, found = await asyncio.to_thread(_digests, part, table, show)
    if wanted != found:
        raise GatewayError(
            f"The copy of {table.name} differs from its source ({found.rows} of {wanted.rows} rows,"
            f" checksum {found.checksum[:12]} instead of {wanted.checksum[:12]}).\n"
            "  Something else writes into one of the two. Stop it, then run the copy again with --replace."
        )
    return CopiedTable(table.name, found)


def _digests(part: _Part, table: TableShape, show: Callable[[CopyProgress], None]) -> tuple[Digest, Digest]:
    wanted = digest(part.source.rows(table)) if part.source is not None else digest(iter(()))
    show(CopyProgress("compare", table.name, 0, wanted.rows))
    copy = open_snapshot(part.where)
    try:
        found = digest(copy.rows(table))
    finally:
        copy.close()
    show(CopyProgress("compare", table.name, found.rows, wanted.rows))
    return wanted, found


def _empty_table(tx: Tx, table: TableShape) -> None:
    tx.run(f"DELETE FROM {table.name}")


# Gateways on PostgreSQL


def running_gateways(address: str) -> list[str]:
    """Name the gateways that work on a PostgreSQL database now."""
    with contextlib.closing(connect(address)) as connection:
        return _running(connection)


@contextlib.contextmanager
def refuse_running_gateways(address: str) -> Iterator[None]:
    """Hold the lock of a lone gateway for the block; raises GatewayError while gateways work on the database."""
    from hermes.store.postgres import HERE, OWNER_LOCK

    with contextlib.closing(connect(address)) as connection:
        connection.autocommit = True
        connection.execute("SET idle_session_timeout = 0")
        taken = connection.execute(f"SELECT pg_try_advisory_lock({OWNER_LOCK}, {HERE})".encode()).fetchone()
        running = _running(connection)
        if running or taken is None or not taken[0]:
            names = f" ({', '.join(running)})" if running else ""
            raise GatewayError(f"A gateway works on {described(address)}{names}. Stop it before the copy.")
        yield


def _running(connection: psycopg.Connection[Row]) -> list[str]:
    if connection.execute("SELECT to_regclass('nodes')").fetchone() == (None,):
        return []
    found = connection.execute(
        "SELECT name, host FROM nodes WHERE state <> 'gone'"
        " AND lease_until > EXTRACT(EPOCH FROM clock_timestamp()) ORDER BY name"
    ).fetchall()
    return [f"{name} on {host}" for name, host in found]
