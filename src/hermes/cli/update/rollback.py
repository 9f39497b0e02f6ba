"""``hermes rollback``: return to the version from before the last update."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hermes.cli.support.client import refuse_agent
from hermes.cli.support.prompts import confirm
from hermes.cli.support.updates import options_here
from hermes.core.errors import ConfigError, GatewayError
from hermes.hosting.terminal import out_result
from hermes.hosting.translation import tr

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  hermes rollback           return to the version from before the last update; a second run returns to the newer one
  hermes rollback --yes     without a question
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from hermes.hosting.update.update import needs_older_store, rollback

    refuse_agent()
    options = options_here()
    before, target = options.installation.present(), options.installation.previous()
    if target is None:
        raise GatewayError("There is no version to go back to: no update was made here.")
    backup = needs_older_store(options.home)
    question = f"Go back from {before.name} to {target.name}?"
    if backup is not None:
        question += (
            f" It cannot read the current stores: those of {backup.name} are restored; the current ones are set aside."
        )
    if not args.yes:
        if not sys.stdin.isatty():
            raise ConfigError(f"{question}\n  There is no terminal to ask for confirmation. Repeat it with --yes.")
        if not confirm(question):
            return 1
    outcome = rollback(options)
    lines = [tr(f"✓ {target.name} is installed again."), *filter(None, [tr(outcome)])]
    return out_result({"version": target.id, "before": before.id}, "\n".join(lines), as_json=args.as_json)
