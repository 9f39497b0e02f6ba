"""Secrets as a type that does not print, and the one place that hides them in text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import final
from urllib.parse import quote

HIDDEN = "[hidden]"

# A private key as files hold it. Line numbers and other marks may stand before its lines, and one end may be missing.
_BEGIN, _END = "-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----", "-----END [A-Z0-9 ]*PRIVATE KEY-----"
_LINE = r"[^\n]{0,12}?[A-Za-z0-9+/=]{16,}"
_KEYS = (
    re.compile(f"{_BEGIN}.{{0,20000}}?{_END}", re.DOTALL),
    re.compile(rf"{_BEGIN}(?:\s{_LINE})+"),
    re.compile(rf"(?:^{_LINE}[ \t\r]*\n)+(?:[^\n]{{0,30}}\n)?[^\n]{{0,12}}{_END}", re.MULTILINE),
)


@final
class Secret:
    """A token, key or password. Only ``reveal()`` gives it out; printing, logging and dumping do not."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def hint(self) -> str:
        """Enough to tell two keys apart: ``…x7Q``; nothing at all of a short one."""
        return f"…{self._value[-3:]}" if len(self._value) >= 12 else HIDDEN

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})" if self._value else "Secret(empty)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


class Redactor:
    """Replaces every known secret in a text, also as it stands in an address or in JSON, and every private key.

    Secrets shorter than 6 characters are not searched for.
    """

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._known: set[str] = set()
        self._ordered: tuple[str, ...] = ()
        self.learn(secrets)

    def learn(self, secrets: Iterable[Secret]) -> None:
        self._known |= {form for secret in secrets if len(value := secret.reveal()) >= 6 for form in _forms(value)}
        self._ordered = tuple(sorted(self._known, key=len, reverse=True))  # the longest first: one may hold another

    def __call__(self, text: str) -> str:
        for value in self._ordered:
            if value in text:
                text = text.replace(value, HIDDEN)
        return _without_keys(text) if "PRIVATE KEY-----" in text else text

    def mask(self, raw: bytes) -> bytes:
        """The same for bytes that a program wrote, and just as many of them: whoever reads on finds the place again."""
        for value in self._ordered:
            secret = value.encode()
            if secret in raw:
                raw = raw.replace(secret, b"*" * len(secret))
        if b"PRIVATE KEY-----" not in raw:
            return raw
        text = raw.decode("latin-1")  # each byte one character, whatever it is
        for pattern in _KEYS:
            text = pattern.sub(lambda key: "*" * len(key[0]), text)
        return text.encode("latin-1")


def _forms(value: str) -> set[str]:
    return {value, quote(value, safe=""), json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}


def _without_keys(text: str) -> str:
    for pattern in _KEYS:
        text = pattern.sub(HIDDEN, text)
    return text
