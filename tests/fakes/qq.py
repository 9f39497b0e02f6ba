"""QQ's bot platform on loopback: token, gateway and REST, which deliver, remember and refuse as QQ does."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from hermes.core.keys import Target
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Button, Capabilities
from hermes.core.ports import Adapter, Alive, Emit
from hermes.core.secret import Secret
from hermes.platforms.qq.adapter import QQAdapter
from hermes.platforms.qq.config import QQConfig
from tests.fakes.server import Hold, Said, Sent, outside_code
from tests.fakes.site import Site, keeping, session

Json = dict[str, Any]
_CHINA = timezone(timedelta(hours=8))
_ADDRESS = re.compile(r"(?i)https?://|\b[a-z0-9-]+\.(?:com|org|net|cn)\b")
_SEND = re.compile(r"/(?:v2/(?P<v2>users|groups)|(?P<guild>channels|dms))/(?P<id>[^/]+)/(?P<what>\w+)")
_SCENES = {"users": "", "groups": "group/", "channels": "channel/", "dms": "direct/"}
WINDOWS = {"users": 3600.0, "groups": 300.0, "channels": 300.0, "dms": 300.0}
ANSWERS = 5
EVENT_WINDOW = 300.0
PART_BYTES = 4_000_000
ALL_INTENTS = 0x7FFFFFFF


class Refused(Exception):  # noqa: N818 - it is an answer, not a failure of the fake
    def __init__(self, code: int, message: str, status: int = 400, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.headers = headers


@dataclass(slots=True)
class FakeSession:
    """What one Identify began. ``log`` holds every event, so that a Resume can replay what came after a number."""

    id: str
    log: list[tuple[int, str]] = field(default_factory=list)
    seq: int = 0
    socket: web.WebSocketResponse | None = None


@dataclass(slots=True)
class _Ticket:
    """An inbound message or press that may be answered for a while."""

    place: str
    at: float
    window: float
    left: int
    seqs: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    path: str
    body: Json


@dataclass(slots=True)
class _Upload:
    wanted: Json
    parts: dict[int, bytes] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)
    not_ready: int = 0


def openid(user: int | str) -> str:
    """The id by which this bot knows a person (or, as text, the id itself)."""
    return f"OPENID{user:010d}" if isinstance(user, int) else user


class _RemembersItsPlace(QQAdapter):
    """The real adapter; what it asks to be stored is handed to the next one, as the gateway's store does."""

    def __init__(self, parts: AdapterParts, cursor: dict[str, str]) -> None:
        super().__init__(QQConfig.of(parts), parts.http, parts.alive, cursor, parts.now)
        self._kept = cursor

    async def run(self, emit: Emit) -> None:
        await super().run(keeping(emit, self._kept))


