"""An iLink server on loopback, with its CDN and its QR login: it hands out once and refuses as Weixin does."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from aiohttp import web
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hermes.core.keys import Target
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Capabilities, Cursor
from hermes.core.ports import Adapter, Alive
from hermes.core.secret import Secret
from hermes.platforms.weixin import MANIFEST
from hermes.platforms.weixin.adapter import WeixinAdapter
from tests.fakes.server import Hold, Said, Sent
from tests.fakes.site import Site, session

Json = dict[str, Any]

ANA = "o9cq8AAA@im.wechat"
BOT = "44b9b8ec@im.bot"
TOKEN = f"{BOT}:060000b7test"
FIRST_ID = 7492913259736648968  # above 2**53: a client that reads it as a float is caught
MOST_TEXT = 2000
UNPACED = {"WEIXIN_SEND_CHUNK_DELAY_SECONDS": "0"}
"""For a gateway at a fake without limits, in tests that ask for everything but its patience."""

STALE: Json = {"ret": -14, "errmsg": "session timeout"}
THROTTLED: Json = {"ret": -2, "errmsg": "prepare failed"}
STALE_CONTEXT: Json = {"ret": -2, "errmsg": "unknown error"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered with instead of the truth: JSON, or bytes with a status."""

    body: Json | bytes
    status: int = 200


@dataclass(slots=True)
class Kept:
    """A file on the CDN, locked."""

    locked: bytes
    key: bytes
    name: str = ""


@dataclass(slots=True)
class Quota:
    """Ten bubbles for each message of a person, and no three within a second; then -2, and the counting goes on.

    ``refused`` remembers each refusal, ``attempts`` each try while it was refusing.
    """

    per_message: int = 10
    burst: int = 3
    left: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    _recent: deque[float] = field(default_factory=deque)

    def check(self, chat: str) -> bool:
        now = time.monotonic()
        while self._recent and self._recent[0] <= now - 1.0:
            self._recent.popleft()
        if self.burst and len(self._recent) >= self.burst - 1:
            self.refused.append(f"burst in {chat}")
            return False
        if self.left.get(chat, self.per_message) <= 0:
            self.refused.append(f"more than {self.per_message} in {chat}")
            return False
        self._recent.append(now)
        self.left[chat] = self.left.get(chat, self.per_message) - 1
        return True


