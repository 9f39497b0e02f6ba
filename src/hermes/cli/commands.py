"""List the commands of the CLI with their summaries."""

from __future__ import annotations

COMMANDS: dict[str, str] = {
    "chat": "Talk to the agent (the same as no command at all)",
    "setup": "Set up a model and a chat platform, question by question",
    "gateway": "Run the gateway, see how it is, stop it, connect chats: run, start, stop, restart, status, setup, test",
    "send": "Send a message to a chat",
    "trace": "Show what happened to a message, a turn or a delivery",
    "status": "Show the state of the gateway on one screen",
    "logs": "Show the log, or follow it",
    "sessions": "List, show, export, rename and delete conversations",
    "weixin": "Sign in to Weixin (WeChat) with a QR code",
    "whatsapp": "Link WhatsApp: install its bridge, show a QR code, end when the phone is linked",
    "pairing": "See who would like to talk, and let them in",
    "people": "See who is who, give roles, link accounts",
    "skills": "List, read, install, remove, enable and disable skills: written know-how",
    "tools": "List, enable and disable the tools that the agent has on each platform",
    "config": "Show, set, explain and check the configuration",
    "model": "List models, choose one, test it",
    "approvals": "Answer what the agent asks before it acts; see and revoke grants",
    "api-key": "Make, list, show and revoke the keys of the API",
    "slack": "Print the manifest from which Slack makes the app",
    "doctor": "Look for problems, and say what to type",
    "version": "Show the versions of Hermes, Python and SQLite",
    "completion": "Print the completion script for bash, zsh or fish",
}


# The verb that no verb stands for.
BARE = {
    "gateway": "run",
    "sessions": "list",
    "config": "show",
    "model": "list",
    "pairing": "list",
    "people": "list",
    "approvals": "list",
    "skills": "list",
    "tools": "list",
    "whatsapp": "login",
    "weixin": "login",
    "slack": "manifest",
}
