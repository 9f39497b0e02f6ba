"""Slack on loopback: Web API, Socket Mode and files, which deliver, remember and refuse as Slack does."""

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
from urllib.parse import parse_qsl

import aiohttp
import orjson
from aiohttp import web

from hermes.core.keys import Target
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Button, Capabilities
from hermes.core.ports import Adapter, Alive, Emit
from hermes.core.secret import Secret
from hermes.platforms.slack.wire import CAPABILITIES
from tests.fakes.server import Hold, Said, Sent, outside_code
from tests.fakes.site import Site, keeping, session

Json = dict[str, Any]
TEAM, BOT, BOT_ID = "T0TEAM", "U0BOT", "B0BOT"
GROUP = "C0GROUP"
ACK_SECONDS = 3.0
MOST_ATTEMPTS = 4  # the first, and three retries
# These take a form and read nothing of a JSON body.
FORM_ONLY = frozenset(
    {"conversations.history", "conversations.replies", "users.conversations", "files.getUploadURLExternal"}
    | {"files.completeUploadExternal", "files.info"}
)


class Refused(Exception):  # noqa: N818 - it is an answer, not a failure of the fake
    def __init__(self, error: str, status: int = 200, headers: Mapping[str, str] | None = None, **more: str) -> None:
        super().__init__(error)
        self.error = error
        self.status = status
        self.headers = headers
        self.more = more


@dataclass(slots=True)
class _Event:
    """Something that Slack wants to tell; the same event keeps its payload in every attempt."""

    kind: str
    payload: Json
    attempts: int = 0


