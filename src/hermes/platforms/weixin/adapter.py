"""Connect one Weixin account: iLink polling in, one request per bubble out."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp

from hermes.core.dataclasses import dataclass
from hermes.core.errors import (
    CredentialsError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    StoreIsDownError,
    UnreachableError,
    WindowClosedError,
)
from hermes.core.keys import Target
from hermes.core.manifest import AdapterParts
from hermes.core.messages import (
    REPEAT_MARK,
    Attachment,
    Capabilities,
    InboundEvent,
    InboundMessage,
    Json,
    OutboundMessage,
    Receipt,
    unreadable,
)
from hermes.core.ports import Emit
from hermes.core.text import storable
from hermes.platforms.shared.cursor import of_identity
from hermes.platforms.weixin import client, media, parse, wire
from hermes.platforms.weixin.breaker import Breaker
from hermes.platforms.weixin.client import Client
from hermes.platforms.weixin.config import DEFAULT_BUBBLES, WeixinConfig
from hermes.platforms.weixin.cursors import BREAKER, Memory
from hermes.platforms.weixin.parse import Reader

log = logging.getLogger(__name__)

HOLD_SECONDS = 35.0  # how long Weixin keeps a poll that has no news
# A poll that is given up while its answer is on the way loses what is in it, so we are the more patient side.
POLL_GRACE_SECONDS = 8.0
SILENCE_MARGIN_SECONDS = 2 * POLL_GRACE_SECONDS + 15.0
NOTIFY_SECONDS = 5.0
STOP_SECONDS = 1.0
NOTE_SECONDS = 5.0
TICKET_SECONDS = 600.0
FIRST_TICKET_PAUSE = 2.0
# Who answers a poll with nothing, and at once, does not wait for news; without a pause they would be asked for ever.
AT_ONCE_SECONDS, PAUSE_SECONDS = 0.1, 1.0
MAX_TICKET_PAUSE_SECONDS = 3600.0
# A poll that was held for so long and then cut was cut by a proxy on the way, which lets nothing stay open.
LONG_HELD_SECONDS = 10.0
OLD_CONTEXT_SECONDS = 1200.0  # people saw contexts go stale after some twenty minutes without a word
MAX_FAILED_POLLS = 3
FAILED_POLLS_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Ticket:
    """What typing in a chat takes; '' when Weixin gave none, and is not asked again before ``until``."""

    text: str
    until: float
    pause: float = 0.0


@dataclass(slots=True)
class Polls:
    """How many polls in a row were answered with nothing of use. It outlives the adapter, which each of them ends."""

    failed: int = 0

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


class WeixinAdapter:
    capabilities = Capabilities(
        text_limit=wire.TEXT_LIMIT - len(REPEAT_MARK) - wire.NOTE_ROOM,
        typing=True,
        media=True,
        redelivers=False,
        progress_notices=0,  # each bubble counts
        sends_per_inbound=DEFAULT_BUBBLES,
        note_room=wire.NOTE_ROOM,
        silence_seconds=HOLD_SECONDS + SILENCE_MARGIN_SECONDS,
        upload_limit_bytes=media.UPLOAD_LIMIT,
        download_limit_bytes=media.DOWNLOAD_LIMIT,
    )

    def __init__(
        self,
        config: WeixinConfig,
        http: aiohttp.ClientSession,
        parts: AdapterParts,
        grace_seconds: float = POLL_GRACE_SECONDS,
    ) -> None:
        self._config = config
        self._grace = grace_seconds
        self._alive = parts.alive
        self._now = parts.now
        self.capabilities = replace(type(self).capabilities, rates=config.rates, sends_per_inbound=config.bubbles)
        self._client = Client(http, config.base_url, config.cdn_url, config.token)
        cursor, news = of_identity(parts.cursor, config.bot_id)
        self._memory = Memory(cursor)
        for name, value in news.items():
            self._memory.note(name, value)
        self._breaker = Breaker.of(cursor.get(BREAKER, ""), config.break_seconds)
        self._reader = Reader(config.bot_id, config.account, self._memory.recall)
        self._polls = parts.kept.one(Polls, Polls)
        self._tickets: dict[str, Ticket] = {}
        self._lost: CredentialsError | None = None  # the token is dead: no more traffic
        self._polling: asyncio.Timeout | None = None
        self._emit: Emit | None = None
        self._heard_at = 0.0

    @property
    def identity(self) -> str:
        return self._config.bot_id

    # Coming in

    async def run(self, emit: Emit) -> None:
        """Receive until cancelled; reconnecting is the supervisor's work, not ours."""
        self._emit = emit
        try:
            # The first poll may be held for long. While polls fail, an announcement that is taken is no sign of life.
            if await self._notify("msg/notifystart", NOTIFY_SECONDS) and not self._polls.failed:
                self._heard()
            await self._receive(emit)
        except asyncio.CancelledError:
            if self._now() - self._heard_at <= HOLD_SECONDS + self._grace:  # else nobody is there to be told
                with suppress(client.NoAnswerError):
                    await self._notify("msg/notifystop", STOP_SECONDS)
            raise
        finally:
            self._emit = None

    async def _receive(self, emit: Emit) -> None:
        hold, loop = HOLD_SECONDS, asyncio.get_running_loop()
        while True:
            asked_at = loop.time()
            try:
                batch = await self._poll(hold)
            except client.TimedOutError:
                continue  # nothing new, said by nobody; a dead network shows at the next connection
            except client.NoAnswerError:
                if loop.time() - asked_at < LONG_HELD_SECONDS:
                    raise
                if await self._notify("msg/notifystart", NOTIFY_SECONDS):
                    self._heard()
                continue
            except client.GarbledError as error:
                if b'"msgs"' in error.body:  # Weixin never hands these messages out again: store their bytes
                    text = error.body.decode("utf-8", "replace")
                    await emit([unreadable(text, "the answer to a poll is not JSON")])
                raise self._failed(error) from None
            except (wire.QuotaError, RejectedError, UnreachableError) as error:
                raise self._failed(error) from None
            self._polls.failed = 0
            self._heard()
            hold = batch.hold_seconds or HOLD_SECONDS
            silence = (
                max(hold, HOLD_SECONDS) + SILENCE_MARGIN_SECONDS
            )  # nothing is heard while Weixin holds the next poll
            if silence != self.capabilities.silence_seconds:
                self.capabilities = replace(self.capabilities, silence_seconds=silence)
            events = [self._understand(raw) for raw in batch.messages]
            # Weixin has handed these out and never will again: they are stored, with the place behind them, before
            # anything else happens.
            cursor = self._memory.take_marks(batch.cursor)
            if events or cursor:
                await emit(events, cursor)
            if not events and loop.time() - asked_at < AT_ONCE_SECONDS:
                await asyncio.sleep(PAUSE_SECONDS)

    def _failed(self, error: PlatformError) -> PlatformError:
        """Weixin is there and does not hand anything out: whoever goes on asking is asked to leave."""
        self._polls.failed += 1
        if self._polls.failed % MAX_FAILED_POLLS:
            return error
        return RateLimitedError(str(error), retry_after=FAILED_POLLS_SECONDS, in_all=True)

    def _heard(self) -> None:
        self._heard_at = self._now()
        self._alive()

    async def _poll(self, hold: float) -> wire.Batch:
        """One poll, ended at once when sending finds out that the token is dead."""
        if self._lost is not None:
            raise self._lost
        try:
            async with asyncio.timeout(None) as self._polling:
                return await self._client.poll(self._memory.cursor, seconds=hold + self._grace)
        except TimeoutError:
            if self._lost is None:
                raise
            raise self._lost from None
        except wire.StaleTokenError as error:
            self._lost = error
            raise
        finally:
            self._polling = None

    def _understand(self, raw: Any) -> InboundEvent:
        now = self._now()
        event = parse.understand(raw, self._reader, now)
        if isinstance(event, InboundMessage):
            context = raw.get("context_token")
            is_usable = isinstance(context, str) and storable(context) == context
            self._memory.wrote(event.session_key.chat, context if is_usable else "", now)
            self._memory.remember(event.message_id, event.text, from_us=False)
            return self._memory.add_repeat_key(event, raw)
        return event

    async def _notify(self, path: str, seconds: float) -> bool:
        """Raises only when nobody answers at all."""
        if self._lost is not None:
            return False
        try:
            await self._client.call(path, {}, seconds=seconds)
        except client.NoAnswerError:
            raise
        except PlatformError as error:  # it works without: whether we are known shows at the first poll
            log.debug("Account not announced", extra={"platform": "weixin", "what": path, "reason": str(error)})
            return False
        return True

    # Going out

    async def send(self, message: OutboundMessage) -> Receipt:
        peer = message.target.chat
        if self._lost is not None:
            raise self._lost
        # During a penalty nothing is sent, not even to see whether it is over.
        if (left := self._breaker.left(self._now())) > 0:
            raise self._wait_error(peer, left)
        text = wire.rendered(message)
        if message.attachment is None:
            number = await self._bubble(peer, wire.text_item(text), wire.client_id(message))
            self._memory.remember(number, message.text, from_us=True)
            return Receipt(number)
        package = await media.packed(message.attachment)
        item = package.item(await self._client.upload(package, peer))
        if text:  # a bubble of its own, before the file
            await self._bubble(peer, wire.text_item(text), wire.client_id(message, ".text"))
        number = await self._bubble(peer, item, wire.client_id(message))
        self._memory.remember(number, message.text or f"[{package.name}]", from_us=True)
        return Receipt(number)

    def _wait_error(self, peer: str, left: float) -> PlatformError:
        """One more try after the first refusal, and for whoever wrote since; everybody else's waits for their word."""
        if self._breaker.is_first or self._memory.chat(peer).wrote_at > self._breaker.tripped_at:
            return RateLimitedError("Weixin takes no more for now (-2).", retry_after=max(left, 0.01), in_all=True)
        return WindowClosedError("Weixin takes no more for now (-2); this waits for the person's next message.")

    async def _bubble(self, peer: str, item: Json, client_id: str) -> str:
        """One item, delivered; its number."""
        context = self._memory.chat(peer).context
        try:
            answer = await self._with_or_without_context(peer, item, client_id, context)
        except wire.QuotaError as error:
            self._breaker.trip(self._now())
            await self._note_breaker()
            log.warning("Message refused, account throttled", extra={"platform": "weixin", "reason": str(error)})
            raise self._wait_error(peer, self._breaker.left(self._now())) from None
        except wire.StaleTokenError as error:
            self._lost = error
            if self._polling is not None:  # the token is dead: polling ends too
                self._polling.reschedule(asyncio.get_running_loop().time())
            raise error from None
        if self._breaker.close():
            await self._note_breaker()
        return wire.message_id_of(answer) or client_id

    async def _with_or_without_context(self, peer: str, item: Json, client_id: str, context: str) -> Json:
        """-14 may mean a stale context, and so may -2: then it is tried once without."""
        try:
            return await self._client.send(wire.sending(peer, item, client_id, context))
        except (wire.StaleTokenError, wire.QuotaError) as error:
            if not context or (isinstance(error, wire.QuotaError) and not self._is_stale(peer, error)):
                raise
        answer = await self._client.send(wire.sending(peer, item, client_id, ""))
        self._memory.drop_context(peer)
        return answer

    def _is_stale(self, peer: str, error: wire.QuotaError) -> bool:
        """By the one reason, or by its age while nothing else is refused: Weixin has many names for an old context."""
        is_old = self._now() - self._memory.chat(peer).wrote_at > OLD_CONTEXT_SECONDS
        return error.may_be_stale_context or (is_old and not self._breaker.pause)

    async def _note_breaker(self) -> None:
        """Stored at once: whoever is started after us must not knock anew."""
        self._memory.note(BREAKER, self._breaker.text)
        emit = self._emit
        if emit is None:
            return
        with suppress(TimeoutError, StoreIsDownError):  # it is stored with the next batch then
            async with asyncio.timeout(NOTE_SECONDS):
                await emit([], {BREAKER: self._breaker.text})

    # Signs and files

    async def typing(self, target: Target) -> None:
        await self._sign(target.chat, 1)

    async def typing_ended(self, target: Target) -> None:
        """It would stand there for ever, so it is ended even with a ticket that has to be asked for anew."""
        await self._sign(target.chat, 2)

    async def _sign(self, peer: str, status: int) -> None:
        if self._lost is not None or self._breaker.left(self._now()) > 0:
            return
        ticket = await self._ticket(peer)
        if ticket and not await self._send_typing(peer, ticket, status):
            del self._tickets[peer]  # it lapsed before its time
            ticket = await self._ticket(peer)
            if ticket and not await self._send_typing(peer, ticket, status):
                self._without_ticket(peer, FIRST_TICKET_PAUSE)

    async def _send_typing(self, peer: str, ticket: str, status: int) -> bool:
        """False when Weixin does not take the ticket."""
        try:
            await self._client.call("sendtyping", {"ilink_user_id": peer, "typing_ticket": ticket, "status": status})
        except RejectedError as error:
            log.debug("Typing not shown", extra={"platform": "weixin", "reason": str(error)})
            return False
        return True

    async def _ticket(self, peer: str) -> str:
        now = self._now()
        known = self._tickets.get(peer)
        if known is not None and now < known.until:
            return known.text
        context = self._memory.chat(peer).context
        body = {"ilink_user_id": peer, **({"context_token": context} if context else {})}
        try:
            answer = await self._client.call("getconfig", body)
        except PlatformError:
            answer = {}
        text = answer.get("typing_ticket")
        if isinstance(text, str) and text:
            self._tickets[peer] = Ticket(text, now + TICKET_SECONDS)
            return text
        before = known.pause if known is not None else 0.0
        self._without_ticket(peer, min(max(before * 2, FIRST_TICKET_PAUSE), MAX_TICKET_PAUSE_SECONDS))
        return ""

    def _without_ticket(self, peer: str, pause: float) -> None:
        self._tickets[peer] = Ticket("", self._now() + pause, pause)

    async def fetch(self, attachment: Attachment, into: Path) -> Path:
        handle = media.Handle.of(attachment.file_id)
        if attachment.size > media.DOWNLOAD_LIMIT:
            name = attachment.name or "The file"
            raise RejectedError(f"{name} has {attachment.size} bytes; at most {media.DOWNLOAD_LIMIT} are fetched.")
        return await self._client.download(handle, into, attachment.name or "file")

    async def describe(self) -> str:
        """Asks in a way that takes no messages out of the stream: they would be handed out to us and to nobody else."""
        try:
            await self._client.call("getconfig", {"ilink_user_id": self._config.owner_id or self._config.bot_id})
        except RejectedError as error:  # we are known; whom we asked about is not
            log.debug("Account is known", extra={"platform": "weixin", "reason": str(error)})
        return self._config.bot_id
