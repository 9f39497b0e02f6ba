"""Declare Discord: gateway WebSocket in, REST calls out."""

from __future__ import annotations

from hermes.core.manifest import AdapterParts, Manifest, Setting, SettingKind
from hermes.core.ports import Adapter
from hermes.platforms.discord.config import DEFAULT_BASE_URL, DEFAULT_GATEWAY_URL


def _build(parts: AdapterParts) -> Adapter:
    from hermes.platforms.discord.adapter import DiscordAdapter
    from hermes.platforms.discord.config import DiscordConfig

    return DiscordAdapter(DiscordConfig.of(parts), parts.http, parts.alive, parts.cursor, parts.now)


MANIFEST = Manifest(
    id="discord",
    title="Discord",
    settings=(
        Setting(
            "token",
            "DISCORD_BOT_TOKEN",
            SettingKind.SECRET,
            required=True,
            help="The bot's token: discord.com/developers/applications, your application, Bot, Reset Token.",
            label="Bot token",
            get=(
                "https://discord.com/developers/applications: New Application.",
                "Bot: switch on Message Content Intent, under Privileged Gateway Intents.",
                "Installation, Guild Install: the scopes bot and applications.commands.",
                "Permissions there: View Channels, Send Messages, Read Message History.",
                "And: Attach Files, Create Public Threads, Send Messages in Threads.",
                "Open the install link of that page, and add the bot to your server.",
                "Bot again: Reset Token, and copy it. It is shown once.",
            ),
        ),
        Setting(
            "base_url",
            "DISCORD_BASE_URL",
            default=DEFAULT_BASE_URL,
            help="Root of the REST API.",
        ),
        Setting(
            "gateway_url",
            "DISCORD_GATEWAY_URL",
            default=DEFAULT_GATEWAY_URL,
            help="Address of Discord's gateway for new sessions; ws:// or wss://.",
        ),
        Setting(
            "allowed_channels",
            "DISCORD_ALLOWED_CHANNELS",
            SettingKind.LIST,
            default=(),
            help="Ids of the server channels in which the bot listens, including their threads; empty: all.",
        ),
        Setting(
            "ignored_channels",
            "DISCORD_IGNORED_CHANNELS",
            SettingKind.LIST,
            default=(),
            help="Ids of server channels in which the bot never listens, even if it is mentioned.",
        ),
        Setting(
            "free_response_channels",
            "DISCORD_FREE_RESPONSE_CHANNELS",
            SettingKind.LIST,
            default=(),
            help="Ids of server channels in which the bot answers every message, without a mention.",
        ),
        Setting(
            "auto_thread",
            "DISCORD_AUTO_THREAD",
            SettingKind.FLAG,
            default=True,
            help="A mention in a channel opens a thread for the conversation; false: the bot answers in the channel.",
        ),
    ),
    build=_build,
    extra="discord",
    ids="A number of 17 to 20 digits. Settings, Advanced, Developer Mode; then right-click yourself, Copy User ID.",
)
