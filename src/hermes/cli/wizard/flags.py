"""Declare the flags of ``gateway setup``, ``test`` and ``reset``. Imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

DM_POLICIES = ("pairing", "open", "allowlist", "disabled")
GROUP_POLICIES = ("disabled", "allowlist", "open")


def add_setup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "platforms", nargs="*", metavar="PLATFORM", help="for example telegram; without one: choose from a list"
    )
    add_platform_flags(parser)


def add_platform_flags(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import account_name

    parser.add_argument("--token", default="", help="token of the bot; - reads it from stdin")
    setting = "another setting of the platform; may be repeated"
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings", help=setting)
    parser.add_argument("--dm-policy", default="", choices=DM_POLICIES, help="who may write in a direct chat")
    parser.add_argument("--allow", default="", metavar="IDS", help="allowed user ids, separated by commas")
    parser.add_argument(
        "--owner", default="", metavar="ID", help="your own id: your commands run on this machine, not in a sandbox"
    )
    parser.add_argument("--group-policy", default="", choices=GROUP_POLICIES, help="in which groups the agent answers")
    parser.add_argument(
        "--groups", default="", metavar="IDS", help="group ids for the policy allowlist, separated by commas"
    )
    parser.add_argument(
        "--account", default="main", type=account_name, help="name of a further account on the same platform"
    )
    parser.add_argument("--install", action="store_true", help="install the missing package of the platform")
    parser.add_argument("--no-check", action="store_true", help="save without testing")
    parser.add_argument(
        "--yes", "-y", action="store_true", help="ask no questions; settings that are not given stay as they are"
    )
    parser.add_argument("--start", action="store_true", help="start the gateway if it is not running")


def add_test(parser: argparse.ArgumentParser) -> None:
    which = "<platform>[@<account>], for example telegram; without one: every account that is set up"
    parser.add_argument("platform", nargs="?", default="", help=which)
    parser.add_argument("--no-model", action="store_true", help="do not ask the model for an answer")
    parser.add_argument("--to", default="", metavar="CHAT", help="a chat instead of the home channel")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")


def add_reset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep-backup", action="store_true", help="keep the old state.db in backups/")
    parser.add_argument(
        "--yes", "-y", action="store_true", help="ask no question; without --keep-backup the old state.db is deleted"
    )
    parser.add_argument("--watch", type=float, default=10.0, metavar="SECONDS", help="how long to watch the start")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
