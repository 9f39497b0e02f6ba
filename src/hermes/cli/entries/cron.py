"""``hermes cron``: make, list, change and run jobs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import NOT_RUNNING, GatewayClient, Standalone
from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import as_typed, command_name
from hermes.core.errors import GatewayError
from hermes.core.text import one_line
from hermes.hosting.control.client import GatewayIsDownError
from hermes.hosting.terminal import err, out, out_json, out_lines, out_result

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  hermes cron list                                            every job, its next time and where it goes
  hermes cron create 30m "Tea is ready" --no-agent --deliver telegram
  hermes cron create "weekdays at 8" "Summarize the news" --deliver telegram:42
  hermes cron create "0 8 * * 1-5" "Say good morning" --tz Asia/Shanghai --deliver weixin:USER
  hermes cron create "every 2h" "Tell me if the disk fills up" --script disk.sh
  hermes cron edit job_1k4m9x2c7qf4b --schedule "every 3h"    change a part of a job
  hermes cron pause job_1k4m9x2c7qf4b                         no more runs until resumed
  hermes cron resume job_1k4m9x2c7qf4b                        continue with the next due time
  hermes cron run job_1k4m9x2c7qf4b                           run it now, beside its schedule
  hermes cron remove job_1k4m9x2c7qf4b                        delete it with its history
  hermes cron history job_1k4m9x2c7qf4b                       its due times and their outcomes
  hermes cron status                                          whether jobs run, and what is due next
"""

VERBS = {
    "list": "list the jobs",
    "create": "create a job",
    "edit": "change a job",
    "pause": "pause a job",
    "resume": "resume a paused job",
    "run": "run a job now",
    "remove": "delete a job",
    "status": "show whether jobs run, and which is next",
    "history": "show the due times of a job and their outcomes",
}
TEXTS = {
    "name": "name in lists and above the answers",
    "deliver": "where the answer goes: local, all, a platform (its home channel), platform:chat; several with commas",
    "script": "script in the folder scripts of the home; it runs first, and the agent reads its output",
    "skills": "skills to read first, separated by commas",
    "model": "model, as provider/model",
    "workdir": "folder in which the job works",
    "catch_up": "what to do about due times missed while the gateway was down: run_once, run_all or skip",
    "quiet": "quiet hours without a run, such as 22:00-07:00",
    "timezone": "time zone of the schedule, such as Asia/Shanghai",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES)
    create, edit = added["create"], added["edit"]
    create.add_argument("schedule", help='30m, "every 2h", "0 8 * * 1-5", 2026-03-01T09:00, "tomorrow 9:00"')
    create.add_argument("prompt", nargs="?", default="", help="what to do; with --no-agent, the text to send")
    edit.add_argument("job", help="its id or name")
    edit.add_argument("--schedule", help="a new schedule, which counts from now")
    edit.add_argument("--prompt", help="a new prompt")
    for made in (create, edit):
        for name, text in TEXTS.items():
            names = ["--tz", "--timezone"] if name == "timezone" else [f"--{name.replace('_', '-')}"]
            made.add_argument(*names, dest=name, help=text)
        made.add_argument("--repeat", type=int, metavar="N", help="how many times it runs; 0: no limit")
        made.add_argument("--grant", action="append", dest="grants", metavar="SUBJECT",
                          help="what its runs may do without asking, as in `hermes approvals grants`")  # fmt: skip
        made.add_argument("--no-agent", action="store_true", default=None, dest="no_agent",
                          help="send the prompt, or the output of the script, unchanged")  # fmt: skip
    for verb in ("pause", "resume", "run", "remove", "history"):
        added[verb].add_argument("job", help="its id or name")
    added["history"].add_argument("--limit", type=int, default=20, help="how many due times (default: 20)")


def run(args: argparse.Namespace) -> int:
    if args.verb == "status":
        return _status(as_json=args.as_json)
    with GatewayClient(home_folder(), Standalone.GATEWAY) as client:
        answer, lines = _ask(client, args)
        out_result(answer, lines, as_json=args.as_json)
        is_waiting = args.verb in ("create", "run", "resume") and client.is_alone
    if is_waiting and not args.as_json:
        out(as_typed(f"  Jobs run while the gateway runs: {command_name()} gateway start"))
    return 0


