"""``hermes doctor``: find problems, name the command that solves each, repair what can be repaired."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.support.client import refuse_agent
from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import as_typed, command_name
from hermes.cli.support.prompts import confirm
from hermes.cli.support.screen import complain
from hermes.core.dataclasses import dataclass
from hermes.core.durations import count
from hermes.core.errors import GatewayError
from hermes.hosting.terminal import err, out, out_json
from hermes.hosting.translation import pad, tr

if TYPE_CHECKING:
    import argparse

    from hermes.cli.checks.finding import Finding
    from hermes.cli.repairs.repairs import Repair
    from hermes.cli.repairs.undo import UndoRecord

EXAMPLES = """\
  hermes doctor            exit code 1 if a problem is found, else 0 (hints do not count)
  hermes doctor --live     also makes one small call to the model and to each fallback
  hermes doctor --fix      repairs what can be repaired; asks first at a terminal
  hermes doctor --undo     reverts the file changes of the last --fix
  hermes doctor --json
  hermes doctor --user 5550142            why this person is answered or not; exit code 0 if answered
  hermes doctor --user telegram:5550142   the same, on one platform
"""

_MARKS = {"good": "✓", "hint": "!", "trouble": "✗"}
_INDENT = 15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fix", action="store_true", help="repair what can be repaired, and report it")
    parser.add_argument("--yes", "-y", action="store_true", help="with --fix: ask no question")
    parser.add_argument("--undo", action="store_true", help="revert the file changes of the last --fix")
    parser.add_argument("--live", action="store_true", help="make one small call to the model and to each fallback")
    parser.add_argument("--user", default="", metavar="ID", help="explain why this person is answered or not")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    if args.user:
        from hermes.cli.checks import access

        return access.run(args.user, as_json=args.as_json)
    home = home_folder()
    if args.fix or args.undo:
        refuse_agent()
    if args.undo:
        return _undo(home, as_json=args.as_json)
    from hermes.cli.checks.checks import examine

    findings = examine(home, command_name(), live=args.live)
    done: list[Done] = []
    record = ""
    if args.fix:
        repairs = _plan(home, findings)
        if repairs and _may_repair(repairs, is_asked=not (args.yes or args.as_json)):
            record, done = _repair(home, repairs, is_shown=not args.as_json)
            findings = examine(home, command_name(), live=args.live)
        elif not repairs and not args.as_json:
            out(tr("There is nothing that --fix can repair."))
    return _report(findings, done, record, as_json=args.as_json, is_fixing=args.fix)


def _report(findings: Sequence[Finding], done: Sequence[Done], record: str, *, as_json: bool, is_fixing: bool) -> int:
    troubles = [finding for finding in findings if finding.level == "trouble"]
    if as_json:
        value = {
            "is_well": not troubles,
            "findings": [entry.to_dict(number) for number, entry in enumerate(findings, 1)],
        }
        if is_fixing:
            value["repairs"] = [{"name": entry.name, "ok": entry.is_good, "text": entry.text} for entry in done]
            value["undo"] = record
        out_json(value)
    else:
        out(as_typed("\n".join(screen(findings, can_offer=not is_fixing))))
    return 1 if troubles else 0


def screen(findings: Sequence[Finding], *, can_offer: bool = True) -> list[str]:
    lines = []
    for number, finding in enumerate(findings, 1):
        lines.append(f"{number:>2} {_MARKS[finding.level]} {pad(tr(finding.name), 10)} {tr(finding.text)}")
        lines += [f"{'':<{_INDENT}} {tr(more)}" for more in finding.more]
        lines += [f"{'':<{_INDENT}} {tr(finding.why)}"] * bool(finding.why)
    troubles = sum(finding.level == "trouble" for finding in findings)
    hints = sum(finding.level == "hint" for finding in findings)
    counts = [count(troubles, "problem")] * bool(troubles) + [count(hints, "hint")] * bool(hints)
    last = tr(f"{', '.join(counts)}." if counts else "All is well.")
    fixable = [str(number) for number, finding in enumerate(findings, 1) if finding.fix]
    if fixable and can_offer:
        fix, numbers = f"{command_name()} doctor --fix", ", ".join(fixable)
        offer = f"`{fix}` can repair number {numbers}, and asks first."
        if len(fixable) > 1:
            offer = f"`{fix}` can repair numbers {numbers}, and asks first."
        last = f"{last} {tr(offer)}"
    return [*lines, last]


# Repairing


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a repair."""

    name: str
    text: str
    is_good: bool = True


def _plan(home: Path, findings: Sequence[Finding]) -> list[Repair]:
    from hermes.cli.repairs.repairs import plan_repairs

    return plan_repairs(home, command_name(), {finding.fix for finding in findings if finding.fix})


def _may_repair(repairs: Sequence[Repair], *, is_asked: bool) -> bool:
    """Show what would be done and ask; where nobody sits at a terminal, ``--fix`` itself is the answer."""
    if not is_asked or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    out(tr("These repairs can be done:"))
    for number, repair in enumerate(repairs, 1):
        out(f"{number:>2} {tr(repair.plan)}")
    return confirm("Do them?", default=True)


def _repair(home: Path, repairs: Sequence[Repair], *, is_shown: bool) -> tuple[str, list[Done]]:
    """Do each repair; one that fails is told and does not keep the others from being done."""
    from hermes.cli.repairs.undo import UndoRecord

    record = UndoRecord(home)
    done = [outcome for repair in repairs for outcome in _do(repair, record)]
    record.close()
    if is_shown:
        for outcome in done:
            (out if outcome.is_good else err)(as_typed(f"{'✓' if outcome.is_good else '✗'} {tr(outcome.text)}"))
        if record.name:
            out(as_typed(tr(f"  To undo the file changes: {command_name()} doctor --undo")))
        out("")
    return record.name, done


def _do(repair: Repair, record: UndoRecord) -> list[Done]:
    try:
        return [Done(repair.name, text) for text in repair.act(record)]
    except GatewayError as error:
        return [Done(repair.name, str(error), is_good=False)]
    except OSError as error:
        text = f"{repair.plan}: {error.strerror} ({error.filename})"
        return [Done(repair.name, text, is_good=False)]


def _undo(home: Path, *, as_json: bool) -> int:
    from hermes.cli.repairs.undo import undo_last

    try:
        name, done, left = undo_last(home)
    except GatewayError as error:
        complain(error)
        return 1
    if as_json:
        out_json({"record": name, "undone": done, "left": left})
        return 1 if left else 0
    for text in done:
        out(tr(f"✓ {text}"))
    for text in left:
        err(tr(f"✗ {text}"))
    if not done and not left:
        out(tr("There is nothing to undo: every file is as it was before."))
    return 1 if left else 0
