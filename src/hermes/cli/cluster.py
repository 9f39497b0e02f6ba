"""``hermes cluster``: show the machines that share one database, and drain one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import command_name
from hermes.core.durations import count, format_duration
from hermes.hosting.terminal import out_result

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  hermes cluster status            nodes, leases, accounts, lanes, lag and versions
  hermes cluster drain box-2       hand all work of this node over to the others, before it is stopped
  hermes cluster drain box-2 --undo
"""

VERBS = {
    "status": "show every machine that works on this database",
    "drain": "have a machine hand its work over to the others",
}

DRAIN_SECONDS = 30.0
CLOCK_SECONDS = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES)
    added["drain"].add_argument("node", metavar="NODE", help="the name or the id of a node")
    added["drain"].add_argument("--undo", action="store_true", help="let the node take work again")


def run(args: argparse.Namespace) -> int:
    with GatewayClient(home_folder(), Standalone.STORE) as client:
        if args.verb == "status":
            status = client.ask("cluster.status")
            return out_result(status, screen(status), as_json=args.as_json)
        asked = {"node": args.node, "undo": args.undo, "wait_seconds": DRAIN_SECONDS}
        answer = client.ask("cluster.drain", asked, timeout=DRAIN_SECONDS + 10)
    if args.undo:
        lines = [f"✓ {answer['node']} takes work again."]
    elif not any(answer["left"].values()):
        lines = [f"✓ {answer['node']} has nothing in hand. Stop it there: {command_name()} gateway stop"]
    else:
        left = ", ".join(count(number, name.removesuffix("s")) for name, number in answer["left"].items() if number)
        lines = [f"! {answer['node']} takes no more work and still has {left}."]
    out_result(answer, lines, as_json=args.as_json)
    return 0 if args.undo or not any(answer["left"].values()) else 1


def screen(status: Mapping[str, Any]) -> list[str]:
    """The nodes, one below the other, and what nobody works on."""
    if not status["is_cluster"]:
        return [str(status["text"])]
    lines = [line for node in status["nodes"] for line in _node_lines(node)]
    if not lines:
        lines = [f"No gateway works on this database now. Start one: {command_name()} gateway start"]
    free = [duty["key"] for duty in status["duties"] if not duty["node"]]
    if free:
        lines.append(f"free       {', '.join(free)}")
    waiting = status["waiting"]
    lag = f", the oldest for {format_duration(waiting['lag_seconds'])}" if waiting["lag_seconds"] else ""
    lines.append(
        f"waiting    {count(waiting['lanes'], 'lane')}, {count(waiting['targets'], 'target')},"
        f" {count(waiting['calls'], 'call')}{lag}"
    )
    lines.append(f"schema     {status['schema_version']}, readable from {status['min_reader']} on")
    return lines


def _node_lines(node: Mapping[str, Any]) -> list[str]:
    if node["state"] in ("gone", "left"):
        return [
            f"{node['name']:<10} {node['state']}, last heard of {format_duration(node['beat_age'])} ago ({node['id']})"
        ]
    lease = f"lease {node['lease_left']:.1f} s" if node["lease_left"] > 0 else "lease over"
    first = f"{node['name']:<10} {node['state']}, up {format_duration(node['up_seconds'])}, {lease}"
    work = f"{count(node['lanes'], 'lane')}, {count(node['turns'], 'turn')}, {count(node['targets'], 'target')}"
    lines = [
        f"{first}, {work}",
        f"{'':<10} {node['host']}, process {node['pid']}, Hermes {node['version']}, {node['id']}",
    ]
    accounts = node["facts"].get("accounts") or {}
    for duty in node["duties"]:
        state = accounts.get(duty.removeprefix("account:"), {}).get("state", "")
        lines.append(f"{'':<10} {duty.removeprefix('account:')}{f': {state}' if state else ''}")
    if abs(float(node["facts"].get("clock_ahead") or 0)) >= CLOCK_SECONDS:
        lines.append(f"{'':<10} its clock differs from the database's by {node['facts']['clock_ahead']} s")
    return lines
