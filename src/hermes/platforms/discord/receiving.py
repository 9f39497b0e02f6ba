"""Gather gateway frames and history into batches for the inbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from datetime import datetime

from hermes.core.dataclasses import dataclass
from hermes.core.messages import InboundEvent, InboundMessage, Json
from hermes.platforms.discord import wire
from hermes.platforms.discord.catchup import CatchUp
from hermes.platforms.discord.connection import Broken, Ended, Frame, Heard
from hermes.platforms.discord.cursors import Places, Session
from hermes.platforms.discord.interactions import typed
from hermes.platforms.discord.parse import (
    WITH_MESSAGES,
    Me,
    Room,
    RoomKind,
    is_snowflake,
    message_key,
    room_of,
    snowflake_at,
)
from hermes.platforms.shared.history import CaughtUp, objects

Item = Heard | CaughtUp


@dataclass(frozen=True, slots=True)
class Ack:
    """An interaction that Discord wants answered within three seconds of its making. ``echo``: of a slash command."""

    id: str
    token: str
    echo: str = ""


@dataclass(slots=True)
class Batch:
    """What is stored in one go, and what is to be done after that."""

    events: list[InboundEvent] = field(default_factory=list)
    cursor: dict[str, str] = field(default_factory=dict)
    acks: list[Ack] = field(default_factory=list)
    ended: Ended | None = None


@dataclass(slots=True)
class Receiver:
    """Live events of a channel wait behind its catch-up, and move its mark only then."""

    me: Me
    places: Places
    catch_up: CatchUp
    noted: Callable[[InboundMessage], None]
    session: Session | None
    _held: dict[str, list[Frame]] = field(default_factory=dict)

    def gather(self, items: Sequence[Item]) -> Batch:
        batch = Batch()
        for item in items:
            match item:
                case Frame():
                    self._frame(item, batch)
                case CaughtUp():
                    self._caught_up(item, batch)
                case Broken():
                    batch.events.append(wire.keep_unreadable(item.raw, "not a frame of the gateway's"))
                case Ended():
                    batch.ended = item
            if batch.ended is not None:
                break  # what came before is stored; the rest is handed out again, or stands in the history
        stored, now = self.places.session, self.session
        # Up to here everything is stored, unless something is held or being caught up.
        if now is None or self._held or not self.catch_up.is_complete:
            return batch
        if batch.events or batch.cursor or stored is None or stored.id != now.id:
            batch.cursor |= self.places.remember(now)
        return batch

    def _frame(self, frame: Frame, batch: Batch) -> None:
        match frame.event:
            case "MESSAGE_CREATE" | "MESSAGE_UPDATE":
                self._take_message(frame, batch)
            case "INTERACTION_CREATE":
                self._add(wire.understand(frame.event, frame.data, None, self.me), batch)
                batch.acks += _ack(frame.data)
            case _:
                batch.cursor |= self._learn(frame)
        if self.session is not None:
            self.session = replace(self.session, seq=frame.seq)

    # Places

    def _learn(self, frame: Frame) -> dict[str, str]:
        data = frame.data if isinstance(frame.data, dict) else {}
        match frame.event:
            case "READY":
                self.session = Session(str(data["session_id"]), frame.seq, str(data["resume_gateway_url"]))
                self.catch_up.expect(str(each.get("id")) for each in objects(data.get("guilds")))
            case "GUILD_CREATE":
                return self._server(data)
            case "GUILD_DELETE":
                self.catch_up.arrived(str(data.get("id")))
            case "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE":
                for room in _rooms([data]):
                    self.catch_up.know(room)
            case "THREAD_LIST_SYNC":
                for room in _rooms(objects(data.get("threads"))):
                    self.catch_up.know(room)
            case "CHANNEL_DELETE" | "THREAD_DELETE":
                self.catch_up.forget(str(data.get("id")))
        return {}

    def _server(self, data: Json) -> dict[str, str]:
        """A server tells of all its channels and living threads, and of the newest message in each."""
        try:
            floor = snowflake_at(datetime.fromisoformat(str(data.get("joined_at"))).timestamp())
        except ValueError:
            floor = "0"
        for channel in (*objects(data.get("channels")), *objects(data.get("threads"))):
            if channel.get("type") not in WITH_MESSAGES:
                continue
            newest = channel.get("last_message_id")
            for room in _rooms([channel]):
                if self.me.rules.hears(room):
                    self.catch_up.learn(room, newest if is_snowflake(newest) else "0", floor)
                else:
                    self.catch_up.know(room)
        self.catch_up.arrived(str(data.get("id")))
        ours = [
            each
            for each in objects(data.get("roles"))
            if isinstance(tags := each.get("tags"), dict) and tags.get("bot_id") == self.me.user
        ]
        return self.places.add_roles(role["id"] for role in ours if is_snowflake(role.get("id")))

    # What was said

    def _take_message(self, frame: Frame, batch: Batch) -> None:
        data = frame.data if isinstance(frame.data, dict) else {}
        channel = data.get("channel_id")
        if not isinstance(channel, str) or not is_snowflake(channel):
            batch.events.append(wire.keep_unreadable(frame.data, "no channel"))
            return
        direct = None if data.get("guild_id") else Room(channel, RoomKind.DIRECT)
        room = self.catch_up.room(channel, direct)
        if room is None:
            self._held.setdefault(channel, []).append(frame)
            self.catch_up.hurry(channel, direct)
            return
        self._take(frame, room, batch)

    def _take(self, frame: Frame, room: Room, batch: Batch) -> None:
        self._add(wire.understand(frame.event, frame.data, room, self.me), batch)
        data = frame.data if isinstance(frame.data, dict) else {}
        if frame.event == "MESSAGE_CREATE" and is_snowflake(data.get("id")):
            batch.cursor |= self._moved(room, data["id"])

    def _moved(self, room: Room, message_id: str) -> dict[str, str]:
        return self.places.move(room.id, message_id, is_direct=room.kind is RoomKind.DIRECT)

    def _caught_up(self, found: CaughtUp, batch: Batch) -> None:
        if found.error is not None:
            batch.ended = Ended(found.error)
            return
        room = self.catch_up.place(found.channel)
        seen: set[str] = set()
        for message in found.messages:
            event = wire.past(message, room, self.me)
            seen |= {message_key(message["id"]), _name_of_edit(message)}
            self._add(event, batch)
            batch.cursor |= self._moved(room, message["id"])
        self.catch_up.finish(room.id)
        for frame in self._held.pop(room.id, ()):
            data = frame.data if isinstance(frame.data, dict) else {}
            is_new = frame.event == "MESSAGE_CREATE"
            if (message_key(str(data.get("id"))) if is_new else _name_of_edit(data)) not in seen:
                self._take(frame, room, batch)

    def _add(self, event: InboundEvent, batch: Batch) -> None:
        batch.events.append(event)
        if isinstance(event, InboundMessage) and event.message_id:
            self.noted(event)
            if event.is_addressed and event.session_key.thread:  # whoever answers there speaks to us
                batch.cursor |= self.places.join(event.session_key.thread)


def _rooms(channels: Sequence[Json]) -> Iterator[Room]:
    for channel in channels:
        try:
            yield room_of(channel)
        except (KeyError, TypeError, ValueError):  # one that cannot be read is asked for when somebody speaks there
            continue


def _name_of_edit(message: Json) -> str:
    """What the history shows of an edited message are its newest words."""
    edited = message.get("edited_timestamp")
    return f"edit:{message.get('id')}:{edited}" if edited else f"as it was: {message.get('id')}"


def _ack(data: object) -> list[Ack]:
    if not isinstance(data, dict) or not is_snowflake(data.get("id")) or not isinstance(data.get("token"), str):
        return []
    match data.get("type"), data.get("data"):
        case 2, dict(command) if isinstance(command.get("name"), str):
            return [Ack(data["id"], data["token"], typed(command))]
        case 3, _:
            return [Ack(data["id"], data["token"])]
        case _:
            return []
