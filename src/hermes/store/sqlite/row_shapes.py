"""Check the shape of rows, so that stray bytes are never taken for one.

A record that was found on a page of its own says neither which table it is of nor that it is whole. It is taken only if
every value has the shape of its column, no other table has that shape, and the rows that it refers to are there.
"""

from __future__ import annotations

import functools
import math
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence

import orjson

from hermes.core.approval import ApprovalState, Scope
from hermes.core.roles import PersonRole
from hermes.core.turn import CallState
from hermes.store.inbox import InboxState
from hermes.store.outbox import OutboxKind, OutboxState
from hermes.store.pairings import PairingState
from hermes.store.sqlite import schema_repair
from hermes.store.sqlite.file import DamagedError
from hermes.store.sqlite.schema_repair import Column
from hermes.store.turns.turns import TurnState

Value = None | int | float | str | bytes
Check = Callable[[Value], bool]

NEVER_CARVED = frozenset({"people", "person_accounts", "pairings", "pairing_tries", "grants", "api_keys", "meta"})
"""Who is who and who may do what: taken only from pages that are known to be whole, or from the mirror."""

_EARLIEST, _LATEST = 946_684_800.0, 7_258_118_400.0  # 2000 and 2200
_MAX_COUNT = 1 << 48


def _matches(pattern: str) -> Check:
    match = re.compile(pattern).fullmatch
    return lambda value: isinstance(value, str) and match(value) is not None


def _one_of(*words: str) -> Check:
    return lambda value: value in words


def _is_json(value: Value) -> bool:
    try:
        return isinstance(value, str) and isinstance(orjson.loads(value), dict | list)
    except ValueError:
        return False


def is_time(value: Value) -> bool:
    return isinstance(value, int | float) and _EARLIEST < value < _LATEST


def _is_time_or_zero(value: Value) -> bool:
    return value == 0 or is_time(value)


_ID = r"[\w.:-]{1,200}"
_LANE = r"[^\s:]+:[^\x00-\x1f]+"

CHECKS: Mapping[str, Check] = {
    "inbox.id": _matches(rf"ev_{_ID}"),
    "inbox.state": _one_of(*InboxState),
    "inbox.body": _is_json,
    "inbox.lane": _matches(_LANE),
    "inbox.kind": _matches(r"[a-z_]{1,40}"),
    "inbox.turn_id": _matches(rf"(t_{_ID})?"),
    "inbox.role": _one_of("", *PersonRole),
    "inbox.attempt": _matches(r"([0-9a-f]{64})?"),
    "dedupe.event_id": _matches(rf"ev_{_ID}"),
    "dedupe.key": _matches(r"[^\x00-\x1f]+/[^\x00-\x1f]+"),
    "lanes.key": _matches(_LANE),
    "lanes.next_at": _is_time_or_zero,
    "lanes.turn_id": _matches(rf"(t_{_ID})?"),
    "sessions.id": _matches(_ID),
    "sessions.key": _matches(_LANE),
    "sessions.heard": _one_of("", *PersonRole),
    "transcript.session_id": _matches(_ID),
    "transcript.kind": _one_of("message", "revision", "undo"),
    "transcript.body": _is_json,
    "turns.id": _matches(rf"t_{_ID}"),
    "turns.lane": _matches(_LANE),
    "turns.state": _one_of(*TurnState),
    "turns.role": _one_of("", *PersonRole),
    "tool_calls.turn_id": _matches(rf"t_{_ID}"),
    "tool_calls.state": _one_of(*CallState),
    "outbox.id": _matches(rf"ob_{_ID}"),
    "outbox.kind": _one_of(*OutboxKind),
    "outbox.state": _one_of(*OutboxState),
    "outbox.body": _is_json,
    "outbox.not_before": _is_time_or_zero,
    "targets.key": _matches(_LANE),
    "targets.next_at": _is_time_or_zero,
    "approvals.id": _matches(rf"ap_{_ID}"),
    "approvals.state": _one_of(*ApprovalState),
    "approvals.scope": _one_of("", *Scope),
    "checkpoints.before_hash": _matches(r"absent|[0-9a-f]{32,128}"),
    "todos.items": _is_json,
    "idempotency.status": lambda value: isinstance(value, int) and 100 <= value < 600,
    "idempotency.headers": _is_json,
    "cursors.platform": _matches(r"[a-z][a-z0-9_-]{1,40}"),
    "people.role": _one_of(*PersonRole),
    "api_keys.role": _one_of(*PersonRole),
    "api_keys.hash": _matches(r"[0-9a-f]{32,128}"),
    "pictures.hash": _matches(r"[0-9a-f]{64}"),
    "pictures.url": _matches(r"data:[^\x00-\x1f]+"),
    "pairings.state": _one_of(*PairingState),
    "grants.scope": _one_of(*Scope),
    "responses.id": _matches(rf"resp_{_ID}"),
    "responses.event_id": _matches(rf"ev_{_ID}"),
    "responses.body": _is_json,
}
"""What a value must be beyond the type of its column."""

