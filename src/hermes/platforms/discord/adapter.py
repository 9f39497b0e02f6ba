"""Connect one Discord account: gateway in, REST calls out."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from hermes.core.errors import RejectedError, UnreachableError
from hermes.core.i18n.failures import describe_failure
from hermes.core.keys import Target
from hermes.core.messages import Attachment, Cursor, Json, OutboundMessage, Receipt
from hermes.core.ports import Alive, CommandHint, Emit
from hermes.platforms.discord import wire
from hermes.platforms.discord.api import Api
from hermes.platforms.discord.catchup import CatchUp, oldest
from hermes.platforms.discord.config import DiscordConfig
from hermes.platforms.discord.connection import Ended, Gateway
from hermes.platforms.discord.cursors import Places, Session
from hermes.platforms.discord.interaction_replies import Answers
from hermes.platforms.discord.parse import Me, Rules, is_snowflake, name_of, snowflake_at
from hermes.platforms.discord.receiving import Batch, Item, Receiver
from hermes.platforms.discord.sending import Sender
from hermes.platforms.shared.cursor import of_identity

log = logging.getLogger(__name__)

_MAX_AT_ONCE = 200
# Discord wants a pause of one to five seconds before a new session when it refused to resume the old one.
PAUSE_SECONDS = (1.0, 3.0)
_TYPING_SECONDS = 5.0
_CATEGORY = 4  # a heading above channels, in which nobody can write
# View Channels, Send Messages, Embed Links, Attach Files, Read Message History, Create Public Threads,
# Send Messages in Threads, Send Voice Messages.
_PERMISSIONS = sum(1 << bit for bit in (10, 11, 14, 15, 16, 35, 38, 46))


class DiscordAdapter:
    capabilities = wire.CAPABILITIES

    def __init__(
        self,
        config: DiscordConfig,
        http: aiohttp.ClientSession,
        alive: Alive,
        cursor: Cursor,
        now: Callable[[], float],
    ) -> None:
        self._config = config
        self._alive = alive
        self._now = now
        self._api = Api(config, http)
        self._sender = Sender(self._api)
        self._answers = Answers(self._api)
        self._stored = dict(cursor)
        self._identity = ""
        self._application = ""

    @property
    def identity(self) -> str:
        """The bot's own user id; known as soon as Discord has been asked."""
        return self._identity

    # Receiving

    async def run(self, emit: Emit) -> None:
        """Receive until cancelled or broken. A connection Discord asks us to leave is resumed here, at once."""
        user = await self._who()
        self._identity = str(user["id"])
        name = name_of(user)
        ours, news = of_identity(self._stored, self._identity)
        places = Places.of(ours)
        if not places.since:
            news |= places.begin(snowflake_at(self._now_there()))
        await self._store(emit, Batch(cursor={**news, **places.forget_before(oldest(self._now_there()))}))
        config = self._config
        rules = Rules(
            config.allowed_channels, config.ignored_channels, config.free_response_channels, config.auto_thread
        )
        me = Me(config.account, self._identity, name, rules, places.takes_part, places.is_our_role)
        session = places.session
        try:
            while True:
                if session is None:
                    await self._store(emit, Batch(cursor=places.begin_session(self._now())))
                await self._session(emit, me, places, session)
                session = None
                await asyncio.sleep(random.uniform(*PAUSE_SECONDS))
        finally:
            await self._answers.close()

    async def _session(self, emit: Emit, me: Me, places: Places, session: Session | None) -> None:
        """Receive for as long as one session lives; returns when it is lost."""
        items: asyncio.Queue[Item] = asyncio.Queue()
        catch_up = CatchUp(self._api, places, self._now_there, items.put_nowait, is_resumed=session is not None)
        gateway = Gateway(self._api.client, self._config.gateway_url, self._alive, items.put_nowait)
        receiver = Receiver(me, places, catch_up, self._sender.note, session)
        async with AsyncExitStack() as stack:
            for work in (catch_up.run(), gateway.listen(session)):
                task = asyncio.create_task(work)
                task.add_done_callback(lambda done: _notice(done, items))
                stack.push_async_callback(_ended, task)
            while True:
                found = [await items.get()]
                while not items.empty() and len(found) < _MAX_AT_ONCE:
                    found.append(items.get_nowait())
                batch = receiver.gather(found)
                await self._store(emit, batch)
                if batch.ended is not None:
                    if batch.ended.error is not None:
                        raise batch.ended.error
                    return

    async def _store(self, emit: Emit, batch: Batch) -> None:
        """An interaction is answered only when it is stored, and whoever answers it in words comes after that."""
        with self._answers.stored(batch.acks):
            if batch.events or batch.cursor:
                await emit(batch.events, batch.cursor or None)
                for name, mark in batch.cursor.items():
                    if mark:
                        self._stored[name] = mark
                    else:
                        self._stored.pop(name, None)

    def _now_there(self) -> float:
        """The time by Discord's clock, which names its messages; ours may be set wrong."""
        return self._now() + self._api.client.ahead

    async def _who(self) -> Json:
        user = await self._api.get("say who we are", "/users/@me")
        if not isinstance(user, dict) or not is_snowflake(user.get("id")):
            raise UnreachableError("Discord does not say who we are. Check DISCORD_BASE_URL.")
        return user

    # Sending

    async def send(self, message: OutboundMessage) -> Receipt:
        return await self._sender.send(message)

    async def typing(self, target: Target) -> None:
        """Shown for ten seconds, or until something is sent."""
        await self._sender.typing(target, _TYPING_SECONDS)

    async def answer_press(self, press_id: str, text: str) -> bool:
        """Tell whoever pressed, and nobody else. The way back to them is open for a quarter of an hour."""
        return await self._answers.tell(press_id, text)

    async def fetch(self, attachment: Attachment, into: Path) -> Path:
        limit = self.capabilities.download_limit_bytes
        name = attachment.name or "The file"
        if attachment.size > limit:
            raise RejectedError(f"{name} has {attachment.size} bytes; the limit is {limit}.")
        return await self._api.download(attachment.file_id, into, name, limit)

    # The menu, and who we are

    async def set_commands(self, commands: Sequence[CommandHint], *, chat: str = "") -> None:
        """Written only when it is another one than Discord shows: it counts how often that is done."""
        if chat:
            return  # one menu for all
        wanted, path = wire.commands(commands), "/applications/{application_id}/commands"
        if not self._application:
            self._application = str((await self._about_us())["id"])
        shown = await self._api.get("show the commands", path, application_id=self._application)
        if not wire.same_commands(shown, wanted):
            await self._api.call("take the commands", "PUT", path, wanted, application_id=self._application)

    async def _about_us(self) -> Json:
        application = await self._api.get("say what we are", "/applications/@me")
        if not isinstance(application, dict) or not is_snowflake(application.get("id")):
            raise UnreachableError("Discord does not say which application this is.")
        return application

    async def find_chats(self, name: str) -> Sequence[str]:
        """The channels of this name in the bot's servers. Threads are not looked for."""
        found: list[str] = []
        for server in await self._api.get("list our servers", "/users/@me/guilds"):
            listed = await self._api.get("list channels", "/guilds/{guild_id}/channels", guild_id=str(server["id"]))
            named = [each for each in listed if str(each.get("name", "")).casefold() == name.casefold()]
            found += [str(each["id"]) for each in named if each.get("type") != _CATEGORY]
        return found

    async def describe(self) -> str:
        """The token is tried, and whether messages may be read; a bot in no server is told with its invitation."""
        user, application = await self._who(), await self._about_us()
        wire.check_intents(application)
        name = f"@{user.get('username') or user['id']}"
        servers = await self._api.get("list our servers", "/users/@me/guilds", query={"limit": "1"})
        if servers:
            return name
        query = f"client_id={application['id']}&scope=bot+applications.commands&permissions={_PERMISSIONS}"
        # A space behind it: terminals take a comma for a part of an address.
        return f"{name}, in no server yet (https://discord.com/oauth2/authorize?{query} invites it)"


def _notice(task: asyncio.Task[None], items: asyncio.Queue[Item]) -> None:
    """A part that broke takes the connection with it, instead of leaving it deaf."""
    if not task.cancelled() and (error := task.exception()) is not None:
        items.put_nowait(Ended(UnreachableError(f"Receiving broke ({describe_failure(error)})")))


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
