"""What every fake platform can do, so that one suite asks the same of every adapter.

A fake is a small server with verbs a person would use and a memory of what reached it. Sync verbs may be
called before the server is up; what a user said then waits, as it would at the real platform.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Protocol, Self

import aiohttp

from hermes.core.keys import Target
from hermes.core.messages import Button, Capabilities
from hermes.core.ports import Adapter, Alive


@dataclass(frozen=True, slots=True)
class Said:
    """Something a user did. ``key`` is the dedupe key that the adapter must give it."""

    key: str
    message_id: str = ""
    update_id: int = 0
    chat: str = ""


@dataclass(slots=True)
class Sent:
    """A message as the people in the chat see it: markup is gone, ``edits`` holds its earlier texts."""

    chat: str
    text: str
    message_id: str
    at: float = field(default_factory=time.monotonic)
    reply_to: str = ""
    thread: str = ""
    parse_mode: str = ""
    raw: str = ""
    method: str = ""
    edits: list[str] = field(default_factory=list)
    buttons: tuple[tuple[Button, ...], ...] = ()
    file: bytes = b""
    file_name: str = ""
    is_voice: bool = False


_CODE = re.compile(r"(?ms)^```[^\n`]*\n(.*?)\n?```[ \t]*$")


def outside_code(text: str, unmarked: Callable[[str], str]) -> str:
    """Take the marks out of a text as people see it: in a block of code every sign stays."""
    return "".join(part if number % 2 else unmarked(part) for number, part in enumerate(_CODE.split(text)))


class Hold:
    """Requests that were taken and acted on, whose answers are kept back."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.waiting = 0
        self._reached = asyncio.Event()
        self._released = asyncio.Event()

    async def reached(self, deadline: float = 20.0) -> None:
        """Return once a request has been taken and its answer is being kept back."""
        async with asyncio.timeout(deadline):
            await self._reached.wait()

    def release(self) -> None:
        self._released.set()

    async def keep_back(self) -> None:
        """For the fake: wait here before answering."""
        self.waiting += 1
        self._reached.set()
        try:
            await self._released.wait()
        finally:
            self.waiting -= 1


@dataclass(slots=True)
class Changes:
    """Wakes whoever waits for something to happen at a fake; a burst costs each waiter few looks."""

    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        self._changed.set()

    async def wait_for(self, predicate: Callable[[], bool], deadline: float) -> None:
        """Return when the predicate holds, or raise TimeoutError."""
        async with asyncio.timeout(deadline):
            while not predicate():
                self._changed.clear()
                with suppress(TimeoutError):  # some changes, such as a closed connection, tell nobody
                    async with asyncio.timeout(0.05):
                        await self._changed.wait()
                await asyncio.sleep(0.002)  # let a burst finish before looking again


class FakeServer(Protocol):
    """The verbs of the contract suite.

    ``plays`` names what this fake can act out: ``drop`` (connections cut), ``outage`` (stop and start),
    ``rate``, ``credentials``, ``hold``, ``conflict`` (a second process), ``unknown`` and ``broken`` events,
    and of its users ``edits``, ``quotes`` and ``bursts`` (forwards, albums, texts cut at the platform's limit);
    ``groups``: it has chats of several people; ``typing``: it is shown whenever it is asked for, and not for long.
    ``replies``: ours that quote; ``whispers``: whoever pressed a button is shown an answer alone.
    ``secrets`` must appear in no error.
    ``menus`` is what the platform's own command menu shows: everywhere (""), and in single chats.
    """

    platform: str
    capabilities: Capabilities
    identity: str
    plays: frozenset[str]
    secrets: tuple[str, ...]
    sent: list[Sent]
    menus: dict[str, dict[str, str]]

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...

    def adapter(
        self, *, alive: Alive = ..., http: aiohttp.ClientSession | None = None
    ) -> AbstractAsyncContextManager[Adapter]:
        """The real adapter against this fake, with a real session that is closed at the end."""

    def target(self) -> Target:
        """The chat in which ``user_says`` speaks when no other is named."""

    def user_says(self, text: str) -> Said: ...
    def user_says_in_group(self, text: str, *, to_us: bool) -> Said:
        """In a chat of several people, where the account is one of them; ``to_us``: it is mentioned by name."""

    def user_edits(self, said: Said, text: str) -> Said: ...
    def user_answers(self, sent: Sent, text: str) -> Said:
        """The user replies to a message of ours, quoting it."""

    def user_forwards(self, texts: Sequence[str]) -> list[Said]:
        """Messages of somebody else, handed on all at once."""

    def user_sends_album(self, files: Sequence[bytes], caption: str = "") -> list[Said]:
        """Pictures that belong together; the caption stands with the first."""

    def user_presses(self, sent: Sent, data: str, *, user: int | None = None, name: str = "Ana") -> Said:
        """A button is pressed by whoever it was sent to, or by the user with this id."""

    def user_sends(self, data: bytes, name: str, caption: str = "") -> Said: ...
    def user_speaks(self, sound: bytes) -> Said:
        """A voice message, where the platform has such."""

    def user_shows(self, picture: bytes) -> Said:
        """A picture as the platform shows it, not as a file."""

    def redeliver(self, said: Said) -> None:
        """Hand the same message out once more, by another event."""

    def something_unknown_happens(self) -> None:
        """An event of a kind that the adapter has never heard of."""

    def something_broken_arrives(self) -> None:
        """An event that cannot be parsed."""

    def limit_next_send(self, retry_after: float) -> None: ...
    def refuse_credentials(self) -> None: ...
    def hold_sends(self) -> Hold: ...
    def drop_connection(self) -> None: ...

    @property
    def open_connections(self) -> int: ...

    @property
    def polls(self) -> int:
        """How often the adapter asked for news (0 where the platform pushes)."""

    @property
    def typings(self) -> int: ...

    async def wait_for(self, predicate: Callable[[], bool], deadline: float = 20.0) -> None: ...
