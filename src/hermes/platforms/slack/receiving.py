"""Gather socket envelopes and history into batches for the inbox."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import UTC, datetime

from hermes.core.dataclasses import dataclass
from hermes.core.errors import PlatformError, UnreachableError
from hermes.core.messages import InboundEvent, InboundMessage
from hermes.platforms.shared.history import CaughtUp
from hermes.platforms.slack import parse, wire
from hermes.platforms.slack.catchup import CatchUp
from hermes.platforms.slack.connection import Frame, Link, Links, Moved, farewell, loaded
from hermes.platforms.slack.cursors import Places
from hermes.platforms.slack.parse import Me, Place

Item = Frame | Moved | CaughtUp
_ENVELOPE = re.compile(r'"envelope_id"\s*:\s*"([^"\\]{1,100})"')
_MOVES = ("warning", "refresh_requested")  # Slack wants us on another socket; this one still works for a while


@dataclass(slots=True)
class Batch:
    """What is stored in one go, and what is to be done after that."""

    events: list[InboundEvent] = field(default_factory=list)
    cursor: dict[str, str] = field(default_factory=dict)
    acks: list[tuple[Link, str]] = field(default_factory=list)
    leaving: list[Link] = field(default_factory=list)
    left: list[Link] = field(default_factory=list)
    ended: PlatformError | None = None

    async def settle(self, links: Links) -> None:
        for link, envelope_id in self.acks:
            await link.ack(envelope_id)
        if self.ended is not None:
            raise self.ended
        for link in self.leaving:
            links.replace(link)
        for link in self.left:
            await links.leave(link)


@dataclass(frozen=True, slots=True)
class _Live:
    """An envelope that came over a socket; ``place`` is where its message stands in the history."""

    link: Link
    envelope: object
    id: str = ""
    channel: str = ""
    place: Place | None = None


@dataclass(slots=True)
class Receiver:
    """Live events of a channel wait behind its catch-up, and move its mark only then."""

    me: Me
    places: Places
    catch_up: CatchUp
    noted: Callable[[InboundMessage], None]
    _held: dict[str, list[_Live]] = field(default_factory=dict)

    def gather(self, items: Sequence[Item]) -> Batch:
        batch = Batch()
        for item in items:
            match item:
                case Frame():
                    self._frame(item, batch)
                case Moved(old, error):
                    batch.left.append(old)
                    batch.ended = error
                case CaughtUp():
                    self._caught_up(item, batch)
            if batch.ended is not None:
                break  # what came before is stored and acknowledged; the rest is handed out again
        return batch

    def _frame(self, frame: Frame, batch: Batch) -> None:
        if frame.data is None:
            # Without another one nobody listens now: whatever is said meanwhile is caught up with at the next start.
            batch.ended = None if frame.link.has_successor else UnreachableError(frame.reason)
            return
        envelope = loaded(frame.data)
        if envelope is None:
            batch.events.append(wire.keep_unreadable(frame.data, "not JSON"))
            if found := _ENVELOPE.search(frame.data):  # it will be no better the next time
                batch.acks.append((frame.link, found[1]))
            return
        kind = envelope.get("type") if isinstance(envelope, dict) else None
        if kind == "hello":
            return
        if isinstance(envelope, dict) and kind == "disconnect":
            if envelope.get("reason") in _MOVES:
                batch.leaving.append(frame.link)
            else:
                batch.ended = farewell(envelope)
            return
        live = _live(frame.link, envelope)
        if live.channel and not self.catch_up.is_done(live.channel):
            self._held.setdefault(live.channel, []).append(live)
            self.catch_up.hurry(live.channel)
            return
        self._take(live, batch)

    def _caught_up(self, found: CaughtUp, batch: Batch) -> None:
        if found.error is not None:
            batch.ended = found.error
            return
        seen: set[str] = set()
        for message in found.messages:
            event = wire.past(message, found.channel, self.me)
            seen.update(event.keys, parse.edits_in(message, found.channel, self.me))
            self._add(event, parse.place_of({**message, "type": "message", "channel": found.channel}), batch)
        self.catch_up.finish(found.channel)
        for live in self._held.pop(found.channel, ()):
            self._take(live, batch, seen)

    def _take(self, live: _Live, batch: Batch, seen: frozenset[str] | set[str] = frozenset()) -> None:
        event = wire.understand(live.envelope, self.me, datetime.now(UTC))
        if not seen.intersection(event.keys):
            self._add(event, live.place, batch)
        if live.id:
            batch.acks.append((live.link, live.id))

    def _add(self, event: InboundEvent, place: Place | None, batch: Batch) -> None:
        batch.events.append(event)
        if isinstance(event, InboundMessage) and event.message_id:
            self.noted(event)
            key = event.session_key
            if event.is_addressed and key.thread:  # whoever answers there speaks to us
                batch.cursor |= self.places.join(key.chat, key.thread, event.message_id)
        if place is not None:
            batch.cursor |= self.places.move(place)


def _live(link: Link, envelope: object) -> _Live:
    if not isinstance(envelope, dict):
        return _Live(link, envelope)
    payload = envelope.get("payload")
    event = payload.get("event") if isinstance(payload, dict) else None
    name = str(envelope.get("envelope_id") or "")
    return _Live(link, envelope, name, parse.channel_of(event), parse.place_of(event))
