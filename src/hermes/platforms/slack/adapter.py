"""Connect one Slack workspace: Socket Mode in, Web API calls out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import orjson

from hermes.core.bounded import BoundedDict
from hermes.core.errors import PlatformError, RejectedError, UnreachableError
from hermes.core.keys import Target
from hermes.core.messages import (
    REPEAT_MARK,
    Attachment,
    Cursor,
    InboundMessage,
    Json,
    OutboundMessage,
    Receipt,
)
from hermes.core.ports import Alive, Emit
from hermes.platforms.shared import files
from hermes.platforms.shared.cursor import of_identity
from hermes.platforms.slack import media, wire
from hermes.platforms.slack.api import Api
from hermes.platforms.slack.catchup import CatchUp
from hermes.platforms.slack.config import SlackConfig
from hermes.platforms.slack.connection import Links
from hermes.platforms.slack.cursors import Places
from hermes.platforms.slack.parse import Me
from hermes.platforms.slack.receiving import Item, Receiver

log = logging.getLogger(__name__)

_MAX_AT_ONCE = 200
_MAX_REMEMBERED = 500
_MAX_PAGES = 10
_STATUS = "is typing…"
_SHARE_TRIES = 4
_SHARE_PAUSE = 0.25


class SlackAdapter:
    capabilities = wire.CAPABILITIES

    def __init__(self, config: SlackConfig, http: aiohttp.ClientSession, alive: Alive, cursor: Cursor) -> None:
        self._config = config
        self._http = http
        self._alive = alive
        self._api = Api(config, http)
        self._stored = dict(cursor)
        self._identity = ""
        self._newest = BoundedDict[str, str](_MAX_REMEMBERED)  # the last message of each chat: typing shows there
        self._typing: set[Target] = set()

    @property
    def identity(self) -> str:
        """Team and bot user; known as soon as Slack has been asked."""
        return self._identity

    # Receiving

    async def run(self, emit: Emit) -> None:
        """Receive until cancelled or until the connection ends; connecting again is the supervisor's work, not ours."""
        identity = await self._api.ask("auth.test")
        team, user = identity.get("team_id"), identity.get("user_id")
        if not isinstance(team, str) or not isinstance(user, str) or not team or not user:
            raise UnreachableError("Slack does not say who we are.")
        self._identity = f"{team}/{user}"
        name = str(identity.get("user") or "")
        ours, news = of_identity(self._stored, self._identity)
        places = Places.of(ours)
        me = Me(self._config.account, team, user, name, places.takes_part)
        items: asyncio.Queue[Item] = asyncio.Queue()
        catch_up = CatchUp(self._api, places, items.put_nowait)
        links = Links(self._api, self._http, self._alive, items.put_nowait)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(links.close)
            await links.open()
            if not places.since:
                news |= places.begin(f"{self._api.now():.6f}")
            if news:
                await emit((), news)
                self._stored |= news
            reading_back = asyncio.create_task(catch_up.run())
            stack.push_async_callback(_ended, reading_back)
            receiver = Receiver(me, places, catch_up, self._noted)
            while True:
                found = [await items.get()]
                while not items.empty() and len(found) < _MAX_AT_ONCE:
                    found.append(items.get_nowait())
                batch = receiver.gather(found)
                if batch.events or batch.cursor:
                    # Acknowledged only when it is stored: until then Slack hands it out again.
                    await emit(batch.events, batch.cursor or None)
                    self._stored |= batch.cursor
                await batch.settle(links)

    def _noted(self, message: InboundMessage) -> None:
        key = message.session_key
        self._newest[_where(key.chat, key.thread)] = message.message_id

    # Sending

    async def send(self, message: OutboundMessage) -> Receipt:
        self._typing.discard(message.target)
        if message.attachment is not None:
            return await self._send_files(message, (message.attachment, *message.album))
        method, body = wire.post(message)
        shows = not message.replaces
        try:
            answer = await self._api.call(method, body, shows=shows)
        except wire.RefusedError as refused:
            shorter = wire.in_blocks(message, body["text"]) if refused.error == wire.TOO_LONG else {}
            if not shorter or body.get("blocks"):
                raise
            answer = await self._api.call(method, {**body, **shorter}, shows=shows)
        return Receipt(str(answer.get("ts") or message.replaces))

    async def _send_files(self, message: OutboundMessage, attachments: Sequence[Attachment]) -> Receipt:
        """Each file is brought up first, where nobody sees it; the last call shows them all in one message."""
        if message.replaces:
            raise RejectedError("Slack cannot change a message with files.")
        files = [await self._upload(attachment) for attachment in attachments]
        form = {"files": orjson.dumps(files).decode(), "channel_id": message.target.chat}
        if message.text:
            form["initial_comment"] = wire.text_of(message)
        elif message.is_repeat:
            form["initial_comment"] = REPEAT_MARK.strip()
        if message.target.thread:
            form["thread_ts"] = message.target.thread
        answer = await self._api.ask("files.completeUploadExternal", form, shows=True)
        return Receipt(await self._message_of_file(answer, files[0]["id"], message.target.chat))

    async def _upload(self, attachment: Attachment) -> dict[str, str]:
        limit = media.UPLOAD_LIMIT
        async with files.opened(attachment.path, attachment.name, limit=limit, platform="Slack") as upload:
            place = await self._api.ask(
                "files.getUploadURLExternal", {"filename": upload.name, "length": str(upload.size)}
            )
            address, file_id = place.get("upload_url"), place.get("file_id")
            if not isinstance(address, str) or not isinstance(file_id, str):
                raise UnreachableError(f"Slack does not say where {upload.name} goes.")
            await self._api.upload(address, upload.file)
            return {"id": file_id, "title": upload.name}

    async def _message_of_file(self, answer: Json, file_id: str, channel: str) -> str:
        """The id of the message with the file. Slack makes it a moment later; '' where it does not tell in time."""
        files = answer.get("files")
        known = files[0] if isinstance(files, list) and files and isinstance(files[0], dict) else {}
        for attempt in range(_SHARE_TRIES):
            if ts := media.shared_as(known, channel):
                return ts
            if attempt:
                await asyncio.sleep(_SHARE_PAUSE)
            try:
                known = (await self._api.ask("files.info", {"file": file_id})).get("file") or {}
            except PlatformError as error:  # the file is shown; only what its message is called stays unknown
                log.debug("Message of the file not found", extra={"platform": "slack", "reason": str(error)})
                break
        return media.shared_as(known, channel)

    # Typing, presses, files

    async def typing(self, target: Target) -> None:
        """Slack shows it under a message: that of the thread, else the newest that was said to us there."""
        await self._set_status(target, _STATUS)
        self._typing.add(target)

    async def typing_ended(self, target: Target) -> None:
        if target in self._typing:
            self._typing.discard(target)
            await self._set_status(target, "")

    async def _set_status(self, target: Target, status: str) -> None:
        under = target.thread or self._newest.get(_where(target.chat, ""), "")
        if not under:
            return
        body = {"channel_id": target.chat, "thread_ts": under, "status": status}
        try:
            await self._api.call("assistant.threads.setStatus", body, seconds=5.0)
        except wire.RefusedError as refused:  # not every app and chat has it
            log.debug("Typing not shown", extra={"platform": "slack", "reason": str(refused)})

    async def answer_press(self, press_id: str, text: str) -> bool:
        """Tell whoever pressed. The way back to them is open for half an hour; a later answer has no place to go."""
        if not press_id.startswith(("http://", "https://")) or not text.strip():
            return False
        try:
            await self._api.respond(press_id, text)
        except wire.RefusedError as refused:
            log.debug("Press too old", extra={"platform": "slack", "reason": str(refused)})
            return False
        return True

    async def fetch(self, attachment: Attachment, into: Path) -> Path:
        limit = self.capabilities.download_limit_bytes
        name = attachment.name or "The file"
        if attachment.size > limit:
            raise RejectedError(f"{name} has {attachment.size} bytes; the limit is {limit}.")
        address = attachment.file_id
        if address.startswith("id:"):  # shared from another workspace: Slack says only when asked where it is
            file = (await self._api.ask("files.info", {"file": address.removeprefix("id:")})).get("file") or {}
            address = str(file.get("url_private_download") or file.get("url_private") or "")
        return await self._api.download(address, into, name, attachment.mime, limit)

    async def find_chats(self, name: str) -> Sequence[str]:
        """The channels of this name that the app is in."""
        found: list[str] = []
        form = {"types": "public_channel,private_channel", "exclude_archived": "true", "limit": "200"}
        for _ in range(_MAX_PAGES):
            answer = await self._api.ask("users.conversations", form)
            channels = [each for each in answer.get("channels") or () if isinstance(each, dict)]
            found += [str(each["id"]) for each in channels if str(each.get("name", "")).casefold() == name.casefold()]
            form["cursor"] = str((answer.get("response_metadata") or {}).get("next_cursor") or "")
            if not form["cursor"]:
                break
        return found

    async def describe(self) -> str:
        """Both tokens are tried: one says who we are, the other opens the socket."""
        identity = await self._api.ask("auth.test")
        await self._api.open_socket()
        return f"@{identity.get('user') or identity.get('user_id') or 'hermes'}"


def _where(chat: str, thread: str) -> str:
    return f"{chat}:{thread}"


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
