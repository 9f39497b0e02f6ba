"""``hermes security``: check what is open to others. Nothing is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.checks.doctor import screen
from hermes.cli.support.home import home_folder, load_config
from hermes.cli.support.program_name import as_typed, command_name
from hermes.hosting.terminal import out, out_json

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  hermes security audit           exit code 1 if a problem is found, else 0 (hints do not count)
  hermes security audit --json
"""

VERBS = {"audit": "list security risks, and how to remove each"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    add_verbs(parser, VERBS, EXAMPLES)


def run(args: argparse.Namespace) -> int:
    from hermes.cli.checks.audit import audit

    home = home_folder()
    findings = audit(home, load_config(home), command_name())
    troubles = [finding for finding in findings if finding.level == "trouble"]
    if args.as_json:
        numbered = [finding.to_dict(number) for number, finding in enumerate(findings, 1)]
        out_json({"is_safe": not troubles, "findings": numbered})
    else:
        out(as_typed("\n".join(screen(findings))))
    return 1 if troubles else 0
