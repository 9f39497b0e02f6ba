"""Declare and read the settings of a Discord account."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Self

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.core.secret import Secret
from hermes.core.setting_checks import web_address

DEFAULT_BASE_URL = "https://discord.com/api/v10"
DEFAULT_GATEWAY_URL = "wss://gateway.discord.gg"

_TOKEN = re.compile(r"[A-Za-z0-9_-]{4,100}\.[A-Za-z0-9_-]{2,50}\.[A-Za-z0-9_-]{4,200}")
_ID = re.compile(r"[0-9]{1,20}")
WHERE_IDS_ARE = "Settings, Advanced, Developer Mode; then right-click the channel, Copy Channel ID."
_WHERE = "discord.com/developers/applications, your application, Bot, Reset Token"


@dataclass(frozen=True, slots=True)
class DiscordConfig:
    account: str
    token: Secret
    base_url: str = DEFAULT_BASE_URL
    gateway_url: str = DEFAULT_GATEWAY_URL
    allowed_channels: frozenset[str] = frozenset()
    ignored_channels: frozenset[str] = frozenset()
    free_response_channels: frozenset[str] = frozenset()
    auto_thread: bool = True

    @classmethod
    def of(cls, parts: AdapterParts) -> Self:
        """Check what only Discord can judge; a ConfigError names the key and what to type."""
        values = parts.values
        auto_thread = values.get("auto_thread")
        return cls(
            account=parts.account,
            token=_token(values.get("token"), parts.account),
            base_url=web_address("DISCORD_BASE_URL", values.get("base_url"), DEFAULT_BASE_URL),
            gateway_url=web_address("DISCORD_GATEWAY_URL", values.get("gateway_url"), DEFAULT_GATEWAY_URL, scheme="ws"),
            allowed_channels=_ids("DISCORD_ALLOWED_CHANNELS", values.get("allowed_channels")),
            ignored_channels=_ids("DISCORD_IGNORED_CHANNELS", values.get("ignored_channels")),
            free_response_channels=_ids("DISCORD_FREE_RESPONSE_CHANNELS", values.get("free_response_channels")),
            auto_thread=True if auto_thread is None else bool(auto_thread),
        )


def _token(value: Secret | str | None, account: str) -> Secret:
    token = (value.reveal() if isinstance(value, Secret) else str(value or "")).strip().removeprefix("Bot ").strip()
    if not token:
        raise ConfigError(
            f'discord account "{account}" has no token.\n'
            f"  Set platforms.discord.token or DISCORD_BOT_TOKEN ({_WHERE}), then run `hermes doctor`."
        )
    if not _TOKEN.fullmatch(token):
        raise ConfigError(
            f'The token of discord account "{account}" does not look like one: it has three parts with dots between.\n'
            f"  Copy it whole ({_WHERE}) into DISCORD_BOT_TOKEN, then run `hermes doctor`."
        )
    return Secret(token)


def _ids(name: str, value: Iterable[object] | None) -> frozenset[str]:
    ids = frozenset(str(each).strip() for each in value or () if str(each).strip())
    for each in ids:
        if not _ID.fullmatch(each):
            raise ConfigError(
                f"{name} holds {each!r}, which is no id of a channel: that is a number.\n  {WHERE_IDS_ARE}"
            )
    return ids
