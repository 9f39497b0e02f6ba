"""Declare Telegram by the Bot API: long polling in, HTTP calls out."""

from __future__ import annotations

from hermes.core.manifest import AdapterParts, Manifest, Setting, SettingKind
from hermes.core.ports import Adapter
from hermes.platforms.telegram.config import (
    DEFAULT_BASE_URL,
    DEFAULT_CALLS_PER_SECOND,
    DEFAULT_CHAT_CALLS_PER_SECOND,
    DEFAULT_GROUP_CALLS_PER_MINUTE,
    DEFAULT_POLL_SECONDS,
)


def _build(parts: AdapterParts) -> Adapter:
    from hermes.platforms.telegram.adapter import TelegramAdapter
    from hermes.platforms.telegram.config import TelegramConfig

    return TelegramAdapter(TelegramConfig.of(parts), parts.http, parts.alive)


MANIFEST = Manifest(
    id="telegram",
    title="Telegram",
    settings=(
        Setting(
            "token",
            "TELEGRAM_BOT_TOKEN",
            SettingKind.SECRET,
            required=True,
            help="The bot's token. Talk to @BotFather, send /newbot, and copy what it answers (digits:letters).",
            label="Bot token",
            get=(
                "In Telegram, open a chat with @BotFather (blue tick) and send /newbot.",
                "Give the bot a name, then a user name that ends in bot.",
                "Copy the token it answers with: digits, a colon, letters.",
            ),
        ),
        Setting(
            "base_url",
            "TELEGRAM_BASE_URL",
            default=DEFAULT_BASE_URL,
            help="Root of the Bot API server; change it for a server of your own.",
        ),
        Setting(
            "poll_seconds",
            "TELEGRAM_POLL_SECONDS",
            SettingKind.NUMBER,
            default=DEFAULT_POLL_SECONDS,
            help="How long one request waits at Telegram for new messages, 1 to 50 seconds.",
        ),
        Setting(
            "calls_per_second",
            "TELEGRAM_CALLS_PER_SECOND",
            SettingKind.NUMBER,
            default=DEFAULT_CALLS_PER_SECOND,
            help="Calls per second in all chats together; 0: no limits at all, for a server of your own.",
        ),
        Setting(
            "chat_calls_per_second",
            "TELEGRAM_CHAT_CALLS_PER_SECOND",
            SettingKind.NUMBER,
            default=DEFAULT_CHAT_CALLS_PER_SECOND,
            help="Calls per second in one chat; 0: no limit.",
        ),
        Setting(
            "group_calls_per_minute",
            "TELEGRAM_GROUP_CALLS_PER_MINUTE",
            SettingKind.NUMBER,
            default=DEFAULT_GROUP_CALLS_PER_MINUTE,
            help="Calls per minute in one group; 0: no limit.",
        ),
    ),
    build=_build,
    ids="A number such as 5550142. @userinfobot tells you yours.",
    link="https://t.me/{name}",
)
