"""``hermes status``: show the state of everything on one screen."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.holder import lone_owner
from hermes.cli.support.home import NothingIsStoredError, home_folder, load_config, outside_platforms
from hermes.cli.support.program_name import as_typed, command_name
from hermes.core.durations import count, format_duration
from hermes.core.errors import GatewayError
from hermes.core.keys import AccountKey
from hermes.core.secret import Secret
from hermes.hosting import profiles
from hermes.hosting.terminal import out, out_json
from hermes.hosting.translation import tr

if TYPE_CHECKING:
    import argparse

    from hermes.config import AccountConfig, Config

MAX_PEOPLE = 3
MAX_PARTS = 4
MIN_SHOWN_BYTES = 1_000_000

EXAMPLES = """\
  hermes status           exit code 0 running, 1 degraded, stalled or dead, 3 not running
  hermes status --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    from hermes.hosting import lifecycle, status

    home = home_folder()
    facts = lifecycle.look(home, command_name(), lambda: outside_platforms(load_config(home).config))
    judged = status.judge(facts)
    if judged.state is status.State.NOT_RUNNING and (code := _remote(home, as_json=args.as_json)) is not None:
        return code
    is_silent = facts.is_held and facts.snapshot is None
    overview = look(home, can_ask=not is_silent)
    if args.as_json:
        value = {"state": judged.state.value, "text": "\n".join(judged.lines), "snapshot": facts.snapshot, **overview}
        out_json(value)
    else:
        shown_already = (facts.snapshot or {}).get("problems", ())
        shown = {**overview, "config_problems": unreported_problems(overview["config_problems"], shown_already)}
        out(as_typed(tr("\n".join([*judged.lines, *screen(shown, has_model=facts.snapshot is not None)]))))
    return judged.exit_code


def unreported_problems(found: Sequence[str], reported: Sequence[str]) -> list[str]:
    """Return the problems that the gateway has not reported.

    The gateway adds what is in force, so only the first sentences are compared.
    """
    known = {problem.partition(". ")[0] for problem in reported}
    return [problem for problem in found if problem.partition(". ")[0] not in known]


def _remote(home: Path, *, as_json: bool) -> int | None:
    """Tell of the gateway on another machine that the settings name; None where they name none."""
    config = load_config(home).config.dashboard
    if not config.health_url:
        return None
    from hermes.servers.dashboard.remote import look as look_at

    found = look_at(config.health_url, config.health_timeout)
    if as_json:
        state = "running (remote)" if found.is_running else "not running"
        out_json({"state": state, "text": found.sentence, "url": found.base, "snapshot": found.health})
    else:
        out(as_typed(tr(f"{'✓' if found.is_running else '✗'} {found.sentence}")))
    return 3 if not found.is_running else 0 if found.health.get("status") == "ok" else 1


def look(home: Path, *, can_ask: bool) -> dict[str, Any]:
    loaded = load_config(home)
    config = loaded.config
    try:
        in_use_by = lone_owner(home)  # before we look into the store ourselves
    except OSError:  # no rights: the first lines say it
        in_use_by = ""
    counts, trouble = _counts(home) if can_ask else (None, "")
    return {
        "home": str(home),
        "profile": profiles.profile_of(str(home)),
        "model_configured": f"{config.model.provider} / {config.model.default}",
        "model_failure": _model_failure(home, config),
        "approvals_mode": config.approvals.mode,
        "store": "PostgreSQL" if config.database_url else "state.db",
        "store_bytes": store_bytes(home),
        "kept": _measure_home(home),
        "counts": counts,
        "store_trouble": trouble,
        "accounts": {
            str(AccountKey(platform, name)): _account(account)
            for platform, accounts in config.platforms.items()
            for name, account in accounts.items()
            if account.is_mentioned
        },
        "config_problems": [
            str(problem) for problem in sorted(loaded.problems, key=lambda problem: problem.level != "error")
        ],
        "in_use_by": in_use_by,
    }


