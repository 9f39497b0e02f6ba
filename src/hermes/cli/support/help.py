"""Print the help of a command's verbs, each with its example."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from typing import Any

from hermes.cli.support.program_name import even_examples
from hermes.hosting.terminal import write


class Parser(argparse.ArgumentParser):
    """Prints through the one place that cleans: an error repeats what was typed, or what a script passed on."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.color = False  # Python 3.14 would add sequences of its own

    def _print_message(self, message: str, file: Any = None) -> None:
        write(file or sys.stderr, message)


def add_verbs(
    parser: argparse.ArgumentParser, verbs: Mapping[str, str], examples: str
) -> dict[str, argparse.ArgumentParser]:
    """One parser for each verb, by name. Its examples are the lines of ``examples`` that name it."""
    added = parser.add_subparsers(dest="verb", metavar="|".join(verbs), required=True)
    return {verb: _add(added, verb, summary, examples) for verb, summary in verbs.items()}


def _add(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], verb: str, summary: str, examples: str
) -> argparse.ArgumentParser:
    own = "\n".join(re.findall(rf"^  (?=\S).*hermes [\w-]+ {verb}\b.*(?:\n   .*)*", examples, re.MULTILINE))
    return verbs.add_parser(
        verb,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n{even_examples(own)}" if own else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
