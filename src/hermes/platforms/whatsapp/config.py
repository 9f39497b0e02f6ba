"""Declare and read the settings of a WhatsApp account."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.core.i18n.failures import sentence
from hermes.core.keys import MAIN
from hermes.core.manifest import AdapterParts
from hermes.core.setting_checks import number

LINK = "hermes whatsapp"
DEFAULT_PREFIX = "⚕ *Hermes Agent*\\n"
DEFAULT_INSTALL_SECONDS = 600
MAX_PREFIX_CHARS = 200
SERVER = "https://web.whatsapp.com"

_NUMBER = re.compile(r"\+?[0-9][0-9 ().\-/]{4,30}")


class Mode(StrEnum):
    SELF_CHAT = "self-chat"  # the owner's own number: only the chat with oneself is heard
    BOT = "bot"  # a number of its own


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one account. Whoever holds ``lock`` owns session, spool and media."""

    root: Path
    bridges: Path

    @property
    def session(self) -> Path:
        return self.root / "session"

    @property
    def spool(self) -> Path:
        return self.root / "spool"

    @property
    def media(self) -> Path:
        return self.root / "media"

    @property
    def lock(self) -> Path:
        return self.root / "session.lock"

    @property
    def running(self) -> Path:
        """Return the file that tells other processes the bridge's address."""
        return self.root / "bridge.json"

    @property
    def linking(self) -> Path:
        """Where a new link comes to be; it takes the session's place when it is whole."""
        return self.root / "linking"

    @classmethod
    def of(cls, parts: AdapterParts) -> Self:
        given = str(parts.values.get("bridge_folder") or "").strip()
        bridges = Path(given).expanduser() if given else parts.folder / "bridge"
        return cls(parts.folder if parts.account == MAIN else parts.folder / "accounts" / parts.account, bridges)


@dataclass(frozen=True, slots=True)
class WhatsAppConfig:
    account: str
    places: Places
    mode: Mode = Mode.SELF_CHAT
    prefix: str = ""
    free_chats: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()
    install_seconds: float = DEFAULT_INSTALL_SECONDS
    proxy: str = ""

    @classmethod
    def of(cls, parts: AdapterParts) -> Self:
        """Check what only WhatsApp can judge; a ConfigError names the key and what to type."""
        values = parts.values
        return cls(
            account=parts.account,
            places=Places.of(parts),
            mode=_mode(values.get("mode") or Mode.SELF_CHAT),
            prefix=_prefix(values.get("reply_prefix")),
            free_chats=frozenset(str(chat).strip() for chat in values.get("free_response_chats") or ()),
            patterns=tuple(_patterns(values.get("mention_patterns") or ())),
            install_seconds=number(
                values, "npm_install_timeout", "WHATSAPP_NPM_INSTALL_TIMEOUT", DEFAULT_INSTALL_SECONDS, 1, 7200
            ),
            proxy=parts.proxy_for(SERVER),
        )


def person_id(typed: str) -> str:
    """A number as WhatsApp writes it, from what people type: ``+1 (555) 123-4567`` is ``15551234567``."""
    typed = typed.strip().removesuffix("@s.whatsapp.net").removesuffix("@c.us")
    return re.sub(r"[^0-9]", "", typed) if _NUMBER.fullmatch(typed) else typed


def _mode(value: Any) -> Mode:
    try:
        return Mode(str(value).strip().casefold().replace("_", "-"))
    except ValueError:
        raise ConfigError(
            f"WHATSAPP_MODE is {value!r}; it is self-chat or bot.\n"
            "  self-chat: you talk to it in the chat with yourself. bot: it has a number of its own."
        ) from None


def _prefix(value: Any) -> str:
    prefix = DEFAULT_PREFIX if value is None else str(value)
    prefix = "" if prefix.strip().casefold() == "none" else prefix.replace("\\n", "\n")
    if len(prefix) > MAX_PREFIX_CHARS:
        raise ConfigError(f"WHATSAPP_REPLY_PREFIX has {len(prefix)} characters; at most {MAX_PREFIX_CHARS}, please.")
    return prefix


def _patterns(values: Iterable[Any]) -> Iterable[re.Pattern[str]]:
    for value in values:
        try:
            yield re.compile(str(value), re.IGNORECASE)
        except re.error as error:
            raise ConfigError(
                f"WHATSAPP_MENTION_PATTERNS holds {value!r}, which is no regular expression: {sentence(str(error))}"
            ) from None
