"""WhatsApp's side of a linked device: it hands out until a receipt comes, and refuses as WhatsApp does.

The bridge runs as it is; ``whatsapp_socket.mjs`` inside it speaks to this server instead of to WhatsApp. Files are
encrypted and opened here by our own code, so that one checks the other.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import itertools
import json
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hermes.core.keys import Target
from hermes.core.messages import Button
from tests.fakes.server import Changes, Hold, Said, Sent

Json = dict[str, Any]

SOCKET_MODULE = Path(__file__).with_name("whatsapp_socket.mjs")
ME = "4915550000001@s.whatsapp.net"
MY_LID = "100000000000001@lid"
ANA = "4915550000007@s.whatsapp.net"
ANA_LID = "200000000000007@lid"
BO = "4915550000008@s.whatsapp.net"
GROUP = "120363000000000001@g.us"
MOST_LINE = 64 * 1024 * 1024
MEDIA_KEYS = {"image": "Image", "video": "Video", "audio": "Audio", "document": "Document", "sticker": "Image"}


@dataclass(slots=True)
class Waiting:
    """Something that WhatsApp keeps for us until our receipt."""

    number: int
    message: Json
    is_raw: bool = False
    is_old: bool = False  # appended to the history of the chat: nobody is notified
    is_handed_out: bool = False


@dataclass(eq=False, slots=True)
class Line:
    """One connection of a bridge."""

    writer: asyncio.StreamWriter
    device: str | None = None
    secret: str = ""  # of a device that is not linked yet, as its first QR code has it
    is_open: bool = False
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, act: str, data: object = None) -> None:
        if not self.writer.is_closing():
            self.writer.write(json.dumps({act: data}).encode() + b"\n")


class RefusedCallError(Exception):
    """A query that WhatsApp answers with an error; ``data`` is the number in it."""

    def __init__(self, text: str, data: int) -> None:
        super().__init__(text)
        self.text, self.data = text, data


class FakeWhatsApp:
    """One account with one linked device. Ana writes unless somebody else is named.

    ``is_linked`` False: the bridge is shown a QR code first. ``scan`` and the right pairing code link it.
    """

    platform = "whatsapp"
    identity = ME
    plays = frozenset({"drop", "outage", "credentials", "hold", "unknown", "broken", "edits", "quotes", "bursts"}) | {
        "groups",
        "typing",
        "replies",
    }
    polls = 0

    def __init__(self, *, port: int = 0, is_linked: bool = True) -> None:
        self.port = port
        self.is_linked = is_linked
        self.secrets: tuple[str, ...] = ()
        self.sent: list[Sent] = []
        self.menus: dict[str, dict[str, str]] = {}
        self.wrong: list[str] = []  # what WhatsApp would not take
        self.presences: list[tuple[str, str]] = []
        self.read_keys: list[Json] = []
        self.taken: Counter[str] = Counter()  # how often each message id was sent to us
        self.contexts: dict[str, Json] = {}  # quotes and mentions of what was sent, as the wire holds them
        self.asked_for: list[str] = []  # numbers that onWhatsApp was asked about
        self.devices: set[str] = {"device-0"}
        self.hellos = 0
        self.receipts: list[str] = []
        self.is_syncing = False  # True: the offline messages never end, as far as the bridge is told
        self.keeps_receipts = True  # False: receipts get lost on their way
        self.refuses_writes = False  # True: the connection is there, but nothing is answered
        self.strangers: set[str] = set()  # numbers that are not on WhatsApp
        self.groups: dict[str, Json] = {}
        self.gone_files: set[str] = set()
        self.reuploads: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._ids = itertools.count(1)
        self._waiting: deque[Waiting] = deque()
        self._said: dict[str, Json] = {}
        self._ours: dict[str, Sent] = {}
        self._polls: dict[str, tuple[bytes, list[str]]] = {}
        self._files: dict[str, bytes] = {}
        self._lines: list[Line] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._ack_errors: deque[int] = deque()
        self._call_errors: dict[str, deque[RefusedCallError]] = {}
        self._close_next: deque[int] = deque()
        self._hold: Hold | None = None
        self._retries: dict[int, asyncio.Future[Json | None]] = {}
        self._changes = Changes()
        self._server: asyncio.Server | None = None
        self.qr_codes: list[str] = []
        self.nodes: list[Json] = []  # stanzas that the bridge sent by itself
        self.refuses_codes = False  # True: no pairing code is accepted
        self.pairing_codes: dict[str, str] = {}
        self._clock = time.time

    # ---- life ----------------------------------------------------------------------------------------------

    @property
    def bridge_environ(self) -> dict[str, str]:
        """What makes a bridge speak to this fake, and try again without patience."""
        return {
            "HERMES_BRIDGE_SOCKET_MODULE": str(SOCKET_MODULE),
            "HERMES_BRIDGE_BACKOFF_MS": "20,200",
            "HERMES_BRIDGE_FAKE": f"127.0.0.1:{self.port}",
        }

    def link_session(self, folder: Path, *, me: str = ME) -> None:
        """Put the files of a device that was linked before into a session folder."""
        folder.mkdir(parents=True, exist_ok=True)
        creds = {"me": {"id": me, "lid": MY_LID, "name": "Hermes"}, "account": {"details": _buffer(b"device-0")}}
        (folder / "creds.json").write_text(json.dumps(creds))

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=MOST_LINE)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """The outage: nothing listens, every connection is cut. What was not receipted stays."""
        if self._server is None:
            return
        self.release_sends()
        self._server.close()
        self.drop_connection()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        assert not self.wrong, self.wrong

    # ---- people --------------------------------------------------------------------------------------------

    def target(self) -> Target:
        return Target("whatsapp", ANA)

    def user_says(self, text: str, *, user: str = ANA, **more: Any) -> Said:
        """Anyone writes. ``more`` joins the envelope as the library spells it (``key``, ``messageTimestamp``)."""
        return self.says({"conversation": text}, user=user, **more)

    def says(self, message: Json, *, user: str = ANA, chat: str = "", name: str = "Ana", **more: Any) -> Said:
        """A message of any kind, as the wire holds it."""
        number = next(self._ids)
        message_id = f"3A{number:018X}"
        key: Json = {"remoteJid": chat or user, "fromMe": False, "id": message_id}
        if chat:
            key["participant"] = user
        key |= more.pop("key", {})
        message = {
            **message,
            "messageContextInfo": {"messageSecret": _text(os.urandom(32)), **message.get("messageContextInfo", {})},
        }
        envelope = {"key": key, "messageTimestamp": int(self._clock()), "pushName": name, "message": message, **more}
        said = Said(f"msg:{key['remoteJid']}:{key['id']}", str(key["id"]), chat=str(key["remoteJid"]))
        self._said[said.key] = envelope
        self._hand_in(envelope)
        return said

    def user_says_in_group(self, text: str, *, to_us: bool) -> Said:
        if not to_us:
            return self.says({"conversation": text}, chat=GROUP)
        words = f"@{ME.partition('@')[0]} {text}"
        return self.says(_extended(words, {"mentionedJid": [ME]}), chat=GROUP)

    def user_edits(self, said: Said, text: str) -> Said:
        key = dict(self._said[said.key]["key"])
        edit = {"key": {**key, "fromMe": True}, "type": "MESSAGE_EDIT", "editedMessage": {"conversation": text}}
        more = {"chat": key["remoteJid"], "user": key["participant"]} if "participant" in key else {}
        return self.says({"protocolMessage": {**edit, "timestampMs": int(self._clock() * 1000)}}, **more)

    def user_edits_sealed(self, said: Said, text: str, *, sender: str = ANA, secret: bytes | None = None) -> Said:
        """As newer phones do it: sealed with the secret of the message, and with the id that they go by."""
        original = self._said[said.key]
        own = secret or base64.b64decode(original["message"]["messageContextInfo"]["messageSecret"])
        sealed = seal_edit(text, own, message_id=said.message_id, sender=sender)
        key = original["key"]
        more = {"chat": key["remoteJid"], "user": key["participant"]} if "participant" in key else {}
        return self.says(
            {"secretEncryptedMessage": {"targetMessageKey": key, "secretEncType": "MESSAGE_EDIT", **sealed}}, **more
        )

    def user_deletes(self, said: Said) -> Said:
        key = {**self._said[said.key]["key"], "fromMe": True}
        return self.says({"protocolMessage": {"key": key, "type": "REVOKE"}})

    def user_answers(self, sent: Sent, text: str) -> Said:
        quote = {
            "stanzaId": sent.message_id,
            "participant": ME,
            "quotedMessage": {"conversation": sent.raw or sent.text},
        }
        chat = sent.chat if sent.chat.endswith("@g.us") else ""
        return self.says(_extended(text, quote), chat=chat)

    def user_forwards(self, texts: Sequence[str]) -> list[Said]:
        return [self.says(_extended(text, {"isForwarded": True, "forwardingScore": 1})) for text in texts]

    def user_sends_album(self, files: Sequence[bytes], caption: str = "") -> list[Said]:
        parent = self.says({"albumMessage": {"expectedImageCount": len(files)}})
        key = self._said[parent.key]["key"]
        album = {"messageAssociation": {"associationType": "MEDIA_ALBUM", "parentMessageKey": key}}
        words = [caption, *[""] * (len(files) - 1)]
        return [
            self.says({**self._picture(data, text), "messageContextInfo": album})
            for data, text in zip(files, words, strict=True)
        ]

    def user_presses(self, sent: Sent, data: str, *, user: int | None = None, name: str = "Ana") -> Said:
        """A vote for the option that stands for this button: its label, or the label of the button with this data."""
        label = next((each.label for row in sent.buttons for each in row if data in (each.data, each.label)), data)
        return self.votes(sent, [label], user=ANA if user is None else BO, name=name)

    def votes(
        self,
        sent: Sent,
        names: Sequence[str],
        *,
        user: str = ANA,
        name: str = "Ana",
        voter: str = "",
        creator: str = ME,
        poll_id: str = "",
    ) -> Said:
        """Somebody chooses in a poll; ``voter`` and ``creator`` are the ids their phone seals the vote with."""
        poll_id = poll_id or sent.message_id
        secret, options = self._polls[poll_id]
        assert set(names) <= set(options), (names, options)
        vote = seal_vote(names, secret, poll_id=poll_id, creator=creator, voter=voter or user)
        key = {"remoteJid": sent.chat, "fromMe": False, "id": poll_id, "participant": creator}
        update = {"pollCreationMessageKey": key, "vote": vote, "senderTimestampMs": int(self._clock() * 1000)}
        chat = sent.chat if sent.chat.endswith("@g.us") else ""
        return self.says({"pollUpdateMessage": update}, user=user, chat=chat, name=name)

    def other_poll(self, poll_id: str, options: Sequence[str]) -> None:
        """A poll that somebody else made."""
        self._polls[poll_id] = (os.urandom(32), list(options))

    def user_sends(self, data: bytes, name: str, caption: str = "") -> Said:
        document = {**self.keep_file(data, "document"), "fileName": name, "mimetype": "text/plain"}
        if not caption:
            return self.says({"documentMessage": document})
        document["caption"] = caption
        return self.says({"documentWithCaptionMessage": {"message": {"documentMessage": document}}})

    def user_speaks(self, sound: bytes) -> Said:
        media = self.keep_file(sound, "audio")
        return self.says({"audioMessage": {**media, "mimetype": "audio/ogg; codecs=opus", "ptt": True, "seconds": 2}})

    def user_shows(self, picture: bytes) -> Said:
        return self.says(self._picture(picture, ""))

    def _picture(self, data: bytes, caption: str) -> Json:
        words = {"caption": caption} if caption else {}
        return {"imageMessage": {**self.keep_file(data, "image"), "mimetype": "image/jpeg", **words}}

    def keep_file(self, data: bytes, kind: str) -> Json:
        """Put a file on WhatsApp's media host; the fields of a message that point at it."""
        key = hashlib.sha256(f"{kind}{len(self._files)}".encode()).digest()
        locked = lock(data, key, kind)
        path = f"/v/t62/{len(self._files)}-{kind}.enc"
        self._files[path] = locked
        return {
            "url": f"https://mmg.whatsapp.net{path}",
            "directPath": path,
            "mediaKey": _text(key),
            "fileSha256": _text(hashlib.sha256(data).digest()),
            "fileEncSha256": _text(hashlib.sha256(locked).digest()),
            "fileLength": len(data),
        }

    def path_of(self, said: Said) -> str:
        """Where the file of a picture lies."""
        return str(self._said[said.key]["message"]["imageMessage"]["directPath"])

    def copy_file(self, path: str) -> str:
        """The same file in another place, as a phone puts it there again."""
        copy = f"{path}.again"
        self._files[copy] = self._files[path]
        return copy

    def tell_event(self, name: str, data: Any) -> None:
        """An event of the library's own."""
        self._each(lambda line: line.tell("event", {"name": name, "data": data}))

    def redeliver(self, said: Said) -> None:
        self._hand_in(self._said[said.key])

    def something_unknown_happens(self) -> None:
        self.says({"reactionMessage": {"key": {"remoteJid": ANA, "id": "X"}, "text": "👍"}})
        self.tell_event("presence.update", {"id": ANA, "presences": {}})

    def something_broken_arrives(self) -> None:
        self.delivers_raw({"key": {"id": 5, "remoteJid": ANA}, "message": {"conversation": {"no": "text"}}})

    def delivers_raw(self, message: Any) -> None:
        """What the library would never make of a real message."""
        self._hand_in(message, is_raw=True)

    def history(self, texts: Sequence[str], *, age_seconds: float = 86400) -> None:
        """What a fresh link is flooded with: a set of old messages, and some that come one by one."""
        sent_at = int(self._clock() - age_seconds)
        old = [
            {
                "key": {"remoteJid": ANA, "fromMe": False, "id": f"OLD{n}"},
                "messageTimestamp": sent_at,
                "message": {"conversation": text},
            }
            for n, text in enumerate(texts)
        ]
        contacts = [{"id": ANA, "lid": ANA_LID, "name": "Ana Lee"}]
        data = {"chats": [], "contacts": contacts, "messages": old, "lidPnMappings": [{"lid": ANA_LID, "pn": ANA}]}
        self.tell_event("messaging-history.set", data)
        for message in old:
            self._hand_in({**message, "pushName": "Ana"}, is_old=True)

    def _hand_in(self, message: Json, *, is_raw: bool = False, is_old: bool = False) -> None:
        self._waiting.append(Waiting(next(self._numbers), message, is_raw, is_old))
        self._each(lambda line: self._hand_out(line, is_offline=False))

    def _hand_out(self, line: Line, *, is_offline: bool) -> None:
        for waiting in self._waiting:
            if waiting.is_handed_out:
                continue
            waiting.is_handed_out = True
            offline = is_offline or waiting.is_old
            content = {"number": waiting.number, "message": waiting.message, "offline": offline, "raw": waiting.is_raw}
            line.tell("deliver", content)

    def _each(self, act: Callable[[Line], None]) -> None:
        for line in self._lines:
            if line.is_open:
                act(line)

    # ---- linking -------------------------------------------------------------------------------------------

    def scan(self, code: str = "") -> None:
        """The owner scans this QR code with the phone, or the newest that WhatsApp asked for."""
        device = f"device-{len(self.devices)}"
        self.devices.add(device)
        self.is_linked = True
        me = {"id": ME, "lid": MY_LID, "name": "Hermes"}
        for line in [line for line in self._lines if not line.is_open]:
            secret = (code or self.qr_codes[-1]).split(",")[3]
            line.tell("paired", {"me": me, "device": device, "secret": secret})
            self._close(line, 515)

    def _show_qr(self, line: Line) -> None:
        ref = f"2@{base64.b64encode(os.urandom(24)).decode()}"
        code = f"https://wa.me/settings/linked_devices#{ref},noise,identity,{line.secret},1"
        self.qr_codes.append(code)
        line.tell("qr", code)

    def refresh_registration(self) -> None:
        """WhatsApp retires the secret in the QR code that is shown; the next one must have another."""
        attrs = {"id": "700", "from": "s.whatsapp.net", "type": "companion_reg_refresh"}
        for line in self._lines:
            line.tell("notify", {"tag": "notification", "attrs": attrs, "content": [{"tag": "companion_reg_refresh"}]})

    def renew_qr(self) -> None:
        for line in self._lines:
            self._show_qr(line)

    # ---- troubles ------------------------------------------------------------------------------------------

    def limit_next_send(self, retry_after: float) -> None:
        raise NotImplementedError("WhatsApp never says how long to wait")

    def refuse_next_send(self, code: int) -> None:
        """The next message is acked with this error."""
        self._ack_errors.append(code)

    def refuse_next_call(self, method: str, text: str, data: int) -> None:
        self._call_errors.setdefault(method, deque()).append(RefusedCallError(text, data))

    def refuse_credentials(self) -> None:
        """The owner removed the device on the phone."""
        self.devices.clear()
        for line in list(self._lines):
            self._close(line, 401)

    def close_with(self, code: int) -> None:
        """WhatsApp ends the connection with this code."""
        for line in list(self._lines):
            self._close(line, code)

    def close_next_with(self, *codes: int) -> None:
        """The next connections are ended with these codes before they are open."""
        self._close_next.extend(codes)

    def _close(self, line: Line, code: int) -> None:
        line.tell("close", {"code": code})
        line.is_open = False
        line.writer.close()

    def hold_sends(self) -> Hold:
        self._hold = Hold("send")
        return self._hold

    def release_sends(self) -> None:
        if self._hold is not None:
            self._hold.release()
        self._hold = None

    def drop_connection(self) -> None:
        for line in list(self._lines):
            line.is_open = False
            line.writer.transport.abort()

    async def retry(self, message_id: str, chat: str = ANA) -> Json | None:
        """A phone could not decrypt a message of ours and asks for it again; what it is sent."""
        number = next(self._numbers)
        answered: asyncio.Future[Json | None] = asyncio.get_running_loop().create_future()
        self._retries[number] = answered
        key = {"remoteJid": chat, "fromMe": True, "id": message_id}
        self._each(lambda line: line.tell("retry", {"number": number, "key": key}))
        async with asyncio.timeout(20):
            return await answered

    @property
    def open_connections(self) -> int:
        return len(self._lines)

    @property
    def typings(self) -> int:
        return sum(kind == "composing" for kind, _ in self.presences)

    @property
    def kept(self) -> int:
        """How many messages WhatsApp still keeps because no receipt came."""
        return len(self._waiting)

    async def wait_for(self, predicate: Callable[[], bool], deadline: float = 20.0) -> None:
        await self._changes.wait_for(predicate, deadline)

    # ---- the server ----------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._lines.append(line)
        try:
            while said := await reader.readline():
                self._hear(line, json.loads(said))
                self._changes.tell()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # cut: by a test, or because the bridge was killed
        finally:
            self._lines.remove(line)
            line.is_open = False
            self._take_back()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self._changes.tell()

    def _take_back(self) -> None:
        """What was handed out and never receipted is handed out to the next connection."""
        for waiting in self._waiting:
            waiting.is_handed_out = False

    def _hear(self, line: Line, said: Json) -> None:
        if "hello" in said:
            line.secret = str(said["hello"]["secret"] or "")
            self._greet(line, said["hello"]["device"])
        elif "node" in said:
            self.nodes.append(said["node"])
        elif "receipt" in said:
            self._take_receipt(said["receipt"])
        elif "retried" in said:
            self._retries.pop(said["retried"]).set_result(said["message"])
        else:
            self._answer(line, said)

    def _greet(self, line: Line, device: str | None) -> None:
        self.hellos += 1
        line.device = device
        if self._close_next:
            self._close(line, self._close_next.popleft())
        elif device is None:
            self._show_qr(line)
        elif device not in self.devices:
            self._close(line, 401)
        else:
            self._let_in(line)

    def _let_in(self, line: Line) -> None:
        line.is_open = True
        line.tell("open", {"lid": MY_LID})
        self._hand_out(line, is_offline=True)
        if not self.is_syncing:
            line.tell("offlineDone")

    def _take_receipt(self, number: int) -> None:
        if not self.keeps_receipts:
            return
        taken = next((waiting for waiting in self._waiting if waiting.number == number), None)
        if taken is not None:
            self._waiting.remove(taken)
            key = taken.message.get("key") if isinstance(taken.message, dict) else None
            self.receipts.append(str((key or {}).get("id")))

    def _answer(self, line: Line, said: Json) -> None:
        number, method, args = said["call"], said["method"], said["args"]
        if self.refuses_writes:
            return
        try:
            if errors := self._call_errors.get(method):
                raise errors.popleft()
            result = self._do(line, method, args)
        except RefusedCallError as refused:
            line.tell("answer", {"call": number, "error": {"text": refused.text, "data": refused.data}})
            return
        line.tell("answer", {"call": number, "result": result})

    def _do(self, line: Line, method: str, args: Json) -> Any:
        match method:
            case "send":
                return self._take_message(line, args)
            case "presence":
                self.presences.append((args["type"], args["jid"]))
            case "read":
                self.read_keys += args["keys"]
            case "onWhatsApp":
                return self._who_exists(args["jids"])
            case "group":
                return self._group(args["jid"])
            case "upload":
                path = f"/o1/{len(self._files)}.enc"
                self._files[path] = base64.b64decode(args["bytes"])
                return {"mediaUrl": f"https://mmg.whatsapp.net{path}", "directPath": path}
            case "download":
                return self._download(args["path"])
            case "reupload":
                return self._reupload(args["id"])
            case "pairingCode":
                self.pairing_codes[args["phone"]] = "ABCDEFGH"
                return {"code": "ABCDEFGH", "isRefused": self.refuses_codes}
            case "logout":
                self.devices.discard(line.device or "")
            case _:
                raise AssertionError(f"the bridge asked for {method}")
        return None

    def _who_exists(self, jids: Sequence[str]) -> list[Json]:
        self.asked_for += jids
        return [{"jid": jid, "exists": True} for jid in jids if jid not in self.strangers]

    def _group(self, jid: str) -> Json:
        if jid == GROUP:
            return {"id": GROUP, "subject": "Lunch", "participants": [{"id": ME}, {"id": ANA}, {"id": BO}]}
        if jid not in self.groups:
            raise RefusedCallError("item-not-found", 404)
        return self.groups[jid]

    def _download(self, path: str) -> Json:
        if path in self.gone_files or path not in self._files:
            return {"status": 410, "bytes": ""}
        return {"status": 200, "bytes": _text(self._files[path])}

    def _reupload(self, message_id: str) -> Json:
        if message_id not in self.reuploads:
            raise RefusedCallError("not-found", 404)
        return {"path": self.reuploads[message_id]}

    # ---- what we are sent ----------------------------------------------------------------------------------

    def _take_message(self, line: Line, args: Json) -> None:
        chat, message_id, message = args["jid"], args["id"], args["message"]
        self.taken[message_id] += 1
        if self._ack_errors:
            line.tell("ack", {"id": message_id, "from": chat, "error": str(self._ack_errors.popleft())})
            return
        self._show(chat, message_id, message)
        if (hold := self._hold) is not None:
            task = asyncio.get_running_loop().create_task(self._ack_later(line, message_id, chat, hold))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        line.tell("ack", {"id": message_id, "from": chat})

    async def _ack_later(self, line: Line, message_id: str, chat: str, hold: Hold) -> None:
        await hold.keep_back()
        line.tell("ack", {"id": message_id, "from": chat})

    def _show(self, chat: str, message_id: str, message: Mapping[str, Any]) -> None:
        """As the phones of the people in the chat do: one message for an id, edits and deletions in place."""
        protocol = message.get("protocolMessage")
        if protocol is not None:
            self._change(chat, protocol)
            return
        if message_id in self._ours:
            return  # phones know it already
        sent = self._read(chat, message_id, message)
        self._ours[message_id] = sent
        self.sent.append(sent)
        self.on_sent(sent)

    def on_sent(self, sent: Sent) -> None:
        """Called when a message is on the phones."""

    def _change(self, chat: str, protocol: Mapping[str, Any]) -> None:
        target = self._ours.get(protocol["key"]["id"])
        if target is None or target.chat != chat:
            self.wrong.append(f"{protocol.get('type')} of a message that is not there")
            return
        if protocol.get("type", "REVOKE") == "REVOKE":
            self.sent.remove(target)
            return
        target.edits.append(target.text)
        target.text = target.raw = _words(protocol["editedMessage"])[0]

    def _read(self, chat: str, message_id: str, message: Mapping[str, Any]) -> Sent:
        words, content = _words(message)
        sent = Sent(chat=chat, text=words, raw=words, message_id=message_id, method="send")
        self.contexts[message_id] = content.get("contextInfo") or {}
        sent.reply_to = str(self.contexts[message_id].get("stanzaId", ""))
        kind = next((kind for kind in MEDIA_KEYS if f"{kind}Message" in message), "")
        if kind:
            self._read_file(sent, content, kind)
        if "options" in content:
            options = [each["optionName"] for each in content["options"]]
            self._polls[message_id] = (base64.b64decode(message["messageContextInfo"]["messageSecret"]), options)
            sent.buttons = tuple((Button(name, name),) for name in options)
        if not words and not kind and "degreesLatitude" not in content:
            self.wrong.append(f"an empty message: {message}")
        return sent

    def _read_file(self, sent: Sent, content: Mapping[str, Any], kind: str) -> None:
        locked = self._files[content["directPath"]]
        sent.file = unlock(locked, base64.b64decode(content["mediaKey"]), kind)
        if hashlib.sha256(sent.file).digest() != base64.b64decode(content["fileSha256"]):
            self.wrong.append("a file whose checksum differs")
        sent.file_name = str(content.get("fileName", ""))
        sent.is_voice = bool(content.get("ptt"))
        if sent.is_voice and content.get("mimetype") != "audio/ogg; codecs=opus":
            self.wrong.append(f"a voice message of {content.get('mimetype')}")


