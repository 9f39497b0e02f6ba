"""Count what an import brought, and say what it did not bring and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.text import one_line
from hermes.hosting.importers.found import LeftOut

PARTS = ("settings", "keys", "people", "sessions", "jobs", "tasks", "skills", "files")
MAX_NOTES = 100
MAX_NAME_CHARS = 400
MAX_REASON_CHARS = 240


class Fate(StrEnum):
    """What became of one thing of the other home."""

    CAME = "came"
    LONGER = "longer"  # a session that was here, and has more lines there by now
    SAME = "same"  # here already
    KEPT = "kept"  # here with another value, which stays
    LEFT_OUT = "left_out"


@dataclass(slots=True)
class ImportReport:
    """``notes`` are for a person: what was left out or stays as it is here, with the reason."""

    kind: str
    path: str
    is_dry: bool = False
    batch: str = ""
    lines: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=lambda: {part: Counter() for part in PARTS})
    notes: list[LeftOut] = field(default_factory=list)
    addresses: list[tuple[str, str]] = field(default_factory=list)
    """Settings that decide where words and keys go, with their values: left out until somebody says yes."""

    def add(self, part: str, fate: Fate, name: str = "", reason: str = "") -> None:
        self.counts[part][fate.value] += 1
        if reason:
            self.note(part, name, reason)

    def leave_address(self, part: str, name: str, value: str, reason: str) -> None:
        self.addresses.append((one_line(name, MAX_NAME_CHARS), one_line(value, MAX_REASON_CHARS)))
        self.add(part, Fate.LEFT_OUT, f"{name} ({value})" if value else name, reason)

    def note(self, part: str, name: str, reason: str) -> None:
        self.notes.append(LeftOut(part, one_line(name, MAX_NAME_CHARS), one_line(reason, MAX_REASON_CHARS)))

    def leave_out(self, left: Iterable[LeftOut]) -> None:
        for item in left:
            self.add(item.part, Fate.LEFT_OUT, item.name, item.reason)

    @property
    def changes(self) -> int:
        """How many things came, or would come."""
        return sum(counted[Fate.CAME] + counted[Fate.LONGER] for counted in self.counts.values())

    def to_dict(self) -> dict[str, Any]:
        return {
            "object": "import",
            "kind": self.kind,
            "path": self.path,
            "dry_run": self.is_dry,
            "batch": self.batch,
            "lines": self.lines,
            "parts": {part: {fate.value: counted[fate] for fate in Fate} for part, counted in self.counts.items()},
            "addresses": [{"name": name, "value": value} for name, value in self.addresses[:MAX_NOTES]],
            "notes": [
                {"part": note.part, "name": note.name, "reason": note.reason} for note in self._ordered()[:MAX_NOTES]
            ],
            "more_notes": max(0, len(self.notes) - MAX_NOTES),
        }

    def _ordered(self) -> list[LeftOut]:
        """By part, so that many damaged lines of one do not hide the others; sessions have the most and stand last."""
        order = {
            part: place for place, part in enumerate((*(part for part in PARTS if part != "sessions"), "sessions"))
        }
        return sorted(self.notes, key=lambda note: order[note.part])
