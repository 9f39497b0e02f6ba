"""Decide what becomes of the due times of a job: run, late, missed or skipped.

A slot is a due time. The ledger holds each slot once; a job looks at the slots from its next one up to now, whatever
happened meanwhile: downtime, a clock that was set, two nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from datetime import datetime, time, timedelta, tzinfo
from enum import StrEnum

from hermes.core.dataclasses import dataclass

ON_TIME_SECONDS = 60.0
"""A slot that is noticed within this time ran on time; later it is caught up."""
MAX_COUNTED = 2000
MAX_CAUGHT_UP = 100
"""How many slots ``run_all`` runs after a long downtime; older ones are missed."""

NextAfter = Callable[[float], float | None]


class SlotState(StrEnum):
    RAN = "ran"
    LATE = "late"
    MISSED = "missed"
    SKIPPED = "skipped"


class CatchUp(StrEnum):
    RUN_ONCE = "run_once"  # the newest of the slots that passed
    RUN_ALL = "run_all"  # each of them, in order
    SKIP = "skip"  # none of them


@dataclass(frozen=True, slots=True)
class Passed:
    """Slots without a run: the first, the last, and how many (0: too many to be counted)."""

    first: float
    last: float
    count: int
    state: SlotState
    reason: str


@dataclass(frozen=True, slots=True)
class SlotRun:
    slot: float
    state: SlotState


@dataclass(frozen=True, slots=True)
class SlotDecision:
    """``next_slot`` is the job's next due time, None when there is none; ``wait_until`` holds that slot back."""

    runs: tuple[SlotRun, ...] = ()
    passed: tuple[Passed, ...] = ()
    next_slot: float | None = None
    wait_until: float = field(default=0.0)


def decide(
    slot: float,
    now: float,
    next_after: NextAfter,
    policy: CatchUp,
    *,
    is_once: bool = False,
    is_busy: bool = False,
    quiet_until: float = 0.0,
    runs_left: int | None = None,
) -> SlotDecision:
    """Decide about every slot from ``slot``, which is due, up to ``now``.

    ``is_busy``: an earlier run has not ended. ``quiet_until``: quiet hours last until then. A job that runs once waits
    for their end; of any other the slot is skipped. ``runs_left`` limits how many runs may still follow.
    """
    if is_once and quiet_until > now:
        return SlotDecision(next_slot=slot, wait_until=quiet_until)
    slots, following, is_counted = _due(slot, now, next_after)
    older, runs, reason = _split(slots, now, policy)
    passed: list[Passed] = []
    state = SlotState.SKIPPED if policy is CatchUp.SKIP else SlotState.MISSED
    if not is_counted:
        passed.append(Passed(slot, older[-1] if older else max(slot, slots[0] - 1), 0, state, reason))
    elif older:
        passed.append(Passed(older[0], older[-1], len(older), state, reason))
    if runs and quiet_until > now:
        passed.append(Passed(runs[0], runs[-1], len(runs), SlotState.SKIPPED, "quiet hours"))
        runs = []
    elif runs and is_busy and policy is not CatchUp.RUN_ALL:
        passed.append(Passed(runs[0], runs[-1], len(runs), SlotState.SKIPPED, "the run before it has not ended"))
        runs = []
    if runs_left is not None and len(runs) >= runs_left:
        left_out = runs[runs_left:]
        if left_out:
            passed.append(Passed(left_out[0], left_out[-1], len(left_out), SlotState.SKIPPED, "ran as often as wanted"))
        runs, following = runs[:runs_left], None
    decided = tuple(SlotRun(each, SlotState.RAN if _is_on_time(each, now) else SlotState.LATE) for each in runs)
    return SlotDecision(decided, tuple(passed), following)


def _due(slot: float, now: float, next_after: NextAfter) -> tuple[list[float], float | None, bool]:
    """Return the slots up to now, the next one, and whether the list is complete."""
    slots: list[float] = []
    following: float | None = slot
    while following is not None and following <= now:
        if len(slots) == MAX_COUNTED:
            newest, following = _newest(now, next_after, slots[-1])
            return [*slots, *newest][-MAX_CAUGHT_UP:], following, False
        slots.append(following)
        following = next_after(following)
    return slots, following, True


def _newest(now: float, next_after: NextAfter, floor: float) -> tuple[list[float], float | None]:
    """Return the newest slots, at most MAX_CAUGHT_UP, found without counting all before them."""
    span = 60.0
    while True:
        start = max(floor, now - span)
        slots, following = [], next_after(start)
        while following is not None and following <= now:
            slots.append(following)
            following = next_after(following)
        if len(slots) >= MAX_CAUGHT_UP or start == floor:
            return slots[-MAX_CAUGHT_UP:], following
        span *= 2


def _split(slots: list[float], now: float, policy: CatchUp) -> tuple[list[float], list[float], str]:
    """Return the slots that are passed over, those that run, and why the first do not."""
    match policy:
        case CatchUp.RUN_ALL:
            older, runs = slots[:-MAX_CAUGHT_UP], slots[-MAX_CAUGHT_UP:]
            return older, runs, "too many were due"
        case CatchUp.SKIP:
            # Of several that are on time, as after a pause of seconds, the newest stands for all.
            runs = [each for each in slots[-1:] if _is_on_time(each, now)]
            return slots[: len(slots) - len(runs)], runs, "the catch-up policy is skip"
        case CatchUp.RUN_ONCE:
            return slots[:-1], slots[-1:], "a later one ran for it"


def _is_on_time(slot: float, now: float) -> bool:
    return now - slot <= ON_TIME_SECONDS


# Quiet hours


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From one time of day to another, which may be past midnight."""

    begins: time
    ends: time

    @classmethod
    def parse(cls, text: str) -> QuietHours | None:
        """Parse ``22:00-07:00``; None for ''. ValueError for anything else."""
        if not text.strip():
            return None
        first, sign, second = text.replace("–", "-").partition("-")
        try:
            begins, ends = (_time(part) for part in (first, second))
        except ValueError:
            sign = ""
        if not sign or begins == ends:
            raise ValueError(f"{text!r} are no quiet hours. Write them like 22:00-07:00.")
        return cls(begins, ends)

    def until(self, now: float, zone: tzinfo) -> float:
        """Return when the quiet hours end that last now; 0 when none do."""
        here = datetime.fromtimestamp(now, zone)
        clock = here.time()
        is_over_night = self.begins > self.ends
        is_quiet = (clock >= self.begins or clock < self.ends) if is_over_night else self.begins <= clock < self.ends
        if not is_quiet:
            return 0.0
        day = here + timedelta(days=1) if is_over_night and clock >= self.begins else here
        end = day.replace(hour=self.ends.hour, minute=self.ends.minute, second=0, microsecond=0, fold=0)
        return max(end.timestamp(), now + 1)


def _time(text: str) -> time:
    hour, _, minute = text.strip().partition(":")
    return time(int(hour), int(minute or 0))
