"""``hermes pairing``: list strangers who wrote, let them in or shut them out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import home_folder
from hermes.core.errors import GatewayError
from hermes.hosting.terminal import out_result

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  hermes pairing list                              requests with their codes, and approved people
  hermes pairing approve telegram K7QPM3XW         takes effect in the running gateway at once
  hermes pairing approve telegram --user 5550142   by id: also if newer requests displaced the code
  hermes pairing revoke telegram 5550142           withdraw access from the next message on
  hermes pairing clear-pending telegram            discard waiting requests; people may ask again
"""

VERBS = {
    "list": "list waiting requests and approved people",
    "approve": "approve the request with this code, or the person with this id",
    "revoke": "withdraw a person's access",
    "clear-pending": "discard the waiting requests",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES)
    for verb in ("list", "clear-pending"):
        added[verb].add_argument("platform", nargs="?", default="", help="only this platform")
    for verb in ("approve", "revoke"):
        added[verb].add_argument("platform", help="telegram, weixin, ...")
    added["approve"].add_argument("code", nargs="?", default="", help="the pairing code the person was shown")
    added["approve"].add_argument("--user", default="", metavar="ID", help="the person's id on that platform instead")
    added["revoke"].add_argument("user", help="the person's id on that platform")


def run(args: argparse.Namespace) -> int:
    with GatewayClient(home_folder(), Standalone.GATEWAY) as client:
        match args.verb:
            case "list":
                answer = client.ask("pairing.list", {"platform": args.platform})
                lines = ["Waiting:" if answer["waiting"] else "No requests are waiting."]
                for request in answer["waiting"]:
                    minutes = max(0, round((time.time() - request["asked_at"]) / 60))
                    lines.append(f"  {request['platform']:<10} {request['code']}  {_who(request)}, {minutes} min ago")
                decided = [
                    f"  {request['state']:<9} {_who(request)}, by {request['decided_by']}"
                    for request in answer["decided"]
                ]
                lines += ["Decided:", *decided] if decided else []
            case "approve":
                if bool(args.code) == bool(args.user):
                    raise GatewayError(
                        "Name either the code or the id: hermes pairing approve PLATFORM CODE, "
                        "or hermes pairing approve PLATFORM --user ID"
                    )
                answer = client.ask(
                    "pairing.approve", {"platform": args.platform, "code": args.code, "user": args.user}
                )
                first = " First to be approved here, so they are the owner." if answer["is_first_owner"] else ""
                lines = [f"✓ {_who(answer)} may talk now.{first} Nothing to restart."]
            case "revoke":
                answer = client.ask("pairing.revoke", {"platform": args.platform, "user": args.user})
                lines = [f"✓ {_who(answer)} is a stranger again. An id that an allowlist names still gets in."]
            case _:
                answer = client.ask("pairing.clear", {"platform": args.platform})
                lines = [f"✓ {answer['cleared']} forgotten. People who write again get a new code."]
    return out_result(answer, lines, as_json=args.as_json)


def _who(person: Mapping[str, Any]) -> str:
    account = f"{person['platform']} {person['user']}"
    return f"{person['name']} ({account})" if person["name"] else account
