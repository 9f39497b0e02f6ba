"""Connect one Telegram bot: long polling in, Bot API calls out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from hermes.core.errors import RejectedError, UnreachableError
from hermes.core.keys import Target
from hermes.core.messages import REPEAT_MARK, Attachment, Capabilities, Json, OutboundMessage, Receipt, TextUnit
from hermes.core.ports import Alive, CommandHint, Emit
from hermes.core.text import trim
from hermes.platforms.telegram import media, wire
from hermes.platforms.telegram.config import TelegramConfig
from hermes.platforms.telegram.edits import Seen
from hermes.platforms.telegram.parse import Me

_WANTED = ["message", "edited_message", "channel_post", "edited_channel_post", "callback_query"]
_MAX_TRIES = 5  # one as asked, and one for each thing that can be mended
# Who answers a poll with nothing, and at once, does not wait for news; without a pause they would be asked for ever.
_AT_ONCE_SECONDS, _PAUSE_SECONDS = 0.1, 1.0
_LATE_SECONDS = 5.0  # may pass until the answer to a poll is here


class TelegramAdapter:
    capabilities = Capabilities(
        # What is left when a repeated message has to carry its mark.
        text_limit=wire.TEXT_LIMIT - len(REPEAT_MARK),
        text_unit=TextUnit.UTF16,
        caption_limit=wire.CAPTION_LIMIT - len(REPEAT_MARK),
        edits=True,
        typing=True,
        buttons=True,
        media=True,
        voice=True,
        album_limit=media.ALBUM_LIMIT,
        threads=True,
        command_menu=True,
        chat_menus=True,
        upload_limit_bytes=media.UPLOAD_LIMIT,
        download_limit_bytes=media.DOWNLOAD_LIMIT,
    )

    def __init__(self, config: TelegramConfig, http: aiohttp.ClientSession, alive: Alive) -> None:
        self._config = config
        self._alive = alive
        pause = 1 / config.chat_calls_per_second if config.chat_calls_per_second else 1.0
        usual = type(self).capabilities
        self.capabilities = replace(
            usual,
            rates=config.rates,
            edit_pause_seconds=pause,
            # A poll without news is held for that long, and silent meanwhile.
            silence_seconds=max(usual.silence_seconds, config.poll_seconds + _LATE_SECONDS),
        )
        self._bot = wire.Bot(config.token, config.base_url, http)
        self._seen = Seen()

    @property
    def identity(self) -> str:
        return self._config.bot_id

    async def run(self, emit: Emit) -> None:
        """Receive until cancelled; reconnecting is the supervisor's work, not ours."""
        me = Me(self.identity, await self._username(), self._config.account)
        offset = 0
        wait = 0.0  # the first poll returns at once: a bad token or a second process shows itself now
        loop = asyncio.get_running_loop()
        while True:
            asked_at = loop.time()
            updates = await self._updates(offset, wait)
            self._alive()  # an empty poll is a good frame too
            if updates:
                # Asking for a higher offset deletes these updates at Telegram, so the batch is stored
                # first. emit() fails only when the store is down; run() then ends and is started again.
                now = datetime.now(UTC)
                await emit([self._seen.ignore_unchanged(wire.understand(update, me, now)) for update in updates])
                # Ids may start anew lower after a quiet week, so only this batch decides the next offset.
                ids: list[int] = [update["update_id"] for update in updates if isinstance(update.get("update_id"), int)]
                if not ids:
                    raise UnreachableError("Telegram sent updates without ids, which cannot be confirmed.")
                offset = max(ids) + 1
            elif wait and loop.time() - asked_at < _AT_ONCE_SECONDS:
                await asyncio.sleep(_PAUSE_SECONDS)
            wait = self._config.poll_seconds

    async def _updates(self, offset: int, wait: float) -> list[Json]:
        params = {"offset": offset, "timeout": int(wait), "limit": 100, "allowed_updates": _WANTED}
        try:
            updates = await self._bot.call("getUpdates", params, seconds=wait + wire.POLL_GRACE_SECONDS)
        except wire.GarbledError:
            return await self._first_alone({**params, "timeout": 0, "limit": 1})
        return _checked(updates)

    async def _first_alone(self, params: Json) -> list[Json]:
        """The first update of a batch that could not be read: one that spoils it must not hold up those behind it."""
        try:
            updates = await self._bot.call("getUpdates", params)
        except wire.GarbledError as error:
            update = wire.salvage(error.body)
            if update is None:
                raise
            return [update]
        return _checked(updates)

    async def send(self, message: OutboundMessage) -> Receipt:
        call, notes = wire.render(message), list[str]()
        while True:
            try:
                if call.uploads:
                    result = await self._bot.upload(call.method, call.params, call.uploads)
                else:
                    result = await self._bot.call(call.method, call.params)
            except wire.RefusedError as refusal:
                if message.replaces and "message is not modified" in refusal.description:
                    return Receipt(message.replaces, "; ".join(notes))
                mended = wire.mend(call, refusal)
                if mended is None or len(notes) == _MAX_TRIES:
                    raise
                call = mended[0]
                notes.append(mended[1])
            else:
                return Receipt(_message_id(result) or message.replaces, "; ".join(notes))

    async def typing(self, target: Target) -> None:
        call = wire.render_typing(target)
        await self._bot.call(call.method, call.params, seconds=5.0)

    async def answer_press(self, press_id: str, text: str) -> bool:
        """Stop the spinner on a button. A press from before a long outage can no longer be answered; that is fine."""
        shown = trim(text, wire.PRESS_ANSWER_LIMIT, TextUnit.UTF16)
        try:
            await self._bot.call("answerCallbackQuery", {"callback_query_id": press_id, "text": shown})
        except wire.RefusedError as refusal:
            if "query is too old" not in refusal.description and "query id is invalid" not in refusal.description:
                raise
            return False
        return shown == text

    async def set_commands(self, commands: Sequence[CommandHint], *, chat: str = "") -> None:
        call = wire.render_commands(commands, chat)
        await self._bot.call(call.method, call.params)

    async def fetch(self, attachment: Attachment, into: Path) -> Path:
        limit = self.capabilities.download_limit_bytes
        if attachment.size > limit:
            raise RejectedError(f"{attachment.name or 'The file'} has {attachment.size} bytes; bots may fetch {limit}.")
        file = await self._bot.call("getFile", {"file_id": attachment.file_id})
        path = str(file.get("file_path") or "")
        if not path or ".." in path.split("/"):
            raise RejectedError("Telegram does not say where the file is.")
        return await self._bot.download(path, into, attachment.name or path, limit)

    async def describe(self) -> str:
        return f"@{await self._username() or self.identity}"

    async def _username(self) -> str:
        account = await self._bot.call("getMe", {})
        return str(account.get("username") or "") if isinstance(account, dict) else ""


def _checked(updates: Any) -> list[Json]:
    if not isinstance(updates, list) or not all(isinstance(update, dict) for update in updates):
        raise UnreachableError("Telegram answered getUpdates with something that is no list of updates.")
    return updates


def _message_id(result: Any) -> str:
    if isinstance(result, list):  # an album is as many messages; its caption is at the first
        result = result[0] if result else None
    return str(result.get("message_id") or "") if isinstance(result, dict) else ""
