"""``hermes people``: list people, link their accounts, set their roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import home_folder
from hermes.hosting.terminal import out_result

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  hermes people list
  hermes people role telegram:5550142 admin        owner, admin, user or guest; applies from the next message on
  hermes people link weixin:wxid_7 telegram:5550142
                                                   one person with two accounts: one role, one workspace
"""

VERBS = {
    "list": "list everybody the agent knows",
    "role": "assign a role to a person",
    "link": "link another account to a person",
}

ROLES = ("owner", "admin", "user", "guest")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES)
    added["role"].add_argument("person", help="an id, or platform:user")
    added["role"].add_argument("role", choices=ROLES, help="the new role")
    added["link"].add_argument("account", help="the account to link, as platform:user")
    added["link"].add_argument("person", help="the person the account belongs to: an id, or platform:user")


def run(args: argparse.Namespace) -> int:
    with GatewayClient(home_folder(), Standalone.STORE) as client:
        match args.verb:
            case "list":
                answer = client.ask("people.list")
                lines = [
                    f"{each['role']:<6} {each['name'] or '–':<16} {each['id']:<24} {', '.join(each['accounts'])}"
                    for each in answer
                ] or ["Nobody yet."]
            case "role":
                answer = client.ask("people.role", {"person": args.person, "role": args.role})
                lines = [f"✓ {answer['name'] or answer['id']} is {answer['role']} now."]
            case _:
                answer = client.ask("people.link", {"account": args.account, "person": args.person})
                name = answer["name"] or answer["id"]
                lines = [f"✓ {answer['account']} belongs to {name} now, with the role {answer['role']}."]
    return out_result(answer, lines, as_json=args.as_json)
