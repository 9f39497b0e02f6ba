"""Define how tools send messages and files: through the outbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from hermes.agent.toolkit.context import ToolContext
from hermes.core.dataclasses import dataclass
from hermes.core.keys import AccountKey, Target
from hermes.core.messages import AttachmentKind, Capabilities
from hermes.store import outbox, outbox_files
from hermes.store.db import Tx
from hermes.store.outbox import Outgoing
from hermes.store.outbox_files import OutboxFile


@dataclass(frozen=True, slots=True)
class OutgoingFiles:
    """Files that lie ready to be sent: their rows, what is remembered until they have arrived, and what was refused."""

    rows: Sequence[Outgoing]
    files: Sequence[OutboxFile]
    refused: Sequence[str] = ()

    def store(self, tx: Tx, *, now: float) -> None:
        outbox_files.note(tx, self.files)
        outbox.enqueue(tx, self.rows, now=now)


@dataclass(frozen=True, slots=True)
class MessageSender:
    """``write`` makes the rows of one letter under a key, so that writing it twice stores it once; ``due`` tells
    delivery once they are committed; ``homes`` are the accounts there are, and their home channels. ``mail`` is for a
    letter that names files of the caller's workspace.
    """

    write: Callable[[Target, str, str], Sequence[Outgoing]]
    mail: Callable[[ToolContext, Target, str], Awaitable[OutgoingFiles]]
    due: Callable[[Sequence[Outgoing]], None]
    homes: Callable[[], Mapping[AccountKey, str]]
    now: Callable[[], float]


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    """A file that we made ourselves. ``key`` names its letter: making it twice sends it once."""

    data: bytes
    name: str
    mime: str
    kind: AttachmentKind
    key: str


@dataclass(frozen=True, slots=True)
class FileSender:
    """How a tool sends a file that it made. ``pack`` puts it where nobody can change it; then its rows are stored."""

    limits: Callable[[Target], Capabilities]
    pack: Callable[[Target, GeneratedFile, str], Awaitable[OutgoingFiles]]
    due: Callable[[Sequence[Outgoing]], None]
    now: Callable[[], float]
