"""Declare Slack by Socket Mode: WebSocket in, Web API calls out."""

from __future__ import annotations

from hermes.core.manifest import AdapterParts, Manifest, Setting, SettingKind
from hermes.core.ports import Adapter
from hermes.platforms.slack.config import DEFAULT_BASE_URL


def _build(parts: AdapterParts) -> Adapter:
    from hermes.platforms.slack.adapter import SlackAdapter
    from hermes.platforms.slack.config import SlackConfig

    return SlackAdapter(SlackConfig.of(parts), parts.http, parts.alive, parts.cursor)


MANIFEST = Manifest(
    id="slack",
    title="Slack",
    settings=(
        Setting(
            "bot_token",
            "SLACK_BOT_TOKEN",
            SettingKind.SECRET,
            required=True,
            help="The app's bot token, xoxb-…: api.slack.com/apps, your app, OAuth & Permissions.",
            label="Bot token",
            get=(
                "Run `hermes slack manifest` and copy what it prints.",
                "https://api.slack.com/apps: Create New App, From a manifest, paste it.",
                "Install App, then copy the Bot User OAuth Token: xoxb-…",
            ),
        ),
        Setting(
            "app_token",
            "SLACK_APP_TOKEN",
            SettingKind.SECRET,
            required=True,
            help="The app-level token, xapp-…, with the scope connections:write: your app, Basic Information.",
            label="App-level token",
            get=(
                "Same app: Basic Information, App-Level Tokens, Generate.",
                "Add the scope connections:write, and copy the token: xapp-…",
            ),
        ),
        Setting(
            "base_url",
            "SLACK_BASE_URL",
            default=DEFAULT_BASE_URL,
            help="Root of the Web API, which also returns the address of the socket.",
        ),
    ),
    build=_build,
    extra="slack",
    ids="A member id such as U0123ABCD: in Slack, your profile, the three dots, Copy member ID.",
)
