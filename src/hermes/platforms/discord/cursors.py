"""Store the session, each channel's cursor and our threads between connections.

The mark of a channel is a low-water mark: every message in it up to that id is in the inbox. ``since`` is when this
account first listened. A session is remembered with the number of the last dispatch up to which everything is in the
inbox, so that Discord, asked to resume it, hands out the rest again; while messages are still being caught up, none is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import orjson

from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.errors import RateLimitedError
from hermes.core.messages import Cursor
from hermes.platforms.discord.parse import is_snowflake, order

_SINCE, _SESSION, _THREADS, _ROLES, _BEGUN = "since", "session", "threads", "roles", "begun"
_DIRECT, _CHANNEL = "dm:", "channel:"
MAX_THREADS = 200
MAX_ROLES = 500
# Discord takes a bot's token away that begins more than a thousand sessions in a day.
MAX_SESSION_STARTS = 100
BEGUN_SECONDS = 3 * 3600.0


@dataclass(frozen=True, slots=True)
class Session:
    """What Discord calls our connection, the last dispatch that is stored, and where it is resumed."""

    id: str
    seq: int
    url: str


class Places:
    def __init__(self, cursor: Cursor) -> None:
        self.since = cursor.get(_SINCE, "") if is_snowflake(cursor.get(_SINCE)) else ""
        self.session = _session(_loaded(cursor.get(_SESSION, "")))
        self._direct = _with_prefix(cursor, _DIRECT)
        self._channels = _with_prefix(cursor, _CHANNEL)
        self._threads = BoundedDict(MAX_THREADS, dict.fromkeys(_ids(_loaded(cursor.get(_THREADS, "")))))
        self._roles = BoundedDict(MAX_ROLES, dict.fromkeys(_ids(_loaded(cursor.get(_ROLES, "")))))
        self._begun = cursor.get(_BEGUN, "")

    @classmethod
    def of(cls, cursor: Cursor) -> Self:
        return cls(cursor)

    @property
    def direct_chats(self) -> list[str]:
        """Those in which somebody wrote last come first."""
        return sorted(self._direct, key=lambda channel: order(self._direct[channel]), reverse=True)

    def mark(self, channel: str) -> str:
        return self._direct.get(channel) or self._channels.get(channel) or self.since

    def is_direct(self, channel: str) -> bool:
        return channel in self._direct

    def begin(self, since: str) -> dict[str, str]:
        self.since = since
        return {_SINCE: since}

    def move(self, channel: str, message_id: str, *, is_direct: bool) -> dict[str, str]:
        """Everything in the channel up to here is stored with what changes now."""
        cursor, name = (self._direct, _DIRECT) if is_direct else (self._channels, _CHANNEL)
        if order(message_id) <= order(cursor.get(channel, "")):
            return {}
        cursor[channel] = message_id
        return {f"{name}{channel}": message_id}

    def forget_before(self, oldest: str) -> dict[str, str]:
        """Channels and threads in which nothing was said for longer than is caught up: without a mark they are read
        from there on just the same, and new threads open every day. Direct chats are known by nothing else."""
        old = [channel for channel, mark in self._channels.items() if order(mark) < order(oldest)]
        for channel in old:
            del self._channels[channel]
        return {f"{_CHANNEL}{channel}": "" for channel in old}

    # Threads and roles

    def takes_part(self, thread: str) -> bool:
        return thread in self._threads

    def join(self, thread: str) -> dict[str, str]:
        """We take part in this thread; the one that was quiet for longest is forgotten when there are too many."""
        is_newest = self._threads and next(reversed(self._threads)) == thread
        return {} if is_newest else {_THREADS: _added(self._threads, [thread])}

    def is_our_role(self, role: str) -> bool:
        return role in self._roles

    def add_roles(self, roles: Iterable[str]) -> dict[str, str]:
        new = [role for role in roles if role not in self._roles]
        return {_ROLES: _added(self._roles, new)} if new else {}

    # Sessions

    def remember(self, session: Session | None) -> dict[str, str]:
        if session == self.session:
            return {}
        self.session = session
        entry = {"id": session.id, "seq": session.seq, "url": session.url} if session is not None else {}
        return {_SESSION: orjson.dumps(entry).decode()}

    def begin_session(self, now: float) -> dict[str, str]:
        """Count a session that is about to begin, or raise: too many would cost the token."""
        first, _, count = self._begun.partition("/")
        is_count = count.isdecimal() and first.replace(".", "", 1).isdecimal()
        start, begun = (float(first), int(count)) if is_count else (now, 0)
        if not 0 <= now - start < BEGUN_SECONDS:
            start, begun = now, 0
        if begun >= MAX_SESSION_STARTS:
            raise RateLimitedError(
                f"{begun} sessions began within {(now - start) / 60:.0f} minutes. Discord takes the token away from a "
                "bot that begins a thousand in a day, so the next one waits.",
                retry_after=max(60.0, start + BEGUN_SECONDS - now),
            )
        self._begun = f"{int(start)}/{begun + 1}"
        return {_BEGUN: self._begun, **self.remember(None)}


def _with_prefix(cursor: Cursor, prefix: str) -> dict[str, str]:
    found = {name.removeprefix(prefix): mark for name, mark in cursor.items() if name.startswith(prefix)}
    return {name: mark for name, mark in found.items() if is_snowflake(name) and is_snowflake(mark)}


def _loaded(mark: str) -> Any:
    try:
        return orjson.loads(mark or "null")
    except orjson.JSONDecodeError:  # a mark that was damaged costs what it held, not the account
        return None


def _ids(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str) and is_snowflake(each)] if isinstance(value, list) else []


def _session(entry: object) -> Session | None:
    match entry:
        case {"id": str(id_), "seq": int(seq), "url": str(url)} if id_:
            return Session(id_, seq, url)
        case _:
            return None


def _added(known: BoundedDict[str, None], new: Iterable[str]) -> str:
    known.update(dict.fromkeys(new))
    return orjson.dumps(list(known)).decode()
