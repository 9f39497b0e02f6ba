"""Report what a recovery lost: a sentence, and a line of ``recoveries.jsonl``."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.durations import format_time
from hermes.store.ids import time_of

log = logging.getLogger(__name__)

NAME = "recoveries.jsonl"
LAST_CHANGES = "*"
"""In the place of a table: changes that stood only in the write-ahead log, of whatever table."""

_HERE = Path()
_LOST = "; lost: "

_TABLES = {"ev": ("inbox", "dedupe"), "t": ("turns",), "ob": ("outbox",), "ap": ("approvals",), "s": ("sessions",)}
"""Where an id with this prefix is looked for."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Lost rows of a table, written from ``since`` to ``until``; unless ``is_exact``, there may be more."""

    table: str
    rows: int
    is_exact: bool = True
    since: float | None = None
    until: float | None = None

    def __str__(self) -> str:
        if self.table == LAST_CHANGES:
            return "some of the last changes (how many is not known)"
        return f"{self._count()} of {self.table}{self._when()}"

    def _count(self) -> str:
        if self.is_exact:
            return f"{self.rows:,} {'row' if self.rows == 1 else 'rows'}"
        return f"at least {self.rows:,} {'row' if self.rows == 1 else 'rows'}" if self.rows else "an unknown number"

    def _when(self) -> str:
        if self.since is None and self.until is None:
            return ""
        if self.since is None:
            return f" before {clock_time(self.until)}"
        if self.until is None:
            return f" after {clock_time(self.since)}"
        since, until = clock_time(self.since), clock_time(self.until)
        return f" of {since}" if since == until else f" between {since} and {until}"

    def covers(self, at: float | None) -> bool:
        """Whether a row written at this time may be among them; None: the time is not known."""
        return at is None or ((self.since or 0.0) - 60 <= at and (self.until is None or at <= self.until + 60))


@dataclass(slots=True)
class Report:
    """``rows`` came back; ``losses`` did not. An empty list of losses means that every row is there."""

    file: str = ""
    reason: str = ""
    at: float = 0.0
    kept_as: str = ""
    rows: int = 0
    losses: list[Loss] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return self.text()

    def text(self, folder: Path = _HERE) -> str:
        """The sentence for the owner. ``folder`` is put in front of the name of the damaged file."""
        kept = f" The damaged file is kept as {folder / self.kept_as}." if self.kept_as else ""
        notes = "".join(f" {note}" for note in self.notes)
        return f"{self.file} was damaged ({self.reason}). {self.outcome()}{notes}{kept}"

    def outcome(self) -> str:
        rows = f"{self.rows:,} {'row' if self.rows == 1 else 'rows'}"
        if not self.losses:
            return f"Recovered all {rows}."
        if all(loss.is_exact for loss in self.losses):
            rows = f"{self.rows:,} of {self.rows + sum(loss.rows for loss in self.losses):,} rows"
        *most, last = map(str, sorted(self.losses, key=lambda loss: -loss.rows))
        return f"Recovered {rows}{_LOST}{', '.join(most)} and {last}." if most else f"Recovered {rows}{_LOST}{last}."


def tells_of_loss(text: str) -> bool:
    """Whether this is the text of a report that says that rows are gone."""
    return _LOST in text


def clock_time(at: float | None) -> str:
    return format_time("%Y-%m-%d %H:%M", at or 0.0)


# The file


def as_json(report: Report) -> str:
    return orjson.dumps(asdict(report)).decode()


def from_json(text: str | bytes) -> Report:
    found: dict[str, Any] = orjson.loads(text)
    return Report(**{**found, "losses": [Loss(**loss) for loss in found["losses"]]})


def append(folder: Path, report: Report) -> None:
    descriptor = os.open(folder / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with open(descriptor, "ab") as file:
        file.write(as_json(report).encode() + b"\n")


def read(folder: Path) -> list[Report]:
    """Every recovery of this home, the oldest first; a line that cannot be read is passed over."""
    try:
        lines = (folder / NAME).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            found.append(from_json(line))
        except (ValueError, TypeError, KeyError):
            log.warning("Recovery line skipped", extra={"path": str(folder / NAME)})
    return found


def of_id(reports: Sequence[Report], name: str) -> list[str]:
    """For an id that nothing is found for: which recoveries lost rows that it may have named, a sentence each.

    An empty ``name`` stands for any message, turn or delivery.
    """
    prefix, _, rest = name.partition("_")
    tables = _TABLES.get(prefix) if rest else None
    at = time_of(name) if tables else None
    found = []
    for report in reports:
        losses = [
            loss
            for loss in report.losses
            if loss.table == LAST_CHANGES
            or (loss.table in (tables or ("inbox", "dedupe", "outbox", "turns")) and loss.covers(at))
        ]
        if losses:
            lost = ", ".join(map(str, losses))
            kept = f" (the old file: {report.kept_as})" if report.kept_as else ""
            found.append(f"Lost when {report.file} was recovered on {clock_time(report.at)}{kept}: {lost}.")
    return found
