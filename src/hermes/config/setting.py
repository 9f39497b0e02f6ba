"""Declare a setting on the dataclass field that holds its value.

The name, the type and the default of the field are those of the setting. Its place in the files follows from the
classes around it, so this is ``approvals.timeout_seconds``:

    class ApprovalsConfig:
        timeout_seconds: float = setting(300.0, "how long an approval waits", env="HERMES_APPROVAL_TIMEOUT", low=5)

``keys_of`` makes keys of these declarations, and ``config/build.py`` fills the same classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from hermes.config.values import Key, Kind

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class Limits(TypedDict, total=False):  # fields of Key, for what the type of the field leaves open
        kind: Kind
        choices: tuple[str, ...]
        low: float
        high: float
        is_prose: bool
        needs_restart: bool


Path = tuple[str, ...]
T = TypeVar("T")


def setting(default: T, help: str, *, env: str = "", at: str | None = None, **limits: Unpack[Limits]) -> T:
    """Declare one value. ``env`` names its variables, separated by blanks; ``at`` is its name in the files."""
    is_shown = "kind" not in limits or limits["kind"] is not Kind.URL  # an address may hold a password
    return field(default=default, repr=is_shown, metadata={"help": help, "env": env, "at": at, **limits})


def web_address(help: str, *, env: str = "") -> str:
    return setting("", help, env=env, kind=Kind.URL, choices=("http", "https"))


def proxy_address(help: str, *, env: str) -> str:
    return setting("", help, env=env, kind=Kind.URL, choices=("http", "https", "socks5", "socks5h"))


def section(
    of: type[Any], *, at: str | None = None, make: Callable[[], Any] | None = None, inherits: bool = False
) -> Any:
    """Declare a field with the settings of another class; ``at=""`` puts them on the level of the field itself.

    ``make`` gives the default of a field whose value is only made from these settings. ``inherits``: what is left out
    comes from a wider section, so its settings have no default.
    """
    return field(default_factory=make or of, metadata={"section": of, "at": at, "inherits": inherits})


def nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


def by_name(help: str, **limits: Unpack[Limits]) -> Any:
    """Declare a mapping from names that the owner chooses to single values."""
    return field(default_factory=nothing, metadata={"is_named": True, "help": help, **limits})


def sections(of: type[Any], *, make: Callable[[], Any] = nothing, inherits: bool = False) -> Any:
    """Declare a mapping from names that the owner chooses to sections."""
    return field(default_factory=make, metadata={"is_named": True, "section": of, "inherits": inherits})


class Section:
    """What ``section`` and ``sections`` declare: a place for the settings of the class ``of``."""

    __slots__ = ("inherits", "of", "path")

    def __init__(self, path: Path, of: type[Any], *, inherits: bool) -> None:
        self.path, self.of, self.inherits = path, of, inherits


_KINDS: Mapping[str, Kind] = {
    "str": Kind.TEXT,
    "bool": Kind.FLAG,
    "int": Kind.WHOLE,
    "float": Kind.NUMBER,
    "tuple[str, ...]": Kind.LIST,
    "Secret": Kind.SECRET,
    "tuple[Secret, ...]": Kind.SECRETS,
}


@cache
def declared_by(of: type[Any]) -> Mapping[str, Key | Section]:
    """What the fields of a class declare, by their names. A class that only declares need not be a dataclass.

    A path leads there from the place of the class; it ends in ``*`` where the owner chooses names.
    """
    known = getattr(of, "__dataclass_fields__", vars(of))
    return {
        name: _declared(name, annotation, known[name].default, known[name].metadata)
        for name, annotation in of.__annotations__.items()
        if name in known and known[name].metadata
    }


def _declared(name: str, annotation: str, default: Any, options: Mapping[str, Any]) -> Key | Section:
    at = options.get("at")
    path = (name,) if at is None else tuple(at.split(".")) if at else ()
    if "is_named" in options:
        path, annotation, default = (*path, "*"), annotation[len("Mapping[str, ") : -1], None
    if "section" in options:
        return Section(path, options["section"], inherits=options["inherits"])
    choices = options.get("choices") or (tuple(type(default)) if isinstance(default, Enum) else ())
    kind = options.get("kind") or (Kind.DURATION if name.endswith("_seconds") else Kind.CHOICE if choices else None)
    kind = kind or _KINDS[annotation.removesuffix(" | None")]
    env, low, high = tuple(options.get("env", "").split()), options.get("low", -math.inf), options.get("high", math.inf)
    needs_restart = "needs_restart" in options
    return Key(path, kind, default, env, choices, low, high, "is_prose" in options, options["help"], needs_restart)


def keys_of(of: type[Any], prefix: Path = (), *, inherits: bool = False) -> Iterator[Key]:
    """The keys that a class declares, those of its sections included."""
    for declared in declared_by(of).values():  # type: ignore[arg-type] # a class is hashable
        path = (*prefix, *declared.path)
        if isinstance(declared, Section):
            yield from keys_of(declared.of, path, inherits=inherits or declared.inherits)
        elif inherits:
            yield replace(declared, path=path, default=None, env=())
        else:
            yield declared.at(path, declared.env) if prefix else declared