def _ask(client: GatewayClient, args: argparse.Namespace) -> tuple[Any, list[str]]:
    match args.verb:
        case "list":
            found = client.ask("cron.list")
            return found, _table(found)
        case "create":
            job = client.ask("cron.create", {"job": _job_fields(args), "key": secrets.token_hex(8)})
            return job, [f"✓ {job['id']} {job['name']!r}, next {job['next_run']}", *_where(job)]
        case "edit":
            job = client.ask("cron.edit", {"name": args.job, "job": _job_fields(args)})
            return job, [f"✓ {job['id']} {job['name']!r}, {job['schedule']}, next {job['next_run']}", *_where(job)]
        case "run":
            job = client.ask("cron.run", {"name": args.job, "key": secrets.token_hex(8)})
            return job, [f"✓ {job['name']!r} runs now. Look: {command_name()} trace {job['event_id']}"]
        case "history":
            history = client.ask("cron.history", {"name": args.job, "limit": args.limit})
            return history, [_slot(slot) for slot in history["slots"]] or ["It has not been due yet."]
        case "remove":
            job = client.ask("cron.remove", {"name": args.job})
            return job, [f"✓ {job['name']!r} is removed."]
        case _:
            job = client.ask(f"cron.{args.verb}", {"name": args.job})
            return job, [f"✓ {job['name']!r} is {job['state']}, next {job['next_run']}"]


def _job_fields(args: argparse.Namespace) -> dict[str, Any]:
    names = (*TEXTS, "schedule", "prompt", "repeat", "grants", "no_agent")
    return {name: value for name in names if (value := getattr(args, name, None)) is not None}


def _where(job: Mapping[str, Any]) -> list[str]:
    """Say where the answers go: a job that nobody hears of is the usual disappointment."""
    if job["deliver_to"] == ["local:cli"]:
        lines = ["  Deliver: local. The answer waits for `hermes chat` and is kept in cron/output; no chat gets it."]
        homes = job.get("home_channels") or []
        if homes:
            platform = homes[0].partition(":")[0]
            change = f"{command_name()} cron edit {job['id']} --deliver {platform}"
            lines.append(f"  ! To send it to {', '.join(homes)} instead: {change}")
        return list(map(as_typed, lines))
    return [f"  Deliver: {', '.join(job['deliver_to']) or job['deliver']}"]


def _table(found: list[dict[str, Any]]) -> list[str]:
    from hermes.cli.support.tables import table

    if not found:
        return [as_typed('There are no jobs yet. Make one: hermes cron create 30m "Tea is ready" --no-agent')]
    rows = [
        (
            job["id"],
            job["schedule"],
            job["next_run"] if job["state"] == "active" else job["state"],
            ",".join(job["deliver_to"]) or job["deliver"],
            f"{job['name']}{': ' + job['reason'] if job['reason'] else ''}",
        )
        for job in found
    ]
    return table(("id", "schedule", "next", "deliver", "name"), rows)


def _slot(slot: Mapping[str, Any]) -> str:
    many = f" ×{slot['count']}" if slot["count"] and slot["count"] > 1 else ""
    states = ", ".join(filter(None, (slot["state"], slot["outcome"], slot["delivery"])))
    reason = slot["error"] or slot["reason"]
    traced = f"  {slot['event_id']}" if slot["event_id"] else ""
    return f"{slot['due']}{many}  {states}{': ' + one_line(reason, 120) if reason else ''}{traced}"


def _status(*, as_json: bool) -> int:
    """Say whether jobs are fired. A gateway that does not answer fires none, whatever its process looks like."""
    from hermes.hosting import lifecycle, status

    home = home_folder()
    facts = lifecycle.look(home, command_name(), tuple)
    judged = status.judge(facts)
    if facts.snapshot is None:
        return _not_firing(as_typed(judged.lines[0]), judged.state.value, judged.exit_code, as_json=as_json)
    try:
        with GatewayClient(home, Standalone.NEVER) as client:
            answer = client.ask("cron.status")
    except GatewayIsDownError as error:
        return _not_firing(str(error), "not running", NOT_RUNNING, as_json=as_json)
    except GatewayError as error:
        return _not_firing(str(error), "stalled", 1, as_json=as_json)
    is_fired = answer["is_running"] and not answer["overdue"]
    if as_json:
        out_json({"state": "running" if is_fired else "stopped", **answer})
        return 0 if is_fired else 1
    if not answer["is_running"]:
        why = "cron.enabled is off" if not answer["is_enabled"] else "the timer does not run: hermes logs"
        err(as_typed(f"✗ Jobs do not run: {why}."))
        return 1
    counts = ", ".join(f"{count} {state}" for state, count in answer["jobs"].items()) or "no jobs"
    mark = "✓" if is_fired else "!"
    late = f"; {answer['overdue']} overdue" if answer["overdue"] else ""
    out_lines([f"{mark} Jobs run: {counts}{late}. Next: {answer['next']}"])
    return 0 if is_fired else 1


def _not_firing(reason: str, state: str, code: int, *, as_json: bool) -> int:
    if as_json:
        out_json({"state": state, "is_running": False, "reason": reason})
    else:
        err(f"✗ Jobs do not run. {reason.removeprefix('✗ ').removeprefix('! ')}")
        err("  What comes due meanwhile is caught up as each job says (--catch-up).")
    return code or 1
