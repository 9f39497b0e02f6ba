"""``hermes update``: take a new version up after trying it on a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.support.client import refuse_agent
from hermes.cli.support.program_name import command_name
from hermes.cli.support.screen import telling_interruption
from hermes.cli.support.updates import options_here
from hermes.hosting.terminal import out_result
from hermes.hosting.translation import tr

if TYPE_CHECKING:
    import argparse

    from hermes.hosting.update.installation import NewVersion
    from hermes.hosting.update.update import UpdateOptions

EXAMPLES = """\
  hermes update --check         only show what is new
  hermes update                 back up, test the new version on a copy, switch to it, restart the gateway
  hermes update --rollback      the same as hermes rollback
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="only show what is new")
    parser.add_argument("--rollback", action="store_true", help="return to the version from before the last update")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.rollback:
        from hermes.cli.update import rollback

        return rollback.run(args)
    if not args.check:
        refuse_agent()
    options = options_here()
    before = options.installation.present()
    version = options.installation.look()
    if version is None:
        return out_result(
            {"version": before.id, "new": None}, tr(f"✓ {before.name} is the newest."), as_json=args.as_json
        )
    if args.check:
        lines = [tr(f"New: {version.name}; installed: {before.name}. Install it: {command_name()} update")]
        lines += [f"  {title}" for title in version.changes]
        return out_result(_plain(before, version), lines, as_json=args.as_json)
    from hermes.hosting.update.update import update

    with telling_interruption(lambda: _describe_interrupted(options)):
        outcome = update(options, version)
    lines = [
        tr(f"✓ {version.name} is installed. Back to {before.name}: {command_name()} rollback"),
        *filter(None, [tr(outcome)]),
    ]
    return out_result(_plain(before, version), "\n".join(lines), as_json=args.as_json)


def _describe_interrupted(options: UpdateOptions) -> str:
    return f"Installed is {options.installation.present().name}. Type it again: {command_name()} update"


def _plain(before: NewVersion, version: NewVersion) -> dict[str, object]:
    return {"version": before.id, "new": version.id, "name": version.name, "changes": list(version.changes)}
