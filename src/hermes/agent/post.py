"""How a tool sends a message: through the outbox, like every message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hermes.core.keys import AccountKey, Target
from hermes.store.outbox import Outgoing


@dataclass(frozen=True, slots=True)
class Post:
    """``write`` makes the rows of one letter under a key, so that writing it twice stores it once; ``due`` tells
    delivery once they are committed; ``homes`` are the accounts there are, and their home channels.
    """

    write: Callable[[Target, str, str], Sequence[Outgoing]]
    due: Callable[[Sequence[Outgoing]], None]
    homes: Callable[[], Mapping[AccountKey, str]]
    now: Callable[[], float]
