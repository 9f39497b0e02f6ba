"""``hermes setup``: choose a model, connect a platform, start a chat."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.support.home import home_folder, refuse_foreign
from hermes.cli.support.program_name import command_name
from hermes.cli.support.screen import complain
from hermes.cli.wizard.flags import add_setup
from hermes.core.errors import ConfigError
from hermes.hosting.terminal import err, out
from hermes.hosting.translation import tr

if TYPE_CHECKING:
    from hermes.cli.support.prompts import Questions

EXAMPLES = """\
  hermes setup                       question by question; Enter keeps the current value
  hermes setup --model openai/gpt-4o-mini --key - --yes < key.txt
  hermes setup telegram --token 123:abc --dm-policy pairing --model openrouter --key sk-... --yes
"""

USAGE_ERROR = 2
INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="", metavar="PROVIDER[/MODEL]", help="openai, ollama/qwen3, ...")
    parser.add_argument("--key", default="", help="the provider's key; - reads it from stdin")
    parser.add_argument("--base-url", default="", metavar="URL", help="the provider's address")
    parser.add_argument(
        "--terminal",
        default="",
        choices=("local", "guarded"),
        help="where your commands run: with your rights (local), or in a sandbox (guarded)",
    )
    add_setup(parser)


def run(args: argparse.Namespace) -> int:
    from hermes.cli.support.prompts import LeftError, at_terminal
    from hermes.cli.wizard.page import describe_left

    home = home_folder()
    refuse_foreign(home)
    ask = None if args.yes else at_terminal()
    if ask is None and not (args.model or args.key or args.base_url or args.platforms or args.terminal):
        from hermes.cli.wizard.platform import no_terminal, offered

        model = f"  {command_name()} setup --model openai/gpt-4o-mini --key KEY --yes     (--key - reads stdin)"
        first, *rest = no_terminal(offered()).splitlines()
        err(tr("\n".join([first, model, *rest])))
        return USAGE_ERROR
    done: list[str] = []
    try:
        code = _gone_through(home, args, ask, done)
    except (KeyboardInterrupt, LeftError):
        out(tr(f"\n{describe_left(done)}"))
        return INTERRUPTED
    except ConfigError as error:
        complain(error)
        return 1
    if code or ask is None:
        return code
    from hermes.cli import chat

    out(tr("\nAll set. Say hello here too; /exit leaves."))
    return chat.run(argparse.Namespace(session="cli"))


def _gone_through(home: Path, args: argparse.Namespace, ask: Questions | None, done: list[str]) -> int:
    """``done`` names what was written, as soon as it was."""
    from hermes.cli.wizard import model as model_setup
    from hermes.cli.wizard import platform, terminal

    if ask is not None:
        ask.say("Choose the model, where the agent's commands run, and the chats that reach it.")
        ask.say("Enter keeps the value in brackets. Ctrl+C leaves setup.")
    key = sys.stdin.readline().strip() if args.key == "-" else args.key
    if model_setup.set_up(home, model_setup.ModelFlags(args.model, key, args.base_url, not args.no_check), ask):
        done.append("The model")
    if terminal.set_up(home, args.terminal, ask):
        done.append("Where commands run")
    if not args.platforms:
        if ask is None:
            return 0
        ask.say()
        if not ask.yes("Reach it from a chat on your phone too?", default=True):
            return 0
    flags = platform.flags_of(args)
    return platform.set_up(home, args.platforms, flags, ask, is_started=args.start, done=done)
