"""How a tool sends a message: through the outbox, like every message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from hermes.core.keys import AccountKey, Target
from hermes.core.messages import AttachmentKind, Capabilities
from hermes.store import files_out, outbox
from hermes.store.db import Tx
from hermes.store.files_out import FileOut
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


@dataclass(frozen=True, slots=True)
class Parcel:
    """A file that lies ready to be sent: its rows, and what is remembered of it until it has arrived."""

    rows: Sequence[Outgoing]
    files: Sequence[FileOut]

    def store(self, tx: Tx, *, now: float) -> None:
        files_out.note(tx, self.files)
        outbox.enqueue(tx, self.rows, now=now)


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file that we made ourselves. ``key`` names its letter: making it twice sends it once."""

    data: bytes
    name: str
    mime: str
    kind: AttachmentKind
    key: str


@dataclass(frozen=True, slots=True)
class ParcelPost:
    """How a tool sends a file that it made. ``pack`` puts it where nobody can change it; then its rows are stored."""

    limits: Callable[[Target], Capabilities]
    pack: Callable[[Target, MadeFile, str], Awaitable[Parcel]]
    due: Callable[[Sequence[Outgoing]], None]
    now: Callable[[], float]
