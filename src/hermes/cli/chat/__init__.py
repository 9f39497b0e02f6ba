"""``hermes`` and ``hermes chat``: talk to the agent.

``app`` is the chat in a real terminal: ``screen`` draws it, ``keys`` are its keys, ``calls`` asks the gateway.
``plain`` is the chat over a pipe, ``one_shot`` is ``hermes -z``. ``markdown``, ``lines``, ``turn_view``, ``menu``,
``questions``, ``replies`` and ``status_line`` are pure: text in, lines out.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from hermes.cli.chat.app import TerminalApp
    from hermes.cli.chat.plain import PlainChat

EXAMPLES = """\
  hermes                       chat with the agent; /help lists the commands, /exit leaves
  hermes --continue            show the conversation so far and continue it
  hermes --resume              pick an earlier conversation; --resume ID continues that one
  hermes chat --session work   a separate conversation
  hermes chat --plain          plain text: no colours, no redrawing
  hermes -z "hello"            ask one question, print the answer, exit
  echo "Sum this up: …" | hermes -z -
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", default="cli", metavar="NAME", help="name of the conversation (default: cli)")
    parser.add_argument("--plain", action="store_true", help="plain text, as over a pipe")
    again = parser.add_mutually_exclusive_group()
    again.add_argument(
        "-c", "--continue", action="store_true", dest="goes_on", help="show the conversation so far and continue it"
    )
    again.add_argument(
        "-r",
        "--resume",
        nargs="?",
        const="",
        default=None,
        metavar="ID",
        help="continue an earlier conversation; without ID, pick one from a list",
    )


def run(args: argparse.Namespace) -> int:
    from hermes.cli.chat.surroundings import greet
    from hermes.cli.support.client import GatewayClient, Standalone
    from hermes.cli.support.home import home_folder

    with GatewayClient(home_folder(), Standalone.CHAT) as client:
        client.connect()
        words, config = greet(client)
        if is_plain(args):
            from hermes.cli.chat.plain import PlainChat, reader

            chat = PlainChat(client, args.session, words)
            _resume_plain(chat, args)
            return chat.talk(reader(client.home, words))
        from hermes.cli.chat.app import TerminalApp

        app = TerminalApp(client, args.session, words, wants_reasoning=config.agent.show_reasoning)
        app.start_with(lambda started: _resume(started, args))
        return app.run()


def is_plain(args: argparse.Namespace) -> bool:
    """Whether to write plain text: asked for, over a pipe, or on a terminal that cannot do or must not show more."""
    if getattr(args, "plain", False) or not sys.stdin.isatty() or not sys.stdout.isatty():
        return True
    return os.environ.get("TERM", "dumb") in ("", "dumb", "unknown") or bool(os.environ.get("NO_COLOR"))


def _resume(app: TerminalApp, args: argparse.Namespace) -> None:
    wanted = getattr(args, "resume", None)
    if wanted:
        app.send(f"/resume {wanted}")
    elif wanted is not None:
        app.pick_session()
    elif getattr(args, "goes_on", False):
        app.show_history()


def _resume_plain(chat: PlainChat, args: argparse.Namespace) -> None:
    wanted = getattr(args, "resume", None)
    if wanted is not None:
        chat.answer(f"/resume {wanted}".rstrip())
    elif getattr(args, "goes_on", False):
        chat.answer("/history")
