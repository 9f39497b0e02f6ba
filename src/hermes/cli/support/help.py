"""Print the help of a command's verbs, each with its example."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from hermes.cli.support.program_name import as_typed, even_examples
from hermes.hosting.terminal import write
from hermes.hosting.translation import tr


class Parser(argparse.ArgumentParser):
    """Prints through the one place that cleans: an error repeats what was typed, or what a script passed on."""

    def __init__(self, *args: Any, **options: Any) -> None:
        for name in ("description", "epilog"):
            if options.get(name):
                options[name] = tr(options[name])
        super().__init__(*args, **options)
        self.color = False  # Python 3.14 would add sequences of its own
        for group in self._action_groups:
            group.title = tr(group.title)
        for action in self._actions:
            action.help = tr(action.help or "")

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        if isinstance(options.get("help"), str):
            options["help"] = as_typed(tr(options["help"]))
        return super().add_argument(*names, **options)

    def add_mutually_exclusive_group(self, **options: Any) -> argparse._MutuallyExclusiveGroup:
        group = super().add_mutually_exclusive_group(**options)
        add = group.add_argument

        def add_translated(*names: Any, **given: Any) -> argparse.Action:
            return add(*names, **{**given, "help": tr(given.get("help") or "")})

        group.add_argument = add_translated  # type: ignore[method-assign] # argparse has no hook for a group
        return group

    def format_usage(self) -> str:
        return _with_usage(super().format_usage())

    def format_help(self) -> str:
        return _with_usage(super().format_help())

    def error(self, message: str) -> NoReturn:
        super().error(tr(message))

    def _print_message(self, message: str, file: Any = None) -> None:
        write(file or sys.stderr, message)


def _with_usage(text: str) -> str:
    """argparse's own word in front, in the language of the terminal."""
    first, line_end, rest = text.partition("\n")
    return f"{tr(first)}{line_end}{rest}"


def account_name(text: str) -> str:
    """Return the name given with ``--account``: refused before anything is asked, tried or signed in."""
    from hermes.config.keys import NAME

    if not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a usable name: take a-z, 0-9, _ and -.")
    return text


def add_verbs(
    parser: argparse.ArgumentParser, verbs: Mapping[str, str], examples: str, *, without_json: Collection[str] = ()
) -> dict[str, argparse.ArgumentParser]:
    """Add a parser per verb, with ``--json`` and the lines of ``examples`` that name the verb."""
    subparsers = parser.add_subparsers(dest="verb", metavar="|".join(verbs), required=True)
    added = {verb: _add(subparsers, verb, summary, examples) for verb, summary in verbs.items()}
    for verb in verbs.keys() - set(without_json):
        added[verb].add_argument("--json", action="store_true", dest="as_json", help="print JSON")
    return added


def describe_verb(summary: str) -> str:
    """The summary of a verb as a sentence."""
    text = tr(summary)
    return f"{text[0].upper()}{text[1:]}." if text == summary else f"{text}。"


def _add(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], verb: str, summary: str, examples: str
) -> argparse.ArgumentParser:
    own = "\n".join(re.findall(rf"^  (?=\S).*hermes [\w-]+ {verb}\b.*(?:\n   .*)*", examples, re.MULTILINE))
    heading = "examples:" if len(re.findall(r"^  \S", own, re.MULTILINE)) > 1 else "example:"
    return verbs.add_parser(
        verb,
        help=tr(summary),
        description=describe_verb(summary),
        epilog=f"{heading}\n{even_examples(own)}" if own else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
