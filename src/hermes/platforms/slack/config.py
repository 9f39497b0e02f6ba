"""Declare and read the settings of a Slack account."""

from __future__ import annotations

import re
from typing import Self

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.core.secret import Secret
from hermes.core.setting_checks import web_address

DEFAULT_BASE_URL = "https://slack.com/api"

_TOKEN = re.compile(r"[A-Za-z0-9._-]{6,500}")
_WHERE = {
    "xoxb-": "the Bot User OAuth Token under OAuth & Permissions",
    "xapp-": "an App-Level Token with the scope connections:write under Basic Information",
}


@dataclass(frozen=True, slots=True)
class SlackConfig:
    account: str
    bot_token: Secret
    app_token: Secret
    base_url: str = DEFAULT_BASE_URL

    @classmethod
    def of(cls, parts: AdapterParts) -> Self:
        """Check what only Slack can judge; a ConfigError names the key and what to type."""
        values = parts.values
        return cls(
            account=parts.account,
            bot_token=_token(values.get("bot_token"), "bot_token", "xoxb-", parts.account),
            app_token=_token(values.get("app_token"), "app_token", "xapp-", parts.account),
            base_url=web_address("SLACK_BASE_URL", values.get("base_url"), DEFAULT_BASE_URL),
        )


def _token(value: Secret | str | None, key: str, mark: str, account: str) -> Secret:
    token = (value.reveal() if isinstance(value, Secret) else str(value or "")).strip()
    env = f"SLACK_{key.upper()}"
    if not token:
        raise ConfigError(
            f'slack account "{account}" has no {key}.\n'
            f"  Set platforms.slack.{key} or {env} ({_WHERE[mark]}), then run `hermes doctor`."
        )
    if "," in token:
        raise ConfigError(
            f"{env} holds several tokens. One account speaks for one workspace.\n"
            f"  Put each further one under platforms.slack.accounts.<name>.{key}."
        )
    if not token.startswith(mark) or not _TOKEN.fullmatch(token):
        raise ConfigError(
            f'The {key} of slack account "{account}" does not look like one: it begins with {mark}.\n'
            f"  Copy {_WHERE[mark]} into {env}, then run `hermes doctor`."
        )
    return Secret(token)
