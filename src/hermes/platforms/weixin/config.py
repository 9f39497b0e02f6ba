"""Declare and read the settings of a Weixin account."""

from __future__ import annotations

import re
from typing import Self

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Rate, Rates
from hermes.core.secret import Secret
from hermes.core.setting_checks import number, web_address

DEFAULT_BASE_URL = "https://ilinkai.weixin.qq.com"
DEFAULT_CDN_URL = "https://novac2c.cdn.weixin.qq.com/c2c"
DEFAULT_PAUSE_SECONDS = 1.5
DEFAULT_BREAK_SECONDS = 30
DEFAULT_BUBBLES = 9  # about ten are let through for each message of a person
LOGIN = "hermes weixin login"

_ACCOUNT = re.compile(r"[^\s@]{1,64}@im\.bot")


@dataclass(frozen=True, slots=True)
class WeixinConfig:
    account: str
    token: Secret
    bot_id: str
    owner_id: str = ""
    base_url: str = DEFAULT_BASE_URL
    cdn_url: str = DEFAULT_CDN_URL
    pause_seconds: float = DEFAULT_PAUSE_SECONDS
    break_seconds: float = DEFAULT_BREAK_SECONDS
    bubbles: int = DEFAULT_BUBBLES

    @classmethod
    def of(cls, parts: AdapterParts) -> Self:
        """Check what only Weixin can judge; a ConfigError names the key and what to type."""
        values = parts.values
        token = values.get("token")
        shown = token.reveal() if isinstance(token, Secret) else str(token or "")
        bot_id = str(values.get("account_id") or "").strip()
        if not shown.strip() or not bot_id:
            raise ConfigError(f'weixin account "{parts.account}" is not signed in.\n  Run `{LOGIN}` and scan the code.')
        if not _ACCOUNT.fullmatch(bot_id):
            raise ConfigError(
                f"WEIXIN_ACCOUNT_ID is {bot_id!r}; it is a name that ends in @im.bot.\n"
                f"  `{LOGIN}` writes it together with the token."
            )
        return cls(
            account=parts.account,
            token=Secret(shown.strip()),
            bot_id=bot_id,
            owner_id=str(values.get("user_id") or "").strip(),
            base_url=root(values.get("base_url") or DEFAULT_BASE_URL, "WEIXIN_BASE_URL"),
            cdn_url=root(values.get("cdn_url") or DEFAULT_CDN_URL, "WEIXIN_CDN_URL"),
            pause_seconds=number(values, *_setting("send_chunk_delay_seconds"), DEFAULT_PAUSE_SECONDS, 0, 60),
            break_seconds=number(values, *_setting("rate_limit_circuit_open_seconds"), DEFAULT_BREAK_SECONDS, 1, 3600),
            bubbles=int(number(values, *_setting("bubbles_per_message"), DEFAULT_BUBBLES, 1, 100)),
        )

    @property
    def rates(self) -> Rates | None:
        """One bubble at a time in a chat, and never three within a second in all, which is taken for a burst."""
        if not self.pause_seconds:
            return None
        return Rates(in_all=Rate(2, 1.0), in_chat=Rate(1, self.pause_seconds))


def root(value: str, name: str) -> str:
    """An address without its last slash. Raises ConfigError when it is none."""
    return web_address(name, value, cure="Leave it out: signing in finds the right one.")


def _setting(key: str) -> tuple[str, str]:
    return key, f"WEIXIN_{key.upper()}"
