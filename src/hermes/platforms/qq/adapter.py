"""Connect one QQ account: WebSocket in, REST calls out."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import aiohttp

from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.errors import PlatformError, RejectedError, UnreachableError, WindowClosedError
from hermes.core.keys import Target
from hermes.core.messages import (
    REPEAT_MARK,
    Attachment,
    Capabilities,
    Cursor,
    InboundEvent,
    InboundMessage,
    Json,
    OutboundMessage,
    Press,
    Receipt,
    Unreadable,
)
from hermes.core.ports import Alive, Emit
from hermes.platforms.qq import media, parse, session, wire
from hermes.platforms.qq.api import Api
from hermes.platforms.qq.config import QQConfig
from hermes.platforms.qq.connection import Connection, EndedError, connected
from hermes.platforms.qq.parse import Me, Place, Scene
from hermes.platforms.qq.reply_tickets import EVENT, MESSAGE, Ledger, Ticket
from hermes.platforms.qq.session import Session
from hermes.platforms.qq.uploads import Uploads
from hermes.platforms.shared.cursor import of_identity

log = logging.getLogger(__name__)

ACK_SECONDS = 3.0  # after that the person is told that the bot did not react
OK, FAILED = 0, 1
SEQ_LIMIT = 2**53
_MAX_TRIES = 6  # one as asked, and one for each thing that can be mended
_MAX_REMEMBERED = 500
_REFUSED_FOR_SECONDS = 86400.0
_NO_MARKDOWN, _NO_KEYBOARD = "no_markdown_since", "no_keyboard_since"


class QQAdapter:
    capabilities = Capabilities(
        # What is left when a repeated message has to carry its mark.
        text_limit=wire.TEXT_LIMIT - len(REPEAT_MARK),
        caption_limit=wire.TEXT_LIMIT - len(REPEAT_MARK),
        typing=True,
        buttons=True,
        media=True,
        # An event is handed out again only within a session that we know of: `emit` keeps trying instead.
        redelivers=False,
        # Each one takes one of the five answers that a message allows.
        progress_notices=1,
        ends_connections=True,  # each half hour or so, with 4009
        # Two heartbeats without a word.
        silence_seconds=90.0,
        upload_limit_bytes=media.UPLOAD_LIMIT,
        download_limit_bytes=media.DOWNLOAD_LIMIT,
    )

    def __init__(
        self,
        config: QQConfig,
        http: aiohttp.ClientSession,
        alive: Alive,
        cursor: Cursor,
        now: Callable[[], float],
    ) -> None:
        self._config = config
        self._http = http
        self._alive = alive
        self._now = now
        self._api = Api(config, http)
        self._uploads = Uploads(self._api)
        cursor, news = of_identity(cursor, config.app_id)
        self._session = Session.of(cursor)
        self._ledger = Ledger(cursor)
        self._may = wire.Abilities(
            markdown=config.markdown and not _is_recent(cursor.get(_NO_MARKDOWN), now()),
            keyboard=not _is_recent(cursor.get(_NO_KEYBOARD), now()),
        )
        self.capabilities = replace(type(self).capabilities, buttons=self._may.markdown and self._may.keyboard)
        self._sent_texts = BoundedDict[str, str](_MAX_REMEMBERED)  # by QQ's index of each
        self._me = Me(config.account, self._sent_texts.get)
        self._receipts = BoundedDict[str, Receipt](_MAX_REMEMBERED)
        self._typed: Ticket | None = None
        self._learned = news  # marks that wait for the next batch
        self._acked = BoundedDict[str, None](_MAX_REMEMBERED)
        self._acking: set[asyncio.Task[None]] = set()

    @property
    def identity(self) -> str:
        return self._config.app_id

    # Receiving

    async def run(self, emit: Emit) -> None:
        """Receive until cancelled or until the connection ends; connecting again is the supervisor's work, not ours."""
        token = await self._api.token()
        gateway = await self._api.call("GET", "/gateway", what="the address of its gateway")
        url = gateway.get("url")
        if not isinstance(url, str) or not url.startswith(("ws://", "wss://")):
            raise UnreachableError("QQ does not say where its gateway is.")
        try:
            async with connected(self._http, url, self._alive) as link:
                try:
                    await self._live(link, token, emit)
                except EndedError as ended:
                    self._api.drop_token(token)
                    after, error = session.after(self._session, link.end(ended), self._now())
                    await self._store((), after, {}, emit)
                    raise error from None
        finally:
            for task in self._acking:
                task.cancel()
            await asyncio.gather(*self._acking, return_exceptions=True)

    async def _live(self, link: Connection, token: str, emit: Emit) -> None:
        heartbeat = await link.hello()
        link.seq = self._session.seq
        known = self._session
        if known.can_resume:
            await link.begin(session.resume(token, known), heartbeat)
        else:
            await link.begin(session.identify(token, known.intents(self._now())), heartbeat)
        while True:
            frames = await link.frames()
            await self._take(frames, link, emit)

    async def _take(self, frames: Sequence[object], link: Connection, emit: Emit) -> None:
        """Store a batch with the place up to which it goes, then answer the presses in it."""
        now = datetime.fromtimestamp(self._now(), UTC)
        known = self._session.settled() if link.has_settled else self._session
        cursor: dict[str, str] = {}
        events: list[InboundEvent] = []
        for frame in frames:
            known = _moved(known, frame)
            if isinstance(frame, dict) and frame.get("t") in ("READY", "RESUMED"):
                continue
            event = wire.understand(frame, self._me, now)
            events.append(event)
            # Before it is stored: whatever waited for it may be sent as soon as it is.
            cursor |= self._note(frame, event)
        await self._store(events, known, cursor, emit)
        link.seq = known.seq
        for press_id, code in _interactions(frames, self._me, now):
            task = asyncio.create_task(self._acknowledge(press_id, code))
            self._acking.add(task)
            task.add_done_callback(self._acking.discard)

    async def _store(self, events: Sequence[InboundEvent], known: Session, cursor: dict[str, str], emit: Emit) -> None:
        learned, self._learned = self._learned, {}
        changed = {**known.cursor(self._session), **cursor, **learned}
        if events or changed:
            await emit(events, changed or None)
        self._session = known

    def _note(self, frame: object, event: InboundEvent) -> dict[str, str]:
        """Whoever wrote or pressed may be answered."""
        frame_id = frame.get("id") if isinstance(frame, dict) else None
        match event:
            case InboundMessage() if event.is_addressed:
                return self._ledger.note(event.session_key.chat, MESSAGE, event.message_id)
            case Press() if parse.is_id(frame_id):
                return self._ledger.note(event.session_key.chat, EVENT, frame_id)
            case _ if isinstance(frame, dict) and parse.is_id(frame_id):
                place = parse.place_of(frame)
                return self._ledger.note(place.chat, EVENT, frame_id) if place is not None else {}
            case _:
                return {}

    # Presses

    async def _acknowledge(self, press_id: str, code: int) -> None:
        try:
            await self._put_ack(press_id, code)
        except PlatformError as error:  # the press is stored and counts; only its spinner goes on for a while
            log.info("Press not acknowledged", extra={"platform": "qq", "reason": str(error)})

    async def _put_ack(self, press_id: str, code: int) -> None:
        if press_id in self._acked:
            return
        self._acked[press_id] = None
        path = f"/interactions/{quote(press_id, safe='')}"
        try:
            await self._api.call("PUT", path, {"code": code}, what="a press", seconds=ACK_SECONDS)
        except UnreachableError:  # its answer may still stop the spinner
            self._acked.pop(press_id, None)
            raise

    async def answer_press(self, press_id: str, text: str) -> bool:  # noqa: ARG002 - see below
        """Stop the spinner, unless that was done. QQ shows no text there: the answer itself is a message."""
        try:
            await self._put_ack(press_id, OK)
        except wire.RefusedError as refused:  # from before a long outage: its spinner has ended by itself
            log.debug("Press too old", extra={"platform": "qq", "reason": str(refused)})
        return False

    # Sending

    async def send(self, message: OutboundMessage) -> Receipt:
        if message.replaces:
            raise RejectedError("QQ cannot change a message that was sent.")
        place = Place.of(message.target.chat)
        if message.attachment is None:
            body = wire.render(message, self._may)
        elif place.scene in (Scene.CHANNEL, Scene.GUILD_DM):
            raise RejectedError(f"QQ takes no files in guilds, so {_name(message.attachment)} was not sent.")
        else:
            info = await self._uploads.upload(message.attachment, wire.path_of(place))
            body = {"msg_type": wire.MEDIA, "content": wire.caption(message), "media": {"file_info": info}}
        return await self._deliver(_Letter(message, place, body))

    async def _deliver(self, letter: _Letter) -> Receipt:
        """Try each ticket that may still be good, then without one; QQ decides."""
        message, chat = letter.message, letter.message.target.chat
        for ticket in self._ledger.tickets(chat, message.reply_to, letter.key):
            try:
                return await self._post(letter, ticket)
            except WindowClosedError:  # spent, or so old that QQ takes it for none
                self._ledger.spend(ticket)
        try:
            return await self._post(letter, None)
        except wire.TicketSpentError as spent:
            raise WindowClosedError(str(spent)) from None
        except wire.TooOftenError as limited:
            if limited.code in wire.NOT_UNASKED:
                raise WindowClosedError(str(limited)) from None
            raise
        except wire.RefusedError as refused:
            if wire.is_window(refused.code):
                raise WindowClosedError(str(refused)) from None
            raise

    async def _post(self, letter: _Letter, ticket: Ticket | None) -> Receipt:
        path = f"{wire.path_of(letter.place)}/messages"
        taken = 0
        while True:
            body = {**letter.body, **self._numbered(letter, ticket, taken)}
            try:
                answer = await self._api.call("POST", path, body, what="a message", shows=True)
            except wire.RefusedError as refused:
                if refused.code == wire.ALREADY_SENT and ticket is not None:
                    if letter.message.is_repeat:
                        return self._receipts.get(letter.key, Receipt("", "it had arrived already"))
                    taken += 1
                    if taken < _MAX_TRIES:
                        continue
                self._mend(letter, refused)
            else:
                return self._sent(letter, ticket, answer)

    def _numbered(self, letter: _Letter, ticket: Ticket | None, taken: int) -> Json:
        if ticket is None:
            return {}
        # Beside the id of a press or a greeting, a number would make it a message that nobody asked for.
        if ticket.kind == EVENT or letter.place.scene in (Scene.CHANNEL, Scene.GUILD_DM):
            return {**ticket.params}
        return {**ticket.params, "msg_seq": self._ledger.seq(ticket, letter.key, besides=taken)}

    def _mend(self, letter: _Letter, refused: wire.RefusedError) -> None:
        """Change the letter so that QQ may take it; the refusal is raised where that cannot be."""
        if refused.code in wire.NO_MARKDOWN:
            self._may = replace(self._may, markdown=False)
            self._learned[_NO_MARKDOWN] = str(int(self._now()))
        elif refused.code in wire.NO_KEYBOARD:
            self._may = replace(self._may, keyboard=False)
            self._learned[_NO_KEYBOARD] = str(int(self._now()))
        mended = wire.mend(letter.body, letter.message, refused)
        if mended is None or len(letter.notes) == _MAX_TRIES:
            raise refused
        letter.body = mended[0]
        letter.notes.append(mended[1])

    def _sent(self, letter: _Letter, ticket: Ticket | None, answer: Json) -> Receipt:
        if ticket is not None and ticket.kind == EVENT:
            self._ledger.spend(ticket)  # a press allows one answer
        message_id = answer.get("id")
        if not isinstance(message_id, str):
            letter.notes.append("QQ looks at it before it is shown")
            message_id = ""
        info = answer.get("ext_info")
        if isinstance(info, dict) and isinstance(info.get("ref_idx"), str):
            self._sent_texts[info["ref_idx"]] = letter.message.text
        receipt = Receipt(message_id, "; ".join(letter.notes))
        self._receipts[letter.key] = receipt
        return receipt

    async def typing(self, target: Target) -> None:
        """Once for each message of a person: how many answers it costs is not known."""
        place = Place.of(target.chat)
        ticket = self._ledger.newest_message(target.chat)
        if place.scene is not Scene.C2C or ticket is None or ticket == self._typed:
            return
        self._typed = ticket
        body = {
            "msg_type": wire.TYPING,
            **ticket.params,
            "msg_seq": self._ledger.seq(ticket, f"typing:{ticket.id}"),
            "input_notify": {"input_type": 1, "input_second": wire.TYPING_SECONDS},
        }
        await self._api.call("POST", f"{wire.path_of(place)}/messages", body, what="typing", seconds=5.0)

    async def fetch(self, attachment: Attachment, into: Path) -> Path:
        limit = self.capabilities.download_limit_bytes
        name = _name(attachment)
        if attachment.size > limit:
            raise RejectedError(f"{name} has {attachment.size} bytes; {limit} are fetched.")
        return await self._api.download(attachment.file_id, into, name, limit)

    async def describe(self) -> str:
        """The bot's name; QQ tells it only to some."""
        await self._api.call("GET", "/gateway", what="the address of its gateway")
        try:
            me = await self._api.call("GET", "/users/@me", what="its name")
        except wire.RefusedError:
            return f"AppID {self.identity}"
        return str(me.get("username") or f"AppID {self.identity}")


