"""Store each channel's cursor, and the threads that we take part in.

The mark of a channel is a low-water mark: everything in it up to that time is in the inbox. ``since`` is when this
account first listened; what a channel without a mark holds since then was never seen.
"""

from __future__ import annotations

from typing import Self

import orjson

from hermes.core.bounded import BoundedDict
from hermes.core.messages import Cursor
from hermes.platforms.slack.parse import Place, order

_SINCE, _THREADS, _CHANNEL = "since", "threads", "channel:"
MAX_THREADS = 200


class Places:
    def __init__(self, since: str, channels: dict[str, str], threads: BoundedDict[str, str]) -> None:
        self.since = since
        self._channels = channels
        self._threads = threads

    @classmethod
    def of(cls, cursor: Cursor) -> Self:
        channels = {name.removeprefix(_CHANNEL): ts for name, ts in cursor.items() if name.startswith(_CHANNEL)}
        return cls(cursor.get(_SINCE, ""), channels, _threads(cursor.get(_THREADS, "")))

    @property
    def channels(self) -> list[str]:
        return list(self._channels)

    def mark(self, channel: str) -> str:
        return self._channels.get(channel) or self.since

    def threads_in(self, channel: str) -> dict[str, str]:
        """The threads of a channel in which we take part, and up to where each is stored."""
        start = f"{channel}:"
        return {key.removeprefix(start): ts for key, ts in self._threads.items() if key.startswith(start)}

    def takes_part(self, channel: str, thread: str) -> bool:
        return f"{channel}:{thread}" in self._threads

    def begin(self, ts: str) -> dict[str, str]:
        self.since = ts
        return {_SINCE: ts}

    def move(self, place: Place) -> dict[str, str]:
        """Everything in the channel up to here is stored with what changes now."""
        changed: dict[str, str] = {}
        if order(place.ts) > order(self._channels.get(place.channel, "")):
            self._channels[place.channel] = changed[f"{_CHANNEL}{place.channel}"] = place.ts
        if place.thread and self.takes_part(place.channel, place.thread):
            changed |= self.join(place.channel, place.thread, place.ts)
        return changed

    def join(self, channel: str, thread: str, ts: str) -> dict[str, str]:
        """We take part in this thread; the one that was quiet for longest is forgotten when there are too many."""
        key = f"{channel}:{thread}"
        known = self._threads.get(key, "")
        self._threads[key] = max(known, ts, key=order)
        return {_THREADS: orjson.dumps(self._threads).decode()}


def _threads(mark: str) -> BoundedDict[str, str]:
    try:
        stored = orjson.loads(mark or "{}")
    except orjson.JSONDecodeError:  # a mark that was damaged costs the threads, not the account
        stored = {}
    known = stored if isinstance(stored, dict) else {}
    return BoundedDict(MAX_THREADS, {str(key): str(ts) for key, ts in known.items() if ":" in str(key)})
