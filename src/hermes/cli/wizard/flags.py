"""Declare the flags of ``gateway setup`` and ``gateway test``. Imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

DM_POLICIES = ("pairing", "open", "allowlist", "disabled")
GROUP_POLICIES = ("disabled", "allowlist", "open")


def add_setup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("platforms", nargs="*", metavar="PLATFORM", help="such as telegram; none: choose from a list")
    add_platform_flags(parser)


def add_platform_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--token", default="", help="its token; - reads it from stdin")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings", help="another setting of it"
    )
    parser.add_argument("--dm-policy", default="", choices=DM_POLICIES, help="who may write directly")
    parser.add_argument("--allow", default="", metavar="IDS", help="ids that may talk, with commas between them")
    parser.add_argument("--group-policy", default="", choices=GROUP_POLICIES, help="which groups are answered")
    parser.add_argument("--groups", default="", metavar="IDS", help="the groups of the policy allowlist")
    parser.add_argument("--account", default="main", help="a further account on the same platform")
    parser.add_argument("--install", action="store_true", help="install the package it needs, where that is missing")
    parser.add_argument("--no-check", action="store_true", help="write it without trying it first")
    parser.add_argument("--yes", "-y", action="store_true", help="ask nothing: what is not said stays as it is")
    parser.add_argument("--start", action="store_true", help="start the gateway when it does not run")


def add_test(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("platform", help="<platform>[@<account>], for example telegram")
    parser.add_argument("--to", default="", metavar="CHAT", help="a chat there, in place of the home channel")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
