"""Parse the text of a setting into a typed value, or raise a sentence that says what is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hermes.core.dataclasses import dataclass
from hermes.core.secret import Secret

Raw = str | tuple[str, ...]
"""A value as it was written: the text, or the texts of a list."""


class Kind(StrEnum):
    TEXT = "text"
    SECRET = "secret"  # noqa: S105 - the name of a kind
    SECRETS = "secrets"
    NUMBER = "number"
    WHOLE = "whole number"
    FLAG = "flag"
    LIST = "list"
    CHOICE = "choice"
    DURATION = "duration"
    URL = "address"
    TIMEZONE = "time zone"
    VARIABLE = "variable name"


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: path in the files, environment names, values. ``*`` in ``path`` is a name the owner chose."""

    path: tuple[str, ...]
    kind: Kind = Kind.TEXT
    default: Any = None
    env: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    is_prose: bool = False
    help: str = ""
    needs_restart: bool = False
    """Whether only the next start reads it; every other change counts within a second."""

    def __str__(self) -> str:
        return ".".join(self.path)

    def at(self, path: tuple[str, ...], env: tuple[str, ...] = ()) -> Key:
        """The same setting in another place."""
        limits = (self.choices, self.low, self.high, self.is_prose)
        return Key(path, self.kind, self.default, env, *limits, self.help, self.needs_restart)


_GUARDED = frozenset({Kind.SECRET, Kind.SECRETS, Kind.LIST, Kind.URL, Kind.TEXT, Kind.VARIABLE})


def is_placeholder(text: str) -> bool:
    """Tell whether a value is still an example, as `.env.example` writes them: empty, `<…>`, `changeme`, `your-…`."""
    bare = text.strip()
    folded = bare.casefold()
    return (
        not bare
        or folded in {"changeme", "change-me", "change_me", "replace-me", "replace_me"}
        or folded.startswith(("your-", "your_"))
        or (bare.startswith("<") and bare.endswith(">"))
    )


def looks_unfilled(key: Key, raw: Raw) -> bool:
    """Placeholders matter in secrets, ids, names and addresses; in prose `<…>` may be meant."""
    if key.is_prose or key.kind not in _GUARDED:
        return False
    if isinstance(raw, tuple):
        return bool(raw) and all(is_placeholder(item) for item in raw)
    return is_placeholder(raw)


def parse(key: Key, raw: Raw) -> Any:
    """Give the typed value, or raise ValueError with a sentence that repeats no secret."""
    if key.kind is Kind.LIST:
        return _list(raw)
    if key.kind is Kind.SECRETS:
        return tuple(_secret(key, item) for item in _list(raw))
    if key.kind is Kind.VARIABLE and isinstance(raw, tuple):
        raw = ",".join(raw)
    if isinstance(raw, tuple):
        raise ValueError("takes one value, not a list.")  # noqa: TRY004 - what was typed is wrong, not our call
    return _PARSERS[key.kind](key, raw.strip())


def _list(raw: Raw) -> tuple[str, ...]:
    items: Sequence[str] = re.split(r"[,\n]", raw) if isinstance(raw, str) else raw
    # An id left over from the example would let a stranger in, so it goes; the others stay.
    return tuple(dict.fromkeys(item.strip() for item in items if not is_placeholder(item)))


def _secret(_: Key, text: str) -> Secret:
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        raise ValueError("holds a line break or another control character.")
    return Secret(text)


_LARGEST = 10**15


def _number(key: Key, text: str) -> float:
    try:
        number: float = int(text)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            raise ValueError(f"should be a number, not {_quote(text)}.") from None
    return _in_range(key, number)


def _whole(key: Key, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"should be a whole number, not {_quote(text)}.") from None
    return int(_in_range(key, number))


def _in_range(key: Key, number: float) -> float:
    if isinstance(number, int) and abs(number) > _LARGEST:
        raise ValueError("is too large a number.")
    if math.isnan(number) or math.isinf(number):
        raise ValueError("should be a finite number.")
    if number < key.low:
        raise ValueError(f"should be at least {key.low:g}, not {number:g}.")
    if number > key.high:
        raise ValueError(f"should be at most {key.high:g}, not {number:g}.")
    return number


_YES = frozenset({"true", "yes", "on", "1", "y"})
_NO = frozenset({"false", "no", "off", "0", "n"})


def _flag(_: Key, text: str) -> bool:
    folded = text.casefold()
    if folded in _YES:
        return True
    if folded in _NO:
        return False
    raise ValueError(f"should be true or false, not {_quote(text)}.")


def _choice(key: Key, text: str) -> str:
    for choice in key.choices:
        if choice.casefold() == text.casefold():
            return choice
    raise ValueError(f"should be one of {', '.join(key.choices)}, not {_quote(text)}.")


_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def _duration(key: Key, text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d)?", text.casefold())
    if match is None:
        raise ValueError(f"should be a time like 90, 90s, 15m, 6h or 7d, not {_quote(text)}.")
    return _in_range(key, float(match[1]) * _UNITS[match[2] or ""])


def _url(key: Key, text: str) -> str:
    address = text if "://" in text or "http" not in key.choices else f"http://{text}"
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises when it is no port
    except ValueError:
        raise ValueError("is not an address.") from None
    # No part of the address is repeated: it may hold a password.
    if key.choices and parts.scheme not in key.choices:
        raise ValueError(f"should start with {' or '.join(f'{scheme}://' for scheme in key.choices)}.")
    if not parts.hostname and not parts.path.strip("/"):
        raise ValueError("is an address without a host.")
    if not address.isprintable() or " " in address:
        raise ValueError("is an address with a blank or a control character in it.")
    return address


def _timezone(_: Key, text: str) -> str:
    name = text.removeprefix(":")
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"names no time zone known here: {_quote(text)}.") from None
    return name


def _variable(_: Key, text: str) -> str:
    # The text is not repeated: people paste the key itself here.
    names = [name.strip() for name in text.split(",")]
    if any(re.fullmatch(r"[A-Z_][A-Z0-9_]*", name) is None for name in names):
        raise ValueError("should be the name of an environment variable in capitals, such as OPENKEY_API_KEY.")
    return ",".join(names)


def _quote(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


_PARSERS: dict[Kind, Callable[[Key, str], Any]] = {
    Kind.TEXT: lambda _, text: text,
    Kind.SECRET: _secret,
    Kind.NUMBER: _number,
    Kind.WHOLE: _whole,
    Kind.FLAG: _flag,
    Kind.CHOICE: _choice,
    Kind.DURATION: _duration,
    Kind.URL: _url,
    Kind.TIMEZONE: _timezone,
    Kind.VARIABLE: _variable,
}
