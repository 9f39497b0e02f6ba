"""Define a search provider, its requests and its results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from html import unescape
from typing import Any, Protocol

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.core.secret import Secret


@dataclass(frozen=True, slots=True)
class Hit:
    title: str
    url: str
    snippet: str = ""
    published: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """One HTTP request, as a provider wants it."""

    method: str
    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # they hold the key
    body: Any = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is no good: its number, its headers and as much of its body as tells why."""

    status: int
    headers: Mapping[str, str]
    text: str


class Provider(Protocol):
    """Knows one search service: how it is asked, what its answer means, and what its refusals mean."""

    name: str

    def ask(self, query: str, count: int) -> Ask: ...

    def hits(self, answer: Any) -> list[Hit]:
        """Return what was found. KeyError, TypeError or AttributeError when the answer is of another form."""

    def refused(self, refusal: Refusal) -> str:
        """Return what a refusal of its own kind means, as a sentence; empty: no more than its number says."""


def sendable(key: Secret, name: str) -> str:
    """A key as a header takes it; a stray character is said here, since the library's own error would print it."""
    value = key.reveal().strip()
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise ToolError(f"The key of {name} holds a character that no key has. The owner checks {NEEDS[name]}.")
    return value


def plain(text: object) -> str:
    """Return a provider's snippet without its markup."""
    return " ".join(unescape(re.sub(r"<[^>]{0,100}>", "", str(text or ""))).split())


NEEDS = {"brave": "key (BRAVE_API_KEY)", "tavily": "key (TAVILY_API_KEY)", "searxng": "address (SEARXNG_URL)"}
