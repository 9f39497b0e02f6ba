"""Read the heartbeat, for the parent and the CLI.

Imported by the parent too: standard library only, and little of it.
"""

from __future__ import annotations

import json
import time

STOPPING = "stopping"  # what a worker says it is doing while it drains
RESTARTING = "restarting"  # the same, when it is started anew afterwards
SIZE = 512  # one fixed block, rewritten in place: no space is needed on a full disk


class Beat:
    """What the worker last said. ``ready_at`` 0: not ready yet. ``doing`` and ``waiting`` are for people."""

    __slots__ = ("at", "doing", "monotonic", "pid", "ready_at", "safe", "settled", "waiting")

    def __init__(
        self,
        pid: int,
        at: float,
        monotonic: float,
        ready_at: float = 0.0,
        settled: int = 0,
        doing: str = "",
        waiting: int = 0,
        safe: str = "",
    ) -> None:
        self.pid = pid
        self.at = at
        self.monotonic = monotonic
        self.ready_at = ready_at
        self.settled = settled
        self.doing = doing
        self.waiting = waiting
        self.safe = safe

    def age(self, now: float, monotonic: float) -> float:
        """Seconds since the beat: by the steady clock, unless the machine started anew in between."""
        steady = monotonic - self.monotonic
        return steady if steady >= 0 else max(0.0, now - self.at)


def encode(beat: Beat) -> bytes:
    """Encode exactly SIZE bytes; long texts are cut."""
    for words in (120, 40, 0):
        fields = {
            "pid": beat.pid,
            "at": round(beat.at, 3),
            "monotonic": round(beat.monotonic, 3),
            "ready_at": round(beat.ready_at, 3),
            "settled": beat.settled,
            "waiting": beat.waiting,
            "doing": beat.doing[:words],
            "safe": beat.safe[:words],
        }
        raw = json.dumps(fields).encode()
        if len(raw) < SIZE:
            break
    return raw.ljust(SIZE - 1) + b"\n"


def read(path: str) -> Beat | None:
    """The last beat; None when there is none that can be read. A block that is just being written is read again."""
    for _ in range(5):
        try:
            with open(path, "rb", buffering=0) as file:
                data = json.loads(file.read(SIZE) or b"")
                return Beat(**{name: value for name, value in data.items() if name in Beat.__slots__})
        except OSError:
            return None  # also one that cannot be read: the supervisor must outlive a disk that fails
        except (ValueError, TypeError, AttributeError):
            time.sleep(0.01)
    return None
