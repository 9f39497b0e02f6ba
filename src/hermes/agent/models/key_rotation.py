"""Rotate several keys of one provider: which is used, which are resting."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ModelError
from hermes.core.errors import ModelErrorKind as Kind
from hermes.core.ports import Clock
from hermes.core.secret import Secret

log = logging.getLogger(__name__)

RATE_REST_SECONDS = 30.0
QUOTA_REST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class KeyState:
    """``rests_seconds`` is how much longer it is passed over; ``is_refused``: until the configuration changes."""

    hint: str
    is_used: bool
    is_refused: bool = False
    rests_seconds: float = 0.0

    def __str__(self) -> str:
        if self.is_refused:
            return f"{self.hint} was refused"
        if self.rests_seconds:
            return f"{self.hint} rests {self.rests_seconds:.0f} s"
        return f"{self.hint} in use" if self.is_used else f"{self.hint} ready"


class KeyRotation:
    """Use one key until its provider refuses it (providers cache by key). A single key is never passed over."""

    def __init__(self, provider: str, keys: Sequence[Secret], clock: Clock) -> None:
        self._provider = provider
        self._keys = tuple(keys)
        self._clock = clock
        self._used = 0
        self._refused: set[Secret] = set()
        self._rests: dict[Secret, float] = {}

    @property
    def has_several(self) -> bool:
        return len(self._keys) > 1

    def current(self) -> Secret | None:
        """Return the key for the next call; when every one is out, the one that is soonest back."""
        if not self._keys:
            return None
        if (place := self._next_ready()) is None:
            resting = [key for key in self._keys if key not in self._refused]
            soonest = min(resting, key=lambda key: self._rests.get(key, 0.0), default=self._keys[0])
            place = self._keys.index(soonest)
        self._used = place
        return self._keys[place]

    def after(self, key: Secret | None, error: ModelError) -> Secret | None:
        """Note what became of a key; return another one to try at once, or None: then the error is told."""
        if key is None or key not in self._keys or not self.has_several:
            return None
        if error.kind is Kind.AUTH:
            self._refused.add(key)
        elif error.kind in (Kind.RATE, Kind.QUOTA):
            rest = error.retry_after or (RATE_REST_SECONDS if error.kind is Kind.RATE else QUOTA_REST_SECONDS)
            self._rests[key] = self._clock.monotonic() + rest
        else:
            return None
        place = self._next_ready()
        if place is None:
            return None
        self._used = place
        other = self._keys[place]
        fields = {"provider": self._provider, "key": key.hint(), "reason": error.kind.value, "now": other.hint()}
        log.warning("Switched API key", extra=fields)
        return other

    def states(self) -> list[KeyState]:
        """Return every key in the order of the configuration, by its last letters."""
        return [
            KeyState(key.hint(), place == self._used, key in self._refused, self._rest_of(key))
            for place, key in enumerate(self._keys)
        ]

    def _next_ready(self) -> int | None:
        places = [*range(self._used, len(self._keys)), *range(self._used)]
        ready = (place for place in places if self._keys[place] not in self._refused)
        return next((place for place in ready if not self._rest_of(self._keys[place])), None)

    def _rest_of(self, key: Secret) -> float:
        return max(0.0, self._rests.get(key, 0.0) - self._clock.monotonic())
