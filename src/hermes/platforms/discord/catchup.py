"""What was written while no session listened, read from the history of each channel."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.errors import PlatformError, RejectedError
from hermes.core.messages import Json
from hermes.platforms.discord.api import Api
from hermes.platforms.discord.cursors import Places
from hermes.platforms.discord.parse import Room, RoomKind, is_snowflake, order, room_of, snowflake_at
from hermes.platforms.shared.history import Readers, patiently

log = logging.getLogger(__name__)

LONGEST_SECONDS = 7 * 86400.0
PAGE = 100
MOST_PAGES = 10


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The messages of one channel that were missed, oldest first; ``error`` ends the connection instead."""

    room: Room | None
    messages: Sequence[Json] = ()
    error: PlatformError | None = None


class CatchUp:
    """Reads a few channels at a time; one in which somebody speaks now comes first.

    Until a channel has been put, its live events have to wait. In a session that was resumed nothing is missing; then
    it only finds out what kind of place an unknown channel is.
    """

    def __init__(
        self, api: Api, places: Places, now: Callable[[], float], put: Callable[[CaughtUp], None], *, is_resumed: bool
    ) -> None:
        self._api = api
        self._places = places
        self._now = now
        self._put = put
        self._reads_history = not is_resumed
        self._servers: set[str] | None = set() if is_resumed else None  # those that Discord has not told of yet
        self._rooms: dict[str, Room] = {}
        self._pending: dict[str, bool] = {}  # wanted, and not finished yet; whether its history is to be read
        self._done: set[str] = set()
        self._readers = Readers("discord", self._read, self._give_up, lambda error: put(CaughtUp(None, error=error)))
        if self._reads_history:
            for channel in places.direct_chats:
                self._want(Room(channel, RoomKind.DIRECT))

    # What is known

    def room(self, channel: str, direct: Room | None = None) -> Room | None:
        """The place, once it is known and whatever was missed there has been stored.

        ``direct``: a direct chat needs no asking, and in a resumed session nothing went before what is said there.
        """
        if direct is not None and not self._reads_history:
            self.know(direct)
        return self._rooms.get(channel) if channel in self._done else None

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing any more: every server has told of its channels, and all were read."""
        return self._servers is not None and not self._servers and not self._pending

    def expect(self, servers: Iterable[str]) -> None:
        self._servers = set(servers)

    def arrived(self, server: str) -> None:
        """A server told of its channels, or that it cannot."""
        if self._servers is not None:
            self._servers.discard(server)

    def learn(self, room: Room, newest: str, floor: str) -> None:
        """A channel of a server, and its newest message; before ``floor`` we were not there.

        A server tells of itself again when it had trouble of its own: what was said meanwhile was told to nobody.
        """
        since = max(self._places.mark(room.id), floor, oldest(self._now()), key=order)
        if order(newest) > order(since):
            self._want(room)
        else:
            self.know(room)

    def know(self, room: Room) -> None:
        """A channel in which nothing was missed."""
        self._rooms[room.id] = room
        if room.id not in self._pending:
            self._done.add(room.id)

    def forget(self, channel: str) -> None:
        if channel in self._done:
            self._done.discard(channel)
            self._rooms.pop(channel, None)

    def finish(self, room: Room) -> None:
        """What was missed there is stored."""
        self._rooms[room.id] = room
        self._pending.pop(room.id, None)
        self._done.add(room.id)

    def hurry(self, channel: str, room: Room | None) -> None:
        """Somebody speaks there now."""
        if room is not None:
            self._rooms.setdefault(channel, room)
        if channel in self._pending and not self._readers.is_waiting(channel):
            return  # it is being read
        self._pending.setdefault(channel, self._reads_history)
        self._readers.add_first(channel)

    def _want(self, room: Room) -> None:
        self._rooms[room.id] = room
        self._done.discard(room.id)
        if room.id not in self._pending:
            self._pending[room.id] = True
            self._readers.add(room.id)

    # Reading

    async def run(self) -> None:
        await self._readers.run()

    async def _read(self, channel: str) -> None:
        room = self._rooms.get(channel) or await self._fetch_room(channel)
        self._put(CaughtUp(room, await self._missed(room) if self._pending.get(channel) else ()))

    def _give_up(self, channel: str) -> None:
        self._put(CaughtUp(self._rooms.get(channel) or Room(channel, RoomKind.CHANNEL)))

    async def _fetch_room(self, channel: str) -> Room:
        """What kind of place it is; one of which Discord does not tell is taken for a channel like any other."""
        try:
            return room_of(await self._patiently("tell of a channel", "/channels/{channel_id}", channel_id=channel))
        except (RejectedError, KeyError, TypeError, ValueError) as unknown:
            log.info("Channel not known", extra={"platform": "discord", "chat": channel, "reason": str(unknown)})
            return Room(channel, RoomKind.CHANNEL)

    async def _missed(self, room: Room) -> list[Json]:
        after = max(self._places.mark(room.id), oldest(self._now()), key=order)
        found: dict[str, Json] = {}
        try:
            found = await self._page(room.id, after, after=after)
            if len(found) >= PAGE:
                await self._go_back(room.id, after, found)
        except RejectedError as refused:  # gone, or it may not be read: the others go on
            log.warning("Not caught up", extra={"platform": "discord", "chat": room.id, "reason": str(refused)})
        return [found[id_] for id_ in sorted(found, key=order)]

    async def _go_back(self, channel: str, after: str, found: dict[str, Json]) -> None:
        """From the newest on: when there are too many, it is the oldest that are left out."""
        found.clear()
        for _ in range(MOST_PAGES):
            before = {"before": min(found, key=order)} if found else {}
            page = await self._page(channel, after, **before)
            found |= page
            if len(page) < PAGE:
                return
        log.warning("Only the newest are caught up", extra={"platform": "discord", "chat": channel})

    async def _page(self, channel: str, since: str, **query: str) -> dict[str, Json]:
        page = await self._patiently(
            "read what was said",
            "/channels/{channel_id}/messages",
            query={**query, "limit": str(PAGE)},
            channel_id=channel,
        )
        return _messages(page, since)

    async def _patiently(self, what: str, path: str, *, query: Json | None = None, **parts: str) -> Any:
        return await patiently(lambda: self._api.get(what, path, query=query, **parts))


def oldest(now: float) -> str:
    """Nothing from before is read."""
    return snowflake_at(now - LONGEST_SECONDS)


def _messages(page: object, after: str) -> dict[str, Json]:
    known = [each for each in page if isinstance(each, dict)] if isinstance(page, list) else []
    return {
        each["id"]: each for each in known if is_snowflake(each.get("id")) and order(str(each["id"])) > order(after)
    }
