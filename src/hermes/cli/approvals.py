"""``hermes approvals``: answer the agent's requests, list and revoke grants."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import command_name
from hermes.core.durations import format_time
from hermes.hosting.terminal import out, out_result

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  hermes approvals list                          list the requests that wait for an answer
  hermes approvals show K7QP2M                   a whole request that is too long for the list
  hermes approvals approve K7QP2M                allow this one call
  hermes approvals approve K7QP2M --scope always   allow this kind of action from now on
  hermes approvals deny K7QP2M not on a Sunday   the agent reads the reason
  hermes approvals deny all
  hermes approvals grants                        list what is allowed without asking
  hermes approvals revoke gr_1k4m9x2c7qf4b       revoke a grant: the agent asks again
"""

MAX_LINES = 20
MAX_LINE = 400
"""What the list shows of one request."""

VERBS = {
    "list": "list the requests that wait for an answer",
    "show": "show a whole request; its last line shows how to approve it",
    "approve": "approve a request",
    "deny": "deny a request; the agent reads the reason",
    "grants": "list what is allowed without asking, who allowed it, and when",
    "revoke": "revoke a grant: the agent asks again",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES)
    for verb in ("approve", "deny"):
        added[verb].add_argument("id", metavar="CODE", help="code of the request, or all")
    added["show"].add_argument("id", metavar="CODE", help="code of the request")
    scopes = ("once", "session", "always")
    added["approve"].add_argument(
        "--scope", choices=scopes, default="once", help="how long the approval is valid (default: once)"
    )
    added["deny"].add_argument("reason", nargs="*", help="reason for the agent")
    added["revoke"].add_argument("id", metavar="ID", help="id of the grant (gr_…)")


def run(args: argparse.Namespace) -> int:
    with GatewayClient(home_folder(), Standalone.STORE) as client:
        match args.verb:
            case "list":
                waiting = client.ask("approvals.list")
                return out_result(waiting, _questions(waiting), as_json=args.as_json)
            case "show":
                whole = client.ask("approvals.show", {"id": args.id})
                return out_result(whole, whole["text"].rstrip(), as_json=args.as_json)
            case "grants":
                grants = client.ask("grants.list")
                return out_result(grants, _grants(grants), as_json=args.as_json)
            case "revoke":
                answer = client.ask("grants.revoke", {"id": args.id})
                text = f"✓ {answer['subject']} is asked about again."
            case "approve":
                answer = client.ask("approvals.answer", {"id": args.id, "allow": True, "scope": args.scope})
                text = f"✓ {answer['text']}"
            case _:
                reason = " ".join(args.reason)
                answer = client.ask("approvals.answer", {"id": args.id, "allow": False, "reason": reason})
                text = f"✓ {answer['text']}"
        out_result(answer, text, as_json=args.as_json)
        if client.is_alone and not args.as_json and args.verb != "revoke" and answer["answered"]:
            out(f"  It goes on when the gateway runs: {command_name()} gateway start")
    return 0


def _questions(rows: list[dict[str, Any]]) -> Iterator[str]:
    if not rows:
        yield "Nothing waits for an answer."
    for row in rows:
        yield from _question(row)


def _question(row: Mapping[str, Any]) -> Iterator[str]:
    """What would run, with nothing hidden in it."""
    from hermes.core.markdown.call_text import as_plain_text, blocks_of
    from hermes.core.text import one_line, visible

    left = max(0, row["expires_at"] - time.time())
    where = f" {visible(row['where_run'])}" if row["where_run"] else ""
    host = ", touches this machine" if row["touches_host"] else ""
    yield f"{row['code']}  {visible(row['tool'])}{where} for {one_line(row['person'], 40) or 'nobody known'}{host}"
    lines = as_plain_text(blocks_of(row["tool"], row["arguments"])).split("\n")
    is_cut = row.get("is_long") or len(lines) > MAX_LINES
    for line in lines[:MAX_LINES]:
        yield f"        {line[:MAX_LINE] if is_cut else line}"
    if is_cut:
        yield f"        … all of it, and how to approve it: {command_name()} approvals show {row['code']}"
    yield f"        {one_line(row['question'], 300)}"
    yield f"        good for {_span(left)} more; in {row['lane']}"


def _grants(rows: list[dict[str, Any]]) -> Iterator[str]:
    from hermes.core.text import one_line

    if not rows:
        yield "Nothing is granted: everything dangerous is asked about."
    for row in rows:
        reach = "this machine" if row["touches_host"] else "sandbox"
        span = "always" if not row["session_id"] else f"in session {row['session_id']}"
        yield f"{row['id']}  {one_line(row['subject'], 120)} ({reach}), {span}"
        yield f"        for {one_line(row['person'], 40)}; by {one_line(row['by'], 40)}, {_day(row['granted_at'])}"
        yield f"        {one_line(row['reason'], 200)}"


def _span(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 5400 else f"{max(1, round(seconds / 60))} min"


def _day(at: float) -> str:
    return format_time("%Y-%m-%d %H:%M", at)
