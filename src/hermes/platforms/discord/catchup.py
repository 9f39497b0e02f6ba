"""Fetch messages of each channel that were written while no session listened."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from hermes.core.errors import RejectedError
from hermes.core.messages import Json
from hermes.platforms.discord.api import Api
from hermes.platforms.discord.cursors import Places
from hermes.platforms.discord.parse import Room, RoomKind, is_snowflake, order, room_of, snowflake_at
from hermes.platforms.shared import history
from hermes.platforms.shared.history import MAX_SECONDS, CaughtUp, objects, patiently, read_pages

log = logging.getLogger(__name__)

PAGE = 100
MAX_PAGES = 10


class CatchUp(history.CatchUp):
    """In a session that was resumed nothing is missing; then it only finds out what kind of place an unknown channel
    is."""

    platform = "discord"

    def __init__(
        self, api: Api, places: Places, now: Callable[[], float], put: Callable[[CaughtUp], None], *, is_resumed: bool
    ) -> None:
        super().__init__(put)
        self._api = api
        self._places = places
        self._now = now
        self._reads_history = not is_resumed
        self._servers: set[str] | None = set() if is_resumed else None  # those that Discord has not told of yet
        self._rooms: dict[str, Room] = {}
        self._has_history: set[str] = set()  # channels whose history is to be read
        if self._reads_history:
            for channel in places.direct_chats:
                self._want(Room(channel, RoomKind.DIRECT))

    # What is known

    def room(self, channel: str, direct: Room | None = None) -> Room | None:
        """Return the place once what was missed there is stored; ``direct`` chats of a resumed session miss nothing."""
        if direct is not None and not self._reads_history:
            self.know(direct)
        return self._rooms.get(channel) if self.is_done(channel) else None

    @property
    def is_complete(self) -> bool:
        """Tell whether every server listed its channels and all were read."""
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
        self.skip(room.id)

    def forget(self, channel: str) -> None:
        if self.is_done(channel):
            self._done.discard(channel)
            self._rooms.pop(channel, None)

    def hurry(self, channel: str, room: Room | None = None) -> None:
        if room is not None:
            self._rooms.setdefault(channel, room)
        if self._reads_history:
            self._has_history.add(channel)
        super().hurry(channel)

    def finish(self, channel: str) -> None:
        self._has_history.discard(channel)
        super().finish(channel)

    def place(self, channel: str) -> Room:
        """Where the messages that were put belong; a channel that could not be asked for is like any other."""
        return self._rooms.setdefault(channel, Room(channel, RoomKind.CHANNEL))

    def _want(self, room: Room) -> None:
        self._rooms[room.id] = room
        self._has_history.add(room.id)
        self.want(room.id)

    # Reading

    async def missed(self, channel: str) -> Sequence[Json]:
        if channel not in self._rooms:
            self._rooms[channel] = await self._fetch_room(channel)
        if channel not in self._has_history:
            return ()
        since = max(self._places.mark(channel), oldest(self._now()), key=order)
        found = await patiently(lambda: self._page(channel, since, after=since))
        if len(found) >= PAGE:  # from the newest on: when there are too many, it is the oldest that are left out

            async def older(before: str) -> tuple[list[Json], str]:
                page = await self._page(channel, since, **({"before": before} if before else {}))
                return list(page.values()), min(page, key=order) if len(page) >= PAGE else ""

            about = {"platform": "discord", "chat": channel}
            found = {each["id"]: each for each in await read_pages(older, MAX_PAGES, about)}
        return [found[id_] for id_ in sorted(found, key=order)]

    async def _fetch_room(self, channel: str) -> Room:
        """What kind of place it is; one of which Discord does not tell is taken for a channel like any other."""
        path = "/channels/{channel_id}"
        try:
            return room_of(await patiently(lambda: self._api.get("tell of a channel", path, channel_id=channel)))
        except (RejectedError, KeyError, TypeError, ValueError) as unknown:
            log.info("Channel not known", extra={"platform": "discord", "chat": channel, "reason": str(unknown)})
            return Room(channel, RoomKind.CHANNEL)

    async def _page(self, channel: str, since: str, **query: str) -> dict[str, Json]:
        """The messages of one page that are younger than ``since``, by their ids."""
        path = "/channels/{channel_id}/messages"
        page = await self._api.get("read what was said", path, query={**query, "limit": str(PAGE)}, channel_id=channel)
        return {
            each["id"]: each
            for each in objects(page)
            if is_snowflake(each.get("id")) and order(str(each["id"])) > order(since)
        }


def oldest(now: float) -> str:
    """Return the snowflake before which nothing is fetched."""
    return snowflake_at(now - MAX_SECONDS)
