"""Connect one WhatsApp account: items of the bridge in, calls to it out."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes.core.errors import ConfigError, ConflictError, CredentialsError, UnreachableError
from hermes.core.keys import Target
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Attachment, Capabilities, OutboundMessage, Rate, Rates, Receipt
from hermes.core.ports import Emit
from hermes.platforms.whatsapp import client, media, parse, wire
from hermes.platforms.whatsapp.client import Client
from hermes.platforms.whatsapp.config import Mode, WhatsAppConfig
from hermes.platforms.whatsapp.install import Installer
from hermes.platforms.whatsapp.parse import Reader
from hermes.platforms.whatsapp.process import Bridge
from hermes.platforms.whatsapp.wire import Health, Me

WAIT_SECONDS = 25.0  # how long the bridge keeps a question that has no news
COME_UP_SECONDS = 20.0
REACH_SECONDS = 15.0
HEALTH_SECONDS = 5.0


class WhatsAppAdapter:
    capabilities = Capabilities(
        text_limit=wire.TEXT_LIMIT,
        caption_limit=wire.CAPTION_LIMIT,
        edits=True,
        typing=True,
        media=True,
        voice=True,
        redelivers=True,
        idempotent_sends=True,
        edit_pause_seconds=1.5,
        # WhatsApp names no limits and bans numbers that write like machines: this is what a quick typist does.
        rates=Rates(in_all=Rate(5, 1.0), in_chat=Rate(2, 2.0)),
        silence_seconds=WAIT_SECONDS + client.GRACE_SECONDS + 25.0,
        upload_limit_bytes=media.UPLOAD_LIMIT,
        download_limit_bytes=media.DOWNLOAD_LIMIT,
    )

    def __init__(self, config: WhatsAppConfig, parts: AdapterParts, wait_seconds: float = WAIT_SECONDS) -> None:
        self._config = config
        self._alive = parts.alive
        self._now = parts.now
        self._wait = wait_seconds
        room = len(config.prefix)
        self.capabilities = replace(
            type(self).capabilities, text_limit=wire.TEXT_LIMIT - room, caption_limit=wire.CAPTION_LIMIT - room
        )
        installer = parts.kept.one(
            Installer,
            lambda: Installer(config.places.bridges, seconds=config.install_seconds, proxy=config.proxy),
        )
        self._bridge = parts.kept.one(Bridge, lambda: Bridge(config.places, installer, proxy=config.proxy))
        self._me: Me | None = None
        self._is_up = False  # the last word of the bridge was that it is connected
        self._pid: int | None = None  # which bridge said so

    @property
    def identity(self) -> str:
        return self._me.jid if self._me is not None else ""

    # Coming in

    async def run(self, emit: Emit) -> None:
        """Receive until cancelled; reconnecting to WhatsApp is the bridge's work, starting again the supervisor's."""
        try:
            bridge = await self._connected()
            await _first(self._receive(bridge, emit), self._watch(bridge))
        except client.HangsError:
            await self._bridge.end()  # it runs and does not answer: only a new one helps
            raise
        except CredentialsError:
            await self._bridge.end()  # nobody scans a code here, and whoever links anew needs the session
            raise
        finally:
            self._is_up = False

    async def _connected(self, *, is_patient: bool = True) -> Client:
        """Return a bridge connected to WhatsApp, or raise what is in the way. One that is down gets its next try."""
        bridge = await self._bridge.client()
        health = await self._come_up(bridge, await self._look(bridge), is_trying=not is_patient)
        if health.me is None:
            raise UnreachableError("The WhatsApp bridge is connected and does not say as whom.")
        self._me, self._is_up, self._pid = health.me, True, self._bridge.pid
        return bridge

    async def _come_up(self, bridge: Client, health: Health, *, is_trying: bool) -> Health:
        try:
            async with asyncio.timeout(COME_UP_SECONDS):
                while not health.is_connected:
                    is_trying = is_trying or health.status in ("starting", "connecting")
                    trouble = health.trouble
                    if trouble is not None and (is_trying or not isinstance(trouble, UnreachableError)):
                        raise trouble
                    health = await bridge.health(unlike=health.status, seconds=COME_UP_SECONDS)
        except TimeoutError:
            late = f"WhatsApp did not let us in within {COME_UP_SECONDS:.0f} s."
            raise health.trouble or UnreachableError(late) from None
        return health

    async def _look(self, bridge: Client) -> Health:
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                return await bridge.health()
        except TimeoutError:
            raise client.HangsError("The WhatsApp bridge does not answer.") from None

    async def _watch(self, bridge: Client) -> None:
        """The health of the account is that of the connection, not of the process."""
        status = "connected"
        while True:
            health = await bridge.health(unlike=status, seconds=self._wait)
            status, self._is_up = health.status, health.is_connected
            if (trouble := health.trouble) is not None:
                raise trouble

    async def _receive(self, bridge: Client, emit: Emit) -> None:
        # All that was not acknowledged is handed out again, and what of it was stored is known by its keys.
        cursor = 0
        self._alive()
        while True:
            batch = await bridge.messages(cursor, self._wait)
            if self._is_up:
                self._alive()
            if not batch.items:
                continue
            reader = self._reader()
            now = self._now()
            await emit([parse.understand(item, reader, now) for item in batch.items])
            await bridge.ack(batch.cursor)
            cursor = batch.cursor

    def _reader(self) -> Reader:
        assert self._me is not None  # noqa: S101 - known since the connection is open
        config = self._config
        return Reader(
            config.account,
            self._me,
            config.mode is Mode.SELF_CHAT,
            config.prefix,
            config.free_chats,
            config.patterns,
        )

    # Going out

    async def send(self, message: OutboundMessage) -> Receipt:
        file = message.attachment
        if file is None:
            path, body = wire.text_call(message, self._config.prefix)
            number = await self._call(path, body, client.SEND_SECONDS)
        else:
            whole = await media.checked(file)
            path, body = wire.file_call(message, whole, self._config.prefix)
            number = await self._call(path, body, client.FILE_SECONDS)
        return Receipt(message.replaces or number)

    async def _call(self, path: str, body: dict[str, Any], seconds: float) -> str:
        bridge = await self._reached()
        return await bridge.send(path, body, seconds=seconds)

    async def _ready(self, *, is_patient: bool = True) -> Client:
        """Whoever receives has the connection already; otherwise it is made."""
        if self._is_up and self._pid == self._bridge.pid:
            return await self._bridge.client()
        return await self._connected(is_patient=is_patient)

    async def _reached(self) -> Client:
        """The same for whoever tries again later, and must not be kept: a call that is given up may have left."""
        try:
            async with asyncio.timeout(REACH_SECONDS):
                return await self._ready(is_patient=False)
        except TimeoutError:
            raise UnreachableError("The WhatsApp bridge is not up yet.") from None
        except ConfigError as error:  # a Node that is missing may be there by then
            raise UnreachableError(str(error).partition("\n")[0]) from None

    # Signs and files

    async def typing(self, target: Target) -> None:
        await self._sign(target, on=True)

    async def typing_ended(self, target: Target) -> None:
        await self._sign(target, on=False)

    async def _sign(self, target: Target, *, on: bool) -> None:
        bridge = await self._reached()
        await bridge.call("typing", {"chatId": wire.jid_of(target.chat), "on": on})

    async def fetch(self, attachment: Attachment, into: Path) -> Path:
        name = attachment.name or "file"
        media.refuse_large(attachment)
        bridge = await self._reached()
        found = await bridge.call("media", parse.handle_of(attachment.file_id), seconds=client.FILE_SECONDS)
        return await media.taken(Path(str(found.get("path") or "")), into, name, self._config.places.media)

    async def describe(self) -> str:
        """Who we are. A bridge that the gateway keeps is asked, as there can be no second one."""
        guest = await self._bridge.guest() if self._bridge.pid is None else None
        health = None
        if guest is not None:
            with suppress(UnreachableError):  # of a gateway that ended
                health = await self._look(guest)
        if health is not None and health.trouble is not None:
            raise health.trouble
        if health is not None and health.me is not None:
            return health.me.display_name
        try:
            await self._ready()
        except CredentialsError:
            await self._bridge.end()
            raise
        return self._me.display_name if self._me is not None else ""


async def _first(*works: Coroutine[Any, Any, None]) -> None:
    """Run them together; the first that ends ends all, with its error."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    # Told first what somebody can do something about.
    errors = [error for task in done if (error := task.exception()) is not None]
    errors.sort(key=lambda error: not isinstance(error, CredentialsError | ConflictError))
    for error in errors:
        raise error
