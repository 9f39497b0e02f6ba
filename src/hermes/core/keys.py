"""Session keys and targets: whose conversation, and where a message goes. Only here is their text form parsed."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from typing import Self

from hermes.core.dataclasses import dataclass

MAIN = "main"
LOCAL = "local"
"""The platform of whoever sits at this machine, who is the owner."""
KEPT_PARSED = 1024
"""Parsed keys and targets that are remembered. Most requests of the API bring a key that is never seen again."""


class ChatKind(StrEnum):
    DM = "dm"
    GROUP = "group"
    CHANNEL = "channel"


def quote(part: str) -> str:
    """Encode what would end a part of a key early."""
    return part.replace("%", "%25").replace(":", "%3A")


def unquote(part: str) -> str:
    return part.replace("%3A", ":").replace("%3a", ":").replace("%25", "%")


@dataclass(frozen=True, slots=True)
class SessionKey:
    """``agent:<agent>:<platform>[@<account>]:<kind>:<chat>[:t=<thread>][:p=<person>]``"""

    platform: str
    kind: ChatKind
    chat: str
    thread: str = ""
    person: str = ""
    account: str = MAIN
    agent: str = MAIN

    def __str__(self) -> str:
        where = _with_account(self.platform, self.account)
        text = f"agent:{quote(self.agent)}:{where}:{self.kind}:{quote(self.chat)}"
        if self.thread:
            text += f":t={quote(self.thread)}"
        if self.person:
            text += f":p={quote(self.person)}"
        return text

    @classmethod
    @lru_cache(maxsize=KEPT_PARSED)  # a turn parses its own key several times
    def parse(cls, text: str) -> Self:
        word, agent, where, kind, chat, *rest = text.split(":")
        if word != "agent":
            raise ValueError(f"{text!r} is not a session key: it does not start with 'agent:'")
        platform, account = _split_account(where)
        named = dict(part.split("=", 1) for part in rest)
        unknown = named.keys() - {"t", "p"}
        if unknown:
            raise ValueError(f"{text!r} is not a session key: unknown part {sorted(unknown)[0]!r}")
        return cls(
            platform=platform,
            kind=ChatKind(kind),
            chat=unquote(chat),
            thread=unquote(named.get("t", "")),
            person=unquote(named.get("p", "")),
            account=account,
            agent=unquote(agent),
        )

    @property
    def target(self) -> Target:
        """Return where answers to this conversation go."""
        return Target(self.platform, self.chat, self.thread, account=self.account)

    def for_person(self, person: str) -> SessionKey:
        return replace(self, person=person)


@dataclass(frozen=True, slots=True)
class Target:
    """``<platform>[@<account>]:<chat>[:<thread>]``: one ordered stream of outgoing messages."""

    platform: str
    chat: str
    thread: str = ""
    account: str = MAIN

    def __str__(self) -> str:
        text = f"{_with_account(self.platform, self.account)}:{quote(self.chat)}"
        return f"{text}:{quote(self.thread)}" if self.thread else text

    @classmethod
    @lru_cache(maxsize=KEPT_PARSED)
    def parse(cls, text: str) -> Self:
        where, _, rest = text.partition(":")
        chat, _, thread = rest.partition(":")
        if not where or not chat:
            raise ValueError(f"{text!r} is not a target: write <platform>:<chat>, for example telegram:42")
        platform, account = _split_account(where)
        return cls(platform, unquote(chat), unquote(thread), account=account)


@dataclass(frozen=True, slots=True)
class AccountKey:
    """One login on one platform: ``telegram`` or ``telegram@work``."""

    platform: str
    account: str = MAIN

    def __str__(self) -> str:
        return _with_account(self.platform, self.account)

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls(*_split_account(text))


def _with_account(platform: str, account: str) -> str:
    # Platform ids and account names hold no "@" (the configuration refuses it), so this one splits them.
    return quote(platform) if account == MAIN else f"{quote(platform)}@{quote(account)}"


def _split_account(where: str) -> tuple[str, str]:
    platform, _, account = where.partition("@")
    return unquote(platform), unquote(account) or MAIN
