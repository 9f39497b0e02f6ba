"""``hermes send``: send a message to a chat, list and retry failed ones."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import NOT_RUNNING, GatewayClient, Standalone
from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import command_name
from hermes.cli.support.screen import complain
from hermes.core.durations import format_time
from hermes.core.i18n.failures import sentence
from hermes.core.text import one_line
from hermes.hosting.control.client import GatewayIsDownError
from hermes.hosting.terminal import err, out, out_json, out_lines, out_result

if TYPE_CHECKING:
    import argparse

USAGE_ERROR = 2
WAIT_SECONDS = 60.0

EXAMPLES = """\
  hermes send telegram "The backup is done."             to the home channel (/sethome in a chat sets it)
  hermes send telegram:42 "The backup is done."          to one chat; slack:#alerts names a channel
  hermes send all "Back in five minutes."                to every home channel; separate several targets with commas
  hermes send -t telegram:42 --wait "Are you there?"     waits for the delivery, or reports why it failed
  df -h | hermes send telegram:42 -
  hermes send --dead                                     list messages that could not be delivered
  hermes send --retry ob_1k4m9x2c7qf4b                   send one of those again
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-t",
        "--target",
        help="<platform>[@<account>] (its home channel), <platform>[@<account>]:<chat>[:<thread>], "
        "<platform>:#name, local, all, or several separated by commas",
    )
    parser.add_argument("words", nargs="*", metavar="[TARGET] TEXT", help="the message; - reads it from stdin")
    parser.add_argument("--wait", action="store_true", help="wait for the delivery, at most a minute")
    parser.add_argument("--dead", action="store_true", help="list messages that could not be delivered")
    parser.add_argument("--retry", metavar="ID", help="send an undelivered message again")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.dead:
        return _dead(as_json=args.as_json)
    if args.retry:
        return _call_gateway("outbox.retry", {"id": args.retry}, as_json=args.as_json)
    words = list(args.words)
    target = args.target or (words.pop(0) if words else "")
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    if not target or not text.strip():
        err(f'✗ Name a target and a text: {command_name()} send telegram "hello"')
        return USAGE_ERROR
    wait = WAIT_SECONDS if args.wait else 0.0
    asked = {"target": target, "text": text, "key": secrets.token_hex(12), "wait_seconds": wait}
    return _call_gateway("send", asked, as_json=args.as_json)


def _call_gateway(verb: str, asked: Mapping[str, Any], *, as_json: bool) -> int:
    try:
        with GatewayClient(home_folder(), Standalone.NEVER) as client:
            answer = client.ask(verb, asked, timeout=WAIT_SECONDS + 10.0)
    except GatewayIsDownError as error:
        complain(f"Nothing was sent. {error}")
        return NOT_RUNNING
    letters = answer.get("letters", [answer])
    out_result(answer, map(_describe_delivery, letters), as_json=as_json)
    is_bad = any(letter["state"] == "dead" for letter in letters)
    return 1 if is_bad or (asked.get("wait_seconds") and any(letter["state"] != "sent" for letter in letters)) else 0


def _describe_delivery(letter: Mapping[str, Any]) -> str:
    where = f"{letter['id']} → {letter['target']}"
    reason = f": {letter['reason']}" if letter["reason"] else ""
    match letter["state"]:
        case "sent":
            return f"✓ {where}, delivered"
        case "dead":
            return f"✗ {where}, not delivered{reason}"
        case "parked":
            return f"! {where}, waits until its chat is open{reason}"
        case _:
            return f"✓ {sentence(where + ', on its way' + reason)} Look: {command_name()} trace {letter['id']}"


def _dead(*, as_json: bool) -> int:
    with GatewayClient(home_folder(), Standalone.STORE) as client:
        letters = client.ask("outbox.dead")
    if as_json:
        out_json(letters)
        return 0
    for letter in letters:
        when = format_time("%Y-%m-%d %H:%M", letter["settled_at"] or letter["created_at"])
        about = f"{letter['id']}  {when}  {letter['target']}  {letter['reason']}"
        out_lines([about, f"    {one_line(letter['text'], 100)}"])
    out(f"Try one again: {command_name()} send --retry {letters[0]['id']}" if letters else "✓ Nothing is undelivered.")
    return 0
