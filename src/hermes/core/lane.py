"""Lane rules: messages that arrive during a turn, and how they join into prompts."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol, TypeVar

from hermes.core.requests import EVENT_KINDS

MAX_JOIN_SECONDS = 8.0


DOORS = frozenset({"api", "task", "cron", "webhook"})
"""Where nobody chats: each request is a turn of its own, nothing interrupts, and the answer goes back by itself."""
FRESH_SESSION = "each run begins anew"
FRESH = frozenset({"cron"})
"""Where each turn begins a session of its own: a run of a job does not read the runs before it."""


class BusyMode(StrEnum):
    INTERRUPT = "interrupt"  # stop the turn; all that arrived is the next prompt
    QUEUE = "queue"  # each message is a turn of its own, in order
    STEER = "steer"  # handed to the model after the current tool call


ONE_MODE = {"queue": BusyMode.QUEUE, "steer": BusyMode.STEER}
"""Kinds of a message that says for itself what it does while a turn runs, whatever the chat's mode is."""


class Arrived(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def ready_at(self) -> float: ...
    @property
    def received_at(self) -> float: ...
    @property
    def sender_id(self) -> str: ...
    @property
    def role(self) -> str: ...


Row = TypeVar("Row", bound=Arrived)


def rows_of_next_prompt(rows: Sequence[Row], mode: BusyMode, now: float) -> tuple[Sequence[Row], float | None]:
    """Return the rows to join, or none and when to look again.

    All of them are of one sender in one role: the prompt runs with that person's rights, files and grants. A row that
    is likely to go on carries a later ``ready_at``; it is waited for, but never longer than MAX_JOIN_SECONDS after the
    first row came, however much keeps arriving.
    """
    if not rows:
        return (), None
    if len(rows) > 1:
        rows = _of_first_sender(rows)
    group = first_group(rows) if mode is BusyMode.QUEUE or _stands_alone(rows[0]) else _joined(rows)
    ready_at = min(max(row.ready_at for row in group), group[0].received_at + MAX_JOIN_SECONDS)
    return (group, None) if ready_at <= now else ((), ready_at)


def _of_first_sender(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows up to the first of another sender or role.

    Announced continuations are included: another person's message between two parts does not split a message.
    """
    first = rows[0]
    group: list[Row] = []
    is_split = False
    for row in rows:
        if row.sender_id != first.sender_id or row.role != first.role:
            is_split = True
        elif not is_split or _continues(group[-1], row):
            group.append(row)
        else:
            break
    return group if is_split else rows


def _continues(row: Arrived, following: Arrived) -> bool:
    """Tell whether a row announced more, and the following one came in time."""
    return row.received_at < row.ready_at >= following.received_at


def first_group(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the first message and its announced continuations."""
    end = 1
    while end < len(rows) and _continues(rows[end - 1], rows[end]):
        end += 1
    return rows[:end]


def _joined(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows before the first that needs a turn of its own."""
    return rows[: next((place for place, row in enumerate(rows) if _stands_alone(row)), len(rows))]


def _stands_alone(row: Arrived) -> bool:
    """A request is followed by its own turn, also one that the dashboard puts into a chat."""
    return ONE_MODE.get(row.kind) is BusyMode.QUEUE or row.kind in EVENT_KINDS
