"""Declare Weixin (WeChat) by iLink: long polling in, one request per bubble out."""

from __future__ import annotations

from hermes.core.manifest import AdapterParts, Manifest, Setting, SettingKind, SignedIn, SignInScreen
from hermes.core.ports import Adapter
from hermes.platforms.weixin.config import (
    DEFAULT_BASE_URL,
    DEFAULT_BREAK_SECONDS,
    DEFAULT_BUBBLES,
    DEFAULT_CDN_URL,
    DEFAULT_PAUSE_SECONDS,
    LOGIN,
)


def _build(parts: AdapterParts) -> Adapter:
    from hermes.platforms.weixin.adapter import WeixinAdapter
    from hermes.platforms.weixin.config import WeixinConfig

    return WeixinAdapter(WeixinConfig.of(parts), parts.http, parts)


async def _sign_in(parts: AdapterParts, screen: SignInScreen) -> SignedIn:
    from hermes.platforms.weixin.login import sign_in

    return await sign_in(parts, screen)


MANIFEST = Manifest(
    id="weixin",
    title="Weixin (WeChat)",
    settings=(
        Setting(
            "token",
            "WEIXIN_TOKEN",
            SettingKind.SECRET,
            required=True,
            help=f"The bot's token. `{LOGIN}` shows a QR code and writes the token when it was scanned.",
            label="Bot token",
            get=(f"`{LOGIN}` shows a QR code: scan it with WeChat on the phone.", "It writes the token by itself."),
        ),
        Setting(
            "account_id",
            "WEIXIN_ACCOUNT_ID",
            required=True,
            help=f"The bot's own id, which ends in @im.bot. `{LOGIN}` writes it.",
            label="Bot id",
        ),
        Setting(
            "user_id",
            "WEIXIN_USER_ID",
            help=f"Id of the person who scanned the code (…@im.wechat). `{LOGIN}` writes it.",
        ),
        Setting(
            "base_url",
            "WEIXIN_BASE_URL",
            default=DEFAULT_BASE_URL,
            help="Root of the iLink API; signing in finds the right one.",
        ),
        Setting("cdn_url", "WEIXIN_CDN_URL", default=DEFAULT_CDN_URL, help="Root of the file server."),
        Setting("qr_url", "WEIXIN_QR_URL", default=DEFAULT_BASE_URL, help="Root of the QR code server."),
        Setting(
            "send_chunk_delay_seconds",
            "WEIXIN_SEND_CHUNK_DELAY_SECONDS",
            SettingKind.NUMBER,
            default=DEFAULT_PAUSE_SECONDS,
            help="Pause between two messages in a chat; 0: no limits at all, for a server of your own.",
        ),
        Setting(
            "rate_limit_circuit_open_seconds",
            "WEIXIN_RATE_LIMIT_CIRCUIT_OPEN_SECONDS",
            SettingKind.NUMBER,
            default=DEFAULT_BREAK_SECONDS,
            help="Pause after a rate limit error (-2); it doubles with each further error, up to an hour.",
        ),
        Setting(
            "bubbles_per_message",
            "WEIXIN_BUBBLES_PER_MESSAGE",
            SettingKind.NUMBER,
            default=DEFAULT_BUBBLES,
            help="How many messages may follow one message of a person; the rest waits for the person's next one.",
        ),
    ),
    build=_build,
    ids="An id such as o9cq8AbCd@im.wechat. The log and `hermes pairing list` show who wrote.",
    sign_in=_sign_in,
    older_env={"cdn_url": ("WEIXIN_CDN_BASE_URL",), "group_allowed_chats": ("WEIXIN_GROUP_ALLOWED_USERS",)},
)
