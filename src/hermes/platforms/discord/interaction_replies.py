"""Acknowledge interactions and answer whoever made them."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from hermes.core.errors import PlatformError
from hermes.core.messages import Json, TextUnit
from hermes.core.text import trim
from hermes.platforms.discord import wire
from hermes.platforms.discord.api import Api
from hermes.platforms.discord.receiving import Ack

log = logging.getLogger(__name__)

ACK_SECONDS = 2.5  # Discord waits for three
CLOSE_SECONDS = 1.0
_PRESS = re.compile(r"([0-9]{1,20})/([A-Za-z0-9._~+/=:-]{1,500})")


class Answers:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._expected: dict[str, asyncio.Event] = {}  # interactions that are not acknowledged yet, by token
        self._acking: set[asyncio.Task[None]] = set()

    @contextmanager
    def stored(self, acks: Sequence[Ack]) -> Iterator[None]:
        """Around the storing of these: they are acknowledged when it went well. Nobody waits for that, other events
        least of all; only what is said to these interactions comes after it."""
        for ack in acks:
            self._expected[ack.token] = asyncio.Event()
        try:
            yield
        except BaseException:
            for ack in acks:
                self._settle(ack.token)
            raise
        for ack in acks:
            task = asyncio.create_task(self._acknowledge(ack))
            self._acking.add(task)
            task.add_done_callback(self._acking.discard)

    async def close(self) -> None:
        """A moment for what is being acknowledged; nobody else would do it."""
        if not self._acking:
            return
        try:
            await asyncio.wait(self._acking, timeout=CLOSE_SECONDS)
        finally:
            for task in self._acking:
                task.cancel()
            await asyncio.gather(*self._acking, return_exceptions=True)

    def _settle(self, token: str) -> None:
        if (waiting := self._expected.pop(token, None)) is not None:
            waiting.set()

    async def _acknowledge(self, ack: Ack) -> None:
        try:
            await self._api.call(
                "take the answer to a press",
                "POST",
                "/interactions/{webhook_id}/{webhook_token}/callback",
                _taken(ack),
                seconds=ACK_SECONDS,
                webhook_id=ack.id,
                webhook_token=ack.token,
            )
        except PlatformError as error:  # too late, or already done before a restart: it is stored all the same
            log.debug("Interaction not acknowledged", extra={"platform": "discord", "reason": str(error)})
        finally:
            self._settle(ack.token)

    async def tell(self, press_id: str, text: str) -> bool:
        found = _PRESS.fullmatch(press_id)
        if found is None or not text.strip():
            return False
        if (waiting := self._expected.get(found[2])) is not None:
            with suppress(TimeoutError):  # Discord then says itself that it is too early or too late
                async with asyncio.timeout(ACK_SECONDS * 2):
                    await waiting.wait()
        shown = trim(text, wire.TEXT_LIMIT, TextUnit.UTF16)
        body = {"content": shown, "flags": wire.EPHEMERAL}
        try:
            await self._api.call(
                "tell whoever pressed",
                "POST",
                "/webhooks/{webhook_id}/{webhook_token}",
                {**body, "allowed_mentions": {"parse": []}},
                webhook_id=found[1],
                webhook_token=found[2],
            )
        except wire.RefusedError as refused:
            log.debug("Press too old", extra={"platform": "discord", "reason": str(refused)})
            return False
        return shown == text


def _taken(ack: Ack) -> Json:
    """A press stays as it is; a slash command is shown, to whoever made it, as they would have written it."""
    if not ack.echo:
        return {"type": 6}
    echo = trim(ack.echo, wire.TEXT_LIMIT, TextUnit.UTF16).replace("`", "'")
    data = {"content": f"`{echo[:1900]}`", "flags": wire.EPHEMERAL, "allowed_mentions": {"parse": []}}
    return {"type": 4, "data": data}