def _words(message: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The text of a message, and the part of it that holds it."""
    if "conversation" in message:
        return str(message["conversation"]), {}
    if "documentWithCaptionMessage" in message:
        return _words(message["documentWithCaptionMessage"]["message"])
    content: Mapping[str, Any] = next((value for name, value in message.items() if name != "messageContextInfo"), {})
    words = next((content[name] for name in ("text", "caption", "name") if content.get(name)), "")
    return str(words), content


def _extended(text: str, context: Json) -> Json:
    return {"extendedTextMessage": {"text": text, "contextInfo": context}}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _buffer(data: bytes) -> Json:
    """Bytes as Baileys writes them into its files."""
    return {"type": "Buffer", "data": _text(data)}


def _media_keys(key: bytes, kind: str) -> tuple[bytes, bytes, bytes]:
    info = f"WhatsApp {MEDIA_KEYS[kind]} Keys".encode()
    expanded = HKDF(SHA256(), 112, salt=None, info=info).derive(key)
    return expanded[:16], expanded[16:48], expanded[48:80]


def lock(data: bytes, key: bytes, kind: str) -> bytes:
    """As WhatsApp keeps files; written apart from the library, so that one checks the other."""
    iv, cipher_key, mac_key = _media_keys(key, kind)
    fill = 16 - len(data) % 16
    encryptor = Cipher(algorithms.AES(cipher_key), modes.CBC(iv)).encryptor()
    locked = encryptor.update(data + bytes([fill]) * fill) + encryptor.finalize()
    return locked + hmac.digest(mac_key, iv + locked, "sha256")[:10]


def unlock(locked: bytes, key: bytes, kind: str) -> bytes:
    iv, cipher_key, mac_key = _media_keys(key, kind)
    body, mac = locked[:-10], locked[-10:]
    assert hmac.compare_digest(hmac.digest(mac_key, iv + body, "sha256")[:10], mac), "the file was changed"
    decryptor = Cipher(algorithms.AES(cipher_key), modes.CBC(iv)).decryptor()
    opened = decryptor.update(body) + decryptor.finalize()
    return opened[: -opened[-1]]


def seal_vote(names: Sequence[str], secret: bytes, *, poll_id: str, creator: str, voter: str) -> Json:
    """A vote as a phone seals it: with the poll's secret and the ids of both sides."""
    chosen = b"".join(b"\x0a\x20" + hashlib.sha256(name.encode()).digest() for name in names)  # protobuf, field 1
    first = hmac.digest(bytes(32), secret, "sha256")
    sign = f"{poll_id}{creator}{voter}Poll Vote".encode() + b"\x01"
    iv = os.urandom(12)
    sealed = AESGCM(hmac.digest(first, sign, "sha256")).encrypt(iv, chosen, f"{poll_id}\0{voter}".encode())
    return {"encPayload": _text(sealed), "encIv": _text(iv)}


def seal_edit(text: str, secret: bytes, *, message_id: str, sender: str) -> Json:
    """An edit as newer phones seal it: a protocol message with the new text, under a key of its own."""
    edited = _field(14, _field(1, text.encode()))
    plain = _field(12, b"\x10\x0e" + edited)  # field 2, the kind: 14
    info = f"{message_id}{sender}{sender}Message Edit".encode()
    iv = os.urandom(12)
    sealed = AESGCM(HKDF(SHA256(), 32, salt=None, info=info).derive(secret)).encrypt(iv, plain, None)
    return {"encPayload": _text(sealed), "encIv": _text(iv)}


def _field(number: int, data: bytes) -> bytes:
    """A field of bytes, as protobuf writes it; short enough for one byte of length."""
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data
