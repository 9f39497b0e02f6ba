"""Apply numbered migrations, `NNNN_name.sql`, one transaction each.

The table ``meta`` keeps ``version`` (the last migration applied) and ``min_reader`` (the oldest program that may
still use the file). A migration that older programs cannot live with says so in its first lines:
``-- min_reader: 7``. So a rolling update and a rollback are possible, and only a truly newer schema is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.store.db import Tx

UNFINISHED_COPY = "copy"
"""The key of the note that a copy into this database leaves until it is complete."""

META = "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)"

_NAME = re.compile(r"(\d{4})_(\w+)\.sql")
_MIN_READER = re.compile(r"^--\s*min_reader:\s*(\d+)", re.MULTILINE)
_STATEMENT_END = re.compile(r";[ \t]*(?:--[^\n]*)?$", re.MULTILINE)
_COMMENT_LINE = re.compile(r"^\s*--[^\n]*$", re.MULTILINE)
_ADD_COLUMN = re.compile(r"^\s*ALTER\s+TABLE\s+(\w+)\s+ADD\s+COLUMN\s+(\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    statements: tuple[str, ...]
    min_reader: int | None


def load(migrations: str | Path) -> tuple[Migration, ...]:
    """Read every migration of a package or a folder, in order."""
    folder: Traversable = resources.files(migrations) if isinstance(migrations, str) else migrations
    found = []
    for entry in folder.iterdir():
        if match := _NAME.fullmatch(entry.name):
            found.append(parse(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.number))


def parse(number: int, name: str, text: str) -> Migration:
    reader = _MIN_READER.search(text)
    bare = _COMMENT_LINE.sub("", text)
    statements = tuple(part.strip() for part in _STATEMENT_END.split(bare) if part.strip())
    return Migration(number, name, statements, int(reader[1]) if reader else None)


def version(tx: Tx, *, family: str = "") -> int:
    """The last migration applied. ``family`` names tables that count apart from their database's others."""
    return _noted(tx, _key("version", family))


def pending(tx: Tx, steps: Sequence[Migration], what: str, *, family: str = "") -> Sequence[Migration]:
    """Say what is still to be applied. Raises ConfigError when the schema needs a newer program."""
    newest = steps[-1].number if steps else 0
    needs = _noted(tx, _key("min_reader", family))
    if needs > newest:
        raise ConfigError(
            f"{what} was written by a newer Hermes (it needs schema {needs}, this program knows {newest}).\n"
            "  Update Hermes, or point HERMES_HOME at another folder. Nothing was changed."
        )
    have = version(tx, family=family)
    return [step for step in steps if step.number > have]


def refuse_unfinished_copy(tx: Tx) -> None:
    """Raise ConfigError while the rows of another store are being copied here."""
    if tx.value("SELECT 1 FROM meta WHERE key = :key", key=UNFINISHED_COPY) is not None:
        raise ConfigError(
            "This database holds a copy of another store that is not complete.\n"
            "  Run the same `hermes store copy` again; it goes on where it ended."
        )


def apply(tx: Tx, step: Migration, *, family: str = "") -> None:
    """Apply one migration inside the caller's transaction. Does nothing if another process was quicker."""
    if version(tx, family=family) >= step.number:
        return
    for statement in step.statements:
        # Adding a column that is already there is no error: a second process may have added it.
        adding = _ADD_COLUMN.match(statement)
        if not adding or adding[2].lower() not in columns(tx, adding[1]):
            tx.run(statement)
    note(tx, _key("version", family), str(step.number))
    if step.min_reader is not None or not _noted(tx, _key("min_reader", family)):
        note(tx, _key("min_reader", family), str(step.min_reader or step.number))


def _key(name: str, family: str) -> str:
    return f"{family}.{name}" if family else name


def _noted(tx: Tx, key: str) -> int:
    return int(tx.value("SELECT value FROM meta WHERE key = :key", key=key) or 0)


def note(tx: Tx, key: str, value: str) -> None:
    tx.run(
        "INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        key=key,
        value=value,
    )


def columns(tx: Tx, table: str) -> set[str]:
    if tx.dialect.name == "sqlite":
        sql = "SELECT name FROM pragma_table_info(:table)"
    else:
        sql = "SELECT column_name FROM information_schema.columns WHERE table_name = :table"
        sql += " AND table_schema = current_schema()"
    return {name.lower() for name in tx.all(sql, str, table=table)}
