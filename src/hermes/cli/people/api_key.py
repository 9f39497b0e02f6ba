"""``hermes api-key``: list, create and revoke the keys of the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import home_folder, load_config, refuse_foreign
from hermes.cli.support.program_name import command_name
from hermes.core.durations import format_time
from hermes.hosting.terminal import out_result

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

EXAMPLES = """\
  hermes api-key show                             the default key; it has the role of the owner
  curl -H "Authorization: Bearer $(hermes api-key show)" http://127.0.0.1:8642/v1/models
  hermes api-key create phone --role user         prints the new key; it is not shown again
  hermes api-key create codex --tools none        its requests use none of the gateway's tools
  hermes api-key list
  hermes api-key revoke phone                     the key is refused from now on
"""

VERBS = {
    "show": "print the default key",
    "create": "create a named key with a role",
    "list": "list the named keys, without their secrets",
    "revoke": "revoke a named key",
}

ROLES = ("owner", "admin", "user", "guest")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES)
    for verb in ("create", "revoke"):
        added[verb].add_argument("name", help="name of the key")
    added["create"].add_argument("--role", choices=ROLES, default="user", help="role of the key (default: user)")
    added["create"].add_argument(
        "--tools",
        default="",
        metavar="none|LIST",
        help="the gateway's tools for requests that do not say: none, or tools and toolsets (default: all)",
    )


def run(args: argparse.Namespace) -> int:
    home = home_folder()
    if args.verb == "show":
        return _show(home, as_json=args.as_json)
    with GatewayClient(home, Standalone.GATEWAY if args.verb == "create" else Standalone.STORE) as client:
        match args.verb:
            case "create":
                answer = client.ask("api_keys.create", {"name": args.name, "role": args.role, "tools": args.tools})
                advice = "Copy it now: it is not stored and never shown again. It works at once."
                lines = [answer["key"], f"✓ {answer['name']}, {answer['role']}. {advice}"]
            case "list":
                answer = client.ask("api_keys.list")
                lines = [f"default           owner  see: {command_name()} api-key show", *map(_describe_key, answer)]
            case _:
                answer = client.ask("api_keys.revoke", {"name": args.name})
                lines = [f"✓ {answer['name']} is revoked: requests with it are refused from now on."]
    return out_result(answer, lines, as_json=args.as_json)


def _show(home: Path, *, as_json: bool) -> int:
    """Works without a gateway: the key is a setting, or a file of the home, made here if it is not there yet."""
    from hermes.store.api.api_keys import own_key
    from hermes.store.home import make_home

    refuse_foreign(home)
    configured = load_config(home).config.api.key
    if not configured:
        make_home(home)
    key = (configured or own_key(home)).reveal()
    return out_result({"name": "default", "role": "owner", "key": key}, [key], as_json=as_json)


def _describe_key(key: Mapping[str, Any]) -> str:
    ended = f", revoked {_day(key['revoked_at'])}" if key["revoked_at"] else ""
    tools = f", tools: {key['tools']}" if key.get("tools") else ""
    return f"{key['name']:<16}  {key['role']:<5}  {key['hint']}, made {_day(key['created_at'])}{tools}{ended}"


def _day(at: float) -> str:
    return format_time("%Y-%m-%d", at)
