"""What a measurement gives back: figures with their units and, where the design names one, their budgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``budget`` is the most it may be; None where the design names none."""

    what: str
    value: float
    unit: str
    budget: float | None = None
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        return None if self.budget is None else self.value <= self.budget

    @property
    def verdict(self) -> str:
        return {True: "✓", False: "✗", None: ""}[self.is_met]

    @property
    def figure(self) -> str:
        return f"{_number(self.value)} {self.unit}".strip()

    @property
    def limit(self) -> str:
        return "" if self.budget is None else f"≤ {_number(self.budget)} {self.unit}".strip()


Rows = list[Row]


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how much. ``short`` proves that the tool works; its figures mean little."""

    short: bool = False
    idle_seconds: float = 30.0
    history_gb: float = 0.0
    profile: str = ""
    turns: int = 100_000
    say: Callable[[str], None] = lambda _: None

    def count(self, full: int, short: int) -> int:
        return short if self.short else full


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile; 0 of nothing."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def milliseconds(seconds: float) -> float:
    return seconds * 1000


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1_000_000:
        return str(int(value))
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
