"""Rows for every table of the store, made from its declared columns: text of many scripts, numbers, nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from hermes.store import migrate
from hermes.store.api import responses
from hermes.store.copy.snapshot import TableShape, tables_of
from hermes.store.db import Tx
from hermes.store.kanban import open as kanban
from hermes.store.open import DEFAULT_MIGRATIONS
from hermes.store.sqlite import schema_repair

WORDS = (
    "",
    "Zoë",
    "会议记录",
    "🦊🐾",
    "a'b\"c\\d",
    "%s :name ::text",
    "line\nline\ttab",
    "É",
    "e\u0301",
    "ÿ",
    "~",
    "A",
    "a",
)


def all_tables() -> list[TableShape]:
    return main_tables() + response_tables() + kanban_tables()


def main_tables() -> list[TableShape]:
    return tables_of(migrate.load(DEFAULT_MIGRATIONS))


def response_tables() -> list[TableShape]:
    return tables_of(migrate.load(responses.MIGRATIONS))


def kanban_tables() -> list[TableShape]:
    return tables_of(migrate.load(kanban.MIGRATIONS))


def fill(tx: Tx, /, tables: list[TableShape], count: int, seed: int = 0, **counts: int) -> None:
    """Put ``count`` rows into each table, or as many as ``counts`` says of it."""
    for table in tables:
        chance = random.Random(f"{seed}{table.name}")
        columns = ", ".join(table.columns)
        values = ", ".join(f":{name}" for name in table.columns)
        sql = f"INSERT INTO {table.name} ({columns}) VALUES ({values})"
        for row in _rows(table, counts.get(table.name, count), chance):
            tx.run(sql, **row)


def _rows(table: TableShape, count: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    nullable = _nullable(table.name)
    for number in range(count):
        row: dict[str, Any] = {}
        for name, kind in zip(table.columns, table.kinds, strict=True):
            if name in nullable and chance.random() < 0.3:
                row[name] = None
            elif kind == "TEXT":
                row[name] = f"{chance.choice(WORDS)}{chance.randrange(10**9)}"
            elif kind == "BIGINT":
                row[name] = chance.choice((0, 1, -1, 2**62, chance.randrange(10**6)))
            else:
                row[name] = chance.choice((0.0, 1e-9, 1.7e9 + chance.random(), -1.5, 1e300))
        for name in table.key:
            kind = table.kinds[table.columns.index(name)]
            row[name] = f"{chance.choice(WORDS)}{number}" if kind == "TEXT" else number
        if table.name == "nodes":
            row["state"] = "gone"  # a living one would keep a copy off
        if table.name == "responses":
            row["id"] = f"resp_{number}"
        if "response_id" in row:
            row["response_id"] = f"resp_{number}"  # it refers to one that is there
        yield row


def _nullable(table: str) -> set[str]:
    for migrations in (DEFAULT_MIGRATIONS, responses.MIGRATIONS, kanban.MIGRATIONS):
        for kind, name, _sql, columns in schema_repair.expected(migrate.load(migrations)):
            if kind == "table" and name == table:
                return {column.name for column in columns if not column.not_null and not column.primary}
    return set()
