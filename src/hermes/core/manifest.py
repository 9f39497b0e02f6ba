"""What a platform says about itself before anything of it is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hermes.core.messages import Marks
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


@dataclass(frozen=True, slots=True)
class AdapterParts:
    """What an adapter is handed. ``http`` is an aiohttp.ClientSession that knows the proxy; whoever
    built it closes it. ``values`` holds every Setting by key, secrets as ``Secret``."""

    account: str
    values: Mapping[str, Any]
    http: Any
    alive: Alive
    cursor: Marks


@dataclass(frozen=True, slots=True)
class Manifest:
    """Registered under the entry point ``hermes.platforms``. ``build`` imports what it needs when called.

    A platform counts as configured when every required setting has a value (or ``always_on``).
    ``extra`` names the pip extra that carries its SDK, "" when it needs none.
    For set-up: ``ids`` says how a person finds their id, with an example; ``link`` is the address of a chat with the
    account, ``{name}`` standing for what ``describe`` gives, without its @.
    ``older_env`` are further environment names of a key, heard after its own.
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
