"""``hermes webhook``: let other programs tell the agent what happened."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import as_typed, command_name
from hermes.hosting.terminal import out, out_result

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  hermes webhook subscribe issues --signature github --deliver telegram     prints the address and the secret
  hermes webhook subscribe ci --prompt "CI says {status} for {branch}" --deliver-only --deliver telegram
  hermes webhook list                                                       every route and where it goes
  hermes webhook test ci --payload '{"status": "red", "branch": "main"}'    send a signed sample
  hermes webhook remove ci
"""

VERBS = {
    "subscribe": "create or change a route",
    "list": "list the routes",
    "remove": "delete a route",
    "test": "send a signed sample to a route",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES)
    for verb in ("subscribe", "remove", "test"):
        added[verb].add_argument("name", help="name of the route, the last part of its address")
    make = added["subscribe"]
    make.add_argument("--signature", help="how the sender signs: github, gitlab, stripe, slack, svix, hermes (or auto)")
    make.add_argument("--secret", help="the sender's secret; - reads it from stdin; without it a new one is created")
    make.add_argument("--events", help="events that count, separated by commas: push, pull_request.opened, invoice.*")
    make.add_argument("--prompt", help="what to do, with fields of the payload as {pull_request.title}")
    make.add_argument("--deliver", help="where the answer goes: a platform (its home channel) or platform:chat")
    make.add_argument("--deliver-only", action="store_true", help="send the filled-in prompt itself, without the agent")
    make.add_argument("--skills", help="skills to read first, separated by commas")
    make.add_argument("--role", help="role of its turns: guest (no tools; the default) or user")
    added["test"].add_argument("--payload", default="", help="JSON to send; - reads it from stdin")


def run(args: argparse.Namespace) -> int:
    with GatewayClient(home_folder(), Standalone.NEVER if args.verb == "test" else Standalone.GATEWAY) as client:
        answer, lines, code = _ask(client, args)
        out_result(answer, lines, as_json=args.as_json)
        is_waiting = args.verb == "subscribe" and client.is_alone
    if is_waiting and not args.as_json:
        out(as_typed(f"  Webhooks are received while the gateway runs: {command_name()} gateway start"))
    return code


def _ask(client: GatewayClient, args: argparse.Namespace) -> tuple[Any, list[str], int]:
    match args.verb:
        case "subscribe":
            names = ("name", "signature", "secret", "events", "prompt", "deliver", "deliver_only", "skills", "role")
            fields = {name: value for name in names if (value := getattr(args, name))}
            if fields.get("secret") == "-":
                fields["secret"] = sys.stdin.readline().strip()
            route = client.ask("webhooks.subscribe", fields)
            where = route["deliver"] or "nowhere: the answer is kept, see hermes trace"
            lines = [f"✓ {route['url']}", f"  Secret: {route['secret']}", f"  Deliver: {where}"]
            return route, list(map(as_typed, lines)), 0
        case "list":
            routes = client.ask("webhooks.list")
            return routes, _table(routes), 0
        case "remove":
            return client.ask("webhooks.remove", {"name": args.name}), [f"✓ {args.name} is removed."], 0
        case _:
            payload = sys.stdin.read() if args.payload == "-" else args.payload
            answer = client.ask("webhooks.test", {"name": args.name, "payload": payload})
            is_taken = answer["status"] in (200, 202)
            status = answer["answer"].get("status") or answer["answer"].get("error", {}).get("message", "")
            return answer, [f"{'✓' if is_taken else '✗'} {answer['status']} {status}"], 0 if is_taken else 1


def _table(routes: list[dict[str, Any]]) -> list[str]:
    from hermes.cli.support.tables import table

    if not routes:
        return [as_typed("There are no webhooks yet. Make one: hermes webhook subscribe NAME --deliver telegram")]
    rows = [
        (
            route["name"],
            route["signature"],
            "on" if route["enabled"] and route["has_secret"] else "off" if route["has_secret"] else "no secret",
            route["role"],
            route["deliver"] or "-",
            route["url"],
        )
        for route in routes
    ]
    return table(("name", "signature", "state", "role", "deliver", "address"), rows)
