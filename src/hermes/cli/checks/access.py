"""``hermes doctor --user ID``: explain per chat why a user is answered or not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import home_folder, load_config
from hermes.cli.support.program_name import command_name
from hermes.config.providers import env_prefix
from hermes.core.durations import format_duration
from hermes.hosting.terminal import err, out, out_json
from hermes.hosting.translation import tr

NOT_ANSWERED = 1


def run(user: str, *, as_json: bool) -> int:
    """0 when they are answered somewhere."""
    home = home_folder()
    config = load_config(home).config
    is_stored = bool(config.database_url) or (home / "state.db").exists()
    accounts: list[dict[str, Any]] = []
    if is_stored:
        with GatewayClient(home, Standalone.STORE) as client:
            accounts = client.ask("doctor.user", {"user": user})
    is_answered = any(account["is_answered"] for account in accounts)
    if as_json:
        out_json({"user": user, "is_answered": is_answered, "accounts": accounts})
    elif not is_stored:
        out(tr("Nobody has written here yet: nothing is stored. The gateway makes its store when it first runs."))
    elif not accounts:
        err(tr(f"✗ No chat platform is set up. → {command_name()} gateway setup"))
    else:
        out(tr("\n".join(line for account in accounts for line in lines(account, time.time()))))
    return 0 if is_answered else NOT_ANSWERED


def lines(account: Mapping[str, Any], now: float) -> list[str]:
    """Describe how one account treats a user: verdict, reason, what to type."""
    named = (
        f" ({', '.join(filter(None, (account['name'], account['role'])))})"
        if account["name"] or account["role"]
        else ""
    )
    verdict = "answered" if account["is_answered"] else "not answered"
    mark = "✓" if account["is_answered"] else "✗"
    reason, cure = _reason(account, now)
    rows = [f"{mark} {account['account']} {account['user']}{named}: {verdict}", f"  {reason}"]
    rows += [f"  → {cure}"] * bool(cure)
    if account["person_here"]:
        rows.append(
            f"  ! {account['user']} is the id of a chat; the person who writes there is {account['person_here']}"
        )
        rows.append(f"  → {command_name()} doctor --user {account['account']}:{account['person_here']}")
    if account["accounts"]:
        rows.append(f"  the same person as {', '.join(account['accounts'])}")
    if account["wrote_at"] is not None:
        because = f" ({account['wrote_reason']})" if account["wrote_reason"] else ""
        rows.append(
            f"  last wrote {_ago(account['wrote_at'], now)}: {account['wrote_state'].replace('_', ' ')}{because}"
        )
    return [*rows, f"  in groups: {_groups(account)}"]


def _reason(account: Mapping[str, Any], now: float) -> tuple[str, str]:
    """Why, and what to type when that is not wanted."""
    platform = account["account"].partition("@")[0]
    setting, hermes = f"{env_prefix(platform)}_ALLOWED_USERS", command_name()
    pairing = f"{hermes} pairing"
    decided = f"{_ago(account['decided_at'], now)} by {account['decided_by']}" if account["decided_at"] else ""
    match account["why"]:
        case "open":
            return f"everybody may write here (policy {account['dm_policy']})", ""
        case "listed":
            return f"an allowlist names this id ({setting}, or GATEWAY_ALLOWED_USERS)", ""
        case "paired":
            return f"approved by pairing, {decided}", ""
        case "disabled":
            return "direct messages are off", f"{hermes} config set platforms.{platform}.dm_policy pairing"
        case "not_listed":
            return f"only listed ids may write, and {setting} does not name this one", f"add it to {setting} in .env"
        case "waiting":
            asked = f"waits for approval since {format_duration(now - account['asked_at'])}"
            return f"{asked}, with the code {account['code']}", f"{pairing} approve {platform} {account['code']}"
        case "expired":
            return "asked for access, and the code has expired", "ask this person to write again, for a new one"
        case "refused":
            return f"refused {decided}", "ask this person to write again after the hour, for a new code"
        case "revoked":
            return f"was approved, and revoked {decided}", "ask this person to write again, for a new code"
        case "not_reloaded":
            return "approved, but the running gateway does not know it yet", f"{hermes} gateway restart"
        case _:
            return (
                "nobody with this id has asked for access",
                "ask this person to write to the bot, which answers with a code",
            )


def _groups(account: Mapping[str, Any]) -> str:
    platform = env_prefix(account["account"].partition("@")[0])
    if account["group_policy"] == "disabled":
        return f"not answered, groups are off ({platform}_GROUP_POLICY)"
    if account["is_answered_in_groups"]:
        return f"answered, when the bot is addressed (policy {account['group_policy']})"
    return f"only in the groups that {platform}_GROUP_ALLOWED_CHATS names"


def _ago(at: float, now: float) -> str:
    return f"{format_duration(now - at)} ago"
