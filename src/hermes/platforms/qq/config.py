"""Declare and read the settings of a QQ account."""

from __future__ import annotations

import re
from typing import Self

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.core.secret import Secret
from hermes.core.setting_checks import web_address

DEFAULT_BASE_URL = "https://api.sgroup.qq.com"
DEFAULT_TOKEN_URL = "https://bots.qq.com/app/getAppAccessToken"  # noqa: S105 - an address

_APP_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class QQConfig:
    account: str
    app_id: str
    client_secret: Secret
    base_url: str = DEFAULT_BASE_URL
    token_url: str = DEFAULT_TOKEN_URL
    markdown: bool = True

    @classmethod
    def of(cls, parts: AdapterParts) -> Self:
        """Check what only QQ can judge; a ConfigError names the key and what to type."""
        values = parts.values
        markdown = values.get("markdown_support")
        return cls(
            account=parts.account,
            app_id=_app_id(values.get("app_id"), parts.account),
            client_secret=_secret(values.get("client_secret"), parts.account),
            base_url=web_address("QQ_BASE_URL", values.get("base_url"), DEFAULT_BASE_URL),
            token_url=web_address("QQ_TOKEN_URL", values.get("token_url"), DEFAULT_TOKEN_URL),
            markdown=True if markdown is None else bool(markdown),
        )


def group_chat(listed: str) -> str:
    """A group of an allowlist as its chat is called; a bare openid is what QQ and other gateways write."""
    return listed if "/" in listed else f"group/{listed}"


def _app_id(value: object, account: str) -> str:
    app_id = str(value or "").strip()
    if not app_id:
        raise ConfigError(
            f'qq account "{account}" has no AppID.\n  Set platforms.qq.app_id or QQ_APP_ID, then run `hermes doctor`.'
        )
    if not _APP_ID.fullmatch(app_id):
        raise ConfigError(
            f'The AppID of qq account "{account}" does not look like one: it is a number such as 102012345.\n'
            "  Copy it from q.qq.com into QQ_APP_ID, then run `hermes doctor`."
        )
    return app_id


def _secret(value: Secret | str | None, account: str) -> Secret:
    secret = value.reveal() if isinstance(value, Secret) else str(value or "")
    if not secret.strip():
        raise ConfigError(
            f'qq account "{account}" has no AppSecret.\n'
            "  Set platforms.qq.client_secret or QQ_CLIENT_SECRET, then run `hermes doctor`."
        )
    return Secret(secret.strip())
