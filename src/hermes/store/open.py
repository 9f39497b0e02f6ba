"""Open a database by its address: SQLite for a path, PostgreSQL for a URL."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from hermes.store.db import Database, OnTrouble, StoreLimits

DEFAULT_MIGRATIONS = "hermes.store.migrations"


async def open_database(
    url_or_path: str | Path,
    *,
    migrations: str | Path = DEFAULT_MIGRATIONS,
    clock: Callable[[], float] = time.time,
    on_trouble: OnTrouble | None = None,
    limits: StoreLimits | None = None,
) -> Database:
    """Open (or create) a database and bring its schema up to date.

    A path, ``sqlite:///path`` or a ``file:`` URI means SQLite; ``postgresql://…`` means PostgreSQL.
    ``migrations`` is a package or a folder of ``NNNN_name.sql``. ``on_trouble`` is called on the event loop.
    Raises StoreIsDownError, ForeignHomeError (the file is another program's) or ConfigError (it is too new).
    """
    limits = limits or StoreLimits()
    text = str(url_or_path)
    if text.startswith(("postgres://", "postgresql://")):
        from hermes.store.postgres import open_postgres  # psycopg costs 0.2 s: only for who uses it

        return await open_postgres(text, migrations=migrations, on_trouble=on_trouble, limits=limits)
    from hermes.store.sqlite.database import open_sqlite

    return await open_sqlite(text, migrations=migrations, clock=clock, on_trouble=on_trouble, limits=limits)
