"""``hermes slack``: print the manifest from which Slack creates the app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.hosting.terminal import err, out, out_json

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  hermes slack manifest                  YAML, to paste at api.slack.com/apps: Create New App, From a manifest
  hermes slack manifest --name Jarvis    another name for the bot
  hermes slack manifest --json           the same as JSON
"""

VERBS = {"manifest": "print the app manifest: scopes, events, Socket Mode, the command /hermes"}

NAME_LIMIT = 35
SCOPES = (
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
)
EVENTS = ("app_mention", "message.channels", "message.groups", "message.im", "message.mpim")
USAGE_ERROR = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    manifest = add_verbs(parser, VERBS, EXAMPLES)["manifest"]
    manifest.add_argument("--name", default="Hermes", help="name of the bot (default: Hermes)")


def run(args: argparse.Namespace) -> int:
    name = " ".join(args.name.split())
    if not 1 <= len(name) <= NAME_LIMIT:
        err(f"✗ A Slack app's name has 1 to {NAME_LIMIT} characters.")
        return USAGE_ERROR
    manifest = manifest_of(name)
    if args.as_json:
        out_json(manifest, indent=2)
    else:
        import yaml

        out(yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True), end="")
    return 0


def manifest_of(name: str) -> dict[str, Any]:
    """Build the manifest of the Slack app. Socket Mode needs no address."""
    command = {
        "command": "/hermes",
        "description": "Ask the agent, or give it a command",
        "usage_hint": "[stop | new | status | a question]",
        "should_escape": True,
    }
    return {
        "display_information": {"name": name, "description": "An AI agent on your own machine"},
        "features": {
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": name, "always_online": True},
            "slash_commands": [command],
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {"bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True},
            "org_deploy_enabled": False,
            "socket_mode_enabled": True,
            "token_rotation_enabled": False,
        },
    }
