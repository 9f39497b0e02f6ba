"""Decide the next action of a turn from stored rows alone, so that it can be resumed after a crash at any point."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from hermes.core.dataclasses import dataclass

MAX_DEATHS = 3
"""A turn that was in hand when the process died this often is set aside: it may be what kills it."""

WARNED_CALLS = 2
"""So many identical calls beyond the limit are answered by a warning; with the last of them the turn ends."""


QUESTION_EXPIRED = "Nobody answered in {span}, so it did not run. Do not try it again unless the user asks."
QUESTION_DENIED = "The user said no{reason}. Do not try it again; choose another way or ask."
QUESTION_CANCELLED = "The question was withdrawn ({reason}); it did not run."
"""What the model is told in place of a result."""


class CallState(StrEnum):
    PROPOSED = "proposed"
    WAITING = "waiting"
    ALLOWED = "allowed"
    REFUSED = "refused"  # denied, expired or cancelled; its result is not written yet
    STARTED = "started"
    DONE = "done"


class CallView(Protocol):
    @property
    def state(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> str: ...


@dataclass(frozen=True, slots=True)
class RunCall:
    index: int


@dataclass(frozen=True, slots=True)
class CloseCall:
    """Write a result without running anything. ``why`` is 'refused' or 'interrupted'."""

    index: int
    why: str


@dataclass(frozen=True, slots=True)
class WaitForApproval:
    pass


@dataclass(frozen=True, slots=True)
class CallModel:
    wants_summary: bool = False


Action = RunCall | CloseCall | WaitForApproval | CallModel


def next_action(calls: Sequence[CallView], repeatable: Sequence[bool], *, steps: int, max_steps: int) -> Action:
    """Decide over the calls of the newest step, in their order; a waiting one holds up none that may run."""
    waits = False
    for index, call in enumerate(calls):
        match call.state:
            case CallState.DONE:
                continue
            case CallState.WAITING:
                waits = True
            case CallState.REFUSED:
                return CloseCall(index, "refused")
            case CallState.STARTED if not repeatable[index]:
                return CloseCall(index, "interrupted")
            case _:
                return RunCall(index)
    if waits:
        return WaitForApproval()
    return CallModel(wants_summary=steps >= max_steps)


def identical_in_a_row(made: Sequence[tuple[str, str]], name: str, arguments: str) -> int:
    """Return how many of the newest calls in a row were this very call."""
    count = 0
    for earlier in reversed(made):
        if earlier != (name, arguments):
            break
        count += 1
    return count


INTERRUPTED_BY_RESTART = "Interrupted by a restart; unknown whether it finished. Check before doing it again."
SUMMARY_REQUEST = (
    "You have used all the steps you have for this request. Do not call any more tools. "
    "Say in a few sentences what you did, what you found and what is left to do."
)
SAME_CALL_AGAIN = (
    "Not run: you have made this exact call {count} times in a row, and its result will not change. "
    "Use what you have, or try another way."
)
