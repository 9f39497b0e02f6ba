"""Describe a platform (settings, limits, extras) without importing its code."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeVar

from hermes.core.dataclasses import dataclass
from hermes.core.messages import Cursor
from hermes.core.ports import Adapter, Alive


class SettingKind(StrEnum):
    TEXT = "text"
    SECRET = "secret"
    NUMBER = "number"
    FLAG = "flag"
    LIST = "list"  # comma-separated in the environment


@dataclass(frozen=True, slots=True)
class Setting:
    """One key under ``platforms.<id>``. ``env`` is its environment name.

    Set-up asks for what is ``required`` or ``asked``, under its ``label`` ("Bot token"), after the lines of ``get``:
    how a person comes by the value, one step a line.
    """

    key: str
    env: str
    kind: SettingKind = SettingKind.TEXT
    default: Any = None
    required: bool = False
    help: str = ""
    label: str = ""
    get: tuple[str, ...] = ()
    asked: bool = False


class Closable(Protocol):
    async def close(self) -> None: ...


_Thing = TypeVar("_Thing", bound=Closable)


class AccountResource:
    """What an adapter leaves to the next, such as a process that outlives a connection. Its maker closes it last."""

    def __init__(self) -> None:
        self._things: dict[type, Closable] = {}

    def one(self, kind: type[_Thing], make: Callable[[], _Thing]) -> _Thing:
        """Return the one of this kind, made when there is none yet."""
        found = self._things.get(kind)
        if not isinstance(found, kind):
            found = self._things[kind] = make()
        return found

    async def close(self) -> None:
        while self._things:
            _, thing = self._things.popitem()
            await thing.close()


@dataclass(frozen=True, slots=True)
class AdapterParts:
    """What an adapter is handed. ``http`` is an aiohttp.ClientSession that knows the proxy; whoever
    built it closes it. ``values`` holds every Setting by key, secrets as ``Secret``. ``now`` tells the time of day.
    ``folder`` is where the platform may keep files of its own, the same for all its accounts; it need not exist.
    ``proxy_for`` names the proxy of an address, for what does not go through ``http``; '' where there is none."""

    account: str
    values: Mapping[str, Any]
    http: Any
    alive: Alive
    cursor: Cursor
    now: Callable[[], float] = time.time
    folder: Path = Path()
    kept: AccountResource = field(default_factory=AccountResource)
    proxy_for: Callable[[str], str] = lambda _: ""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """What a sign-in gave: the settings to write, by key (none: those that are there stay), and who did it."""

    values: Mapping[str, str]
    owner: str = ""


class SignInScreen(Protocol):
    """The terminal of whoever signs in."""

    def show_code(self, payload: str) -> None:
        """Draw it as a QR code, with the link under it. A new one takes the place of the last."""

    def say(self, text: str) -> None: ...

    def progress(self, text: str) -> None:
        """How far something is that takes long: a line whose place the next one takes."""

    async def ask(self, question: str) -> str:
        """Return what the person types; '' where nobody can be asked."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Registered under the entry point ``hermes.platforms``. ``build`` imports what it needs when called.

    A platform counts as configured when every required setting has a value (or ``always_on``).
    ``extra`` names the pip extra that carries its SDK, "" when it needs none.
    For set-up: ``ids`` says how a person finds their id, with an example; ``link`` is the address of a chat with the
    account, ``{name}`` standing for what ``describe`` gives, without its @. ``sign_in`` is for platforms whose required
    settings come from a code that is scanned: `hermes <id> login` and set-up call it, a running gateway never does.
    ``prepare`` installs what that needs beforehand. ``lapsed`` says in words that what was signed in counts no more, ''
    where the platform's files say nothing against it.
    ``older_env`` are further environment names of a key, heard after its own. ``tidy_id`` writes a person's id, however
    somebody typed it into a list, as the platform does; ``tidy_group`` a group's.
    """

    id: str
    title: str
    settings: tuple[Setting, ...]
    build: Callable[[AdapterParts], Adapter]
    extra: str = ""
    always_on: bool = False
    ids: str = ""
    link: str = ""
    older_env: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sign_in: Callable[[AdapterParts, SignInScreen], Awaitable[SignedIn]] | None = None
    prepare: Callable[[AdapterParts, SignInScreen], Awaitable[None]] | None = None
    lapsed: Callable[[AdapterParts], str] | None = None
    tidy_id: Callable[[str], str] = str
    tidy_group: Callable[[str], str] = str