def screen(overview: Mapping[str, Any], *, has_model: bool) -> list[str]:
    from hermes.hosting import banner

    counts = overview["counts"]
    rows = [f"profile    {overview['profile']}"] if overview["profile"] else []
    rows.append(f"home       {banner.short_home(overview['home'], os.path.expanduser('~'))}")
    if overview["approvals_mode"] == "off":
        rows.append("approvals  off: the owner's commands run without a question")
    if overview["in_use_by"]:
        rows.append(f"in use     by {overview['in_use_by']}")
    size = f", {overview['store_bytes'] / 1_000_000:.1f} MB" if overview["store_bytes"] else ""
    held = f", {count(counts['sessions'], 'session')}" if counts else ""
    rows.append(f"store      {overview['store']}{size}{held}")
    if kept := _describe_home(overview.get("kept") or {}, counts):
        rows.append(f"kept       {kept}")
    if overview["store_trouble"]:
        rows.append(f"{'':<10} {overview['store_trouble']}")
    if counts and counts["dead_letters"]:
        undelivered = count(counts["dead_letters"], "message")
        rows.append(f"failed     {undelivered} could not be delivered → {command_name()} send --dead")
    rows += [f"{name:<10} {words}" for name, words in overview["accounts"].items()]
    if not has_model:
        failed = f"; the last try failed: {overview['model_failure']}" if overview["model_failure"] else ""
        rows.append(f"model      {overview['model_configured']}{failed}")
    if problems := overview["config_problems"]:
        rows.append(f"config     {problems[0]}")
        if len(problems) > 1:
            rows.append(f"{'':<10} {count(len(problems) - 1, 'more problem')} → {command_name()} config check")
    return [f"  {row}" for row in rows]


def _measure_home(home: Path) -> dict[str, int]:
    """Bytes of what stands beside the database, by file or folder, and of the disk that are free."""
    from hermes.cli.checks import growth

    try:
        use = growth.measure(home)
    except OSError:  # no rights, or no home yet: the first lines say it
        return {}
    return {**{name: size for name, size in use.parts.items() if ".db" not in name}, "free": use.free}


def _describe_home(kept: Mapping[str, int], counts: Mapping[str, Any] | None) -> str:
    """Since when messages are kept, what stands beside the database, and deletions that are not complete."""
    from hermes.cli.support.sizes import format_size

    large = sorted((-size, name) for name, size in kept.items() if name != "free" and size >= MIN_SHOWN_BYTES)
    parts = [f"{name} {format_size(-size)}" for size, name in large[:MAX_PARTS]]
    if oldest := (counts or {}).get("oldest"):
        parts.insert(0, f"messages of the last {format_duration(max(60.0, time.time() - oldest))}")
    if counts and counts.get("deleting"):
        parts.append(f"{count(counts['deleting'], 'deleted session')} not yet erased from the free pages")
    return ", ".join(parts)


def _model_failure(home: Path, config: Config) -> str:
    """Why the built-in model could not be fetched or loaded the last time, where it is the model."""
    from hermes.agent.models.embedded.download import Fetcher
    from hermes.config import EMBEDDED

    if config.model.provider != EMBEDDED:
        return ""
    return Fetcher(home).last_failure()


def _account(account: AccountConfig) -> str:
    """What the files say of it: who it is, a hint of its token, and who may write."""
    if account.missing:
        return f"not signed in: no {', '.join(account.missing)}"
    ids = [str(value) for key, value in account.values.items() if key.endswith("_id") and value]
    hints = [f"token {value.hint()}" for value in account.values.values() if isinstance(value, Secret) and value]
    access, listed = account.access, sorted(account.access.allowed_users)
    allowed = ", ".join(listed[:MAX_PEOPLE]) + (f" and {len(listed) - MAX_PEOPLE} more" * (len(listed) > MAX_PEOPLE))
    rules = [f"direct messages: {access.dm_policy.value}", f"groups: {access.group_policy.value}"]
    parts = [*ids, *hints, *rules, *([f"allowed: {allowed}"] if listed else [])]
    return "; ".join(parts if account.enabled else ["switched off", *parts])


def store_bytes(home: Path) -> int:
    """Measure the store on disk by its folder, without opening the database."""
    return sum(os.path.getsize(path) for path in home.glob("*.db*") if os.path.isfile(path))


def _counts(home: Path) -> tuple[dict[str, Any] | None, str]:
    """None when nothing is stored yet or nothing could be read; then with the reason."""
    try:
        with GatewayClient(home, Standalone.STORE) as client:
            counts: dict[str, Any] = client.ask("store.counts")
            return counts, ""
    except NothingIsStoredError:
        return None, ""
    except GatewayError as error:
        return None, str(error)
    except OSError:  # a full disk, or no rights: the first lines say it
        return None, ""
