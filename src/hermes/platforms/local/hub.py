"""Pass messages between the CLI and the local adapter in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.errors import UnreachableError, WindowClosedError
from hermes.core.messages import Attachment, OutboundMessage, Picture, Receipt

if TYPE_CHECKING:
    from hermes.platforms.local.media import PictureFolder

MAX_REMEMBERED_SENDS = 1000
SUBMIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Submission:
    """A message on its way into the inbox; ``stored`` is settled when it is there, or fails."""

    chat: str
    text: str
    key: str
    sent_at: datetime
    stored: asyncio.Future[None]
    folder: str = ""
    language: str = ""
    attachments: tuple[Attachment, ...] = ()


class LocalHub:
    """Built once per process and handed to each new LocalAdapter, so it outlives their restarts.

    Pictures of messages are kept in ``folder``; without one, none are taken.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._submitted: asyncio.Queue[Submission] = asyncio.Queue()
        self._listeners: dict[str, list[asyncio.Queue[OutboundMessage]]] = {}
        self._receipts = BoundedDict[str, Receipt](MAX_REMEMBERED_SENDS)
        self._count = 0

    @cached_property
    def pictures(self) -> PictureFolder | None:
        if self._folder is None:
            return None
        from hermes.platforms.local.media import PictureFolder  # with the first picture

        return PictureFolder(self._folder)

    async def submit(
        self,
        chat: str,
        text: str,
        key: str,
        *,
        folder: str = "",
        language: str = "",
        pictures: tuple[Picture, ...] = (),
        within_seconds: float = SUBMIT_SECONDS,
    ) -> None:
        """Return once the message is stored. After an error repeat it with the same ``key``: it is taken once."""
        kept: tuple[Attachment, ...] = ()
        if pictures and self.pictures is not None:
            kept = await asyncio.to_thread(self.pictures.keep, key, pictures)
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._submitted.put_nowait(Submission(chat, text, key, datetime.now(UTC), stored, folder, language, kept))
        try:
            async with asyncio.timeout(within_seconds):
                await stored
        except TimeoutError:
            raise UnreachableError("The gateway did not take the message in time. Send it again.") from None

    async def taken(self, within_seconds: float) -> list[Submission]:
        """For the adapter: everything submitted so far, waiting a while for the first; nobody else sees it then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                first = await self._submitted.get()
            batch = [first]
            while not self._submitted.empty():
                batch.append(self._submitted.get_nowait())
            # Whoever gave up waiting was told so and will submit again.
            return [each for each in batch if not each.stored.done()]
        return []

    @asynccontextmanager
    async def listen(self, chat: str) -> AsyncIterator[asyncio.Queue[OutboundMessage]]:
        """Everything sent to this chat while inside; what came before nobody listened to and waits in the outbox."""
        queue: asyncio.Queue[OutboundMessage] = asyncio.Queue()
        self._listeners.setdefault(chat, []).append(queue)
        try:
            yield queue
        finally:
            self._listeners[chat].remove(queue)
            if not self._listeners[chat]:
                del self._listeners[chat]

    def has_listener(self, chat: str) -> bool:
        return chat in self._listeners

    def chats(self) -> list[str]:
        """The chats that somebody listens to."""
        return list(self._listeners)

    def deliver(self, message: OutboundMessage) -> Receipt:
        """Hand a message to everyone who listens to its chat; one ``idempotency_key`` is shown once."""
        key, chat = message.idempotency_key, message.target.chat
        if key and key in self._receipts:
            return self._receipts[key]
        listeners = self._listeners.get(chat)
        if not listeners:
            raise WindowClosedError(f"nobody is looking at local:{chat}")
        for queue in listeners:
            queue.put_nowait(message)
        self._count += 1
        receipt = Receipt(message.replaces or key or f"local-{self._count}")
        if key:
            self._receipts[key] = receipt
        return receipt
