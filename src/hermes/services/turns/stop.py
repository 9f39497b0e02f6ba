"""Ask a running turn to end."""

from __future__ import annotations

from enum import StrEnum

from hermes.core.dataclasses import dataclass


class StopReason(StrEnum):
    """Why a running turn is asked to end. A drain leaves it unfinished, for the next process."""

    INTERRUPTED = "interrupted by a newer message"
    STOPPED = "stopped"
    RENEWED = "a fresh session was started"
    DRAIN = "drain"


@dataclass(slots=True)
class TurnControl:
    """A lane's request to its turn to end: set the reason, then cancel the task."""

    reason: StopReason | None = None
    # The turn's end, or its sleep on an approval, is being written: there is nothing left to cancel.
    is_ending: bool = False
    # Asked for while the sleep was being written. It counts if the turn does not sleep after all.
    asked_late: StopReason | None = None
