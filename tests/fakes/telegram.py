"""A Bot API server on loopback: it delivers, remembers and refuses as Telegram does."""

from __future__ import annotations

import asyncio
import re
import struct
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from hermes.core.keys import Target
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Button, Capabilities
from hermes.core.ports import Adapter, Alive
from hermes.core.secret import Secret
from hermes.platforms.telegram import MANIFEST
from hermes.platforms.telegram.adapter import TelegramAdapter
from tests.fakes import markdown_v2
from tests.fakes.server import Hold, Said, Sent
from tests.fakes.site import Site, session

Json = dict[str, Any]

_MEDIA = {
    "sendPhoto": "photo",
    "sendVoice": "voice",
    "sendAudio": "audio",
    "sendVideo": "video",
    "sendDocument": "document",
}
_NAMED = re.compile(r"(?<!\S)/[A-Za-z0-9_]{1,64}(?:@\w+)?|(?<!\w)@[A-Za-z]\w{2,31}")
_TOO_OLD = "Bad Request: query is too old and response timeout expired or query ID is invalid"


UNPACED = {"TELEGRAM_CALLS_PER_SECOND": "0"}
"""For a gateway at a fake without limits, in tests that ask for everything but its patience."""

_COUNTED_IN_CHAT = frozenset({"sendMessage", "editMessageText", "sendMediaGroup", *_MEDIA})
_NOT_COUNTED = frozenset({"getUpdates", "getMe", "deleteWebhook", "setMyCommands"})  # they send nothing to anybody


@dataclass(slots=True)
class Limits:
    """Telegram's patience: so many calls in any second in all, and in any one chat; in a group also in any minute.

    Whoever is told to wait and calls again before that is told so again. ``refused`` remembers each refusal.
    """

    in_all: int = 30
    in_chat_seconds: float = 1.0
    in_group: int = 20
    group_seconds: float = 60.0
    retry_after: float = 1.0
    refused: list[str] = field(default_factory=list)
    most_in_a_second: int = 0
    _recent: deque[float] = field(default_factory=deque)
    _chats: dict[str, deque[float]] = field(default_factory=dict)

    def check(self, method: str, chat: str) -> None:
        if method in _NOT_COUNTED:
            return
        now = time.monotonic()
        _forget_before(self._recent, now - 1.0)
        of_chat = self._chats.setdefault(chat, deque())
        _forget_before(of_chat, now - self.group_seconds)
        is_shown = method in _COUNTED_IN_CHAT
        why = ""
        if len(self._recent) >= self.in_all:
            why = f"{method}: more than {self.in_all} calls in a second"
        elif is_shown and of_chat and now - of_chat[-1] < self.in_chat_seconds:
            why = f"{method}: {now - of_chat[-1]:.3f} s after the last one in chat {chat}"
        elif is_shown and chat.startswith("-") and len(of_chat) >= self.in_group:
            why = f"{method}: more than {self.in_group} in group {chat}"
        if why:
            self.refused.append(why)
            wait = self.retry_after
            raise Refused(429, f"Too Many Requests: retry after {wait}", {"retry_after": wait})
        self._recent.append(now)
        self.most_in_a_second = max(self.most_in_a_second, len(self._recent))
        if is_shown:
            of_chat.append(now)


def _forget_before(times: deque[float], oldest: float) -> None:
    while times and times[0] <= oldest:
        times.popleft()


