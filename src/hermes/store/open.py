"""Open a database by its address: SQLite for a path, PostgreSQL for a URL."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.core.errors import GatewayError
from hermes.store import migrate
from hermes.store.db import Database, OnTrouble, StoreLimits, Tx

log = logging.getLogger(__name__)

DEFAULT_MIGRATIONS = "hermes.store.migrations"


def is_postgres(address: str) -> bool:
    return address.startswith(("postgres://", "postgresql://"))


async def open_database(
    url_or_path: str | Path,
    *,
    migrations: str | Path = DEFAULT_MIGRATIONS,
    clock: Callable[[], float] = time.time,
    on_trouble: OnTrouble | None = None,
    limits: StoreLimits | None = None,
    for_copy: bool = False,
) -> Database:
    """Open (or create) a database and bring its schema up to date.

    A path, ``sqlite:///path`` or a ``file:`` URI means SQLite; ``postgresql://…`` means PostgreSQL.
    ``migrations`` is a package or a folder of ``NNNN_name.sql``. ``on_trouble`` is called on the event loop.
    Raises StoreIsDownError, ForeignHomeError (the file is another program's) or ConfigError (it is too new, or holds an
    unfinished copy, which only ``for_copy`` opens).
    """
    limits = limits or StoreLimits()
    text = str(url_or_path)
    database: Database
    if is_postgres(text):
        from hermes.store.postgres import open_postgres  # psycopg costs 0.2 s: only for who uses it

        database = await open_postgres(text, migrations=migrations, on_trouble=on_trouble, limits=limits)
    else:
        from hermes.store.sqlite.database import open_sqlite

        database = await open_sqlite(text, migrations=migrations, clock=clock, on_trouble=on_trouble, limits=limits)
    if not for_copy:
        try:
            await database.read(migrate.refuse_unfinished_copy)
        except BaseException:
            await database.close()
            raise
    return database


@asynccontextmanager
async def open_beside(
    main: Database,
    file: Path,
    *,
    migrations: str,
    family: str,
    on_trouble: OnTrouble | None = None,
    limits: StoreLimits | None = None,
) -> AsyncIterator[Database]:
    """Open tables that live apart from the messages: a file of their own, or, on PostgreSQL, the open database.

    There they stand beside the others and count their migrations under ``family``.
    """
    if main.dialect.name != "sqlite":
        await main.alone(prepare_family, migrate.load(migrations), family)
        yield main
        return
    opened = await open_database(file, migrations=migrations, on_trouble=on_trouble, limits=limits)
    main.beside[file.name] = opened
    try:
        yield opened
    finally:
        main.beside.pop(file.name, None)
        try:
            await opened.close()
        except (GatewayError, OSError, sqlite3.Error, RuntimeError) as error:
            # What is stored is stored. Whoever closes us has more to close.
            log.warning("Store did not close", extra={"file": file.name, "reason": str(error)})


def prepare_family(tx: Tx, steps: Sequence[migrate.Migration], family: str) -> None:
    """Bring the tables up to date inside a database that has others. One transaction; repeating it does nothing."""
    tx.run("LOCK TABLE meta IN SHARE ROW EXCLUSIVE MODE")  # two that start together would both make the tables
    for step in migrate.pending(tx, steps, "The PostgreSQL database", family=family):
        migrate.apply(tx, step, family=family)
