"""List the commands of the CLI with their summaries."""

from __future__ import annotations

COMMANDS: dict[str, str] = {
    "chat": "Talk to the agent (the same as no command at all)",
    "setup": "Set up a model and a chat platform, question by question",
    "gateway": "Run and check the gateway, connect chats: run, start, stop, restart, status, install, setup, test",
    "dashboard": "Open the dashboard in a browser, list and end its sign-ins",
    "send": "Send a message to a chat",
    "trace": "Show what happened to a message, a turn or a delivery",
    "status": "Show the state of the gateway on one screen",
    "logs": "Show the log, or follow it",
    "cron": "Schedule jobs: create, list, edit, pause, resume, run, remove, status, history",
    "webhook": "Receive webhooks of other programs: subscribe, list, remove, test",
    "sessions": "List, show, export, rename and delete conversations",
    "cluster": "Show the machines that share one database, drain one of them",
    "backup": "Back up the home and restore it: create, list, verify, restore",
    "store": "Copy everything that is stored into another database",
    "import": "Import the home of hermes-agent or OpenClaw: settings, keys, people, sessions, skills, jobs",
    "profile": "Run several agents on one machine: list, create, show, remove",
    "weixin": "Sign in to Weixin (WeChat) with a QR code",
    "whatsapp": "Link WhatsApp with a QR code; installs the bridge first",
    "pairing": "List pairing requests and approve them",
    "people": "List people, assign roles, link accounts",
    "skills": "List, read, install, remove, enable and disable skills",
    "tools": "List, enable and disable the agent's tools on each platform",
    "config": "Show, set, explain and check the configuration",
    "model": "List models, choose one, test it",
    "approvals": "Answer the agent's approval requests; list and revoke grants",
    "kanban": "Keep a board of tasks, and let the agent do them",
    "api-key": "Create, list, show and revoke API keys",
    "slack": "Print the manifest for the Slack app",
    "doctor": "Find problems, name the command that fixes each, repair what can be repaired",
    "security": "List security risks: files, ports, people, keys",
    "update": "Install a new version, after a test on a copy",
    "rollback": "Return to the version from before the last update",
    "version": "Show the versions of Hermes, Python and SQLite",
    "completion": "Print the completion script for bash, zsh or fish",
}


MODULES = {"import": "import_home"}
"""Commands whose module cannot have their name."""

# The verb that runs when none is typed.
BARE = {
    "gateway": "run",
    "dashboard": "open",
    "sessions": "list",
    "cluster": "status",
    "config": "show",
    "model": "list",
    "pairing": "list",
    "people": "list",
    "approvals": "list",
    "cron": "list",
    "webhook": "list",
    "kanban": "list",
    "backup": "list",
    "skills": "list",
    "tools": "list",
    "security": "audit",
    "whatsapp": "login",
    "weixin": "login",
    "slack": "manifest",
    "profile": "list",
}