class FakeWeixin(Site):
    """One bot's view of Weixin. Ana writes unless another user is named.

    ``port`` 0 takes a free one at the first start; stop() and start() keep it, which makes an outage.
    """

    platform = "weixin"
    capabilities: Capabilities = WeixinAdapter.capabilities
    identity = BOT
    plays = frozenset({"drop", "outage", "credentials", "hold", "unknown", "broken", "quotes", "typing"})

    def __init__(self, *, port: int = 0) -> None:
        super().__init__(port=port)
        self.token = TOKEN
        self.secrets: tuple[str, ...] = (TOKEN,)
        self.bodies: dict[str, list[Json]] = {}
        self.wrong: list[str] = []  # requests that the real server would not take
        self.quota: Quota | None = None  # None: endless patience
        self.is_throttled = False  # True: every send is refused with -2
        self.hold_seconds = 35.0  # 0: a poll without news is answered at once
        self.latency_seconds = 0.0  # between a message and the answer to a poll that waits for it
        self.hold_ms: int | None = 35_000
        self.batch_size = 50
        self.gives_ids = True
        self.typing_signs: list[tuple[str, int]] = []
        self.ticket_era = 0  # tickets of another one are not taken any more
        self.cut_after_seconds: float | None = None  # a proxy on the way that cuts what is held for longer
        self._accepted_token = TOKEN
        self._answers: dict[str, deque[Answer]] = {}
        self._pending: deque[bytes] = deque()
        self._said: dict[str, Json] = {}
        self._by_number: dict[str, str] = {}
        self._files: dict[str, Kept] = {}
        self._uploads: dict[str, Json] = {}
        self._uins: set[str] = set()
        self._next_id = FIRST_ID
        self._cursor = 0
        self._batches: dict[int, list[Json]] = {}
        self.uncommitted: list[
            list[Json]
        ] = []  # batches that were handed out to somebody who then asked from before them
        self._tick = 1_760_000_000_000
        self._contexts: Counter[str] = Counter()
        self._poll: asyncio.Future[None] | None = None
        # The login
        self.statuses: deque[Mapping[str, Any]] = deque()
        self.codes: list[str] = []
        self.known_tokens: list[list[str]] = []
        self.verify_codes: list[str] = []
        self.status_hosts: list[str] = []
        self.takes_qr_post = True

    # ---- life ----------------------------------------------------------------------------------------------

    @property
    def cdn_url(self) -> str:
        return f"{self.url}/c2c"

    @property
    def environ(self) -> dict[str, str]:
        """The settings of a gateway that is signed in here."""
        return {
            "WEIXIN_TOKEN": self.token,
            "WEIXIN_ACCOUNT_ID": BOT,
            "WEIXIN_BASE_URL": self.url,
            "WEIXIN_CDN_URL": self.cdn_url,
            "WEIXIN_QR_URL": self.url,
            **UNPACED,
        }

    async def stop(self) -> None:
        if self._poll is not None and not self._poll.done():
            self._poll.cancel()
        await super().stop()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        assert not self.wrong, self.wrong

    def settings(self, **more: Any) -> Json:
        return {
            "token": Secret(self.token),
            "account_id": BOT,
            "base_url": self.url,
            "cdn_url": self.cdn_url,
            "qr_url": self.url,
            "user_id": ANA,
            "send_chunk_delay_seconds": 0,
            **more,
        }

    @asynccontextmanager
    async def adapter(
        self,
        *,
        alive: Alive = lambda: None,
        http: aiohttp.ClientSession | None = None,
        cursor: Cursor | None = None,
        now: Callable[[], float] = time.time,
        **more: Any,
    ) -> AsyncIterator[Adapter]:
        async with session(http) as own:
            yield MANIFEST.build(AdapterParts("main", self.settings(**more), own, alive, cursor or {}, now))

    # ---- people --------------------------------------------------------------------------------------------

    def target(self) -> Target:
        return Target("weixin", ANA)

    def texts(self, chat: str = ANA) -> list[str]:
        return [sent.text for sent in self.sent if sent.chat == chat]

    def user_says(self, text: str, *, user: str = ANA, **more: Any) -> Said:
        """Anyone writes. ``more`` joins the message as iLink spells it (``group_id``, ``create_time_ms``)."""
        return self._new_message([self._item(1, text_item={"text": text})], user, more)

    def user_says_in_group(self, text: str, *, to_us: bool) -> Said:
        raise NotImplementedError("nothing in a group's message tells whether it is for us")

    def user_answers(self, sent: Sent, text: str, *, partial: Json | None = None, **more: Any) -> Said:
        """A reply as newer phones send it: the quoted message by its number alone."""
        quoted: Json = {"svr_id": int(sent.message_id)}
        if partial is not None:
            quoted["partial_text"] = partial
        item = {**self._item(1, text_item={"text": text}), "ref_msg": quoted}
        return self._new_message([item], sent.chat, more)

    def user_edits(self, said: Said, text: str) -> Said:
        raise NotImplementedError("nobody can edit a message on Weixin")

    def user_presses(self, sent: Sent, data: str, *, user: int | None = None, name: str = "Ana") -> Said:
        raise NotImplementedError("there are no buttons on Weixin")

    def user_sends(
        self, data: bytes, name: str = "notes.txt", caption: str = "", *, kind: str = "file", user: str = ANA
    ) -> Said:
        """A file; ``kind`` is file, image, video or voice. Its words are a second item."""
        media = self.keep_file(data, name)
        content: Json = {"media": media}
        if kind == "file":
            content |= {"file_name": name, "len": str(len(data))}
        item = self._item({"image": 2, "voice": 3, "file": 4, "video": 5}[kind], **{f"{kind}_item": content})
        items = [item, self._item(1, text_item={"text": caption})] if caption else [item]
        return self._new_message(items, user, {})

    def user_speaks(self, sound: bytes) -> Said:
        return self.user_sends(sound, "voice.silk", kind="voice")

    def user_shows(self, picture: bytes) -> Said:
        return self.user_sends(picture, "picture.jpg", kind="image")

    def user_forwards(self, texts: Sequence[str]) -> list[Said]:
        raise NotImplementedError("nothing on the wire tells a forward from other texts")

    def user_sends_album(self, files: Sequence[bytes], caption: str = "") -> list[Said]:
        raise NotImplementedError("each picture is a message of its own")

    def keep_file(self, data: bytes, name: str = "", *, raw_key: bool = False) -> Json:
        """Put a file on the CDN; the ``media`` that points at it."""
        key = hashlib.sha256(f"{name}{len(self._files)}".encode()).digest()[:16]
        param = f"EQP/{len(self._files)}+{name}"
        self._files[param] = Kept(lock(data, key), key, name)
        coded = base64.b64encode(key if raw_key else key.hex().encode()).decode()
        return {"encrypt_query_param": param, "aes_key": coded, "encrypt_type": 1}

    def redeliver(self, said: Said) -> None:
        self._hand_in(self._said[said.key])

    def tells_twice(self, said: Said, *, after_ms: int = 4000) -> Said:
        """The same words under a new number and with a new context token, as Weixin does now and then."""
        first = self._said[said.key]
        return self._new_message(
            first["item_list"], first["from_user_id"], {"create_time_ms": first["create_time_ms"] + after_ms}
        )

    def something_unknown_happens(self) -> None:
        self._new_message([{"type": 77, "red_packet_item": {"amount": 1}}], ANA, {})

    def something_broken_arrives(self) -> None:
        self.deliver({"message_id": 5, "from_user_id": ANA, "item_list": "?"})

    def deliver(self, message: object) -> None:
        """A message of any shape."""
        self.deliver_raw(orjson.dumps(message))

    def deliver_raw(self, body: bytes) -> None:
        self._pending.append(body)
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(None)

    def _item(self, kind: int, **content: Any) -> Json:
        return {"type": kind, "create_time_ms": self._tick, "is_completed": True, **content}

    def _new_message(self, items: list[Json], user: str, more: Mapping[str, Any]) -> Said:
        number = self._take_id()
        self._tick += 20_000
        self._contexts[user] += 1
        message: Json = {
            "seq": len(self._said) + 1,
            "message_id": number,
            "from_user_id": user,
            "to_user_id": BOT,
            "client_id": f"c-{number}",
            "create_time_ms": self._tick,
            "update_time_ms": self._tick,
            "session_id": "s-1",
            "message_type": 1,
            "message_state": 2,
            "context_token": self.context(user),
            "item_list": [{**item, "msg_id": number} for item in items],
            **more,
        }
        said = Said(f"msg:{number}", str(number), chat=str(message.get("group_id") or user))
        self._said[said.key] = message
        if self.quota is not None:
            self.quota.left[said.chat] = self.quota.per_message
        self._hand_in(message)
        return said

    def _hand_in(self, message: Json) -> None:
        self.deliver_raw(orjson.dumps(message))

    def context(self, user: str = ANA) -> str:
        """The newest context token of this person's chat."""
        return f"CK-{user}-{self._contexts[user]}"

    def _take_id(self) -> int:
        self._next_id += 1
        return self._next_id

    # ---- troubles ------------------------------------------------------------------------------------------

    def answer_next(self, path: str, *answers: Json | bytes | Answer) -> None:
        """The next requests to this path are answered so, and not acted on."""
        made = [each if isinstance(each, Answer) else Answer(each) for each in answers]
        self._answers.setdefault(path, deque()).extend(made)

    def limit_next_send(self, retry_after: float) -> None:
        raise NotImplementedError("Weixin never says how long to wait")

    def refuse_credentials(self) -> None:
        self._accepted_token = "another"

    def accept_credentials(self, token: str = TOKEN) -> None:
        self._accepted_token = self.token = token

    def hold_sends(self) -> Hold:
        return self.hold("sendmessage")

    @property
    def polls(self) -> int:
        return self.counts["getupdates"]

    @property
    def typings(self) -> int:
        return sum(status == 1 for _, status in self.typing_signs)

    # ---- the server ----------------------------------------------------------------------------------------

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        try:
            if path.startswith("/c2c/"):
                return await self._cdn(request, path.removeprefix("/c2c/"))
            name = path.removeprefix("/ilink/bot/")
            self.counts[name] += 1
            if name in ("get_bot_qrcode", "get_qrcode_status"):
                return await self._login(request, name)
            return await self._api(request, name)
        finally:
            self._changes.tell()

    async def _api(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        acts: dict[str, Callable[[Json], Json]] = {
            "sendmessage": self._send_message,
            "getconfig": self._get_config,
            "sendtyping": self._send_typing,
            "getuploadurl": self._upload_url,
            "msg/notifystart": lambda _: {"ret": 0},
            "msg/notifystop": lambda _: {"ret": 0},
        }
        if request.method != "POST" or (name not in acts and name != "getupdates"):
            return web.Response(status=404, text="not found")
        body = orjson.loads(await request.read())
        self.bodies.setdefault(name, []).append(body)
        self._check_envelope(request, name, body)
        if waiting := self._answers.get(name):
            answer = waiting.popleft()
            content = answer.body if isinstance(answer.body, bytes) else orjson.dumps(answer.body)
            return web.Response(status=answer.status, body=content, content_type="application/json")
        if request.headers.get("Authorization") != f"Bearer {self._accepted_token}":
            return _json(STALE)
        if name == "getupdates":
            return await self._get_updates(request, body)
        answered = acts[name](body)
        await self._kept_back(name)
        return _json(answered)

    def _check_envelope(self, request: web.BaseRequest, name: str, body: Json) -> None:
        headers = request.headers
        uin = headers.get("X-WECHAT-UIN", "")
        try:
            is_number = 0 <= int(base64.b64decode(uin, validate=True).decode()) < 2**32
        except ValueError:
            is_number = False
        version = (body.get("base_info") or {}).get("channel_version")
        checks = {
            "AuthorizationType": headers.get("AuthorizationType") == "ilink_bot_token",
            "X-WECHAT-UIN": is_number and uin not in self._uins,
            "iLink-App-Id": headers.get("iLink-App-Id") == "bot",
            "iLink-App-ClientVersion": (headers.get("iLink-App-ClientVersion") or "").isdigit(),
            "Content-Type": request.content_type == "application/json",
            "base_info": isinstance(version, str),
        }
        self._uins.add(uin)
        self.wrong += [f"{name}: {what}" for what, is_good in checks.items() if not is_good]

    async def _get_updates(self, request: web.BaseRequest, body: Json) -> web.StreamResponse:
        self._look_back(body.get("get_updates_buf"))
        if not self._pending:
            if self._poll is not None and not self._poll.done():
                self._poll.set_result(None)  # one poll for each token
            self._poll = asyncio.get_running_loop().create_future()
            held = self.hold_seconds if self.cut_after_seconds is None else self.cut_after_seconds
            with suppress(TimeoutError):
                async with asyncio.timeout(held):
                    await self._poll
            if self.cut_after_seconds is not None and not self._pending and request.transport is not None:
                request.transport.abort()
            await asyncio.sleep(self.latency_seconds)
        if request.transport is None or request.transport.is_closing():
            return web.Response()  # who asked is gone: nothing was handed out
        count = min(len(self._pending), self.batch_size)
        batch = [self._pending.popleft() for _ in range(count)]
        if batch:
            self._cursor += 1
        answer = [b'{"ret":0,"msgs":[', b",".join(batch), b'],"get_updates_buf":"Ck-%d"' % self._cursor]
        if self.hold_ms is not None:
            answer.append(b',"longpolling_timeout_ms":%d' % self.hold_ms)
        response = web.Response(body=b"".join([*answer, b"}"]), content_type="application/json")
        if batch:
            self._batches[self._cursor] = [_loaded(each) for each in batch]
            self.on_batch()
        return response

    def _look_back(self, cursor: object) -> None:
        """Whoever asks from before a batch has not stored it. It is not handed out again."""
        if not isinstance(cursor, str):
            self.wrong.append("getupdates: get_updates_buf")
            return
        stored = int(cursor.removeprefix("Ck-")) if cursor.startswith("Ck-") else 0
        for number in [number for number in self._batches if number > stored]:
            self.uncommitted.append(self._batches.pop(number))
        self._batches.clear()

    def on_batch(self) -> None:
        """Called when messages have been handed out, before the answer leaves."""

    def _send_message(self, body: Json) -> Json:
        message = body.get("msg") or {}
        items = message.get("item_list") or []
        chat = str(message.get("to_user_id") or "")
        if len(items) != 1 or not chat or not message.get("client_id") or message.get("message_type") != 2:
            self.wrong.append(f"sendmessage: {message}")
            return {"ret": -3, "errmsg": "invalid message"}
        if "context_token" in message and not message["context_token"]:
            self.wrong.append("sendmessage: an empty context_token")
        if self.is_throttled or (self.quota is not None and not self.quota.check(chat)):
            return THROTTLED
        return self._show(items[0], chat, message)

    def _show(self, item: Json, chat: str, message: Json) -> Json:
        sent = Sent(chat=chat, text="", message_id="", method="sendmessage")
        if item.get("type") == 1:
            sent.text = sent.raw = str(item["text_item"]["text"])
            if not sent.text.strip() or len(sent.text) > MOST_TEXT:
                self.wrong.append(f"sendmessage: a text of {len(sent.text)} characters")
                return {"ret": -3, "errmsg": "invalid text"}
        else:
            content = next(value for name, value in item.items() if name.endswith("_item"))
            sent.file, sent.file_name = self._shown_file(content), str(content.get("file_name") or "")
        number = self._take_id()
        sent.message_id = str(number) if self.gives_ids else str(message["client_id"])
        self.sent.append(sent)
        self.on_sent(sent)
        return {"message_id": number} if self.gives_ids else {}

    def on_sent(self, sent: Sent) -> None:
        """Called when a bubble is on the phone."""

    def _shown_file(self, content: Json) -> bytes:
        """As the phone opens it: with the key that came in the message, in the one spelling it takes."""
        media = content["media"]
        kept = self._files.get(str(media.get("encrypt_query_param")))
        key = bytes.fromhex(base64.b64decode(str(media.get("aes_key"))).decode())
        if kept is None:
            self.wrong.append(f"sendmessage: nothing lies at {media.get('encrypt_query_param')}")
            return b""
        return unlock(kept.locked, key)

    def _get_config(self, body: Json) -> Json:
        user = body.get("ilink_user_id")
        if not user:
            return {"ret": -3, "errmsg": "no user"}
        return {"ret": 0, "typing_ticket": self._ticket(str(user))}

    def _ticket(self, user: str) -> str:
        return base64.b64encode(f"ticket {user} {self.ticket_era}".encode()).decode()

    def _send_typing(self, body: Json) -> Json:
        user = str(body.get("ilink_user_id"))
        if body.get("typing_ticket") != self._ticket(user) or body.get("status") not in (1, 2):
            return {"ret": -3, "errmsg": "bad ticket"}
        self.typing_signs.append((user, body["status"]))
        return {}

    # ---- the CDN -------------------------------------------------------------------------------------------

    def _upload_url(self, body: Json) -> Json:
        needed = ("filekey", "media_type", "to_user_id", "rawsize", "rawfilemd5", "filesize", "aeskey")
        if any(name not in body for name in needed) or len(str(body["aeskey"])) != 32:
            self.wrong.append(f"getuploadurl: {body}")
            return {"ret": -3, "errmsg": "invalid upload"}
        param = f"UP/{len(self._uploads)}+x"
        self._uploads[param] = body
        return {"upload_param": param, "thumb_upload_param": "", "upload_full_url": ""}

    async def _cdn(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        self.counts[f"cdn {name}"] += 1
        if waiting := self._answers.get(f"cdn {name}"):
            answer = waiting.popleft()
            assert isinstance(answer.body, bytes)
            return web.Response(status=answer.status, body=answer.body, headers={"x-error-message": "expired"})
        param = request.query.get("encrypted_query_param", "")
        if name == "upload" and request.method == "POST":
            return self._take_upload(param, request.query.get("filekey", ""), await request.read())
        if name == "download" and request.method == "GET":
            kept = self._files.get(param)
            return web.Response(status=404) if kept is None else web.Response(body=kept.locked)
        return web.Response(status=404)

    def _take_upload(self, param: str, file_key: str, locked: bytes) -> web.Response:
        wanted = self._uploads.get(param)
        if wanted is None or wanted["filekey"] != file_key:
            return web.Response(status=400, headers={"x-error-message": "unknown parameter"})
        key = bytes.fromhex(wanted["aeskey"])
        plain = unlock(locked, key) if len(locked) == wanted["filesize"] else b""
        digest = hashlib.md5(plain).hexdigest()  # noqa: S324 - theirs
        if len(plain) != wanted["rawsize"] or digest != wanted["rawfilemd5"]:
            return web.Response(status=400, headers={"x-error-message": "size or md5 differ"})
        found = f"DL/{len(self._files)}+{file_key}"
        self._files[found] = Kept(locked, key)
        return web.Response(headers={"x-encrypted-param": found})

    # ---- signing in ----------------------------------------------------------------------------------------

    async def _login(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        if request.headers.get("iLink-App-Id") != "bot" or "Authorization" in request.headers:
            self.wrong.append(f"{name}: headers")
        if name == "get_bot_qrcode":
            if request.method == "POST" and not self.takes_qr_post:
                return web.Response(status=405)
            if request.method == "POST":
                self.known_tokens.append(orjson.loads(await request.read())["local_token_list"])
            if request.query.get("bot_type") != "3":
                self.wrong.append("get_bot_qrcode: bot_type")
            self.codes.append(f"qr/{len(self.codes) + 1}")
            link = f"https://liteapp.weixin.qq.com/q/{len(self.codes)}?bot_type=3"
            return _json({"qrcode": self.codes[-1], "qrcode_img_content": link})
        self.status_hosts.append(request.headers["Host"])
        if request.query.get("qrcode") != self.codes[-1]:
            return _json({"status": "expired"})
        self.verify_codes.append(request.query.get("verify_code", ""))
        status: Mapping[str, Any] = self.statuses.popleft() if self.statuses else {"status": "wait"}
        if "http" in status:
            return web.Response(status=int(status["http"]))
        return _json(status)

    def confirms(self, token: str = TOKEN, **more: Any) -> Json:
        return {
            "status": "confirmed",
            "bot_token": token,
            "ilink_bot_id": BOT,
            "ilink_user_id": ANA,
            "baseurl": self.url,
            **more,
        }


def _loaded(body: bytes) -> Json:
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return message if isinstance(message, dict) else {}


def _json(answer: Mapping[str, Any]) -> web.Response:
    return web.Response(body=orjson.dumps(dict(answer)), content_type="application/json")


def lock(data: bytes, key: bytes) -> bytes:
    """Written apart from the product's, so that one checks the other."""
    fill = 16 - len(data) % 16
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 - theirs
    return encryptor.update(data + bytes([fill]) * fill) + encryptor.finalize()


def unlock(locked: bytes, key: bytes) -> bytes:
    decryptor = Cipher(algorithms.AES(key), modes.ECB()).decryptor()  # noqa: S305 - theirs
    opened = decryptor.update(locked) + decryptor.finalize()
    return opened[: -opened[-1]] if opened else b""
