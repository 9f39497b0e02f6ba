"""Declare and read the settings of a Telegram account."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Rate, Rates
from hermes.core.secret import Secret
from hermes.core.setting_checks import number, web_address

DEFAULT_BASE_URL = "https://api.telegram.org"
DEFAULT_POLL_SECONDS = 20
MAX_POLL_SECONDS = 50  # Telegram holds a request no longer than this
DEFAULT_CALLS_PER_SECOND = 30
DEFAULT_CHAT_CALLS_PER_SECOND = 1
DEFAULT_GROUP_CALLS_PER_MINUTE = 20
MAX_CALLS = 10_000

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{3,200}")


@dataclass(frozen=True, slots=True)
class TelegramConfig:
    account: str
    token: Secret
    base_url: str = DEFAULT_BASE_URL
    poll_seconds: float = DEFAULT_POLL_SECONDS
    calls_per_second: float = DEFAULT_CALLS_PER_SECOND
    chat_calls_per_second: float = DEFAULT_CHAT_CALLS_PER_SECOND
    group_calls_per_minute: float = DEFAULT_GROUP_CALLS_PER_MINUTE

    @classmethod
    def of(cls, parts: AdapterParts) -> Self:
        """Check what only Telegram can judge; a ConfigError names the key and what to type."""
        values = parts.values
        return cls(
            account=parts.account,
            token=_token(values.get("token"), parts.account),
            base_url=web_address("TELEGRAM_BASE_URL", values.get("base_url"), DEFAULT_BASE_URL).removesuffix("/bot"),
            poll_seconds=number(
                values, "poll_seconds", "TELEGRAM_POLL_SECONDS", DEFAULT_POLL_SECONDS, 1, MAX_POLL_SECONDS
            ),
            calls_per_second=_often(values, "calls_per_second", DEFAULT_CALLS_PER_SECOND),
            chat_calls_per_second=_often(values, "chat_calls_per_second", DEFAULT_CHAT_CALLS_PER_SECOND),
            group_calls_per_minute=_often(values, "group_calls_per_minute", DEFAULT_GROUP_CALLS_PER_MINUTE),
        )

    @property
    def rates(self) -> Rates | None:
        """A chat gets its calls one by one, evenly; what counts in all may come at once."""
        if not self.calls_per_second:
            return None
        in_chat, in_group = self.chat_calls_per_second, self.group_calls_per_minute
        return Rates(
            in_all=Rate(max(1, int(self.calls_per_second)), max(1.0, 1 / self.calls_per_second)),
            in_chat=Rate(1, 1 / in_chat) if in_chat else None,
            in_group=Rate(max(1, int(in_group)), 60.0) if in_group else None,
            group_marks=("-",),  # the ids of groups and channels are negative
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


def _often(values: Mapping[str, Any], key: str, usual: float) -> float:
    return number(values, key, f"TELEGRAM_{key.upper()}", usual, 0, MAX_CALLS, zero="not limited")
