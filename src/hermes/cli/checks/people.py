"""Check the people: who may write, who owns the gateway, who waits for an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.cli.checks.finding import Finding
from hermes.cli.checks.stores import Store
from hermes.cli.support.home import outside_platforms
from hermes.core.durations import count, format_duration
from hermes.core.people.access import DmPolicy

if TYPE_CHECKING:
    from hermes.config import Config

WAIT_SECONDS = 600.0
"""A message that nobody works on for so long is worth a look; a long turn is not."""


def people_check(store: Store, config: Config, command: str = "hermes") -> Finding:
    roles: Mapping[str, int] = store.counts["people"] if store.counts else {}
    words = ", ".join(count(number, role) for role, number in sorted(roles.items())) or "nobody has written yet"
    deaf = [
        name
        for name in outside_platforms(config)
        if not any(account.access.admits_somebody for account in config.platforms[name].values())
    ]
    by_code = [
        name
        for name in deaf
        if any(account.access.dm_policy is DmPolicy.PAIRING for account in config.platforms[name].values())
    ]
    if by_code:
        return Finding(
            "people", "good", f"{words}; on {', '.join(by_code)} strangers get a code: {command} pairing list"
        )
    if deaf:
        setting = f"{deaf[0].upper()}_ALLOWED_USERS"
        return Finding("people", "hint", f"{words}; nobody may write on {', '.join(deaf)} → set {setting}")
    has_owner = bool(config.owners) or bool(store.counts and store.counts.get("has_owner"))
    if not has_owner and (only := config.only_user()) is not None:
        warning = f"nobody is the owner, so {':'.join(only)} works in a sandbox. Is that you?"
        return Finding("people", "hint", f"{words}; {warning} → {command} config set owners {':'.join(only)}")
    return Finding("people", "good", words)


def unanswered_check(work: Mapping[str, Any] | None, command: str, *, is_running: bool) -> list[Finding]:
    """Name chats whose messages or answers wait; nothing where the store could not be asked."""
    if work is None:
        return []
    now, lines = float(work["now"]), []
    for row in work["messages"]:
        age = now - row["since"]
        if row["turn"] != "waiting" and (age >= WAIT_SECONDS or not is_running):
            cure = f"{command} trace" if is_running else f"{command} gateway run"
            lines.append(f"{count(row['count'], 'message')} of {row['lane']} since {format_duration(age)} → {cure}")
    for row in work["answers"]:
        age = now - row["since"]
        if age >= WAIT_SECONDS or not is_running:
            why = f" ({row['reason'].rstrip('.')})" if row["reason"] else ""
            cure = f"{command} gateway status" if is_running else f"{command} gateway run"
            lines.append(
                f"{count(row['count'], 'answer')} to {row['target']} since {format_duration(age)}{why} → {cure}"
            )
    if lines:
        return [Finding("unanswered", "hint", lines[0], tuple(lines[1:]))]
    if work["approvals"]:
        text = f"{count(work['approvals'], 'approval')} waiting for a person: {command} approvals list"
        return [Finding("unanswered", "good", text)]
    return [Finding("unanswered", "good", "nobody waits for an answer")]
