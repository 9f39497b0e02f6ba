"""What each part of ./scripts/chaos is given and tells, and the words that several of them use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.kills import Killed, Series
from tests.chaos.reconnects import Grown
from tests.chaos.world import W

PROGRESS_EVERY = 10

Row = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Told:
    """What one part found: its rows of the table, and whether the promise held.

    ``is_slow``: nothing was lost or wrong, and yet a time that was promised was not kept.
    """

    rows: Sequence[Row]
    is_good: bool
    is_slow: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    kills: int
    seed: int
    folder: Path


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def counts(*lists: Sequence[object]) -> str:
    return ", ".join(str(len(each)) for each in lists)


def is_time_to_tell(series: Series) -> bool:
    return len(series.kills) % PROGRESS_EVERY == 0


def tell_progress(series: Series, seconds: float) -> None:
    verdict = series.verdict()
    back = sorted(kill.back_seconds for kill in series.kills)
    print(
        f"{len(series.kills):>4} kills in {seconds:.0f} s: {len(verdict.lost)} lost, {len(verdict.doubled)} doubled, "
        f"{verdict.repeats} repeated; back after {quantile(back, 0.5):.2f} s (p50), {back[-1]:.2f} s (longest)",
        flush=True,
    )


def outcome(killed: Killed[W], options: Options, *, of: str = "") -> list[Row]:
    verdict = killed.verdict
    return [
        (f"{of}kill -9 / messages", f"{len(killed.kills)} / {verdict.messages} (seed {options.seed})"),
        (f"{of}lost, stuck, still waiting", f"{len(verdict.lost)}, {killed.stuck}, {killed.waiting}"),
        (f"{of}doubled, unmarked, out of order", counts(verdict.doubled, verdict.unmarked, verdict.out_of_order)),
    ]


def growth(grown: Grown, what: str = "failed connections", *, of: str = "") -> Row:
    before, after = (f"{held.descriptors}, {held.tasks}, {held.threads}" for held in (grown.before, grown.after))
    return f"{of}descriptors, tasks, threads before → after {grown.failures} {what}", f"{before} → {after}"