class FakeQQ(Site):
    """One bot's view of QQ. Person 7 is Ana, who writes to the bot directly.

    ``port`` 0 takes a free one at the first start; stop() and start() keep it, which makes an outage. ``now`` is QQ's
    clock. Whatever is said before the first Identify is delivered to the first session; after that an event belongs to
    the session of its time, and is gone with it.
    """

    platform = "qq"
    capabilities: Capabilities = QQAdapter.capabilities
    plays = frozenset(
        {"drop", "outage", "rate", "credentials", "hold", "unknown", "broken", "quotes", "groups", "replies"}
    )

    def __init__(self, *, port: int = 0, now: Callable[[], float] = time.time, heartbeat_ms: int = 45_000) -> None:
        super().__init__(port=port)
        self.now = now
        self.heartbeat_ms = heartbeat_ms
        self.app_id = "102000001"
        self.client_secret = "qq-client-secret-0123456789"
        self.identity = self.app_id
        self.secrets: tuple[str, ...] = (self.client_secret,)
        self.calls: list[Call] = []
        self.cursor: dict[str, str] = {}
        # What this bot may do
        self.granted_intents = ALL_INTENTS
        self.markdown_allowed = True
        self.keyboard_allowed = True
        self.any_address = True
        self.unasked_left: int | None = None  # messages that answer nobody; None: as many as one likes
        self.token_seconds = 7200.0
        self.windows = dict(WINDOWS)  # how long a message may be answered
        # What happened
        self.identified = 0
        self.resumed = 0
        self.heartbeats = 0
        self.heard_of: int | None = None  # the last event that a heartbeat told of
        self.downloads = 0
        self.shown_to: list[str] = []  # what was shown by whoever asked for a file
        self.tokens_given = 0
        self.tokens_asked = 0
        self.identify_frames: list[Json] = []
        self.acks: dict[str, int] = {}
        self.late_acks: list[str] = []
        self.nowhere = 0  # events for which there was no session
        # Troubles
        self.answers_heartbeats = True
        self.says_hello = True
        self.refuses_files = False
        self.gateway_answer: Json | None = None
        self.token_answer: Json | None = None
        self.page_for_next: tuple[int, bytes] | None = None  # somebody else answers the next call, with this page
        self.resume_answers: deque[str] = deque()  # "silence", "invalid", "invalid resumable" or a close code
        self.identify_answers: deque[str] = deque()
        self.on_send: Callable[[], None] = lambda: None
        self._credentials_are_good = True
        self._tokens: dict[str, float] = {}
        self._sessions: dict[str, FakeSession] = {}
        self._session: FakeSession | None = None
        self._early: list[Callable[[int], str]] = []
        self._sending: set[asyncio.Future[None]] = set()
        self._events: dict[str, tuple[str, Json]] = {}
        self._tickets: dict[str, _Ticket] = {}
        self._presses: dict[str, float] = {}
        self._files: dict[str, tuple[str, bytes]] = {}
        self._infos: dict[str, tuple[str, str, bytes, int]] = {}
        self._uploads: dict[str, _Upload] = {}
        self._refusals: dict[str, deque[Refused]] = {}
        self._audits: deque[tuple[int, Json]] = deque()
        self._sockets: set[web.WebSocketResponse] = set()
        self._numbers = 0

    # ---- life ----------------------------------------------------------------------------------------------

    @property
    def token_url(self) -> str:
        return f"{self.url}/app/getAppAccessToken"

    @property
    def environ(self) -> dict[str, str]:
        return {
            "QQ_APP_ID": self.app_id,
            "QQ_CLIENT_SECRET": self.client_secret,
            "QQ_BASE_URL": self.url,
            "QQ_TOKEN_URL": self.token_url,
        }

    def settings(self, **more: Any) -> Json:
        secret = Secret(self.client_secret)
        return {
            "app_id": self.app_id,
            "client_secret": secret,
            "base_url": self.url,
            "token_url": self.token_url,
            **more,
        }

    @asynccontextmanager
    async def adapter(
        self, *, alive: Alive = lambda: None, http: aiohttp.ClientSession | None = None, **settings: Any
    ) -> AsyncIterator[Adapter]:
        async with session(http) as own:
            parts = AdapterParts("main", self.settings(**settings), own, alive, self.cursor, self.now)
            yield _RemembersItsPlace(parts, self.cursor)

    # ---- people --------------------------------------------------------------------------------------------

    def target(self) -> Target:
        return Target("qq", openid(7))

    def user_says(self, text: str, *, chat: int | str = 7, user: int | str | None = None, **more: Any) -> Said:
        """A person writes: to the bot directly, or in ``group/…``, ``channel/…`` or ``direct/…``, mentioning it."""
        kind, data = self._said_in(chat, user)
        data["content"] = f" {text}" if kind == "GROUP_AT_MESSAGE_CREATE" else text
        if kind == "AT_MESSAGE_CREATE":
            data["content"] = f"<@!9001> {text}"
        return self._deliver_message(kind, {**data, **more})

    def group_talks(self, text: str, *, chat: str = "group/G1", user: int = 7) -> Said:
        """Somebody says something that is not for the bot; only some bots are shown that."""
        _, data = self._said_in(chat, user)
        return self._deliver_message("GROUP_MESSAGE_CREATE", {**data, "content": text})

    def user_answers(self, sent: Sent, text: str, **more: Any) -> Said:
        quoted = {"content": sent.text, "attachments": [], "msg_idx": _index(sent.message_id)}
        return self.user_says(text, chat=sent.chat, message_type=103, msg_elements=[quoted], **more)

    def user_edits(self, said: Said, text: str) -> Said:
        raise NotImplementedError("QQ has no edits")

    def user_says_in_group(self, text: str, *, to_us: bool) -> Said:
        return self.user_says(text, chat="group/G1") if to_us else self.group_talks(text)

    def user_speaks(self, sound: bytes) -> Said:
        return self.user_sends(sound, "", kind="voice")

    def user_shows(self, picture: bytes) -> Said:
        return self.user_sends(picture, "", kind="image/png")

    def user_forwards(self, texts: Sequence[str]) -> list[Said]:
        raise NotImplementedError("QQ does not say what was forwarded")

    def user_sends_album(self, files: Sequence[bytes], caption: str = "") -> list[Said]:
        raise NotImplementedError("QQ has no albums")

    def user_sends(
        self,
        data: bytes,
        name: str = "notes.txt",
        caption: str = "",
        *,
        kind: str = "file",
        chat: int | str = 7,
        **more: Any,
    ) -> Said:
        file_id = f"FILE{len(self._files) + 1}"
        self._files[file_id] = (name, data)
        url = f"{self.url}/download/{file_id}"
        file = {"content_type": kind, "filename": name, "size": len(data), "url": url, **more}
        return self.user_says(caption, chat=chat, attachments=[file])

    def user_presses(self, sent: Sent, data: str, *, user: int | str | None = None, name: str = "Ana") -> Said:
        """Press the button with this data (or this label) under a message of the bot."""
        button = next(button for row in sent.buttons for button in row if data in (button.data, button.label))
        press_id = f"30540ff7-{self._number()}"
        self._presses[press_id] = self.now()
        resolved = {"button_data": button.data, "button_id": button.label}
        press: Json = {"id": press_id, "version": 1, "timestamp": self._stamp(), "type": 11}
        if sent.chat.startswith("group/"):
            who = {"group_openid": sent.chat.removeprefix("group/"), "group_member_openid": openid(user or 7)}
            press |= {"scene": "group", "chat_type": 1, **who}
        elif sent.chat.startswith("channel/"):
            press |= {"scene": "guild", "chat_type": 0, "guild_id": "187", "channel_id": sent.chat[8:]}
            resolved |= {"user_id": openid(user or 7), "message_id": sent.message_id}
        else:
            who_id = openid(user) if user is not None else sent.chat
            press |= {"scene": "c2c", "chat_type": 2, "user_openid": who_id}
        press["data"] = {"type": 11, "resolved": resolved}
        key = f"press:{press_id}"
        self._events[key] = ("INTERACTION_CREATE", press)
        chat = sent.chat if "/" in sent.chat else str(press.get("user_openid"))
        self.deliver("INTERACTION_CREATE", press, ticket=chat)
        return Said(key, press_id, 0, sent.chat)

    def redeliver(self, said: Said) -> None:
        """The same message once more, by an event of its own."""
        self.deliver(*self._events[said.key])

    def something_unknown_happens(self) -> None:
        self.deliver("GUILD_FIREWORKS", {"colour": "red"})

    def something_broken_arrives(self) -> None:
        self.deliver("C2C_MESSAGE_CREATE", {"id": 5, "author": "nobody", "content": ["hello"]})

    def deliver(self, kind: str, data: object, *, ticket: str = "") -> str:
        """An event of any kind and shape, to the session of now. Returns its id."""
        event_id = f"{kind}:{self._number()}"
        if ticket:
            self._tickets[event_id] = _Ticket(ticket, self.now(), EVENT_WINDOW, 1)
        self._dispatch(lambda s: orjson.dumps({"op": 0, "s": s, "t": kind, "id": event_id, "d": data}).decode())
        return event_id

    def deliver_raw(self, text: Callable[[int], str]) -> None:
        """A frame letter by letter, made from its number; it need not be valid."""
        self._dispatch(text)

    # ---- troubles ------------------------------------------------------------------------------------------

    def refuse_next(
        self,
        what: str,
        code: int,
        message: str = "no",
        *,
        status: int = 400,
        headers: Mapping[str, str] | None = None,
        times: int = 1,
    ) -> None:
        """``what``: messages, files, upload_prepare, upload_part_finish, gateway, interactions or token."""
        waiting = self._refusals.setdefault(what, deque())
        waiting.extend(Refused(code, message, status, headers) for _ in range(times))

    def accept_next(self, status: int, answer: Json) -> None:
        """The next message is taken, and people look at it before it is shown."""
        self._audits.append((status, answer))

    def expect_ack(self, press_id: str) -> None:
        """An interaction of this id is on its way."""
        self._presses[press_id] = self.now()

    def limit_next_send(self, retry_after: float) -> None:
        self.refuse_next(
            "messages", 20028, "channel message limit", status=429, headers={"Retry-After": f"{retry_after:.0f}"}
        )

    def refuse_credentials(self) -> None:
        """The secret was changed."""
        self._credentials_are_good = False
        self._tokens.clear()

    def accept_credentials(self) -> None:
        self._credentials_are_good = True

    def kill_tokens(self) -> None:
        """Tokens die before their time, as people have seen."""
        self._tokens.clear()

    def hold_sends(self) -> Hold:
        return self.hold("messages")

    async def close(self, code: int, reason: str = "") -> None:
        """Close every WebSocket with this code, after what was said before."""
        await asyncio.gather(*self._sending)
        for socket in list(self._sockets):
            await socket.close(code=code, message=reason.encode())

    async def time_out(self) -> None:
        """What QQ does to everyone about every half hour."""
        await self.close(4009, "Session timed out")

    async def tell(self, frame: Json) -> None:
        for socket in list(self._sockets):
            await socket.send_str(orjson.dumps(frame).decode())

    def end_session(self) -> None:
        """The session dies quietly: no Resume will bring it back, and what is said until the next is lost."""
        self._sessions.clear()
        self._session = None

    # ---- memory --------------------------------------------------------------------------------------------

    def texts(self, chat: int | str | None = None) -> list[str]:
        where = None if chat is None else _chat(chat)
        return [sent.text for sent in self.sent if where is None or sent.chat == where]

    def called(self, path_ends: str) -> list[Json]:
        return [call.body for call in self.calls if call.path.endswith(path_ends)]

    @property
    def sockets(self) -> int:
        return len(self._sockets)

    @property
    def polls(self) -> int:
        return 0  # QQ pushes

    @property
    def typings(self) -> int:
        return self.counts["typing"]

    @property
    def is_listening(self) -> bool:
        """Somebody is connected to the session of now."""
        return self._session is not None and self._session.socket is not None

    # ---- making events -------------------------------------------------------------------------------------

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _stamp(self) -> str:
        return datetime.fromtimestamp(self.now(), UTC).astimezone(_CHINA).isoformat()

    def _said_in(self, chat: int | str, user: int | str | None) -> tuple[str, Json]:
        place = _chat(chat)
        data: Json = {"id": f"ROBOT1.0_in{self._number()}!", "timestamp": self._stamp()}
        if place.startswith("group/"):
            data |= {"group_openid": place[6:], "author": {"member_openid": openid(user if user is not None else 7)}}
            return "GROUP_AT_MESSAGE_CREATE", data
        if place.startswith(("channel/", "direct/")):
            scene, _, number = place.partition("/")
            person = {"id": openid(user if user is not None else 7), "username": "ana", "bot": False}
            data |= {"guild_id": number if scene == "direct" else "187", "author": person, "member": {"nick": "Ana"}}
            data["channel_id"] = number if scene == "channel" else "100011"
            return ("AT_MESSAGE_CREATE" if scene == "channel" else "DIRECT_MESSAGE_CREATE"), data
        data["message_scene"] = {"source": "default", "ext": [f"msg_idx=REFIDX_in{self._numbers}"]}
        data |= {"author": {"user_openid": place}, "message_type": 0}
        return "C2C_MESSAGE_CREATE", data

    def _deliver_message(self, kind: str, data: Json) -> Said:
        place, scene = _place_of(kind, data)
        self._tickets[data["id"]] = _Ticket(place, self.now(), self.windows[scene], ANSWERS)
        key = f"msg:{data['id']}"
        self._events[key] = (kind, data)
        self.deliver(kind, data)
        return Said(key, data["id"], 0, place)

    def _dispatch(self, text: Callable[[int], str]) -> None:
        session = self._session
        if session is None:
            if self.identified:
                self.nowhere += 1
            else:
                self._early.append(text)
            return
        session.seq += 1
        frame = text(session.seq)
        session.log.append((session.seq, frame))
        if session.socket is not None and not session.socket.closed:
            # The write itself happens at once; only a full buffer would have to be waited for.
            task = asyncio.ensure_future(_send(session.socket, frame))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    # ---- the gateway ---------------------------------------------------------------------------------------

    async def _websocket(self, request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse(timeout=0.5)
        await socket.prepare(request)
        self._sockets.add(socket)
        try:
            if self.says_hello:
                await _send(socket, _dump({"op": 10, "d": {"heartbeat_interval": self.heartbeat_ms}}))
            await self._converse(socket)
        finally:
            self._sockets.discard(socket)
            if self._session is not None and self._session.socket is socket:
                self._session.socket = None
            self._changes.tell()
        return socket

    async def _converse(self, socket: web.WebSocketResponse) -> None:
        patience = self.heartbeat_ms / 1000 * 2
        while True:
            try:
                message = await socket.receive(timeout=patience)
            except TimeoutError:
                await socket.close(code=4009, message=b"Session timed out")
                return
            if message.type is aiohttp.WSMsgType.CLOSE and message.data in (1000, 1001):
                self.end_session()  # whoever says goodbye is not expected back
            if message.type is not aiohttp.WSMsgType.TEXT:
                return
            try:
                frame = orjson.loads(message.data)
            except orjson.JSONDecodeError:
                await socket.close(code=4002, message=b"payload error")
                return
            match frame.get("op"):
                case 1:
                    self.heartbeats += 1
                    self.heard_of = frame.get("d")
                    if self.answers_heartbeats:
                        await _send(socket, _dump({"op": 11}))
                case 2:
                    await self._identify(socket, frame["d"])
                case 6:
                    await self._resume(socket, frame["d"])
                case _:
                    await socket.close(code=4001, message=b"invalid opcode")
            self._changes.tell()

    async def _identify(self, socket: web.WebSocketResponse, data: Json) -> None:
        self.identify_frames.append(data)
        if self.identify_answers and await self._scripted(socket, self.identify_answers.popleft()):
            return
        if not self._is_token(str(data.get("token"))):
            await socket.close(code=4004, message=b"authentication fail")
            return
        if data.get("shard") != [0, 1]:
            await socket.close(code=4010, message=b"invalid shard")
            return
        if int(data.get("intents") or 0) & ~self.granted_intents:
            await socket.close(code=4014, message=b"disallowed intents")
            return
        self.identified += 1
        session = self._session = FakeSession(f"session-{self._number()}")
        self._sessions = {session.id: session}
        ready = {"version": 1, "session_id": session.id, "user": {"id": "9001", "username": "bot", "bot": True}}
        session.seq = 1
        session.log.append((1, _dump({"op": 0, "s": 1, "t": "READY", "d": {**ready, "shard": [0, 1]}})))
        early, self._early = self._early, []
        for text in early:
            session.seq += 1
            session.log.append((session.seq, text(session.seq)))
        await self._catch_up(socket, session, 0)

    async def _resume(self, socket: web.WebSocketResponse, data: Json) -> None:
        if self.resume_answers and await self._scripted(socket, self.resume_answers.popleft()):
            return
        if not self._is_token(str(data.get("token"))):
            await socket.close(code=4004, message=b"authentication fail")
            return
        session = self._sessions.get(str(data.get("session_id")))
        if session is None:
            await _send(socket, _dump({"op": 9, "d": False}))
            return
        if not 0 <= int(data["seq"]) <= session.seq:
            await socket.close(code=4007, message=b"invalid seq")
            return
        self.resumed += 1
        await self._catch_up(socket, session, int(data["seq"]))
        session.seq += 1
        await _send(socket, _dump({"op": 0, "s": session.seq, "t": "RESUMED", "d": ""}))

    async def _catch_up(self, socket: web.WebSocketResponse, session: FakeSession, seq: int) -> None:
        """Everything after this number, in order, also what comes while it is being sent; then live."""
        sent = seq
        while pending := [(number, frame) for number, frame in session.log if number > sent]:
            for number, frame in pending:
                await _send(socket, frame)
                sent = number
        session.socket = socket

    async def _scripted(self, socket: web.WebSocketResponse, answer: str) -> bool:
        match answer:
            case "silence":
                pass
            case "invalid" | "invalid resumable":
                await _send(socket, _dump({"op": 9, "d": answer.endswith("resumable")}))
            case "":
                return False
            case code:
                await socket.close(code=int(code), message=b"scripted")
        return True

    # ---- REST ----------------------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path == "/websocket/":
            return await self._websocket(request)
        if path == "/app/getAppAccessToken":
            return await self._give_token(request)
        raw = await request.read()
        if path.startswith("/part/"):
            return self._take_part(path, raw)
        if self.page_for_next is not None:
            (status, page), self.page_for_next = self.page_for_next, None
            return web.Response(status=status, body=page, content_type="text/html")
        if path.startswith("/download/"):
            self.shown_to.append(request.headers.get("Authorization", ""))
        is_refused = self.refuses_files and path.startswith("/download/")
        if is_refused or not self._is_token(request.headers.get("Authorization", "")):
            return _failure(Refused(11244, "token is invalid or expired", 401))
        if path.startswith("/download/"):
            self.downloads += 1
            _, data = self._files.get(path.removeprefix("/download/"), ("", b""))
            return web.Response(body=data) if data else web.Response(status=404)
        body = orjson.loads(raw) if raw else {}
        what = path.rstrip("/").rpartition("/")[2] if not path.startswith("/interactions/") else "interactions"
        self.calls.append(Call(request.method, path, body))
        self.counts[what] += 1
        self._changes.tell()
        try:
            status, result = self._act(request.method, path, what, body)
        except Refused as refused:
            self._changes.tell()
            return _failure(refused)
        self._changes.tell()
        await self._kept_back(what)
        return web.Response(status=status, body=orjson.dumps(result), content_type="application/json")

    async def _give_token(self, request: web.BaseRequest) -> web.StreamResponse:
        """Refusals come with HTTP 200, and the same token until its last minute."""
        raw = await request.read()
        self.tokens_asked += 1
        if waiting := self._refusals.get("token"):
            refused = waiting.popleft()
            return _ok({"code": refused.code, "message": refused.message})
        if self.token_answer is not None:
            return _ok(self.token_answer)
        if request.content_type != "application/json":
            return _ok({"code": 100007, "message": "appid invalid"})
        body = orjson.loads(raw)
        if not isinstance(body.get("appId"), str):
            return _ok({"code": 100002, "message": "internal err"})
        is_ours = (body["appId"], body.get("clientSecret")) == (self.app_id, self.client_secret)
        if not is_ours or not self._credentials_are_good:
            return _ok({"code": 100016, "message": "invalid appid or secret"})
        now = self.now()
        token, until = max(self._tokens.items(), key=lambda item: item[1], default=("", 0.0))
        if until - now <= 60:
            token, until = f"TOKEN-{self._number()}-{hashlib.sha256(str(now).encode()).hexdigest()[:12]}", now
            until += self.token_seconds
            self._tokens = {old: end for old, end in self._tokens.items() if end > now} | {token: until}
            self.tokens_given += 1
            self.secrets = (*self.secrets, token)
        return _ok({"access_token": token, "expires_in": str(int(until - now))})

    def _is_token(self, authorization: str) -> bool:
        return self._tokens.get(authorization.removeprefix("QQBot "), 0.0) > self.now()

    def _act(self, method: str, path: str, what: str, body: Json) -> tuple[int, Json]:
        if waiting := self._refusals.get(what):
            raise waiting.popleft()
        if (method, path) == ("GET", "/gateway") and self.gateway_answer is not None:
            return 200, self.gateway_answer
        if (method, path) == ("GET", "/gateway"):
            return 200, {"url": f"ws://127.0.0.1:{self.port}/websocket/"}
        if (method, path) == ("GET", "/users/@me"):
            return 200, {"id": "9001", "username": "hermes_bot", "avatar": ""}
        if method == "PUT" and what == "interactions":
            return 200, self._acknowledge(path.rpartition("/")[2], body)
        found = _SEND.fullmatch(path)
        if method != "POST" or found is None:
            raise Refused(11282, "no such path", 404)
        scene = found["v2"] or found["guild"]
        match found["what"]:
            case "messages":
                return self._send(scene, found["id"], body)
            case "files" if found["v2"]:
                return 200, self._take_file(scene, body)
            case "upload_prepare" if found["v2"]:
                return 200, self._prepare(body)
            case "upload_part_finish" if found["v2"]:
                return 200, self._finish_part(body)
            case _:
                raise Refused(11282, "no such path", 404)

    def _acknowledge(self, press_id: str, body: Json) -> Json:
        at = self._presses.get(press_id)
        if at is None:
            raise Refused(630006, "interaction id is invalid")
        if self.now() - at > 3:
            self.late_acks.append(press_id)
        self.acks[press_id] = int(body["code"])
        return {}

    def _send(self, scene: str, chat_id: str, body: Json) -> tuple[int, Json]:
        place = f"{_SCENES[scene]}{chat_id}"
        is_guild = scene in ("channels", "dms")
        ticket, seq = self._ticket(scene, place, body)
        kind = int(body.get("msg_type", 2 if "markdown" in body else 0))
        if kind == 6:
            return self._typing(scene, body, ticket, seq)
        self.on_send()
        sent = Sent(chat=place, text="", message_id="", raw=_raw(body), method=f"msg_type {kind}")
        if "keyboard" in body:
            sent.buttons = self._buttons(body, kind)
        match kind:
            case 0:
                sent.text = self._checked(str(body.get("content") or ""))
            case 2:
                if not self.markdown_allowed:
                    raise Refused(50056, "markdown not allowed")
                if str(body.get("content") or " ").strip():
                    raise Refused(50057, "content must be empty beside markdown")
                sent.text = self._checked(_shown(str(body["markdown"]["content"])))
            case 7 if not is_guild:
                info = str((body.get("media") or {}).get("file_info"))
                owner, sent.file_name, sent.file, _ = self._infos.get(info, ("", "", b"", 0))
                if owner != scene:
                    raise Refused(304080, "file_info is invalid")
                if not body.get("content"):  # it wants at least a space
                    raise Refused(50006, "message is empty")
                sent.text = str(body["content"]).strip()
            case _:
                raise Refused(304010, "no such msg_type")
        self._use(ticket, seq)
        if self._audits:
            return self._audits.popleft()
        sent.message_id = f"ROBOT1.0_out{self._number()}"
        sent.reply_to = str(body.get("msg_id") or "")
        self.sent.append(sent)
        answer = {"id": sent.message_id, "timestamp": self._stamp()}
        return 200, {**answer, "ext_info": {"ref_idx": _index(sent.message_id)}}

    def _ticket(self, scene: str, place: str, body: Json) -> tuple[_Ticket | None, int]:
        """The right to send this, checked as QQ does: the age, the count, and the number among the answers."""
        name = body.get("msg_id") or body.get("event_id")
        # Seen by those who tried: with a number beside it, the id of an event counts for nothing.
        if not name or (not body.get("msg_id") and "msg_seq" in body):
            if self.unasked_left is not None and self.unasked_left <= 0:
                raise Refused(40034102, "no permission to send unasked")
            return None, 0
        ticket = self._tickets.get(str(name))
        is_guild = scene in ("channels", "dms")
        spent = Refused(304027, "reply expired") if is_guild else Refused(40034024, "msg_id is invalid or expired")
        if ticket is None or ticket.place != place:
            raise spent
        seq = int(body.get("msg_seq", 1)) if not is_guild else 0
        if not is_guild and seq in ticket.seqs:
            raise Refused(40054005, "message deduplicated")
        if self.now() - ticket.at > ticket.window or ticket.left <= 0:
            raise spent
        return ticket, seq

    def _use(self, ticket: _Ticket | None, seq: int) -> None:
        if ticket is not None:
            ticket.left -= 1
            ticket.seqs.add(seq)
        elif self.unasked_left is not None:
            self.unasked_left -= 1

    def _typing(self, scene: str, body: Json, ticket: _Ticket | None, seq: int) -> tuple[int, Json]:
        if scene != "users" or ticket is None or not 1 <= body["input_notify"]["input_second"] <= 60:
            raise Refused(40034002, "typing needs a msg_id")
        self._use(ticket, seq)  # nobody knows whether it counts: at worst it does
        self.counts["typing"] += 1
        return 200, {"ext_info": {}}

    def _checked(self, text: str) -> str:
        if not text.strip():
            raise Refused(50006, "message is empty")
        if len(text) > 4000:
            raise Refused(50007, "message is too long")
        if not self.any_address and _ADDRESS.search(text):
            raise Refused(304003, "url not allowed")
        return text

    def _buttons(self, body: Json, kind: int) -> tuple[tuple[Button, ...], ...]:
        if not self.keyboard_allowed:
            raise Refused(304037, "no permission for a keyboard")
        rows = body["keyboard"]["content"]["rows"]
        if kind != 2 or len(rows) > 5 or any(not 1 <= len(row["buttons"]) <= 5 for row in rows):
            raise Refused(304039, "keyboard is bad")
        ids = [button["id"] for row in rows for button in row["buttons"]]
        if len(set(ids)) != len(ids):
            raise Refused(304039, "button ids repeat")
        for row in rows:
            for button in row["buttons"]:
                action = button["action"]
                if action["type"] != 1 or not action["data"] or "type" not in action["permission"]:
                    raise Refused(304040, "button is bad")
        return tuple(
            tuple(Button(each["render_data"]["label"], each["action"]["data"]) for each in row["buttons"])
            for row in rows
        )

    # ---- files ---------------------------------------------------------------------------------------------

    def _take_file(self, scene: str, body: Json) -> Json:
        if "upload_id" in body:
            upload = self._uploads[str(body["upload_id"])]
            data = b"".join(upload.parts[index] for index in sorted(upload.parts))
            if upload.finished != set(upload.parts) or len(data) != upload.wanted["file_size"]:
                raise Refused(40093003, "upload is not complete")
            name, kind = upload.wanted["file_name"], upload.wanted["file_type"]
        else:
            if body.get("srv_send_msg") is not False:
                raise Refused(40034102, "no permission to send unasked")
            data = base64.b64decode(body["file_data"], validate=True)
            name, kind = str(body.get("file_name") or ""), int(body["file_type"])
        if kind not in (1, 2, 3, 4) or not data:
            raise Refused(304082, "file is bad")
        if kind == 1 and not data.startswith((b"\x89PNG", b"\xff\xd8\xff")):
            raise Refused(304082, "this is no picture")
        info = f"INFO-{self._number()}"
        self._infos[info] = (scene, name, data, kind)
        return {"file_uuid": f"UUID-{info}", "file_info": info, "ttl": 3600}

    def _prepare(self, body: Json) -> Json:
        upload_id = f"UP{self._number()}"
        self._uploads[upload_id] = _Upload(body)
        count = -(-int(body["file_size"]) // PART_BYTES)
        parts = [
            {"index": index, "presigned_url": f"{self.url}/part/{upload_id}/{index}", "block_size": PART_BYTES}
            for index in range(1, count + 1)
        ]
        plan = {"upload_id": upload_id, "block_size": PART_BYTES, "parts": parts, "concurrency": 1}
        return {"data": {**plan, "retry_timeout": 120}}

    def _take_part(self, path: str, data: bytes) -> web.Response:
        _, _, upload_id, index = path.split("/")
        self._uploads[upload_id].parts[int(index)] = data
        return web.Response()

    def _finish_part(self, body: Json) -> Json:
        upload = self._uploads[str(body["upload_id"])]
        data = upload.parts[int(body["part_index"])]
        told = (body["md5"], body["block_size"])
        if told != (hashlib.md5(data, usedforsecurity=False).hexdigest(), len(data)):
            raise Refused(40093004, "part differs")
        upload.finished.add(int(body["part_index"]))
        if len(upload.finished) == -(-upload.wanted["file_size"] // PART_BYTES):
            self._check_digests(upload)
        return {}

    def _check_digests(self, upload: _Upload) -> None:
        data = b"".join(upload.parts[index] for index in sorted(upload.parts))
        md5, sha1 = (hashlib.new(name, data, usedforsecurity=False).hexdigest() for name in ("md5", "sha1"))
        head = hashlib.md5(data[:10_002_432], usedforsecurity=False).hexdigest()
        if (upload.wanted["md5"], upload.wanted["sha1"], upload.wanted["md5_10m"]) != (md5, sha1, head):
            raise Refused(40093005, "file differs")


def _chat(chat: int | str) -> str:
    return openid(chat) if isinstance(chat, int) else chat


def _place_of(kind: str, data: Json) -> tuple[str, str]:
    match kind:
        case "C2C_MESSAGE_CREATE":
            return data["author"]["user_openid"], "users"
        case "AT_MESSAGE_CREATE":
            return f"channel/{data['channel_id']}", "channels"
        case "DIRECT_MESSAGE_CREATE":
            return f"direct/{data['guild_id']}", "dms"
        case _:
            return f"group/{data['group_openid']}", "groups"


def _index(message_id: str) -> str:
    return f"REFIDX_{message_id}"


def _raw(body: Json) -> str:
    return str((body.get("markdown") or {}).get("content") or body.get("content") or "")


def _shown(text: str) -> str:
    """Markdown as people see it, as far as the tests need it."""
    return outside_code(text, _unmarked)


def _unmarked(text: str) -> str:
    text = re.sub(r"(?m)^```.*\n?", "", text)
    text = re.sub(r"`([^`]+)`", r"\1", text)
    text = re.sub(r"(\*\*|~~)(.+?)\1", r"\2", text)
    text = re.sub(r"(?<![\w\\])\*(\S[^*\n]*)\*", r"\1", text)
    return re.sub(r"\\([^\w\s])", r"\1", text)


def _dump(frame: Json) -> str:
    return orjson.dumps(frame).decode()


async def _send(socket: web.WebSocketResponse, frame: str) -> None:
    with suppress(ConnectionError, RuntimeError):  # whoever listened is gone; the session keeps the frame
        await socket.send_str(frame)


def _ok(body: Json) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/json")


def _failure(refused: Refused) -> web.Response:
    body = {"message": refused.message, "code": refused.code, "err_code": refused.code, "trace_id": "trace-1"}
    headers = {"X-Tps-trace-Id": "trace-1", **(refused.headers or {})}
    return web.Response(
        status=refused.status, body=orjson.dumps(body), content_type="application/json", headers=headers
    )
