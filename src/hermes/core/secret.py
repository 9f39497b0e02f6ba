"""Secrets as a type that does not print, and the one place that hides them in text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

HIDDEN = "[hidden]"


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
    """Replaces every known secret in a text. Secrets shorter than 6 characters are not searched for."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._known: set[str] = set()
        self._ordered: tuple[str, ...] = ()
        self.learn(secrets)

    def learn(self, secrets: Iterable[Secret]) -> None:
        self._known |= {value for secret in secrets if len(value := secret.reveal()) >= 6}
        self._ordered = tuple(sorted(self._known, key=len, reverse=True))  # the longest first: one may hold another

    def __call__(self, text: str) -> str:
        for value in self._ordered:
            if value in text:
                text = text.replace(value, HIDDEN)
        return text
