"""Connect the local platform: messages of the hub in, listeners out."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.core.errors import RejectedError, StoreIsDownError, UnreachableError
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import MAX_PICTURE_BYTES, Attachment, Capabilities, InboundMessage, OutboundMessage, Receipt
from hermes.core.ports import Alive, Emit
from hermes.platforms.local.hub import LocalHub, Submission

OWNER = "local"
_QUIET_SECONDS = 10.0


class LocalAdapter:
    """Redelivers in effect: a client whose message was not stored submits it again with the same key."""

    capabilities = Capabilities(
        text_limit=100_000,
        edits=True,
        idempotent_sends=True,
        edit_pause_seconds=0.05,
        download_limit_bytes=MAX_PICTURE_BYTES,
    )

    def __init__(self, hub: LocalHub, account: str, alive: Alive) -> None:
        self._hub = hub
        self._account = account
        self._alive = alive

    @property
    def identity(self) -> str:
        return OWNER

    async def run(self, emit: Emit) -> None:
        self._alive()
        while True:
            batch = await self._hub.taken(_QUIET_SECONDS)
            self._alive()
            if batch:
                await self._store(batch, emit)

    async def _store(self, batch: list[Submission], emit: Emit) -> None:
        problem: Exception = UnreachableError("The gateway stopped before the message was stored. Send it again.")
        is_stored = False
        try:
            await emit([self._inbound(each) for each in batch])
            is_stored = True
        except StoreIsDownError as error:
            problem = error
            raise
        finally:
            for each in batch:
                if each.stored.done():  # whoever submitted it is gone
                    continue
                if is_stored:
                    each.stored.set_result(None)
                else:
                    each.stored.set_exception(problem)

    def _inbound(self, submitted: Submission) -> InboundMessage:
        return InboundMessage(
            keys=(submitted.key,),
            session_key=SessionKey("local", ChatKind.DM, submitted.chat, account=self._account),
            sender_id=OWNER,
            sender_name="",
            text=submitted.text,
            sent_at=submitted.sent_at,
            message_id=submitted.key,
            folder=submitted.folder,
            language=submitted.language,
            attachments=submitted.attachments,
        )

    async def send(self, message: OutboundMessage) -> Receipt:
        return self._hub.deliver(message)

    async def fetch(self, attachment: Attachment, into: Path) -> Path:
        if self._hub.pictures is None:
            raise RejectedError("no pictures are kept here.")
        return await asyncio.to_thread(self._hub.pictures.copy, attachment, into)

    async def describe(self) -> str:
        return "this machine"
