"""What a Telegram account needs to be told."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.core.secret import Secret

DEFAULT_BASE_URL = "https://api.telegram.org"
DEFAULT_POLL_SECONDS = 20
LONGEST_POLL_SECONDS = 50  # Telegram holds a request no longer than this

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{3,200}")


@dataclass(frozen=True, slots=True)
class TelegramConfig:
    account: str
    token: Secret
    base_url: str = DEFAULT_BASE_URL
    poll_seconds: float = DEFAULT_POLL_SECONDS

    @classmethod
    def of(cls, parts: AdapterParts) -> Self:
        """Check what only Telegram can judge; a ConfigError names the key and what to type."""
        values = parts.values
        return cls(
            account=parts.account,
            token=_token(values.get("token"), parts.account),
            base_url=_root(values.get("base_url") or DEFAULT_BASE_URL),
            poll_seconds=_poll_seconds(values.get("poll_seconds")),
        )

    @property
    def bot_id(self) -> str:
        """The part of the token before the colon: Telegram's own id of the bot."""
        return self.token.reveal().partition(":")[0]


def _token(value: Secret | str | None, account: str) -> Secret:
    token = value.reveal() if isinstance(value, Secret) else str(value or "")
    if not token.strip():
        raise ConfigError(
            f'telegram account "{account}" has no token.\n'
            "  Set platforms.telegram.token or TELEGRAM_BOT_TOKEN, then run `hermes doctor`."
        )
    if not _TOKEN.fullmatch(token.strip()):
        raise ConfigError(
            f'The token of telegram account "{account}" does not look like one: it is digits, a colon and letters.\n'
            "  Copy it whole from @BotFather into TELEGRAM_BOT_TOKEN, then run `hermes doctor`."
        )
    return Secret(token.strip())


def _root(value: str) -> str:
    root = value.strip().rstrip("/")
    if not root.startswith(("http://", "https://")):
        raise ConfigError(
            f"TELEGRAM_BASE_URL is {value!r}, which is not a web address.\n"
            f"  Write the root of a Bot API server, for example {DEFAULT_BASE_URL}."
        )
    return root.removesuffix("/bot")


def _poll_seconds(value: object) -> float:
    if value is None or value == "":
        return DEFAULT_POLL_SECONDS
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = -1.0
    if not 1 <= seconds <= LONGEST_POLL_SECONDS:
        raise ConfigError(
            f"TELEGRAM_POLL_SECONDS is {value!r}; it is a number of seconds from 1 to {LONGEST_POLL_SECONDS}.\n"
            f"  Leave it out for {DEFAULT_POLL_SECONDS}."
        )
    return seconds