class Refused(Exception):  # noqa: N818 - it is an answer, not a failure of the fake
    def __init__(self, code: int, description: str, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    params: Json
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class _Update:
    id: int
    kind: str
    body: bytes  # the whole update as JSON, ready to be sent


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class FakeTelegram(Site):
    """One bot's view of Telegram. Chat 7 is a private chat with Ana; others come to be when a user speaks there.

    ``port`` 0 takes a free one at the first start; stop() and start() keep it, which makes an outage.
    """

    platform = "telegram"
    capabilities: Capabilities = TelegramAdapter.capabilities
    plays = frozenset(
        {
            "typing",
            "whispers",
            "drop",
            "outage",
            "rate",
            "credentials",
            "hold",
            "conflict",
            "unknown",
            "broken",
            "edits",
            "quotes",
            "bursts",
            "groups",
            "replies",
        }
    )

    def __init__(self, *, token: str = "42:TEST-token", port: int = 0, username: str = "test_bot") -> None:  # noqa: S107 - no secret
        super().__init__(port=port)
        self.token = token
        self.username = username
        self.language = "en"  # of the telephones of whoever writes from now on
        self.secrets: tuple[str, ...] = (token,)
        self.identity = token.partition(":")[0]
        self.any_chat = False  # True: sends to chats that nobody spoke in are taken too
        self.webhook_is_set = False
        self.waits_for_news = True  # False: a poll without news is answered at once
        self.limits: Limits | None = None  # None: endless patience
        self.calls: list[Call] = []
        self.answered_presses: dict[str, str] = {}
        self._accepted_token = token
        self._pending: deque[_Update] = deque()
        self._said: dict[tuple[str, str], Json] = {}
        self._updates_of: dict[str, tuple[str, Json]] = {}
        self._by_id: dict[tuple[str, str], Sent] = {}
        self._chats: dict[str, Json] = {}
        self._blocked: set[str] = set()
        self._moved: dict[str, str] = {}
        self._gone_topics: set[tuple[str, str]] = set()
        self._files: dict[str, tuple[str, bytes]] = {}
        self._presses: set[str] = set()
        self._refusals: dict[str, deque[Refused]] = {}
        self._next_update = 101
        self._next_message = 1
        self._next_press = 999
        self._next_album = 13000
        self._poll: asyncio.Future[None] | None = None
        self._poller: web.BaseRequest | None = None
        self.second_polls: list[float] = []  # when somebody polled while another connection waited for its poll
        self.private_chat(7, "Ana")

    # ---- life ----------------------------------------------------------------------------------------------

    @property
    def environ(self) -> dict[str, str]:
        """The settings of a gateway that is connected here and waits for no pace of ours."""
        return {"TELEGRAM_BOT_TOKEN": self.token, "TELEGRAM_BASE_URL": self.url, **UNPACED}

    async def stop(self) -> None:
        if self._poll is not None and not self._poll.done():
            self._poll.cancel()
        await super().stop()

    def settings(self, **more: Any) -> Json:
        return {"token": Secret(self.token), "base_url": self.url, "poll_seconds": 1, **more}

    @asynccontextmanager
    async def adapter(
        self, *, alive: Alive = lambda: None, http: aiohttp.ClientSession | None = None
    ) -> AsyncIterator[Adapter]:
        async with session(http) as own:
            yield MANIFEST.build(AdapterParts("main", self.settings(), own, alive, {}))

    # ---- people --------------------------------------------------------------------------------------------

    def target(self) -> Target:
        return Target("telegram", "7")

    def private_chat(self, chat: int, name: str = "Ana") -> int:
        self._chats[str(chat)] = {"id": chat, "type": "private", "first_name": name, "username": f"u{chat}"}
        return chat

    def group(self, chat: int = -1001234, *, title: str = "Family", is_forum: bool = False) -> int:
        self._chats[str(chat)] = {"id": chat, "type": "supergroup", "title": title}
        if is_forum:
            self._chats[str(chat)]["is_forum"] = True
        return chat

    def user_says(
        self,
        text: str,
        *,
        chat: int = 7,
        user: int | None = None,
        name: str = "Ana",
        thread: int | None = None,
        **more: Any,
    ) -> Said:
        """Anyone writes in any chat. ``more`` joins the message as Telegram spells it (``media_group_id``)."""
        content: Json = {"text": text}
        entities = self._entities(text) if "/" in text or "@" in text else []
        if entities:
            content["entities"] = entities
        return self._new_message({**content, **more}, chat, user, name, thread)

    def user_says_in_group(self, text: str, *, to_us: bool) -> Said:
        return self.user_says(f"@{self.username} {text}" if to_us else text, chat=-1001234)

    def user_answers(self, sent: Sent, text: str, *, quote: str = "", **more: Any) -> Said:
        """A reply to a message of the bot, by default in the chat where it is."""
        content: Json = {"reply_to_message": self._message_of(sent)}
        if quote:
            content["quote"] = {"text": quote, "position": 0, "is_manual": True}
        return self.user_says(text, chat=int(sent.chat), **{**content, **more})

    def user_sends(
        self,
        data: bytes,
        name: str = "notes.txt",
        caption: str = "",
        *,
        kind: str = "document",
        mime: str = "text/plain",
        chat: int = 7,
        user: int | None = None,
        **more: Any,
    ) -> Said:
        """A file: ``kind`` is document, photo, voice, audio or video."""
        file = self._keep_file(data, name, mime, kind)
        content: Json = {
            kind: [
                {**file, "file_id": f"{file['file_id']}-small", "width": 90, "height": 90},
                {**file, "width": 800, "height": 800},
            ]
            if kind == "photo"
            else file
        }
        if caption:
            content["caption"] = caption
        return self._new_message({**content, **more}, chat, user, "Ana", None)

    def user_speaks(self, sound: bytes, **more: Any) -> Said:
        return self.user_sends(sound, "", kind="voice", mime="audio/ogg", **more)

    def user_shows(self, picture: bytes, caption: str = "", **more: Any) -> Said:
        return self.user_sends(picture, "", caption, kind="photo", **more)

    def user_forwards(self, texts: Sequence[str], *, chat: int = 7) -> list[Said]:
        origin = {"type": "hidden_user", "sender_user_name": "Ben", "date": int(time.time()) - 3600}
        return [self.user_says(text, chat=chat, forward_origin=origin) for text in texts]

    def user_sends_album(self, files: Sequence[bytes], caption: str = "", *, chat: int = 7) -> list[Said]:
        self._next_album += 1
        group: Json = {"media_group_id": str(self._next_album)}
        return [
            self.user_sends(data, f"{number}.jpg", caption if number == 0 else "", kind="photo", chat=chat, **group)
            for number, data in enumerate(files)
        ]

    def user_edits(self, said: Said, text: str) -> Said:
        message = {**self._said[said.chat, said.message_id], "text": text}
        message["edit_date"] = max(int(time.time()), message.get("edit_date", message["date"]) + 1)
        self._said[said.chat, said.message_id] = message
        key = f"edit:{said.chat}:{said.message_id}:{message['edit_date']}"
        return self._deliver_named(key, "edited_message", message, said.message_id, said.chat)

    def user_presses(self, sent: Sent, data: str, *, user: int | None = None, name: str = "Ana") -> Said:
        """Press the button with this data (or this label) under a message of the bot."""
        button = next(button for row in sent.buttons for button in row if data in (button.data, button.label))
        press_id = str(self._next_press)
        self._next_press += 1
        self._presses.add(press_id)
        press = {
            "id": press_id,
            "from": self._person(user or (int(sent.chat) if int(sent.chat) > 0 else 7), name),
            "message": self._message_of(sent),
            "chat_instance": "-1",
            "data": button.data,
        }
        return self._deliver_named(f"press:{press_id}", "callback_query", press, sent.message_id, sent.chat)

    def redeliver(self, said: Said) -> None:
        """The same message once more, in an update of its own."""
        self.deliver(*self._updates_of[said.key])

    def deliver_again_all(self) -> None:
        for kind, content in list(self._updates_of.values()):
            self.deliver(kind, content)

    def something_unknown_happens(self) -> None:
        self.deliver("purchased_paid_media", {"from": self._person(7, "Ana"), "paid_media_payload": "x"})

    def something_broken_arrives(self) -> None:
        self.deliver("message", {"message_id": "?", "chat": "nowhere", "text": "hello"})

    def deliver(self, kind: str, content: object) -> int:
        """An update of any kind and shape."""
        body = orjson.dumps({"update_id": self._next_update, kind: content})
        return self.deliver_raw(lambda _: body, kind)

    def deliver_raw(self, body: Callable[[int], bytes], kind: str = "message") -> int:
        """An update byte by byte, made from its id; it need not be valid."""
        update_id = self._next_update
        self._next_update += 1
        self._pending.append(_Update(update_id, kind, body(update_id)))
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(None)
        return update_id

    # ---- troubles ------------------------------------------------------------------------------------------

    def refuse_next(
        self, method: str, code: int, description: str, parameters: Mapping[str, Any] | None = None, *, times: int = 1
    ) -> None:
        waiting = self._refusals.setdefault(method, deque())
        waiting.extend(Refused(code, description, parameters) for _ in range(times))

    def accept(self, method: str) -> None:
        """Refuse no more of these calls."""
        self._refusals.pop(method, None)

    def limit_next_send(self, retry_after: float) -> None:
        seconds = int(retry_after)
        self.refuse_next("sendMessage", 429, f"Too Many Requests: retry after {seconds}", {"retry_after": seconds})

    def refuse_credentials(self) -> None:
        """The token was revoked."""
        self._accepted_token = ""

    def accept_credentials(self) -> None:
        self._accepted_token = self.token

    def hold_sends(self) -> Hold:
        return self.hold("sendMessage")

    def block(self, chat: int) -> None:
        self._blocked.add(str(chat))

    def unblock(self, chat: int) -> None:
        self._blocked.discard(str(chat))

    def migrate(self, chat: int, new: int) -> None:
        """A group becomes a supergroup with another id."""
        self._moved[str(chat)] = str(new)
        self._chats[str(new)] = {**self._chats[str(chat)], "id": new, "type": "supergroup"}

    def delete_topic(self, chat: int, thread: int) -> None:
        self._gone_topics.add((str(chat), str(thread)))

    # ---- memory --------------------------------------------------------------------------------------------

    def texts(self, chat: int | None = None) -> list[str]:
        return [sent.text for sent in self.sent if chat is None or sent.chat == str(chat)]

    def called(self, method: str) -> list[Json]:
        return [call.params for call in self.calls if call.method == method]

    def forget(self) -> None:
        """Forget what was said and sent so far, for a run so long that remembering it would fill the memory."""
        for memory in (self.sent, self.calls, self._said, self._updates_of, self._by_id):
            memory.clear()

    @property
    def polls(self) -> int:
        return self.counts["getUpdates"]

    @property
    def typings(self) -> int:
        return self.counts["sendChatAction"]

    @property
    def unconfirmed(self) -> int:
        """Updates that the bot has not confirmed yet."""
        return len(self._pending)

    # ---- making updates ------------------------------------------------------------------------------------

    def _new_message(self, content: Json, chat: int, user: int | None, name: str, thread: int | None) -> Said:
        if str(chat) not in self._chats:
            self.private_chat(chat, name) if chat > 0 else self.group(chat)
        message_id = self._take_message_id()
        message = {
            "message_id": message_id,
            "date": int(time.time()),
            "chat": self._chats[str(chat)],
            "from": self._person(user or (chat if chat > 0 else 7), name),
            **({"message_thread_id": thread, "is_topic_message": True} if thread is not None else {}),
            **content,
        }
        self._said[str(chat), str(message_id)] = message
        return self._deliver_named(f"msg:{chat}:{message_id}", "message", message, str(message_id), str(chat))

    def _deliver_named(self, key: str, kind: str, content: Json, message_id: str, chat: str) -> Said:
        self._updates_of[key] = (kind, content)
        return Said(key, message_id, self.deliver(kind, content), chat)

    def _take_message_id(self) -> int:
        self._next_message += 1
        return self._next_message - 1

    def _person(self, user: int, name: str) -> Json:
        return {"id": user, "is_bot": False, "first_name": name, "username": f"u{user}", "language_code": self.language}

    def _entities(self, text: str) -> list[Json]:
        return [
            {
                "type": "bot_command" if found[0][0] == "/" else "mention",
                "offset": _units(text[: found.start()]),
                "length": len(found[0]),
            }
            for found in _NAMED.finditer(text)
        ]

    def _keep_file(self, data: bytes, name: str, mime: str, kind: str) -> Json:
        file_id = f"FILE{len(self._files) + 1}"
        self._files[file_id] = (f"{kind}s/{file_id}_{name}", data)
        file: Json = {"file_id": file_id, "file_unique_id": f"U{file_id}", "file_size": len(data)}
        if kind in ("voice", "audio", "video"):
            file["duration"] = 1
        if kind == "video":
            file |= {"width": 320, "height": 240}
        if kind != "photo":
            file["mime_type"] = mime
        if kind not in ("photo", "voice"):
            file["file_name"] = name
        return file

    # ---- answering -----------------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        where, _, method = request.path.lstrip("/").partition("/")
        if where == "file":
            return self._file(method)
        if where != f"bot{self._accepted_token}":
            return _failure(Refused(401, "Unauthorized"))
        params = await _params(request)
        self.calls.append(Call(method, params))
        self.counts[method] += 1
        self._changes.tell()
        if method == "getUpdates":
            if (first := self._poller) is not None and first.transport is not None:
                self.second_polls.append(time.monotonic())
            self._poller = request
        try:
            result = await self._act(method, params)
        except Refused as refused:
            self._changes.tell()
            return _failure(refused)
        finally:
            if self._poller is request:
                self._poller = None
        self._changes.tell()
        await self._kept_back(method)
        return web.Response(body=b'{"ok":true,"result":' + result + b"}", content_type="application/json")

    async def _act(self, method: str, params: Json) -> bytes:
        if waiting := self._refusals.get(method):
            raise waiting.popleft()
        if self.limits is not None:
            self.limits.check(method, str(params.get("chat_id", "")))
        if method == "getUpdates":
            return await self._get_updates(params)
        if method == "sendMessage":
            return orjson.dumps(self._send_message(params))
        if method in _MEDIA:
            return orjson.dumps(self._send_file(method, params))
        act: Callable[[Json], object] | None = {
            "sendMediaGroup": self._send_album,
            "getMe": self._get_me,
            "editMessageText": self._edit,
            "sendChatAction": self._chat_action,
            "answerCallbackQuery": self._answer_press,
            "getFile": self._get_file,
            "deleteWebhook": self._delete_webhook,
            "setMyCommands": self._set_commands,
        }.get(method)
        if act is None:
            raise Refused(404, "Not Found: method not found")
        return orjson.dumps(act(params))

    async def _get_updates(self, params: Json) -> bytes:
        if self.webhook_is_set:
            raise Refused(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete it first",
            )
        offset, limit = int(params.get("offset") or 0), min(max(int(params.get("limit") or 100), 1), 100)
        self._confirm(offset)
        if self._poll is not None and not self._poll.done():
            self._poll.set_exception(
                Refused(409, "Conflict: terminated by other getUpdates request; make sure that only one bot is running")
            )
        loop = asyncio.get_running_loop()
        until = loop.time() + (float(params.get("timeout") or 0) if self.waits_for_news else 0.0)
        while not self._wanted(params, 1) and (left := until - loop.time()) > 0:
            poll = self._poll = loop.create_future()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await poll
        return b"[" + b",".join(update.body for update in self._wanted(params, limit)) + b"]"

    def _confirm(self, offset: int) -> None:
        """Forget what the bot has confirmed; a negative offset keeps only so many of the newest."""
        if offset < 0:
            while len(self._pending) > -offset:
                self._pending.popleft()
        while self._pending and self._pending[0].id < offset:
            self._pending.popleft()

    def _wanted(self, params: Json, limit: int) -> list[_Update]:
        kinds = params.get("allowed_updates") or ()
        found: list[_Update] = []
        for update in self._pending:
            # An unknown kind is let through: the suite wants to see that it does no harm.
            if not kinds or update.kind in kinds or update.kind not in _REAL_KINDS:
                found.append(update)
                if len(found) == limit:
                    break
        return found

    def _get_me(self, _: Json) -> Json:
        return {
            "id": int(self.identity),
            "is_bot": True,
            "first_name": "Bot",
            "username": self.username,
            "can_join_groups": True,
            "can_read_all_group_messages": False,
            "supports_inline_queries": False,
        }

    def _set_commands(self, params: Json) -> bool:
        commands = params.get("commands")
        if not isinstance(commands, list) or len(commands) > 100:
            raise Refused(400, "Bad Request: BOT_COMMANDS_TOO_MUCH")
        for each in commands:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", str(each.get("command", ""))):
                raise Refused(400, "Bad Request: BOT_COMMAND_INVALID")
            if not 1 <= _units(str(each.get("description", ""))) <= 256:
                raise Refused(400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
        scope = params.get("scope") or {"type": "default"}
        if scope["type"] not in ("default", "chat"):
            raise Refused(400, "Bad Request: can't parse BotCommandScope")
        chat = self._chat_of(scope) if scope["type"] == "chat" else ""
        self.menus[chat] = {str(each["command"]): str(each["description"]) for each in commands}
        return True

    def _delete_webhook(self, _: Json) -> bool:
        self.webhook_is_set = False
        return True

    def _chat_of(self, params: Json) -> str:
        chat = str(params.get("chat_id", ""))
        if chat in self._moved:
            new = int(self._moved[chat])
            raise Refused(400, "Bad Request: group chat was upgraded to a supergroup chat", {"migrate_to_chat_id": new})
        if chat in self._blocked:
            raise Refused(403, "Forbidden: bot was blocked by the user")
        if chat not in self._chats:
            if not self.any_chat or not chat.lstrip("-").isdigit():
                raise Refused(400, "Bad Request: chat not found")
            self.private_chat(int(chat)) if int(chat) > 0 else self.group(int(chat))
        return chat

    def _thread_of(self, chat: str, params: Json) -> str:
        thread = str(params.get("message_thread_id") or "")
        is_forum = self._chats[chat].get("is_forum")
        if thread and (not is_forum or thread == "1" or (chat, thread) in self._gone_topics):
            raise Refused(400, "Bad Request: message thread not found")
        return thread

    def _send_message(self, params: Json) -> Json:
        return self._post(params, "sendMessage", _shown(params, "text", 4096, "message"))

    def _send_file(self, method: str, params: Json) -> Json:
        field_name = _MEDIA[method]
        file = params.get(field_name)
        if not file:
            raise Refused(400, f"Bad Request: there is no {field_name} in the request")
        text = _shown(params, "caption", 1024, "message caption") if params.get("caption") else ""
        name, data = file if isinstance(file, tuple) else self._files.get(str(file), ("", b""))
        _check_file(method, data)
        message = self._post(params, method, text, name, data)
        kept = self._keep_file(data, name, "application/octet-stream", field_name)
        message[field_name] = [{**kept, "width": 1, "height": 1}] if field_name == "photo" else kept
        return message

    def _send_album(self, params: Json) -> list[Json]:
        entries = params.get("media") or []
        if not 2 <= len(entries) <= 10:
            raise Refused(400, "Bad Request: media group must contain 2 to 10 items")
        kinds = {entry["type"] for entry in entries}
        if not kinds <= {"photo", "video"} and len(kinds) > 1:
            raise Refused(400, "Bad Request: this kind of media can't be mixed with other kinds in an album")
        files: list[tuple[str, bytes]] = [params[entry["media"].removeprefix("attach://")] for entry in entries]
        for entry, (_, data) in zip(entries, files, strict=True):
            _check_file(f"send{entry['type'].capitalize()}", data)
        messages = []
        for entry, (name, data) in zip(entries, files, strict=True):
            text = _shown(entry, "caption", 1024, "message caption") if entry.get("caption") else ""
            one = {**params, **entry}
            messages.append({**self._post(one, "sendMediaGroup", text, name, data), "media_group_id": "1"})
        return messages

    def _post(self, params: Json, method: str, text: str, file_name: str = "", file: bytes = b"") -> Json:
        chat = self._chat_of(params)
        sent = Sent(
            chat=chat,
            text=text,
            message_id="",
            thread=self._thread_of(chat, params),
            reply_to=self._reply_of(chat, params),
            parse_mode=str(params.get("parse_mode") or ""),
            raw=str(params.get("text") or params.get("caption") or ""),
            method=method,
            buttons=_buttons(params),
            file=file,
            file_name=file_name,
            is_voice=method == "sendVoice",
        )
        sent.message_id = str(self._take_message_id())
        self.sent.append(sent)
        self._by_id[chat, sent.message_id] = sent
        return self._message_of(sent)

    def _reply_of(self, chat: str, params: Json) -> str:
        wanted = params.get("reply_parameters") or {}
        reply_to = str(wanted.get("message_id") or "")
        if not reply_to or (chat, reply_to) in self._said or (chat, reply_to) in self._by_id:
            return reply_to
        if wanted.get("allow_sending_without_reply") and not params.get("message_thread_id"):  # not so in a topic
            return ""
        raise Refused(400, "Bad Request: message to be replied not found")

    def _edit(self, params: Json) -> Json:
        chat = self._chat_of(params)
        sent = self._by_id.get((chat, str(params.get("message_id"))))
        if sent is None:
            raise Refused(400, "Bad Request: message to edit not found")
        text, buttons = _shown(params, "text", 4096, "message"), _buttons(params)
        if text == sent.text and buttons == sent.buttons:
            raise Refused(
                400,
                "Bad Request: message is not modified: specified new message content and reply markup are exactly "
                "the same as a current content and reply markup of the message",
            )
        sent.edits.append(sent.text)
        sent.text, sent.buttons, sent.raw = text, buttons, str(params["text"])
        sent.parse_mode = str(params.get("parse_mode") or "")
        return {**self._message_of(sent), "edit_date": int(time.time())}

    def _chat_action(self, params: Json) -> bool:
        self._chat_of(params)
        if params.get("action") not in ("typing", "upload_photo", "record_voice", "upload_voice", "upload_document"):
            raise Refused(400, "Bad Request: wrong parameter action in request")
        return True

    def _answer_press(self, params: Json) -> bool:
        press_id, text = str(params.get("callback_query_id")), str(params.get("text") or "")
        if press_id not in self._presses:
            raise Refused(400, _TOO_OLD)
        if _units(text) > 200:
            raise Refused(400, "Bad Request: MESSAGE_TOO_LONG")
        self._presses.discard(press_id)
        self.answered_presses[press_id] = text
        return True

    def _get_file(self, params: Json) -> Json:
        file_id = str(params.get("file_id"))
        if file_id not in self._files:
            raise Refused(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        path, data = self._files[file_id]
        if len(data) > 20_000_000:
            raise Refused(400, "Bad Request: file is too big")
        return {"file_id": file_id, "file_unique_id": f"U{file_id}", "file_size": len(data), "file_path": path}

    def _file(self, rest: str) -> web.Response:
        where, _, path = rest.partition("/")
        if where != f"bot{self._accepted_token}":
            return web.Response(status=401, text="Unauthorized")
        self.counts["file"] += 1
        data = next((data for known, data in self._files.values() if known == path), None)
        return web.Response(status=404, text="Not Found") if data is None else web.Response(body=data)

    def _message_of(self, sent: Sent) -> Json:
        message: Json = {
            "message_id": int(sent.message_id),
            "date": int(time.time()),
            "chat": self._chats[sent.chat],
            "from": self._get_me({}),
            ("caption" if sent.file else "text"): sent.text,
        }
        if sent.thread:
            message |= {"message_thread_id": int(sent.thread), "is_topic_message": True}
        if sent.reply_to and (sent.chat, sent.reply_to) in self._said:
            message["reply_to_message"] = self._said[sent.chat, sent.reply_to]
        if sent.buttons:
            rows = [[{"text": each.label, "callback_data": each.data} for each in row] for row in sent.buttons]
            message["reply_markup"] = {"inline_keyboard": rows}
        return message


_REAL_KINDS = frozenset(
    [
        "message",
        "edited_message",
        "channel_post",
        "edited_channel_post",
        "callback_query",
        "inline_query",
        "chat_member",
        "my_chat_member",
        "message_reaction",
        "poll",
        "chat_join_request",
    ]
)


async def _params(request: web.BaseRequest) -> Json:
    """JSON, a form or a multipart form: Telegram reads all three, and nested values as JSON text in the last two."""
    if request.content_type == "application/json":
        return dict(orjson.loads(await request.read()))
    values: Json = dict(request.query)
    if request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                values[name] = (value.filename, value.file.read())
                value.file.close()
            else:
                values[name] = value
    for name in ("reply_markup", "reply_parameters", "allowed_updates", "entities", "media"):
        if isinstance(values.get(name), str):
            values[name] = orjson.loads(values[name])
    return values


def _check_file(method: str, data: bytes) -> None:
    """What Telegram refuses about a file, by what it is."""
    if not data:
        raise Refused(400, "Bad Request: file must be non-empty")
    if len(data) > 50_000_000:
        raise Refused(413, "Request Entity Too Large")
    if method == "sendPhoto":
        if len(data) > 10_000_000:
            raise Refused(400, "Bad Request: file is too big")
        if not data.startswith((b"\x89PNG", b"\xff\xd8\xff", b"RIFF", b"GIF8")):
            raise Refused(400, "Bad Request: IMAGE_PROCESS_FAILED")
        if data.startswith(b"\x89PNG") and len(data) >= 24:
            width, height = struct.unpack(">II", data[16:24])
            if width + height > 10_000 or max(width, height) > 20 * min(width, height):
                raise Refused(400, "Bad Request: PHOTO_INVALID_DIMENSIONS")


def _failure(refused: Refused) -> web.Response:
    answer: Json = {"ok": False, "error_code": refused.code, "description": refused.description}
    if refused.parameters:
        answer["parameters"] = dict(refused.parameters)
    return web.Response(status=refused.code, body=orjson.dumps(answer), content_type="application/json")


def _shown(params: Json, name: str, limit: int, what: str) -> str:
    """The text as people see it, or the refusal that Telegram gives."""
    text = str(params.get(name) or "")
    if params.get("parse_mode") == "MarkdownV2":
        try:
            text, _ = markdown_v2.parse(text)
        except markdown_v2.CannotParse as error:
            raise Refused(400, str(error)) from None
    text = text.strip()
    if not text:
        raise Refused(400, "Bad Request: message text is empty" if name == "text" else "Bad Request: caption is empty")
    if _units(text) > limit:
        raise Refused(400, f"Bad Request: {what} is too long")
    return text


def _buttons(params: Json) -> tuple[tuple[Button, ...], ...]:
    rows = (params.get("reply_markup") or {}).get("inline_keyboard") or ()
    for row in rows:
        for button in row:
            if not 1 <= len(button["callback_data"].encode()) <= 64:
                raise Refused(400, "Bad Request: BUTTON_DATA_INVALID")
            if not button["text"].strip():
                raise Refused(400, "Bad Request: BUTTON_TEXT_INVALID")
    return tuple(tuple(Button(each["text"], each["callback_data"]) for each in row) for row in rows)