@dataclass(slots=True, eq=False)
class _Socket:
    response: web.WebSocketResponse
    unacked: dict[str, tuple[_Event, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    body: Json


@dataclass(slots=True)
class _File:
    name: str
    data: bytes = b""
    length: int = 0
    shares: Json = field(default_factory=dict)
    mime: str = "application/octet-stream"


def member(user: int | str) -> str:
    return f"U{user:08d}" if isinstance(user, int) else user


def direct(chat: int | str) -> str:
    """The id of a direct chat with this person (or, as text, any channel itself)."""
    return f"D{chat:08d}" if isinstance(chat, int) else chat


class FakeSlack(Site):
    """One workspace with one app in it. Person 7 is Ana, who writes to the app directly.

    ``port`` 0 takes a free one at the first start; stop() and start() keep it, which makes an outage. What is said
    before anybody ever listened waits, as Slack's retries do; after that, an event for which no socket is open is gone
    and stands only in the history. A press for which no socket is open fails at once, and people press again: here,
    when there is one.
    """

    platform = "slack"
    capabilities: Capabilities = CAPABILITIES
    plays = frozenset({"drop", "outage", "rate", "credentials", "hold", "unknown", "broken", "edits", "groups"}) | {
        "whispers"
    }

    def __init__(self, *, port: int = 0) -> None:
        super().__init__(port=port)
        self.bot_token = "xoxb-1111-2222-secretsecret"
        self.app_token = "xapp-1-A0APP-3333-secretsecret"
        self.identity = f"{TEAM}/{BOT}"
        self.team = TEAM  # as it tells; what it writes into events nobody reads
        self.secrets: tuple[str, ...] = (self.bot_token, self.app_token)
        self.calls: list[Call] = []
        self.cursor: dict[str, str] = {}
        self.history: dict[str, list[Json]] = {}
        self.hidden: set[str] = set()  # channels that are not listed
        self.names: dict[str, str] = {}  # of channels, whether anything was said there or not
        # What happened
        self.connections = 0
        self.acked: list[str] = []
        self.told: list[str] = []  # every envelope that was acknowledged, those of deliver_raw too
        self.late_acks: list[str] = []
        self.nowhere = 0
        self.statuses: list[Json] = []
        self.responses: list[Json] = []
        # Troubles
        self.says_hello = True
        self.ping_seconds: float | None = None  # how often Slack pings; who does not answer is cut off
        self.retries = True  # False: as if the minutes between them were longer than anybody waits
        self.shows_login_page = False
        self.clock_ahead = 0.0  # by how many seconds this clock differs from that of whoever asks
        self.responses_expired = False  # half an hour after a press, or after five answers
        self.page_size = 0
        self.on_send: Callable[[], None] = lambda: None
        self._credentials_are_good = True
        self._events: dict[str, _Event] = {}
        self._waiting: deque[_Event] = deque()
        self._sockets: list[_Socket] = []
        self._files: dict[str, _File] = {}
        self._refusals: dict[str, deque[Refused]] = {}
        self._strangers: dict[str, deque[tuple[bytes, int, str]]] = {}
        self._sending: set[asyncio.Future[None]] = set()
        self._numbers = 0
        self._last_ts = 0

    # ---- life ----------------------------------------------------------------------------------------------

    @property
    def api_url(self) -> str:
        """What SLACK_BASE_URL is set to."""
        return f"{self.url}/api"

    @property
    def environ(self) -> dict[str, str]:
        return {
            "SLACK_BOT_TOKEN": self.bot_token,
            "SLACK_APP_TOKEN": self.app_token,
            "SLACK_BASE_URL": self.api_url,
        }

    def settings(self, **more: Any) -> Json:
        tokens = {"bot_token": Secret(self.bot_token), "app_token": Secret(self.app_token)}
        return {**tokens, "base_url": self.api_url, **more}

    @asynccontextmanager
    async def adapter(
        self, *, alive: Alive = lambda: None, http: aiohttp.ClientSession | None = None, **settings: Any
    ) -> AsyncIterator[Adapter]:
        # Here and not above: whoever lacks the extra can still run the suites of all others.
        from hermes.platforms.slack.adapter import SlackAdapter
        from hermes.platforms.slack.config import SlackConfig

        kept = self.cursor

        class RemembersItsPlace(SlackAdapter):
            """The real adapter; what it asks to be stored is handed to the next one, as the gateway's store does."""

            async def run(self, emit: Emit) -> None:
                await super().run(keeping(emit, kept))

        async with session(http) as own:
            config = SlackConfig.of(AdapterParts("main", self.settings(**settings), own, alive, kept))
            yield RemembersItsPlace(config, own, alive, kept)

    # ---- people --------------------------------------------------------------------------------------------

    def target(self) -> Target:
        return Target("slack", direct(7))

    def user_says(
        self, text: str, *, chat: int | str = 7, user: int | str | None = None, thread: str = "", **more: Any
    ) -> Said:
        """A person writes; an app_mention follows where the app is named in a channel."""
        channel = direct(chat)
        message: Json = {"type": "message", "user": member(_author(chat, user)), "text": text, "team": TEAM, **more}
        message["ts"] = message["event_ts"] = self._ts()
        if thread:
            message |= {"thread_ts": thread, "parent_user_id": self._author_of(channel, thread)}
        self._remember(channel, message)
        event = {**message, "channel": channel, "channel_type": "im" if channel[0] == "D" else "channel"}
        key = f"msg:{TEAM}:{channel}:{message['ts']}"
        self._events[key] = self.deliver_event(event)
        return Said(key, message["ts"], 0, channel)

    def user_mentions(self, text: str, *, chat: str = GROUP, **more: Any) -> Said:
        """Named in a channel, Slack tells it twice: as a message and as a mention."""
        said = self.user_says(f"<@{BOT}> {text}", chat=chat, **more)
        inner = dict(self._events[said.key].payload["event"])
        del inner["channel_type"]
        self.deliver_event({**inner, "type": "app_mention"})
        return said

    def user_says_in_group(self, text: str, *, to_us: bool) -> Said:
        return self.user_says(f"<@{BOT}> {text}" if to_us else text, chat=GROUP)

    def user_answers(self, sent: Sent, text: str) -> Said:
        """In Slack a reply stands in the thread of a message."""
        return self.user_says(text, chat=sent.chat, user=7, thread=sent.thread or sent.message_id)

    def user_edits(self, said: Said, text: str) -> Said:
        message = self._find(said.chat, said.message_id)
        before = dict(message)
        message |= {"text": text, "edited": {"user": message["user"], "ts": self._ts()}}
        self.deliver_event(
            {
                "type": "message",
                "subtype": "message_changed",
                "channel": said.chat,
                "channel_type": "im" if said.chat[0] == "D" else "channel",
                "ts": self._ts(),
                "message": dict(message),
                "previous_message": before,
            }
        )
        return Said(
            f"edit:{TEAM}:{said.chat}:{said.message_id}:{message['edited']['ts']}", said.message_id, 0, said.chat
        )

    def user_forwards(self, texts: Sequence[str]) -> list[Said]:
        raise NotImplementedError("Slack shares a message as a link to it")

    def user_sends_album(self, files: Sequence[bytes], caption: str = "") -> list[Said]:
        raise NotImplementedError("Slack's albums are one message")

    def user_sends(
        self, data: bytes, name: str = "notes.txt", caption: str = "", *, mime: str = "text/plain", **more: Any
    ) -> Said:
        file_id = f"F{self._number():06d}"
        self._files[file_id] = _File(name, data, len(data), mime=mime)
        file = {"id": file_id, "name": name, "mimetype": mime, "size": len(data), "mode": "hosted", **more}
        file["url_private_download"] = f"{self.url}/files/{file_id}"
        return self.user_says(caption, subtype="file_share", files=[file])

    def user_speaks(self, sound: bytes) -> Said:
        return self.user_sends(sound, "audio_message.m4a", mime="audio/mp4", subtype="slack_audio")

    def user_shows(self, picture: bytes) -> Said:
        return self.user_sends(picture, "picture.png", mime="image/png")

    def user_presses(self, sent: Sent, data: str, *, user: int | None = None, name: str = "Ana") -> Said:
        button = next(button for row in sent.buttons for button in row if data in (button.data, button.label))
        who, ts = member(user if user is not None else 7), self._ts()
        shown: Json = {"ts": sent.message_id, "text": sent.raw, "bot_id": BOT_ID}
        container = {"type": "message", "message_ts": sent.message_id, "channel_id": sent.chat, "is_ephemeral": False}
        if sent.thread:
            shown["thread_ts"] = container["thread_ts"] = sent.thread
        action = {"action_id": "hermes:0:0", "block_id": "b1", "type": "button", "value": button.data, "action_ts": ts}
        payload: Json = {
            "type": "block_actions",
            "user": {"id": who, "username": name, "team_id": TEAM},
            "api_app_id": "A0APP",
            "team": {"id": TEAM, "domain": "example"},
            "enterprise": None,
            "container": container,
            "trigger_id": f"trigger.{self._number()}",
            "channel": {"id": sent.chat, "name": "directmessage" if sent.chat[0] == "D" else "general"},
            "message": shown,
            "state": {"values": {}},
            "response_url": f"{self.url}/response/{self._number()}",
            "actions": [action],
        }
        key = f"press:{TEAM}:{sent.chat}:{sent.message_id}:{who}:{ts}"
        self._events[key] = self.deliver("interactive", payload)
        return Said(key, sent.message_id, 0, sent.chat)

    def user_types(self, text: str, *, command: str = "/hermes", chat: int | str = 7) -> Said:
        """A slash command."""
        trigger, channel = f"trigger.{self._number()}", direct(chat)
        payload = {
            "team_id": TEAM,
            "channel_id": channel,
            "channel_name": "directmessage" if channel[0] == "D" else "general",
            "user_id": member(_author(chat, None)),
            "user_name": "ana",
            "command": command,
            "text": text,
            "api_app_id": "A0APP",
            "is_enterprise_install": "false",
            "response_url": f"{self.url}/response/{self._number()}",
            "trigger_id": trigger,
        }
        self.deliver("slash_commands", payload)
        return Said(f"slash:{TEAM}:{trigger}", "", 0, channel)

    def redeliver(self, said: Said) -> None:
        """The same event once more: the payload is the same, the envelope is another one."""
        event = self._events[said.key]
        self._hand_out(_Event(event.kind, event.payload, 1))

    def something_unknown_happens(self) -> None:
        self.deliver_event({"type": "fireworks", "colour": "red"})

    def something_broken_arrives(self) -> None:
        self.deliver_event({"type": "message", "channel": "D1", "user": 5, "text": ["hello"], "ts": "soon"})

    def deliver_event(self, event: object) -> _Event:
        number = self._number()
        payload = {"token": "x", "team_id": TEAM, "api_app_id": "A0APP", "type": "event_callback"}
        return self.deliver("events_api", {**payload, "event_id": f"Ev{number}", "event": event})

    def deliver(self, kind: str, payload: Any) -> _Event:
        event = _Event(kind, payload)
        self._hand_out(event)
        return event

    def deliver_raw(self, text: str) -> None:
        """A frame letter by letter; it need not be valid."""
        for socket in self._sockets[-1:]:
            self._send(socket, text)

    # ---- troubles ------------------------------------------------------------------------------------------

    def refuse_next(
        self,
        method: str,
        error: str,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        times: int = 1,
        **more: str,
    ) -> None:
        waiting = self._refusals.setdefault(method, deque())
        waiting.extend(Refused(error, status, headers, **more) for _ in range(times))

    def answer_next(self, method: str, body: bytes, *, status: int = 200, kind: str = "text/html") -> None:
        """Somebody else answers the next request in Slack's place."""
        self._strangers.setdefault(method, deque()).append((body, status, kind))

    def limit_next(self, method: str, retry_after: float) -> None:
        self.refuse_next(method, "ratelimited", status=429, headers={"Retry-After": f"{retry_after:.0f}"})

    def limit_next_send(self, retry_after: float) -> None:
        self.limit_next("chat.postMessage", retry_after)

    def refuse_credentials(self) -> None:
        self._credentials_are_good = False

    def accept_credentials(self) -> None:
        self._credentials_are_good = True

    def hold_sends(self) -> Hold:
        return self.hold("chat.postMessage")

    async def close_sockets(self, code: int = 1000, reason: str = "") -> None:
        for socket in list(self._sockets):
            await socket.response.close(code=code, message=reason.encode())

    def disconnect(self, reason: str) -> None:
        """Slack says that it will close the newest socket."""
        self.deliver_raw(_dump({"type": "disconnect", "reason": reason, "debug_info": {}}))

    def fall_silent(self) -> None:
        """Connections stay open, and nothing that comes over them is read any more: no ping is answered."""
        for connection in self._server.connections if self._server else ():
            if isinstance(connection.transport, asyncio.ReadTransport):
                connection.transport.pause_reading()

    # ---- memory --------------------------------------------------------------------------------------------

    def texts(self, chat: int | str | None = None) -> list[str]:
        where = None if chat is None else direct(chat)
        return [sent.text for sent in self.sent if where is None or sent.chat == where]

    def called(self, method: str) -> list[Json]:
        return [call.body for call in self.calls if call.method == method]

    @property
    def sockets(self) -> int:
        return len(self._sockets)

    @property
    def unacked(self) -> int:
        return sum(len(socket.unacked) for socket in self._sockets) + len(self._waiting)

    @property
    def polls(self) -> int:
        return 0  # Slack pushes

    @property
    def typings(self) -> int:
        return sum(bool(status["status"]) for status in self.statuses)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _ts(self) -> str:
        """Slack's time of a message is its name: no two are the same."""
        self._last_ts = max(self._last_ts + 100, int((time.time() + self.clock_ahead) * 1_000_000))
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def _remember(self, channel: str, message: Json) -> None:
        messages = self.history.setdefault(channel, [])
        root = message.get("thread_ts")
        if root:
            for each in messages:
                if each["ts"] == root:
                    each |= {"thread_ts": root, "reply_count": int(each.get("reply_count") or 0) + 1}
        messages.append(message)

    def _find(self, channel: str, ts: str) -> Json:
        return next(message for message in self.history.get(channel, []) if message["ts"] == ts)

    def _author_of(self, channel: str, ts: str) -> str:
        return next((str(each["user"]) for each in self.history.get(channel, []) if each["ts"] == ts), "")

    # ---- the socket ----------------------------------------------------------------------------------------

    def _hand_out(self, event: _Event) -> None:
        if self._sockets:
            self._envelope(self._sockets[-1], event)
        elif event.kind != "events_api" or not self.connections:
            self._waiting.append(event)
        else:
            self.nowhere += 1

    def _envelope(self, socket: _Socket, event: _Event) -> None:
        envelope_id = f"env-{self._number()}"
        envelope: Json = {"envelope_id": envelope_id, "type": event.kind, "payload": event.payload}
        envelope["accepts_response_payload"] = event.kind != "events_api"
        if event.kind == "events_api":
            envelope |= {"retry_attempt": event.attempts, "retry_reason": "timeout" if event.attempts else ""}
        event.attempts += 1
        socket.unacked[envelope_id] = (event, time.monotonic())
        self._send(socket, _dump(envelope))

    def _send(self, socket: _Socket, frame: str) -> None:
        # The write itself happens at once; only a full buffer would have to be waited for.
        task = asyncio.ensure_future(_write(socket.response, frame))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _websocket(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.WebSocketResponse(timeout=0.5, heartbeat=self.ping_seconds)
        await response.prepare(request)
        socket = _Socket(response)
        try:
            if self.says_hello:
                await _write(response, _dump({"type": "hello", "num_connections": len(self._sockets) + 1}))
                self._sockets.append(socket)
                self.connections += 1
                waiting, self._waiting = self._waiting, deque()
                for event in waiting:
                    self._envelope(socket, event)
            await self._converse(socket)
        finally:
            if socket in self._sockets:
                self._sockets.remove(socket)
            for event, _ in socket.unacked.values():
                if event.attempts < MOST_ATTEMPTS and (self.retries or event.kind != "events_api"):
                    self._retry(event)
                else:
                    self.nowhere += 1
            self._changes.tell()
        return response

    def _retry(self, event: _Event) -> None:
        if self._sockets:
            self._envelope(self._sockets[-1], event)
        else:
            self._waiting.append(event)

    async def _converse(self, socket: _Socket) -> None:
        async for message in socket.response:
            if message.type is not aiohttp.WSMsgType.TEXT:
                return
            envelope_id = str(orjson.loads(message.data)["envelope_id"])
            self.told.append(envelope_id)
            known = socket.unacked.pop(envelope_id, None)
            if known is not None:
                self.acked.append(envelope_id)
                if time.monotonic() - known[1] > ACK_SECONDS:
                    self.late_acks.append(envelope_id)
            self._changes.tell()

    # ---- answering -----------------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path == "/link":
            return await self._websocket(request)
        data = await request.read()
        if path.startswith("/upload/"):
            self._files[path.removeprefix("/upload/")].data = data
            return web.Response(text=f"OK - {len(data)}")
        if path.startswith("/files/"):
            return self._download(request, path.removeprefix("/files/"))
        if path.startswith("/response/") and self.responses_expired:
            return web.Response(status=404, text="expired_url")
        if path.startswith("/response/"):
            self.responses.append(orjson.loads(data))
            return web.Response(text="ok")
        method = path.removeprefix("/api/")
        is_json = request.content_type == "application/json"
        body = orjson.loads(data) if is_json and data else dict(parse_qsl(data.decode(), keep_blank_values=True))
        self.counts[method] += 1
        self.calls.append(Call(method, body))
        if strangers := self._strangers.get(method):
            page, status, kind = strangers.popleft()
            return web.Response(body=page, status=status, content_type=kind)
        try:
            self._check_token(method, request.headers.get("Authorization", ""))
            if waiting := self._refusals.get(method):
                raise waiting.popleft()
            answer = self._act(method, {} if is_json and method in FORM_ONLY else body)
        except Refused as refused:
            return _failure(refused)
        finally:
            self._changes.tell()
        told = orjson.dumps({"ok": True, **answer})  # as it is now, however long it is kept back
        await self._kept_back(method)
        date = {"Date": formatdate(time.time() + self.clock_ahead, usegmt=True)}
        return web.Response(body=told, content_type="application/json", headers=date)

    def _check_token(self, method: str, header: str) -> None:
        token = header.removeprefix("Bearer ")
        if not token:
            raise Refused("not_authed")
        if not self._credentials_are_good or token not in (self.bot_token, self.app_token):
            raise Refused("invalid_auth")
        if (token == self.app_token) != (method == "apps.connections.open"):
            raise Refused("not_allowed_token_type")

    def _download(self, request: web.BaseRequest, file_id: str) -> web.Response:
        if self.shows_login_page or request.headers.get("Authorization") != f"Bearer {self.bot_token}":
            return web.Response(text="<!DOCTYPE html><title>Sign in</title>", content_type="text/html")
        file = self._files[file_id]
        return web.Response(body=file.data, content_type=file.mime)

    def _act(self, method: str, body: Json) -> Json:
        match method:
            case "auth.test":
                return {
                    "url": "https://example.slack.com/",
                    "team": "Example",
                    "user": "hermes",
                    "team_id": self.team,
                } | {
                    "user_id": BOT,
                    "bot_id": BOT_ID,
                }
            case "apps.connections.open":
                return {"url": f"ws://127.0.0.1:{self.port}/link?ticket={self._number()}"}
            case "chat.postMessage":
                return self._post(body)
            case "chat.update":
                return self._update(body)
            case "assistant.threads.setStatus":
                return self._status(body)
            case "users.conversations":
                known = [channel for channel in {**self.history, **self.names} if channel not in self.hidden]
                told = [{"id": channel, "name": self.names.get(channel, channel.lower())} for channel in known]
                return self._page("channels", told, body)
            case "conversations.history":
                return self._history(body)
            case "conversations.replies":
                return self._replies(body)
            case "files.getUploadURLExternal":
                return self._place(body)
            case "files.completeUploadExternal":
                return self._complete(body)
            case "files.info":
                return {"file": self._file(str(body.get("file")))}
            case _:
                raise Refused("unknown_method")

    def _channel(self, body: Json, key: str = "channel") -> str:
        channel = str(body.get(key) or "")
        if not re.fullmatch(r"[CDGU][0-9A-Z]+", channel):
            raise Refused("channel_not_found")
        return channel

    def _post(self, body: Json) -> Json:
        channel, text = self._channel(body), str(body.get("text") or "")
        self.on_send()
        buttons = _buttons(body.get("blocks") or [])
        if not text and not body.get("blocks"):
            raise Refused("no_text")
        if len(text) > 40_000:
            raise Refused("msg_too_long")
        thread = str(body.get("thread_ts") or "")
        return self._show(channel, thread, text, body.get("blocks") or (), buttons=buttons, method="chat.postMessage")

    def _show(self, channel: str, thread: str, text: str, blocks: Sequence[Json] = (), **more: Any) -> Json:
        ts = self._ts()
        message: Json = {"type": "message", "user": BOT, "bot_id": BOT_ID, "text": text, "ts": ts}
        if thread:
            message["thread_ts"] = thread
        self._remember(channel, message)
        shown = Sent(channel, _seen(text, blocks), ts, thread=thread, parse_mode="mrkdwn", raw=text, **more)
        self.sent.append(shown)
        return {"channel": channel, "ts": ts, "message": message}

    def _update(self, body: Json) -> Json:
        channel, ts = self._channel(body), str(body.get("ts"))
        known = [each for each in self.history.get(channel, []) if each["ts"] == ts]
        shown = next((each for each in self.sent if each.message_id == ts), None)
        if not known or shown is None:
            raise Refused("cant_update_message" if known else "message_not_found")
        text = str(body.get("text") or "")
        if len(text.encode()) > 4000:  # a tenth of what a new message may have
            raise Refused("msg_too_long")
        shown.edits.append(shown.text)
        shown.text, shown.raw = _seen(text, body.get("blocks") or ()), text
        if "blocks" in body:
            shown.buttons = _buttons(body["blocks"])
        return {"channel": channel, "ts": ts, "text": text}

    def _status(self, body: Json) -> Json:
        channel = self._channel(body, "channel_id")
        if not [each for each in self.history.get(channel, []) if each["ts"] == body.get("thread_ts")]:
            raise Refused("invalid_thread_ts")
        self.statuses.append(body)
        return {}

    # ---- the history ---------------------------------------------------------------------------------------

    def _history(self, body: Json) -> Json:
        messages = self.history.get(self._channel(body), [])
        shown = [each for each in messages if each.get("thread_ts") in (None, each["ts"])]
        shown = [each for each in shown if _number_of(each["ts"]) > _number_of(body.get("oldest") or "0")]
        return self._page("messages", shown[::-1], body)

    def _replies(self, body: Json) -> Json:
        messages, root = self.history.get(self._channel(body), []), body.get("ts")
        if not [each for each in messages if each["ts"] == root]:
            raise Refused("thread_not_found")
        oldest = _number_of(body.get("oldest") or "0")
        shown = [each for each in messages if each["ts"] == root]
        replies = [each for each in messages if each.get("thread_ts") == root and each["ts"] != root]
        return self._page("messages", [*shown, *(each for each in replies if _number_of(each["ts"]) > oldest)], body)

    def _page(self, name: str, items: list[Json], body: Json) -> Json:
        start = int(body.get("cursor") or 0)
        size = self.page_size or int(body.get("limit") or 100)
        more = str(start + size) if start + size < len(items) else ""
        page = items[start : start + size]
        return {name: page, "has_more": bool(more), "response_metadata": {"next_cursor": more}}

    # ---- files ---------------------------------------------------------------------------------------------

    def _place(self, body: Json) -> Json:
        if not body.get("filename") or int(body.get("length") or 0) <= 0:
            raise Refused("invalid_arguments")
        file_id = f"F{self._number():06d}"
        self._files[file_id] = _File(str(body["filename"]), length=int(body["length"]))
        return {"upload_url": f"{self.url}/upload/{file_id}", "file_id": file_id}

    def _complete(self, body: Json) -> Json:
        channel, thread = self._channel(body, "channel_id"), str(body.get("thread_ts") or "")
        named = orjson.loads(body["files"])
        files = [self._files[each["id"]] for each in named]
        if any(len(file.data) != file.length for file in files):
            raise Refused("invalid_upload")
        first = self._show(channel, thread, str(body.get("initial_comment") or ""))
        for number, file in enumerate(files):
            if number:
                self.sent.append(Sent(channel, "", first["ts"], thread=thread))
            self.sent[-1].file, self.sent[-1].file_name = file.data, file.name
            file.shares = {"private": {channel: [{"ts": first["ts"]}]}}
        # Slack shares a moment later: this answer does not say yet where.
        return {"files": [{"id": each["id"], "title": each.get("title", "")} for each in named]}

    def _file(self, file_id: str) -> Json:
        if file_id not in self._files:
            raise Refused("file_not_found")
        file = self._files[file_id]
        address = f"{self.url}/files/{file_id}"
        return {"id": file_id, "name": file.name, "url_private_download": address, "shares": file.shares}


def _author(chat: int | str, user: int | str | None) -> int | str:
    if user is not None:
        return user
    return chat if isinstance(chat, int) else 7


def _number_of(ts: object) -> float:
    return float(str(ts))


def _buttons(blocks: list[Json]) -> tuple[tuple[Button, ...], ...]:
    if len(blocks) > 50:
        raise Refused("invalid_blocks")
    rows: list[tuple[Button, ...]] = []
    names: list[str] = []
    for block in blocks:
        if block["type"] == "section" and not 1 <= len(block["text"]["text"]) <= 3000:
            raise Refused("invalid_blocks")
        if block["type"] != "actions":
            continue
        if not 1 <= len(block["elements"]) <= 25:
            raise Refused("invalid_blocks")
        for each in block["elements"]:
            names.append(each["action_id"])
            if not 1 <= len(each["text"]["text"]) <= 75 or len(each["value"]) > 2000 or len(names[-1]) > 255:
                raise Refused("invalid_blocks")
        rows.append(tuple(Button(each["text"]["text"], each["value"]) for each in block["elements"]))
    if len(set(names)) != len(names):
        raise Refused("invalid_blocks")
    return tuple(rows)


def _seen(text: str, blocks: Sequence[Json]) -> str:
    """What stands in the chat: the blocks where there are any, each read by itself; the text is for notifications."""
    sections = [block["text"]["text"] for block in blocks if block["type"] == "section"]
    return "\n".join(map(_shown, sections)) if blocks else _shown(text)


def _shown(text: str) -> str:
    """mrkdwn as people see it, as far as the tests need it."""
    text = outside_code(text, _unmarked)
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return text.replace("\u200b", "")


def _unmarked(text: str) -> str:
    text = re.sub(r"`([^`\n]+)`", r"\1", text)
    for mark in (r"\*", "_", "~"):
        text = re.sub(rf"(?<![\w{mark}]){mark}(\S[^{mark}\n]*?)(?<=\S){mark}(?![\w{mark}])", r"\1", text)
    text = re.sub(r"<([^<>|@#!]+)\|([^<>]*)>", r"\2", text)
    return re.sub(r"<(https?://[^<>]+)>", r"\1", text)


def _dump(frame: Json) -> str:
    return orjson.dumps(frame).decode()


async def _write(response: web.WebSocketResponse, frame: str) -> None:
    with suppress(ConnectionError, RuntimeError):  # whoever listened is gone; what is not acknowledged is told again
        await response.send_str(frame)


def _failure(refused: Refused) -> web.Response:
    body = {"ok": False, "error": refused.error, **refused.more}
    return web.Response(
        status=refused.status, body=orjson.dumps(body), content_type="application/json", headers=refused.headers
    )
