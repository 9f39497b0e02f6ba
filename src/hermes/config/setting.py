"""Declare a setting on the dataclass field that holds its value.

The name, the type and the default of the field are those of the setting. Its place in the files follows from the
classes around it, so this is ``approvals.timeout_seconds``:

    class ApprovalsConfig:
        timeout_seconds: float = setting(300.0, "how long an approval waits", env="HERMES_APPROVAL_TIMEOUT", low=5)

``keys_of`` makes keys of these declarations, and ``config/build.py`` fills the same classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from hermes.config.values import Key, Kind
from hermes.core.dataclasses import dataclass

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class Limits(TypedDict, total=False):
        """What a value must be, where the type of the field leaves that open: fields of ``Key``."""

        kind: Kind
        choices: tuple[str, ...]
        low: float
        high: float
        is_prose: bool


Path = tuple[str, ...]
T = TypeVar("T")


def setting(default: T, help: str, *, env: str = "", at: str | None = None, **limits: Unpack[Limits]) -> T:
    """Declare one value. ``env`` names its variables, separated by blanks; ``at`` is its name in the files."""
    if isinstance(default, Enum):
        limits.setdefault("choices", tuple(type(default)))
    is_address = limits.get("kind") is Kind.URL  # it may hold a password, so repr leaves it out
    key = {"help": help, "env": tuple(env.split()), **limits}
    return field(default=default, repr=not is_address, metadata={"at": at, "key": key})


def web_address(help: str, *, env: str = "") -> str:
    return setting("", help, env=env, kind=Kind.URL, choices=("http", "https"))


def proxy_address(help: str, *, env: str) -> str:
    return setting("", help, env=env, kind=Kind.URL, choices=("http", "https", "socks5", "socks5h"))


def section(
    of: type[Any], *, at: str | None = None, make: Callable[[], Any] | None = None, inherits: bool = False
) -> Any:
    """Declare a field with further settings; ``at=""`` puts them on the level of the field itself.

    ``make`` gives the default of a field whose value is only made from an ``of``. ``inherits``: what is left out comes
    from a wider section, so its settings have no default.
    """
    return field(default_factory=make or of, metadata={"at": at, "section": of, "inherits": inherits})


def nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


def by_name(help: str, **limits: Unpack[Limits]) -> Any:
    """Declare a mapping from names that the owner chooses to single values."""
    return field(default_factory=nothing, metadata={"is_named": True, "key": {"help": help, **limits}})


def sections(of: type[Any], *, make: Callable[[], Any] = nothing, inherits: bool = False) -> Any:
    """Declare a mapping from names that the owner chooses to sections."""
    return field(default_factory=make, metadata={"is_named": True, "section": of, "inherits": inherits})


@dataclass(frozen=True, slots=True)
class Declared:
    """What a field declares: one value, with the arguments of its ``key``, or a ``section``, a class of such fields.

    ``path`` leads there from the section around the field. It ends in ``*`` where the owner chooses names.
    """

    path: Path
    key: Mapping[str, Any]
    section: type[Any] | None
    inherits: bool


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
def declared_by(of: type[Any]) -> Mapping[str, Declared]:
    """What the fields of a class declare, by their names."""
    return {
        one.name: _declared(one.name, str(one.type), one.default, one.metadata) for one in fields(of) if one.metadata
    }


def _declared(name: str, annotation: str, default: Any, what: Mapping[str, Any]) -> Declared:
    at = what.get("at")
    path = tuple(filter(None, (name if at is None else at).split(".")))
    if "is_named" in what:
        path, annotation, default = (*path, "*"), annotation.removeprefix("Mapping[str, ").removesuffix("]"), None
    if "section" in what:
        return Declared(path, {}, what["section"], what["inherits"])
    key = {"default": default, **what["key"]}
    if "kind" not in key:
        kind = Kind.DURATION if name.endswith("_seconds") else Kind.CHOICE if "choices" in key else None
        key["kind"] = kind or _KINDS[annotation.removesuffix(" | None")]
    return Declared(path, key, None, inherits=False)


def keys_of(of: type[Any], prefix: Path = (), *, inherits: bool = False) -> Iterator[Key]:
    """The keys that a class declares, those of its sections included."""
    for declared in declared_by(of).values():  # type: ignore[arg-type] # a class is hashable
        path = (*prefix, *declared.path)
        if declared.section is not None:
            yield from keys_of(declared.section, path, inherits=inherits or declared.inherits)
        elif inherits:
            yield Key(path, **{**declared.key, "default": None, "env": ()})
        else:
            yield Key(path, **declared.key)
