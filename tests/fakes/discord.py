"""Discord on loopback: gateway, REST API and files, which deliver, remember and refuse as Discord does."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote

import aiohttp
import orjson
from aiohttp import web

from hermes.core.keys import Target
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Button, Capabilities
from hermes.core.ports import Adapter, Alive, Emit
from hermes.core.secret import Secret
from hermes.platforms.discord.wire import CAPABILITIES
from tests.fakes.server import Hold, Said, Sent, outside_code
from tests.fakes.site import Site, keeping
from tests.fakes.site import session as http_session

Json = dict[str, Any]
BOT, APPLICATION, SERVER, GROUP, ROLE = "901", "902", "200", "300", "950"
EPOCH_MS = 1_420_070_400_000
ACK_SECONDS = 3.0
TOKEN_SECONDS = 900.0
LARGEST_FRAME = 4096  # what Discord takes from a client
LONGEST = 2000
PRIVILEGED = (1 << 1) | (1 << 8) | (1 << 15)
KNOWN_INTENTS = (1 << 26) - 1
LOSING_CODES = (1000, 1001, 4003, 4007, 4009)
MAY_READ = 1 << 19
_COMMAND = re.compile(r"[-_\w]{1,32}")


class Refused(Exception):  # noqa: N818 - it is an answer, not a failure of the fake
    def __init__(self, status: int, code: int, message: str, headers: Mapping[str, str] | None = None, **more: Any):
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.body: Json = {"message": message, "code": code, **more}


@dataclass(slots=True)
class Session:
    """What Discord keeps for one client: every dispatch, for whoever resumes."""

    id: str
    dispatches: list[Json] = field(default_factory=list)
    is_alive: bool = True
    socket: Socket | None = None


@dataclass(slots=True, eq=False)
class Socket:
    response: web.WebSocketResponse
    session: Session | None = None


@dataclass(slots=True)
class Interaction:
    id: str
    kind: int
    made_at: float
    is_acked: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    body: Any


@dataclass(slots=True)
class _File:
    name: str
    data: bytes
    mime: str


def direct(chat: int | str) -> str:
    """The id of the direct chat with this person (or, as text, any channel itself)."""
    return f"9{chat:08d}" if isinstance(chat, int) else chat


class FakeDiscord(Site):
    """One bot in one server. Person 7 is Ana, who writes to the bot directly.

    ``port`` 0 takes a free one at the first start; stop() and start() keep it, which makes an outage. It begins as
    after an earlier life of the gateway: Discord keeps a session, and the marks say which (``is_known`` False: nobody
    ever listened). What is said is put by for every session that is alive; with none it stands in the history alone.
    """

    platform = "discord"
    capabilities: Capabilities = CAPABILITIES
    plays = frozenset(
        {"drop", "outage", "rate", "credentials", "hold", "unknown", "broken", "edits", "quotes", "replies", "groups"}
        | {"typing", "whispers"}
    )

    def __init__(self, *, port: int = 0, is_known: bool = True) -> None:
        super().__init__(port=port)
        self.token = "OTAx.abcdef.secretsecretsecret"
        self.identity = BOT
        self.secrets: tuple[str, ...] = (self.token,)
        self.calls: list[Call] = []
        self.cursor: dict[str, str] = {}
        self.commands: list[Json] = []
        self.channels: dict[str, Json] = {GROUP: {"id": GROUP, "type": 0, "name": "general", "guild_id": SERVER}}
        self.history: dict[str, list[Json]] = {}
        self.sessions: dict[str, Session] = {}
        # What happened
        self.identified: list[Json] = []
        self.compression = ""  # as the newest connection asked for it
        self.resumed: list[Json] = []
        self.frames: list[Json] = []
        self.closed_with: list[int | None] = []
        self.late_acks: list[str] = []
        self.nowhere = 0
        self.followups: list[Json] = []
        self.echoes: list[Json] = []
        # Troubles
        self.heartbeat_ms = 41_250
        self.says_hello = True
        self.answers_heartbeats = True
        self.begins_sessions = True
        self.clock_ahead = 0.0  # by how many seconds this clock differs from that of whoever asks
        self.flags = MAY_READ
        self.servers = [SERVER]
        self.absent: set[str] = set()  # servers that have trouble of their own, and tell nothing yet
        self.silent: set[str] = set()  # channels in which the bot may not write
        self.hidden: set[str] = set()  # channels that it may not read
        self.failing: set[str] = set()  # channels whose history Discord fails to read, by no fault of ours
        self.failed = 0
        self.may_open_threads = True
        self.is_shy = False  # the bot may send no voice messages
        self.stale_files = False
        self.rates: dict[str, tuple[int, int, float]] = {}  # what answers tell: places, those left, seconds until more
        self.on_send: Callable[[], None] = lambda: None
        self._is_welcome = True
        self._events: dict[str, tuple[str, Json]] = {}
        self._interactions: dict[str, Interaction] = {}
        self._nonces: dict[tuple[str, str], Json] = {}
        self._sockets: list[Socket] = []
        self._files: dict[str, _File] = {}
        self._refusals: dict[str, deque[Refused | bytes]] = {}
        self._sending: set[asyncio.Future[None]] = set()
        self._typings = 0
        self._last_id = 0
        if is_known:
            self.sessions["s0"] = Session("s0", [{"op": 0, "t": "READY", "s": 1, "d": {}}])
            since = str((int(time.time() * 1000) - 3_600_000 - EPOCH_MS) << 22)
            known = {"id": "s0", "seq": 1, "url": ""}
            self.cursor = {"since": since, "session": orjson.dumps(known).decode()}

    # ---- life ----------------------------------------------------------------------------------------------

    @property
    def base_url(self) -> str:
        """What DISCORD_BASE_URL is set to."""
        return f"{self.url}/api/v10"

    @property
    def gateway_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/gateway"

    @property
    def environ(self) -> dict[str, str]:
        return {
            "DISCORD_BOT_TOKEN": self.token,
            "DISCORD_BASE_URL": self.base_url,
            "DISCORD_GATEWAY_URL": self.gateway_url,
        }

    def settings(self, **more: Any) -> Json:
        where = {"base_url": self.base_url, "gateway_url": self.gateway_url}
        return {"token": Secret(self.token), **where, **more}

    @asynccontextmanager
    async def adapter(
        self, *, alive: Alive = lambda: None, http: aiohttp.ClientSession | None = None, **settings: Any
    ) -> AsyncIterator[Adapter]:
        # Here and not above: whoever lacks the extra can still run the suites of all others.
        from hermes.platforms.discord.adapter import DiscordAdapter
        from hermes.platforms.discord.config import DiscordConfig

        kept = self.cursor

        class RemembersItsPlace(DiscordAdapter):
            """The real adapter; what it asks to be stored is handed to the next one, as the gateway's store does."""

            async def run(self, emit: Emit) -> None:
                await super().run(keeping(emit, kept))

        async with http_session(http) as own:
            config = DiscordConfig.of(AdapterParts("main", self.settings(**settings), own, alive, kept))
            yield RemembersItsPlace(config, own, alive, kept, time.time)

    # ---- people --------------------------------------------------------------------------------------------

    def target(self) -> Target:
        return Target("discord", direct(7))

    def user_says(self, text: str, *, chat: int | str = 7, user: int | str | None = None, **more: Any) -> Said:
        """A person writes: directly, in a channel, or in a thread, which is a channel too."""
        channel = self._channel(direct(chat))["id"]
        message = self._message(channel, _person(_author(chat, user)), text, **more)
        self.history.setdefault(channel, []).append(message)
        key = f"msg:{message['id']}"
        self._events[key] = ("MESSAGE_CREATE", self._live(message))
        self.dispatch(*self._events[key])
        return Said(key, message["id"], 0, channel)

    def user_says_in_group(self, text: str, *, to_us: bool) -> Said:
        if not to_us:
            return self.user_says(text, chat=GROUP)
        return self.user_says(f"<@{BOT}> {text}", chat=GROUP, mentions=[_me()])

    def user_answers(self, sent: Sent, text: str) -> Said:
        channel = sent.thread or sent.chat
        meant = self._find(channel, sent.message_id)
        reference = {"message_id": sent.message_id, "channel_id": channel}
        return self.user_says(
            text, chat=channel, user=7, type=19, referenced_message=meant, message_reference=reference
        )

    def user_edits(self, said: Said, text: str) -> Said:
        message = self._find(said.chat, said.message_id)
        # A copy: what was told of it before stays as it was.
        changed = {**message, "content": text, "edited_timestamp": _iso(time.time())}
        self.history[said.chat][self.history[said.chat].index(message)] = changed
        self.dispatch("MESSAGE_UPDATE", self._live(changed))
        return Said(f"edit:{said.message_id}:{changed['edited_timestamp']}", said.message_id, 0, said.chat)

    def user_forwards(self, texts: Sequence[str]) -> list[Said]:
        shot = [{"message": {"type": 0, "content": text, "attachments": [], "embeds": []}} for text in texts]
        return [self.user_says("", message_snapshots=[each]) for each in shot]

    def user_sends(
        self, data: bytes, name: str = "notes.txt", caption: str = "", *, mime: str = "text/plain", **more: Any
    ) -> Said:
        return self.user_says(caption, attachments=[self._stored(name, data, mime) | more])

    def user_speaks(self, sound: bytes) -> Said:
        return self.user_sends(sound, "voice-message.ogg", mime="audio/ogg", duration_secs=1.5, waveform="AAAA")

    def user_shows(self, picture: bytes) -> Said:
        return self.user_sends(picture, "picture.png", mime="image/png")

    def user_presses(self, sent: Sent, data: str, *, user: int | None = None, name: str = "Ana") -> Said:
        button = next(button for row in sent.buttons for button in row if data in (button.data, button.label))
        channel = sent.thread or sent.chat
        about = {"custom_id": button.data, "component_type": 2, "id": 1}
        more = {"data": about, "message": self._live(self._find(channel, sent.message_id))}
        id_ = self._interact(3, channel, user if user is not None else 7, name, **more)
        return Said(f"press:{id_}", sent.message_id, 0, channel)

    def user_types(self, command: str, text: str = "", *, chat: int | str = 7) -> Said:
        """A slash command."""
        options = [{"type": 3, "name": "text", "value": text}] if text else []
        data = {"id": "77", "name": command, "type": 1, "options": options}
        channel = direct(chat)
        id_ = self._interact(2, channel, _author(chat, None), "Ana", data=data)
        return Said(f"slash:{id_}", "", 0, channel)

    def _interact(self, kind: int, channel: str, user: int | str, name: str, **more: Any) -> str:
        id_ = self._id()
        token = f"token-of-{id_}"
        self._interactions[token] = Interaction(id_, kind, time.monotonic())
        place = self._channel(channel)
        who = _person(user, name)
        payload: Json = {
            "id": id_,
            "application_id": APPLICATION,
            "type": kind,
            "token": token,
            "version": 1,
            "channel_id": channel,
            "channel": place,
            "locale": "en-US",
            "app_permissions": "8",
            "entitlements": [],
            "authorizing_integration_owners": {},
            "attachment_size_limit": 10_485_760,
            **more,
        }
        payload |= {"user": who} if place["type"] == 1 else {"guild_id": SERVER, "member": {**_member(), "user": who}}
        self._events[f"{'press' if kind == 3 else 'slash'}:{id_}"] = ("INTERACTION_CREATE", payload)
        self.dispatch("INTERACTION_CREATE", payload)
        return id_

    def user_opens_thread(self, name: str = "a thread", *, parent: str = GROUP) -> str:
        id_ = self._id()
        self._make_thread(id_, parent, name)
        return id_

    def admin_deletes(self, channel: str) -> None:
        """A channel, or a thread."""
        gone = self.channels.pop(channel)
        self.dispatch("THREAD_DELETE" if gone["type"] in (10, 11, 12) else "CHANNEL_DELETE", gone)

    def redeliver(self, said: Said) -> None:
        self.dispatch(*self._events[said.key])

    def something_unknown_happens(self) -> None:
        self.dispatch("FIREWORKS", {"colour": "red"})

    def something_broken_arrives(self) -> None:
        self.dispatch("MESSAGE_CREATE", {"id": "5", "channel_id": direct(7), "author": 5, "content": ["hello"]})

    def dispatch(self, event: str, data: Any) -> None:
        """To every session that is alive, whether somebody listens at the moment or not."""
        told = [session for session in self.sessions.values() if session.is_alive]
        self.nowhere += not told
        for session in told:
            frame = {"op": 0, "t": event, "s": len(session.dispatches) + 1, "d": data}
            session.dispatches.append(frame)
            if session.socket is not None:
                self._send(session.socket, _dump(frame))
        self._changes.tell()

    def deliver_raw(self, text: str | bytes) -> None:
        """A frame letter by letter; it need not be valid."""
        for socket in self._sockets[-1:]:
            self._send(socket, text)

    # ---- troubles ------------------------------------------------------------------------------------------

    def refuse_next(
        self, what: str, status: int, code: int = 0, message: str = "no", *, times: int = 1, **more: Any
    ) -> None:
        """``what`` is named as in ``counts``: ``POST messages``."""
        self._refusals.setdefault(what, deque()).extend(Refused(status, code, message, **more) for _ in range(times))

    def answer_next(self, what: str, page: bytes) -> None:
        """With something that is not Discord's."""
        self._refusals.setdefault(what, deque()).append(page)

    def limit_next(self, what: str, retry_after: float, *, is_global: bool = False) -> None:
        headers = {"Retry-After": f"{retry_after:.0f}", "Via": "1.1 google", "X-RateLimit-Scope": "user"}
        self.refuse_next(
            what,
            429,
            0,
            "You are being rate limited.",
            headers=headers,
            retry_after=float(retry_after),
            **{"global": is_global},
        )

    def limit_next_send(self, retry_after: float) -> None:
        self.limit_next("POST messages", retry_after)

    def refuse_credentials(self) -> None:
        self._is_welcome = False

    def accept_credentials(self) -> None:
        self._is_welcome = True

    def hold_sends(self) -> Hold:
        return self.hold("POST messages")

    def forget_sessions(self) -> None:
        """Discord forgets them after a while: whoever resumes is told to begin anew."""
        for session in self.sessions.values():
            session.is_alive = False

    async def close_sockets(self, code: int, reason: str = "") -> None:
        for socket in list(self._sockets):
            if socket.session is not None and code in LOSING_CODES and code >= 4000:
                socket.session.is_alive = False
            await socket.response.close(code=code, message=reason.encode())

    def ask_to_reconnect(self) -> None:
        self.deliver_raw(_dump({"op": 7, "d": None}))

    def invalidate_session(self, *, is_resumable: bool) -> None:
        for socket in self._sockets[-1:]:
            if socket.session is not None and not is_resumable:
                socket.session.is_alive = False
        self.deliver_raw(_dump({"op": 9, "d": is_resumable}))

    # ---- memory --------------------------------------------------------------------------------------------

    def texts(self, chat: int | str | None = None) -> list[str]:
        where = None if chat is None else direct(chat)
        return [sent.text for sent in self.sent if where is None or sent.chat == where]

    def called(self, what: str) -> list[Any]:
        return [call.body for call in self.calls if call.method == what]

    @property
    def sockets(self) -> int:
        """Those with a session that hear what happens."""
        return sum(socket.session is not None for socket in self._sockets)

    @property
    def unacked(self) -> int:
        return sum(not each.is_acked for each in self._interactions.values())

    @property
    def typings(self) -> int:
        return self._typings

    def _id(self) -> str:
        self._last_id = max(self._last_id + 1, (int((time.time() + self.clock_ahead) * 1000) - EPOCH_MS) << 22)
        return str(self._last_id)

    def _channel(self, id_: str) -> Json:
        if id_ not in self.channels:
            if not id_.startswith("9"):
                raise Refused(404, 10003, "Unknown Channel")
            self.channels[id_] = {"id": id_, "type": 1, "recipients": []}
        return self.channels[id_]

    def _find(self, channel: str, id_: str) -> Json:
        found = next((each for each in self.history.get(channel, []) if each["id"] == id_), None)
        if found is None:
            raise Refused(404, 10008, "Unknown Message")
        return found

    def _message(self, channel: str, author: Json, text: str, **more: Any) -> Json:
        id_ = self._id()
        blank: Json = {"tts": False, "mention_everyone": False, "pinned": False, "type": 0, "edited_timestamp": None}
        lists: Json = {"mentions": [], "mention_roles": [], "attachments": [], "embeds": [], "components": []}
        about = {"id": id_, "channel_id": channel, "author": author, "content": text, "timestamp": _iso(time.time())}
        self._channel(channel)["last_message_id"] = id_
        return {**blank, **lists, **about, **more}

    def _live(self, message: Json) -> Json:
        """A dispatch tells of the server and the member; the history does not."""
        if self._channel(message["channel_id"])["type"] == 1:
            return {**message, "channel_type": 1}
        return {**message, "guild_id": SERVER, "member": _member()}

    def _stored(self, name: str, data: bytes, mime: str) -> Json:
        id_ = self._id()
        self._files[id_] = _File(name, data, mime)
        address = f"{self.url}/files/{id_}/{name}"
        about = {"id": id_, "filename": name, "size": len(data), "content_type": mime}
        return {**about, "url": address, "proxy_url": address}

    # ---- the gateway ---------------------------------------------------------------------------------------

    async def _websocket(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.query["v"] == "10"
        assert request.query["encoding"] == "json"
        self.compression = request.query.get("compress", "")
        response = web.WebSocketResponse(timeout=0.5)
        await response.prepare(request)
        socket = Socket(response)
        self._sockets.append(socket)
        try:
            if self.says_hello:
                await _write(response, _dump({"op": 10, "d": {"heartbeat_interval": self.heartbeat_ms}}))
            await self._converse(socket)
        finally:
            self._sockets.remove(socket)
            self._leave(socket)
            self._changes.tell()
        return response

    def _leave(self, socket: Socket) -> None:
        code = socket.response.close_code
        self.closed_with.append(code)
        if socket.session is not None and socket.session.socket is socket:
            socket.session.socket = None
            if code in (1000, 1001):  # a client that leaves with these ends its session
                socket.session.is_alive = False

    async def _converse(self, socket: Socket) -> None:
        async for message in socket.response:
            if message.type is not aiohttp.WSMsgType.TEXT:
                return
            frame = orjson.loads(message.data)
            if len(message.data) > LARGEST_FRAME:
                await socket.response.close(code=4002)
                return
            self.frames.append(frame)
            code = await self._heard(socket, frame["op"], frame.get("d"))
            self._changes.tell()
            if code:
                await socket.response.close(code=code)
                return

    async def _heard(self, socket: Socket, op: int, data: Any) -> int:
        """The code that the socket is closed with; 0: it goes on."""
        match op:
            case 1:
                if self.answers_heartbeats:
                    await _write(socket.response, _dump({"op": 11}))
                return 0
            case 2:
                return await self._identify(socket, data)
            case 6:
                return await self._resume(socket, data)
            case _:
                return 4001 if socket.session is not None else 4003

    async def _identify(self, socket: Socket, data: Json) -> int:
        self.identified.append(data)
        if socket.session is not None:
            return 4005
        if data["token"] != self.token or not self._is_welcome:
            return 4004
        if data["intents"] & ~KNOWN_INTENTS:
            return 4013
        if data["intents"] & PRIVILEGED & ~(1 << 15) or (data["intents"] & 1 << 15 and not self.flags & MAY_READ):
            return 4014
        if not self.begins_sessions:
            await _write(socket.response, _dump({"op": 9, "d": False}))
            return 0
        session = Session(f"s{len(self.sessions)}")
        self.sessions[session.id] = session
        self._join(socket, session)
        self._tell(session, "READY", self._ready(session))
        for server in [each for each in self.servers if each not in self.absent]:
            self._tell(session, "GUILD_CREATE", self.server(server))
        return 0

    def _ready(self, session: Session) -> Json:
        return {
            "v": 10,
            "user": {**_me(), "id": self.identity},
            "guilds": [{"id": server, "unavailable": True} for server in self.servers],
            "session_id": session.id,
            "resume_gateway_url": f"ws://127.0.0.1:{self.port}/resume",
            "application": {"id": APPLICATION, "flags": self.flags},
            "shard": [0, 1],
        }

    def server(self, id_: str = SERVER) -> Json:
        """As it tells of itself after READY."""
        own = [channel for channel in self.channels.values() if channel.get("guild_id") == id_]
        is_thread = {id(channel): channel["type"] in (10, 11, 12) for channel in own}
        return {
            "id": id_,
            "name": "a server",
            "owner_id": "1",
            "joined_at": "2020-01-01T00:00:00.000000+00:00",
            "unavailable": False,
            "roles": [{"id": id_, "name": "@everyone"}, {"id": ROLE, "name": "Hermes", "tags": {"bot_id": BOT}}],
            "channels": [channel for channel in own if not is_thread[id(channel)]],
            "threads": [channel for channel in own if is_thread[id(channel)]],
            "members": [],
        }

    async def _resume(self, socket: Socket, data: Json) -> int:
        self.resumed.append(data)
        if data["token"] != self.token or not self._is_welcome:
            return 4004
        session = self.sessions.get(data["session_id"])
        if session is None or not session.is_alive or not isinstance(data["seq"], int):
            await _write(socket.response, _dump({"op": 9, "d": False}))
            return 0
        if data["seq"] > len(session.dispatches):
            session.is_alive = False
            return 4007
        self._join(socket, session)
        for frame in session.dispatches[data["seq"] :]:
            self._send(socket, _dump(frame))
        self._tell(session, "RESUMED", {})
        return 0

    def _join(self, socket: Socket, session: Session) -> None:
        if session.socket is not None:  # Discord ends the older connection of a session
            session.socket.session = None
        socket.session, session.socket = session, socket

    def _tell(self, session: Session, event: str, data: Json) -> None:
        frame = {"op": 0, "t": event, "s": len(session.dispatches) + 1, "d": data}
        session.dispatches.append(frame)
        if session.socket is not None:
            self._send(session.socket, _dump(frame))

    def _send(self, socket: Socket, frame: str | bytes) -> None:
        # The write itself happens at once; only a full buffer would have to be waited for.
        task = asyncio.ensure_future(_write(socket.response, frame))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    # ---- answering -----------------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path in ("/gateway", "/resume"):
            return await self._websocket(request)
        if path.startswith("/files/"):
            return self._download(path.split("/")[2], request.query.get("fresh", ""))
        parts = tuple(path.removeprefix("/api/v10/").split("/"))
        what = _named(request.method, parts)
        body, files = await _read(request)
        self.counts[what] += 1
        self.calls.append(Call(what, body))
        try:
            if request.headers.get("Authorization") != f"Bot {self.token}" or not self._is_welcome:
                raise Refused(401, 0, "401: Unauthorized")
            if waiting := self._refusals.get(what):
                refusal = waiting.popleft()
                if isinstance(refusal, bytes):
                    return web.Response(body=refusal, content_type="text/html")
                raise refusal
            answer = self._act(what, parts, body, files, dict(request.query))
        except Refused as refused:
            return _json(refused.body, refused.status, refused.headers)
        finally:
            self._changes.tell()
        await self._kept_back(what)
        limit, remaining, reset_after = self.rates.get(what, (1000, 999, 1.0))
        headers = {"X-RateLimit-Limit": str(limit), "X-RateLimit-Remaining": str(remaining)}
        headers["X-RateLimit-Reset-After"] = str(reset_after)
        headers["Date"] = formatdate(time.time() + self.clock_ahead, usegmt=True)
        return _json(answer, 200, headers | {"X-RateLimit-Bucket": what.replace(" ", "-")})

    def _act(self, what: str, parts: tuple[str, ...], body: Any, files: list[_File], query: dict[str, str]) -> Any:
        match what:
            case "GET me":
                return {**_me(), "id": self.identity}
            case "GET application":
                return {"id": APPLICATION, "name": "Hermes", "flags": self.flags}
            case "GET servers":
                return [{"id": server} for server in self.servers]
            case "GET server channels":
                own = [each for each in self.channels.values() if each.get("guild_id") == parts[1]]
                return [each for each in own if each["type"] not in (10, 11, 12)]  # threads are listed elsewhere
            case "GET commands":
                return self.commands
            case "PUT commands":
                return self._set_commands(body)
            case "GET channel":
                return self._visible(parts[1])
            case "GET messages":
                return self._page(parts[1], query)
            case "GET message":
                self._visible(parts[1])
                return self._find(parts[1], parts[3])
            case "POST messages":
                return self._post(parts[1], body, files)
            case "PATCH message":
                return self._change(parts[1], parts[3], body)
            case "POST typing":
                self._writable(parts[1])
                self._typings += 1
                return None
            case "POST threads":
                return self._open_thread(parts[1], parts[3], body)
            case "POST callback":
                return self._callback(parts[1], parts[2], body)
            case "POST followup":
                return self._follow_up(parts[2], body)
            case "POST refresh-urls":
                return {
                    "refreshed_urls": [
                        {"original": each, "refreshed": f"{each}?fresh=1"} for each in body["attachment_urls"]
                    ]
                }
            case _:
                raise Refused(404, 0, "404: Not Found")

    def _visible(self, channel: str) -> Json:
        if channel in self.hidden:
            raise Refused(403, 50001, "Missing Access")
        return self._channel(channel)

    def _writable(self, channel: str) -> Json:
        if channel in self.silent:
            raise Refused(403, 50013, "Missing Permissions")
        return self._visible(channel)

    def _page(self, channel: str, query: dict[str, str]) -> list[Json]:
        self._visible(channel)
        if channel in self.failing:
            self.failed += 1
            raise Refused(503, 0, "503: Service Unavailable")
        limit = int(query.get("limit") or 50)
        if not 1 <= limit <= 100:
            raise Refused(400, 50035, "Invalid Form Body")
        after, before = int(query.get("after") or 0), int(query.get("before") or 2**63)
        found = [each for each in self.history.get(channel, []) if after < int(each["id"]) < before]
        # The newest, unless it is asked for what came after something.
        return (found[:limit] if after else found[-limit:])[::-1]

    # ---- messages ------------------------------------------------------------------------------------------

    def _post(self, channel: str, body: Json, files: list[_File]) -> Json:
        place = self._writable(channel)
        self.on_send()
        text, rows = str(body.get("content") or ""), _buttons(body.get("components") or [])
        _check_text(text)
        if not text and not files:
            raise Refused(400, 50006, "Cannot send an empty message")
        _check_mentions(body)
        nonce = body.get("nonce")
        if nonce is not None and len(str(nonce)) > 25:
            raise Refused(400, 50035, "Invalid Form Body")
        if body.get("enforce_nonce") and (channel, str(nonce)) in self._nonces:
            return self._nonces[channel, str(nonce)]
        is_voice = self._check_files(body, files, text)
        message = self._message(channel, _me(), text, **self._reference(channel, body))
        message["attachments"] = [self._stored(file.name, file.data, file.mime) for file in files]
        if nonce is not None:
            self._nonces[channel, str(nonce)] = message
        self._show(place, message, rows, files, is_voice)
        return message

    def _show(
        self, place: Json, message: Json, rows: tuple[tuple[Button, ...], ...], files: list[_File], is_voice: bool
    ) -> None:
        channel = place["id"]
        self.history.setdefault(channel, []).append(message)
        is_thread = place["type"] == 11
        where = {"thread": channel} if is_thread else {}
        reply_to = str((message.get("message_reference") or {}).get("message_id") or "")
        for number, file in enumerate(files or [_File("", b"", "")]):
            shown = Sent(
                place["parent_id"] if is_thread else channel,
                "" if number else _shown(message["content"]),
                message["id"],
                reply_to=reply_to,
                parse_mode="markdown",
                raw=message["content"],
                method="POST messages",
                buttons=() if number else rows,
                file=file.data,
                file_name=file.name,
                is_voice=is_voice,
                **where,
            )
            self.sent.append(shown)
        self.dispatch("MESSAGE_CREATE", self._live(message))

    def _reference(self, channel: str, body: Json) -> Json:
        reference = body.get("message_reference")
        if not reference:
            return {}
        try:
            meant = self._find(channel, reference["message_id"])
        except Refused:
            if reference.get("fail_if_not_exists", True):
                raise Refused(400, 50035, "Invalid Form Body: Unknown message") from None
            return {}
        return {"type": 19, "message_reference": reference, "referenced_message": meant}

    def _check_files(self, body: Json, files: list[_File], text: str) -> bool:
        if len(files) > 10 or any(len(file.data) > 10_485_760 for file in files):
            raise Refused(413, 40005, "Request entity too large")
        told = body.get("attachments") or []
        if files and [int(each["id"]) for each in told] != list(range(len(files))):
            raise Refused(400, 50035, "Invalid Form Body")
        if not body.get("flags", 0) & 8192:
            return False
        if self.is_shy:
            raise Refused(403, 50173, "Cannot send voice messages in this channel")
        is_whole = len(files) == 1 and told[0].get("duration_secs") and told[0].get("waveform")
        if text or not is_whole or not files[0].data.startswith(b"OggS"):
            raise Refused(400, 50161, "Voice messages must have a single audio attachment")
        return True

    def _change(self, channel: str, id_: str, body: Json) -> Json:
        self._visible(channel)
        message = self._find(channel, id_)
        if message["author"]["id"] != BOT:
            raise Refused(403, 50005, "Cannot edit a message authored by another user")
        text = str(body.get("content", message["content"]) or "")
        _check_text(text)
        if not text and not message["attachments"]:
            raise Refused(400, 50006, "Cannot send an empty message")
        shown = next(each for each in self.sent if each.message_id == id_)
        if text != message["content"]:
            shown.edits.append(shown.text)
        message["content"], shown.raw, shown.text = text, text, _shown(text)
        if "components" in body:
            shown.buttons = _buttons(body["components"])
        return message

    def _open_thread(self, channel: str, id_: str, body: Json) -> Json:
        if not self.may_open_threads:
            raise Refused(403, 50013, "Missing Permissions")
        if self._writable(channel)["type"] not in (0, 5):
            raise Refused(400, 50024, "Cannot execute action on this channel type")
        self._find(channel, id_)
        if id_ in self.channels:
            raise Refused(400, 160004, "A thread has already been created for this message")
        if not 1 <= len(body["name"]) <= 100 or body["auto_archive_duration"] not in (60, 1440, 4320, 10080):
            raise Refused(400, 50035, "Invalid Form Body")
        return self._make_thread(id_, channel, body["name"])

    def _make_thread(self, id_: str, parent: str, name: str) -> Json:
        thread = {"id": id_, "type": 11, "name": name, "parent_id": parent, "guild_id": SERVER, "owner_id": BOT}
        self.channels[id_] = thread
        self.dispatch("THREAD_CREATE", thread)
        return thread

    # ---- interactions, commands, files ---------------------------------------------------------------------

    def _callback(self, id_: str, token: str, body: Json) -> Json | None:
        known = self._interactions.get(token)
        if known is None or known.id != id_:
            raise Refused(404, 10062, "Unknown interaction")
        if known.is_acked:
            raise Refused(400, 40060, "Interaction has already been acknowledged.")
        if time.monotonic() - known.made_at > ACK_SECONDS:
            self.late_acks.append(id_)
            raise Refused(404, 10062, "Unknown interaction")
        if body["type"] not in ((4, 5) if known.kind == 2 else (4, 5, 6, 7)):
            raise Refused(400, 50035, "Invalid Form Body")
        known.is_acked = True
        if body["type"] == 4:
            _check_text(body["data"]["content"])
            self.echoes.append(body["data"])
        return None

    def _follow_up(self, token: str, body: Json) -> Json:
        known = self._interactions.get(token)
        if known is None or not known.is_acked:
            raise Refused(404, 10015, "Unknown Webhook")
        if time.monotonic() - known.made_at > TOKEN_SECONDS:
            raise Refused(401, 50027, "Invalid Webhook Token")
        _check_text(body["content"])
        self.followups.append(body)
        return {"id": self._id()}

    def _set_commands(self, body: list[Json]) -> list[Json]:
        names = [each["name"] for each in body]
        if len(body) > 100 or len(set(names)) != len(names):
            raise Refused(400, 30032, "Maximum number of application commands reached (100)")
        for each in body:
            if not _COMMAND.fullmatch(each["name"]) or each["name"] != each["name"].lower():
                raise Refused(400, 50035, "Invalid Form Body")
            if not 1 <= len(each["description"]) <= 100:
                raise Refused(400, 50035, "Invalid Form Body")
        added = {"application_id": APPLICATION, "version": "1", "default_member_permissions": None, "nsfw": False}
        self.commands = [{**each, **added, "id": self._id()} for each in body]
        self.menus[""] = {each["name"]: each["description"] for each in body}
        return self.commands

    def _download(self, id_: str, fresh: str) -> web.Response:
        if self.stale_files and not fresh:
            return web.Response(status=404, text="This content is no longer available.")
        file = self._files[id_]
        return web.Response(body=file.data, content_type=file.mime)


def _author(chat: int | str, user: int | str | None) -> int | str:
    if user is not None:
        return user
    return chat if isinstance(chat, int) else 7


def _person(user: int | str, name: str = "Ana") -> Json:
    return {"id": str(user), "username": name.lower(), "discriminator": "0", "global_name": name, "avatar": None}


def _me() -> Json:
    return {**_person(BOT, "Hermes"), "bot": True}


def _member() -> Json:
    return {"roles": [], "joined_at": "2020-01-01T00:00:00+00:00", "deaf": False, "mute": False, "flags": 0}


def _iso(seconds: float) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{int(seconds % 1 * 1e6):06d}+00:00"


_NAMES = (
    (r"users/@me", "me"),
    (r"applications/@me", "application"),
    (r"users/@me/guilds", "servers"),
    (r"guilds/[0-9]+/channels", "server channels"),
    (r"applications/[0-9]+/commands", "commands"),
    (r"channels/[0-9]+", "channel"),
    (r"channels/[0-9]+/messages", "messages"),
    (r"channels/[0-9]+/messages/[0-9]+", "message"),
    (r"channels/[0-9]+/typing", "typing"),
    (r"channels/[0-9]+/messages/[0-9]+/threads", "threads"),
    (r"interactions/[0-9]+/[^/]+/callback", "callback"),
    (r"webhooks/[0-9]+/[^/]+", "followup"),
    (r"attachments/refresh-urls", "refresh-urls"),
)


def _named(method: str, parts: tuple[str, ...]) -> str:
    path = "/".join(parts)
    return f"{method} {next((name for pattern, name in _NAMES if re.fullmatch(pattern, path)), path)}"


async def _read(request: web.BaseRequest) -> tuple[Any, list[_File]]:
    if not request.content_type.startswith("multipart/"):
        data = await request.read()
        return (orjson.loads(data) if data else {}), []
    body: Json = {}
    files: list[_File] = []
    async for part in await request.multipart():
        assert isinstance(part, aiohttp.BodyPartReader)
        data = bytes(await part.read())
        if part.name == "payload_json":
            body = orjson.loads(data)
        else:
            files.append(_File(unquote(part.filename or ""), data, "application/octet-stream"))
    return body, files


def _json(body: Any, status: int, headers: Mapping[str, str]) -> web.Response:
    # Exactly this type: with a charset behind it discord.py takes the body for text.
    if body is None:
        return web.Response(status=204, headers=headers)
    kind = {"Content-Type": "application/json"}
    return web.Response(status=status, body=orjson.dumps(body), headers={**kind, **headers})


def _check_text(text: str) -> None:
    if len(text.encode("utf-16-le")) // 2 > LONGEST:
        problem = {"code": "BASE_TYPE_MAX_LENGTH", "message": "Must be 2000 or fewer in length."}
        raise Refused(400, 50035, "Invalid Form Body", errors={"content": {"_errors": [problem]}})


def _check_mentions(body: Json) -> None:
    allowed = body.get("allowed_mentions")
    if allowed is None or set(allowed.get("parse") or ()) - {"users"}:
        raise Refused(400, 50035, "This message would call everybody")  # stricter than Discord, on purpose


def _buttons(rows: list[Json]) -> tuple[tuple[Button, ...], ...]:
    names = [each["custom_id"] for row in rows for each in row["components"]]
    labels = [each["label"] for row in rows for each in row["components"]]
    is_whole = len(rows) <= 5 and all(1 <= len(row["components"]) <= 5 for row in rows)
    is_short = all(1 <= len(name) <= 100 for name in names) and all(1 <= len(label) <= 80 for label in labels)
    if not is_whole or not is_short or len(set(names)) != len(names):
        raise Refused(400, 50035, "Invalid Form Body")
    return tuple(tuple(Button(each["label"], each["custom_id"]) for each in row["components"]) for row in rows)


def _shown(text: str) -> str:
    """Markdown as people see it, as far as the tests need it."""
    return outside_code(text, _unmarked).replace("\u200b", "")


def _unmarked(text: str) -> str:
    text = re.sub(r"`([^`\n]+)`", r"\1", text)
    text = re.sub(r"(?m)^#{1,3} ", "", text)
    for mark in (r"\*\*", r"\*", "__", "_", "~~"):
        text = re.sub(rf"(?<![\w\\]){mark}(\S(?:[^\n]*?\S)??){mark}(?!\w)", r"\1", text)
    text = re.sub(r"\[([^\]\n]+)\]\((https?://[^)\s]+)\)", r"\1", text)
    return re.sub(r"\\([^\w\s])", r"\1", text)


def _dump(frame: Json) -> str:
    return orjson.dumps(frame).decode()


async def _write(response: web.WebSocketResponse, frame: str | bytes) -> None:
    with suppress(ConnectionError, RuntimeError):  # whoever listened is gone; it is told again to whoever resumes
        if isinstance(frame, bytes):
            await response.send_bytes(frame)
        else:
            await response.send_str(frame)
