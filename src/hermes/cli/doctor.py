"""``hermes doctor``: find troubles, and name the command that solves each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from hermes.cli.support.client import home_folder
from hermes.cli.support.program_name import as_typed, command_name
from hermes.core.durations import count
from hermes.hosting.terminal import out, out_json
from hermes.hosting.translation import pad, tr

if TYPE_CHECKING:
    import argparse

    from hermes.cli.checks.finding import Finding

EXAMPLES = """\
  hermes doctor            exit code 1 if a problem is found, else 0 (hints do not count)
  hermes doctor --json
  hermes doctor --user 5550142            why this person is answered or not; exit code 0 if answered
  hermes doctor --user telegram:5550142   the same, on one platform
"""

_MARKS = {"good": "✓", "hint": "!", "trouble": "✗"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", default="", metavar="ID", help="explain why this person is answered or not")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    if args.user:
        from hermes.cli.checks import access

        return access.run(args.user, as_json=args.as_json)
    from hermes.cli.checks.checks import examine

    findings = examine(home_folder(), command_name())
    troubles = [finding for finding in findings if finding.level == "trouble"]
    if args.as_json:
        out_json({"is_well": not troubles, "findings": [asdict(one) for one in findings]})
    else:
        out(as_typed("\n".join(screen(findings))))
    return 1 if troubles else 0


def screen(findings: Sequence[Finding]) -> list[str]:
    lines = []
    for number, finding in enumerate(findings, 1):
        lines.append(f"{number:>2} {_MARKS[finding.level]} {pad(tr(finding.name), 10)} {tr(finding.text)}")
        lines += [f"{'':<15} {tr(more)}" for more in finding.more]
    troubles = sum(finding.level == "trouble" for finding in findings)
    hints = sum(finding.level == "hint" for finding in findings)
    counts = [count(troubles, "trouble")] * bool(troubles) + [count(hints, "hint")] * bool(hints)
    return [*lines, tr(f"{', '.join(counts)}." if counts else "All is well.")]