@dataclass(slots=True)
class _Letter:
    """A message on its way. Its body changes where QQ wants it otherwise."""

    message: OutboundMessage
    place: Place
    body: Json
    notes: list[str] = field(default_factory=list)
    key: str = ""

    def __post_init__(self) -> None:
        self.key = self.message.idempotency_key or uuid.uuid4().hex


def _moved(known: Session, frame: object) -> Session:
    """The session after this frame."""
    if not isinstance(frame, dict):
        return known
    seq = frame.get("s")
    if not isinstance(seq, int) or isinstance(seq, bool) or not 0 < seq < SEQ_LIMIT:
        seq = 0
    data = frame.get("d")
    if frame.get("t") == "READY" and isinstance(data, dict) and parse.is_id(data.get("session_id")):
        return known.begun(data["session_id"], seq)
    return replace(known, seq=seq) if seq > known.seq else known


def _interactions(frames: Sequence[object], me: Me, now: datetime) -> list[tuple[str, int]]:
    """What wants an answer: each press, and each query of settings."""
    found = []
    for frame in frames:
        data = frame.get("d") if isinstance(frame, dict) and frame.get("t") == "INTERACTION_CREATE" else None
        press_id = data.get("id") if isinstance(data, dict) else None
        if isinstance(press_id, str) and press_id.replace("-", "").replace("_", "").isalnum():
            is_unreadable = isinstance(wire.understand(frame, me, now), Unreadable)
            found.append((press_id, FAILED if is_unreadable else OK))
    return found


def _is_recent(since: str | None, now: float) -> bool:
    """What a bot was refused may be granted later: after a day it is tried again."""
    return bool(since) and str(since).isdigit() and abs(now - int(str(since))) < _REFUSED_FOR_SECONDS


def _name(attachment: Attachment) -> str:
    return attachment.name or "the file"
