"""List the commands of the CLI with their summaries."""

from __future__ import annotations

COMMANDS: dict[str, str] = {
    "chat": "Talk to the agent (the same as no command at all)",
    "setup": "Set up a model and a chat platform, question by question, and begin to talk",
    "gateway": "Run the gateway, see how it is, stop it, connect chats: run, start, stop, restart, status, setup, test",
    "send": "Send a message to a chat",
    "trace": "What became of a message, a turn or a delivery",
    "status": "How the gateway is, on one screen",
    "logs": "Show the log, or follow it",
    "sessions": "List, show, export, rename and delete conversations",
    "weixin": "Sign in to Weixin (WeChat) with a QR code",
    "whatsapp": "Link WhatsApp: install its bridge, show a QR code, end when the phone is linked",
    "pairing": "See who would like to talk, and let them in",
    "people": "See who is who, give roles, join accounts",
    "skills": "List, read, install, remove and switch skills: written know-how",
    "tools": "See which tools the agent has on which platform, switch them on and off",
    "config": "Show, set, explain and check the configuration",
    "model": "List the models there are, use one of them, test whether it answers",
    "approvals": "Answer what the agent asks before it acts; see and revoke what is granted",
    "api-key": "Make, list, show and revoke the keys of the API",
    "slack": "Print the manifest from which Slack makes the app",
    "doctor": "Look for trouble, and say what to type",
    "version": "Show the version of Hermes and of what it runs on",
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