REFERENCES: Sequence[tuple[str, str, str]] = (
    ("turns", "session_id", "sessions"),
    ("transcript", "session_id", "sessions"),
    ("revisions", "session_id", "sessions"),
    ("todos", "session_id", "sessions"),
    ("lanes", "session_id", "sessions"),
    ("lanes", "turn_id", "turns"),
    ("inbox", "turn_id", "turns"),
    ("tool_calls", "turn_id", "turns"),
    ("approvals", "turn_id", "turns"),
    ("outbox", "turn_id", "turns"),
    ("files_out", "outbox_id", "outbox"),
    ("conversations", "response_id", "responses"),
)
"""Table, column, and the table whose ``id`` it names; '' names none. What is referred to stands above what refers."""

TIMES = ("received_at", "created_at", "seen_at", "at", "updated_at", "started_at", "asked_at", "granted_at", "next_at")
"""The column that tells when a row came about: the first of these that a table has."""


def fits(table: str, columns: Sequence[Column], values: Sequence[Value]) -> bool:
    """Whether these values can be a row of this table. Columns that were added later may be missing at the end."""
    if not len([column for column in columns if column.primary]) <= len(values) <= len(columns):
        return False
    return all(check(value) for check, value in zip(_checks(table, tuple(columns)), values, strict=False))


def is_whole(table: str, columns: Sequence[Column], values: Sequence[Value]) -> bool:
    """``fits``, and no column is missing: all that can be asked of a record whose table is not known."""
    return len(values) == len(columns) and fits(table, columns, values)


@functools.lru_cache(maxsize=256)
def _checks(table: str, columns: tuple[Column, ...]) -> tuple[Check, ...]:
    return tuple(_check(table, column) for column in columns)


def _check(table: str, column: Column) -> Check:
    may_be_null = not column.not_null and not column.primary
    own = CHECKS.get(f"{table}.{column.name}")
    is_typed = _typed(column)
    if column.name.endswith("_at") and table in _OUR_TABLES:
        own = own or is_time

    def check(value: Value) -> bool:
        if value is None:
            return may_be_null
        return is_typed(value) and (own is None or own(value))

    return check


_OUR_TABLES = frozenset(name.partition(".")[0] for name in CHECKS) | {"revisions", "processes", "files_out"}


def _typed(column: Column) -> Check:
    kind = column.type.upper()
    if "TEXT" in kind and column.primary:
        return lambda value: isinstance(value, str) and value.isprintable()
    if "TEXT" in kind:
        return lambda value: isinstance(value, str) and "\x00" not in value
    if "INT" in kind:
        return lambda value: isinstance(value, int) and abs(value) < _MAX_COUNT
    return lambda value: isinstance(value, int | float) and math.isfinite(value)  # a whole number is stored as one


def check(connection: sqlite3.Connection) -> None:
    """Raise DamagedError for an unreadable or impossible row: for files without page checksums."""
    for table in schema_repair.tables(connection):
        columns = schema_repair.columns(connection, table)
        try:
            for row in connection.execute(f"SELECT * FROM {table} NOT INDEXED"):
                if table in NEVER_CARVED and not is_possible(table, columns, row):
                    raise DamagedError(f"a row of {table} holds what was never written")
        except sqlite3.OperationalError as error:
            if "decode" not in str(error):
                raise
            raise DamagedError(f"a text of {table} cannot be read") from error


def is_possible(table: str, columns: Sequence[Column], values: Sequence[Value]) -> bool:
    """Whether a row of a sound table says nothing that we never write, such as a role that there is not."""
    checks = (CHECKS.get(f"{table}.{column.name}") for column in columns)
    return all(check is None or value is None or check(value) for check, value in zip(checks, values, strict=False))


def is_typed(columns: Sequence[Column], values: Sequence[Value]) -> bool:
    """Whether these values have at least the types of these columns."""
    return len(values) <= len(columns) and all(
        _typed(column)(value) if value is not None else not column.not_null and not column.primary
        for column, value in zip(columns, values, strict=False)
    )


def time_column(columns: Sequence[Column]) -> int | None:
    """Where a row of these columns says when it came about."""
    names = [column.name for column in columns]
    return next((names.index(name) for name in TIMES if name in names), None)
