"""Match chats in settings: ``telegram``, ``telegram@work:*``, ``telegram:42:7``."""

from __future__ import annotations

from typing import Self

from hermes.core.dataclasses import dataclass
from hermes.core.keys import MAIN, AccountKey, SessionKey, Target, unquote

ANY = "*"


@dataclass(frozen=True, slots=True)
class ChatPattern:
    """Written as a target, with ``*`` for any account, chat or thread. A chat alone means all of its threads."""

    platform: str
    account: str = MAIN
    chat: str = ANY
    thread: str = ANY

    @classmethod
    def parse(cls, text: str) -> Self:
        where, _, rest = text.partition(":")
        chat, _, thread = rest.partition(":")
        account = AccountKey.parse(where)
        if not account.platform:
            raise ValueError(f"{text!r} names no chat: write <platform>:<chat>, for example telegram:42")
        return cls(account.platform, account.account, unquote(chat) or ANY, unquote(thread) or ANY)

    def is_about(self, place: SessionKey | Target) -> bool:
        return self.platform == place.platform and all(
            wanted in (ANY, given)
            for wanted, given in (
                (self.account, place.account),
                (self.chat, place.chat),
                (self.thread, place.thread),
            )
        )

    @property
    def narrowness(self) -> tuple[bool, bool, bool]:
        """Orders patterns: one that names a thread goes before one that names a chat, and that before an account."""
        return self.thread != ANY, self.chat != ANY, self.account != ANY
