"""kill -9 over Discord: what was not stored is handed out again to whoever resumes, or comes out of the history."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.core.messages import Button
from tests.chaos.kills import CHATS, ONE_CHAT
from tests.chaos.world import AnyWorld, Watching, opened_on, plain, until
from tests.fakes.discord import SERVER, FakeDiscord, Socket, _File
from tests.fakes.server import Said

Json = dict[str, Any]
FORGETS_EVERY = 3  # of so many connections that end, Discord has forgotten the session of one
PEOPLE = [chat for chat in (ONE_CHAT, *CHATS) if chat % 2]


class WatchfulDiscord(Watching, FakeDiscord):
    """Knows of each send whether its answer had left. An odd number is a person's direct chat, every other a channel.

    It is harder than Discord, which keeps a session for minutes: now and then one is gone at once, and what was said
    meanwhile stands in the history and nowhere else. Direct chats are known from before, as no history lists them.
    """

    def __init__(self) -> None:
        super().__init__(is_known=False)
        self.forgotten = 0
        self._left = 0

    def user_says(self, text: str, *, chat: int | str = 7, user: int | str | None = None, **more: Any) -> Said:
        if isinstance(chat, int) and chat not in PEOPLE:
            user, chat = chat, f"8{chat:08d}"
            if chat not in self.channels:
                self.channels[chat] = {"id": chat, "type": 0, "guild_id": SERVER, "name": chat}
                self.dispatch("CHANNEL_CREATE", self.channels[chat])
        return super().user_says(text, chat=chat, user=user, **more)

    def _message(self, channel: str, author: Json, text: str, **more: Any) -> Json:
        """Nobody has a name: in a channel the model would be told it, and answer with it."""
        return super()._message(channel, {**author, "username": "", "global_name": None}, text, **more)

    def _leave(self, socket: Socket) -> None:
        super()._leave(socket)
        self._left += socket.session is not None
        if socket.session is not None and self._left % FORGETS_EVERY == 0:
            socket.session.is_alive = False
            self.forgotten += 1

    def dispatch(self, event: str, data: Any) -> None:
        super().dispatch(event, data)
        self.batches += event == "MESSAGE_CREATE" and not data["author"].get("bot")

    def _show(
        self, place: Json, message: Json, rows: tuple[tuple[Button, ...], ...], files: list[_File], is_voice: bool
    ) -> None:
        super()._show(place, message, rows, files, is_voice)
        shown = self.sent[-1]
        shown.chat = _number(shown.chat)
        self._flies(shown)

    def _change(self, channel: str, id_: str, body: Json) -> Json:
        message = super()._change(channel, id_, body)
        shown = next(each for each in self.sent if each.message_id == id_)
        self.answered.add((shown.chat, plain(shown.text)))
        return message


def _number(channel: str) -> str:
    return channel[1:].lstrip("0")


@asynccontextmanager
async def opened(folder: Path, seed: int) -> AsyncIterator[AnyWorld[WatchfulDiscord]]:
    settings = {
        "DISCORD_ALLOW_ALL_USERS": "true",
        "DISCORD_GROUP_POLICY": "open",
        "DISCORD_REQUIRE_MENTION": "false",
    }
    async with (
        WatchfulDiscord() as discord,
        opened_on(discord, folder, seed, {**discord.environ, **settings}) as world,
    ):
        await until(lambda: discord.sockets == 1, 20)
        for person in PEOPLE:
            discord.user_says("good morning", chat=person)
        await until(lambda: all(discord.has_answered(person, "echo: good morning") for person in PEOPLE), 30)
        discord.flights.clear()
        yield world
