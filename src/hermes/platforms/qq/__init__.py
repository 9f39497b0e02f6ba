"""Declare QQ by its official bot API: WebSocket in, HTTP calls out."""

from __future__ import annotations

from hermes.core.manifest import AdapterParts, Manifest, Setting, SettingKind
from hermes.core.ports import Adapter
from hermes.platforms.qq.config import DEFAULT_BASE_URL, DEFAULT_TOKEN_URL, group_chat


def _build(parts: AdapterParts) -> Adapter:
    from hermes.platforms.qq.adapter import QQAdapter
    from hermes.platforms.qq.config import QQConfig

    return QQAdapter(QQConfig.of(parts), parts.http, parts.alive, parts.cursor, parts.now)


MANIFEST = Manifest(
    id="qq",
    title="QQ",
    settings=(
        Setting(
            "app_id",
            "QQ_APP_ID",
            required=True,
            help="The bot's AppID, a number: q.qq.com, your bot, development settings.",
            label="AppID",
            get=(
                "Open https://q.qq.com, sign in, and create a bot (or open yours).",
                "Its development settings show the AppID, a number.",
            ),
        ),
        Setting(
            "client_secret",
            "QQ_CLIENT_SECRET",
            SettingKind.SECRET,
            required=True,
            help="The bot's AppSecret (clientSecret), shown once beside the AppID; a new one invalidates the old one.",
            label="AppSecret",
            get=("On the same page, make the AppSecret and copy it: it is shown once.",),
        ),
        Setting(
            "base_url",
            "QQ_BASE_URL",
            default=DEFAULT_BASE_URL,
            help="Root of the bot API; a bot that is not published yet has https://sandbox.api.sgroup.qq.com.",
        ),
        Setting(
            "token_url",
            "QQ_TOKEN_URL",
            default=DEFAULT_TOKEN_URL,
            help="Address that issues access tokens.",
        ),
        Setting(
            "markdown_support",
            "QQ_MARKDOWN_SUPPORT",
            SettingKind.FLAG,
            default=True,
            help="false sends plain text only, and no buttons, for a bot that may not use Markdown.",
        ),
    ),
    build=_build,
    older_env={
        "home_channel": ("QQBOT_HOME_CHANNEL",),
        "home_channel_name": ("QQBOT_HOME_CHANNEL_NAME",),
        "group_allowed_chats": ("QQ_GROUP_ALLOWED_USERS",),
    },
    tidy_group=group_chat,
    ids="An openid such as E4F4AEA33253A2797FB897C50B81D7ED. The bot shows it to strangers who write.",
)
