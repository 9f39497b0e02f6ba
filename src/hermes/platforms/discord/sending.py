"""Send messages, edits, files and typing, and open threads for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import orjson
from discord import File

from hermes.core.bounded import BoundedDict
from hermes.core.errors import RejectedError
from hermes.core.keys import Target
from hermes.core.messages import Attachment, AttachmentKind, InboundMessage, Json, OutboundMessage, Receipt
from hermes.platforms.discord import media, wire
from hermes.platforms.discord.api import Api
from hermes.platforms.discord.config import WHERE_IDS_ARE
from hermes.platforms.discord.parse import is_snowflake
from hermes.platforms.discord.voice import Voice, measure
from hermes.platforms.shared.files import OpenFile, opened

log = logging.getLogger(__name__)

_MAX_REMEMBERED = 500
_MESSAGES = "/channels/{channel_id}/messages"
_VOICE_NAME = "voice-message.ogg"
T = TypeVar("T")


class Sender:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._questions = BoundedDict[str, str](_MAX_REMEMBERED)  # messages under which a thread is to open, by id
        self._refused = BoundedDict[str, None](_MAX_REMEMBERED)  # threads that may not be opened: said in the channel
        self._opening = asyncio.Lock()

    def note(self, message: InboundMessage) -> None:
        """A question that opens a thread: that is named after it, and opened when something is said there."""
        if message.session_key.thread == message.message_id:
            self._questions[message.message_id] = message.text

    async def send(self, message: OutboundMessage) -> Receipt:
        if message.replaces:
            return await self._change(message)
        if message.attachment is not None:
            return await self._send_files(message, (message.attachment, *message.album))
        body = wire.post(message)
        answer = await self._in(message.target, lambda channel: self._post(channel, body))
        return _receipt(answer)

    async def _post(self, channel: str, body: Json) -> Any:
        return await self._api.call("show a message", "POST", _MESSAGES, body, shows=True, channel_id=channel)

    async def _change(self, message: OutboundMessage) -> Receipt:
        if message.attachment is not None:
            raise RejectedError("Discord cannot put a file in place of a message.")
        path, body = f"{_MESSAGES}/{{message_id}}", wire.change(message)

        async def change(channel: str) -> Any:
            return await self._api.call(
                "change a message", "PATCH", path, body, channel_id=channel, message_id=message.replaces
            )

        await self._in(message.target, change)
        return Receipt(message.replaces)

    async def typing(self, target: Target, seconds: float) -> None:
        async def show(channel: str) -> Any:
            return await self._api.call(
                "show typing", "POST", "/channels/{channel_id}/typing", seconds=seconds, channel_id=channel
            )

        try:
            await self._in(target, show)
        except wire.RefusedError as refused:  # whoever may not write there cannot show it either
            log.debug("Typing not shown", extra={"platform": "discord", "reason": str(refused)})

    # Files

    async def _send_files(self, message: OutboundMessage, attachments: tuple[Attachment, ...]) -> Receipt:
        async with AsyncExitStack() as stack:
            uploads = []
            for each in attachments:
                file = opened(each.path, each.name, limit=media.UPLOAD_LIMIT, platform="Discord")
                uploads.append(await stack.enter_async_context(file))
            voice = await _voice(message, uploads[0], attachments)
            if voice is not None:
                try:
                    return await self._upload(message, uploads, voice)
                except wire.RefusedError as refused:  # not everywhere may it speak; a sound file gets a player
                    log.debug("Not shown as a voice message", extra={"platform": "discord", "reason": str(refused)})
            return await self._upload(message, uploads, None)

    async def _upload(self, message: OutboundMessage, uploads: list[OpenFile], voice: Voice | None) -> Receipt:
        for opened_file in uploads:
            opened_file.file.seek(0)  # an earlier attempt may have read it
        files = [File(upload.file, _VOICE_NAME if voice else upload.name) for upload in uploads]
        body = orjson.dumps({**wire.post(message), **_attached(files, voice)}).decode()

        async def upload(channel: str) -> Any:
            for file in files:
                file.reset()
            return await self._api.upload("show a file", _MESSAGES, body, files, channel_id=channel)

        try:
            return _receipt(await self._in(message.target, upload))
        finally:
            for file in files:
                file.fp.close = file._closer  # type: ignore[method-assign] # whoever opened it closes it

    # Threads

    async def _in(self, target: Target, act: Callable[[str], Awaitable[T]]) -> T:
        """Do it in the target's thread, which is opened where it does not exist yet; else in its channel."""
        thread = target.thread
        for name in (target.chat, thread or target.chat):
            if not is_snowflake(name):
                raise RejectedError(f"{name[:50]!r} is no id of a channel. {WHERE_IDS_ARE}")
        if not thread or thread in self._refused:
            return await act(target.chat)
        await self._open_once(target)
        try:
            return await act(self._channel_of(target))
        except wire.RefusedError as refused:
            is_missing = refused.code == wire.UNKNOWN_CHANNEL and thread not in self._refused
            if not is_missing or not await self._is_question(target):
                raise
        self._questions[thread] = ""  # of an earlier life
        await self._open_once(target)
        return await act(self._channel_of(target))

    async def _is_question(self, target: Target) -> bool:
        """Whether the thread is one that is yet to be opened under its question. One that was deleted is not: what was
        said among those who were in it is not for the whole channel."""
        try:
            await self._api.get(
                "show a question",
                f"{_MESSAGES}/{{message_id}}",
                channel_id=target.chat,
                message_id=target.thread,
            )
        except wire.RefusedError:
            return False
        return True

    async def _open_once(self, target: Target) -> None:
        if target.thread not in self._questions:
            return
        async with self._opening:
            if target.thread in self._questions:
                await self._open(target)

    def _channel_of(self, target: Target) -> str:
        return target.chat if target.thread in self._refused else target.thread

    async def _open(self, target: Target) -> None:
        name = self._questions.get(target.thread) or "Hermes"
        try:
            await self._api.call(
                "open a thread",
                "POST",
                f"{_MESSAGES}/{{message_id}}/threads",
                wire.thread(name),
                channel_id=target.chat,
                message_id=target.thread,
            )
        except wire.RefusedError as refused:
            if refused.code != wire.THREAD_EXISTS:
                self._refused[target.thread] = None
                log.info("No thread opened", extra={"platform": "discord", "reason": str(refused)})
        self._questions.pop(target.thread, None)


async def _voice(message: OutboundMessage, upload: OpenFile, attachments: tuple[Attachment, ...]) -> Voice | None:
    """A voice message stands alone: no words, no buttons, nothing beside it."""
    is_voice = attachments[0].kind is AttachmentKind.VOICE and len(attachments) == 1
    if not is_voice or message.text or message.buttons or message.is_repeat:
        return None
    return await asyncio.to_thread(lambda: measure(upload.file.read()))


def _attached(files: list[File], voice: Voice | None) -> Json:
    entries: list[Json] = [{"id": number, "filename": file.filename} for number, file in enumerate(files)]
    if voice is None:
        return {"attachments": entries}
    entries[0] |= {"duration_secs": round(voice.seconds, 2), "waveform": voice.waveform}
    return {"attachments": entries, "flags": wire.VOICE_MESSAGE}


def _receipt(answer: object) -> Receipt:
    return Receipt(str(answer.get("id") or "") if isinstance(answer, dict) else "")
