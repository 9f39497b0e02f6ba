"""Print the help of a command's verbs, each with its example."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection, Mapping
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
    parser: argparse.ArgumentParser, verbs: Mapping[str, str], examples: str, *, without_json: Collection[str] = ()
) -> dict[str, argparse.ArgumentParser]:
    """Add a parser per verb, with ``--json`` and the lines of ``examples`` that name the verb."""
    subparsers = parser.add_subparsers(dest="verb", metavar="|".join(verbs), required=True)
    added = {verb: _add(subparsers, verb, summary, examples) for verb, summary in verbs.items()}
    for verb in verbs.keys() - set(without_json):
        added[verb].add_argument("--json", action="store_true", dest="as_json", help="print JSON")
    return added


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
