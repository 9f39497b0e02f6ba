"""Handle paths by their text: normal forms, paths in a text, folders a shell may be in."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from itertools import islice

MAX_FOLDERS = 8
NOWHERE = "\ue0fe"
"""A folder that is not known."""


def normal(path: str) -> str:
    """Return a path without ``.``, ``..`` and doubled slashes, by its text."""
    if not path:
        return ""
    if path.startswith("/"):
        return "/" + posixpath.normpath(path).lstrip("/")
    return posixpath.normpath(path)


def lies_in(place: str, workspace: str) -> bool:
    if not workspace:
        return not place.startswith(("/", "~", "../", NOWHERE)) and place != ".."
    return place == workspace or place.startswith(f"{workspace.rstrip('/')}/")


def few(folders: frozenset[str]) -> frozenset[str]:
    return folders if len(folders) <= MAX_FOLDERS else frozenset({NOWHERE})


def some(texts: Iterable[str]) -> list[str]:
    return list(islice(texts, 64))


_TOKEN = re.compile(
    r"(?:^-{1,2}[A-Za-z-]{0,3}|^|(?<=[=:,\s\"'()<>|;&{}\[\]@+!`]))((?:/|~|\.\.(?=/|$|[\s\"'():;,<>|"
    r"&]))[^\s\"'():;,<>|&]*)"
)
_UPWARD = re.compile(
    r"(?:^|[=:,\s\"'(])([\w.@%+-][^\s\"'():;,<>|&=]*/\.\.(?=/|$|[\s\"'():;,<>|&])(?:/[^\s\"'():;,<>|&]*)?)"
)


def path_tokens(text: str) -> list[str]:
    """Find paths in a text that may lead out: absolute, of a home, or upwards."""
    if "/" not in text and "~" not in text and ".." not in text:
        return []
    if len(text) > 20_000:
        text = text[:20_000]
    found = [token for token in _TOKEN.findall(_ADDRESS.sub(" ", text)) if token not in ("~", "/") or token == text]
    if "/.." in text:
        found += _UPWARD.findall(text)
    return found


_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*://)[^\s\"']*")
GLOB_MARKS = "*?["


def before_pattern(path: str) -> str:
    """Return the part of a path before its first pattern."""
    kept = []
    for part in path.split("/"):
        if any(mark in part for mark in GLOB_MARKS):
            break
        kept.append(part)
    return "/".join(kept) or "/"
