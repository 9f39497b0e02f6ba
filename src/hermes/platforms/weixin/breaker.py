"""Break the circuit after ``ret=-2``: sending during a penalty prolongs it."""

from __future__ import annotations

from hermes.core.dataclasses import dataclass

MAX_SECONDS = 3600.0


@dataclass(slots=True)
class Breaker:
    """Open after a refusal for a pause that doubles up to an hour; a success closes it. Stored, so restarts keep it."""

    first_seconds: float
    pause: float = 0.0
    until: float = 0.0
    tripped_at: float = 0.0

    def left(self, now: float) -> float:
        """Seconds until it may be tried again. A clock that was set back does not keep it open for longer."""
        return min(max(0.0, self.until - now), self.pause)

    def trip(self, now: float) -> None:
        """Refused. What was refused beside others in the same pause counts once."""
        if self.left(now) > 0:
            return
        self.pause = min(self.pause * 2, MAX_SECONDS) if self.pause else self.first_seconds
        self.until = now + self.pause
        self.tripped_at = now

    @property
    def is_first(self) -> bool:
        """Whether all this is about one refusal: it may have been a burst that is forgotten in a moment."""
        return self.pause <= self.first_seconds

    def close(self) -> bool:
        """Taken again. True when that is news."""
        was_open = self.pause > 0
        self.pause = self.until = self.tripped_at = 0.0
        return was_open

    @property
    def text(self) -> str:
        return f"{self.pause:.3f} {self.until:.3f} {self.tripped_at:.3f}" if self.pause else ""

    @classmethod
    def of(cls, text: str, first_seconds: float) -> Breaker:
        try:
            pause, until, tripped_at = (float(part) for part in text.split())
        except ValueError:  # none was open, or the mark is damaged: then it is learned anew
            return cls(first_seconds)
        return cls(first_seconds, min(max(pause, 0.0), MAX_SECONDS), until, tripped_at)
