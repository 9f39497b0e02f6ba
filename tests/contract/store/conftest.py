"""The same tests over both databases. `database` has the product's schema, `engine` a small one of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hermes.store.db import Database, StoreLimits
from hermes.store.open import open_database
from tests.contract.store.servers import PostgresForTests
from tests.fakes.started_home import copy_store

BACKENDS = ["sqlite", "postgres"]

NOTES = """
CREATE TABLE notes (key TEXT PRIMARY KEY, text TEXT NOT NULL, count BIGINT NOT NULL DEFAULT 0);
CREATE TABLE targets (target TEXT PRIMARY KEY, owner TEXT, token BIGINT NOT NULL DEFAULT 0);
"""


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        has_tables = "database" in request.fixturenames
        yield str(copy_store(tmp_path) if has_tables else tmp_path / "state.db")
        return
    server: PostgresForTests = request.getfixturevalue("postgres")
    has_own_tables = "notes" in request.fixturenames
    with server.schema() if has_own_tables else server.used_schema() as url:
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A fresh database with the product's own schema."""
    opened = await open_database(database_url)
    yield opened
    await opened.close()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder of migrations with two small tables."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_start.sql").write_text(NOTES)
    return folder


@pytest.fixture
async def engine(database_url: str, notes: Path) -> AsyncIterator[Database]:
    """A fresh database with two small tables, for tests of the engine itself."""
    opened = await open_database(database_url, migrations=notes, limits=StoreLimits(busy_seconds=1.0))
    yield opened
    await opened.close()
