"""``hermes gateway``: run, start, stop and set up the gateway."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hermes.cli.support.help import describe_verb
from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import as_typed, command_name
from hermes.cli.wizard import flags
from hermes.hosting import launch, profiles
from hermes.hosting.terminal import err, out, out_json
from hermes.hosting.translation import tr

if TYPE_CHECKING:
    import argparse

    from hermes.hosting.lifecycle import LifecycleResult

CONFIGURATION = 78

EXAMPLES = """\
  hermes gateway                  run in the foreground; Ctrl+C stops the gateway
  hermes gateway run --replace    stop the running gateway and take its place
  hermes gateway start            run in the background
  hermes gateway status           running, degraded, stalled or not running (exit code 0, 1, 1, 3; 1 if it died)
  hermes gateway setup            connect chat platforms, question by question
  hermes gateway setup telegram --token 123:abc --dm-policy pairing --yes
  hermes gateway test             every account and the model: names, test messages, one small answer
  hermes gateway test telegram    name of the account, and a test message to the home channel
  hermes gateway reset --keep-backup   the old state.db goes to backups/; people and conversations come back
"""

VERBS = {
    "run": "run in the foreground; restarts itself after a crash",
    "start": "run in the background",
    "stop": "finish the work under way, then stop",
    "restart": "finish the work under way, then start again; paused platforms are resumed",
    "status": "show the state; exit code 0 running, 1 degraded, stalled or dead, 3 not running",
    "reset": "set a state.db that cannot be used aside, start with a new one, and verify the start",
    "setup": "connect a chat platform, test its token, choose who may write",
    "test": "check accounts on their platforms, send a test message, ask the model for an answer",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="|".join(VERBS), required=True)
    for verb, summary in VERBS.items():
        of_verb = verbs.add_parser(verb, help=tr(summary), description=describe_verb(summary))
        if verb == "run":
            of_verb.add_argument("--replace", action="store_true", help="stop the running gateway of this home first")
        if verb == "status":
            of_verb.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
        if verb == "reset":
            flags.add_reset(of_verb)
        if verb == "setup":
            flags.add_setup(of_verb)
        if verb == "test":
            flags.add_test(of_verb)


_WIZARD = {"setup": "hermes.cli.wizard.platform", "test": "hermes.cli.wizard.test_message"}


def run(args: argparse.Namespace) -> int:
    home = home_folder()
    match args.verb:
        case "run":
            return _run(home, replace=args.replace)
        case "start":
            from hermes.hosting import lifecycle

            if not _is_usable(home):
                return CONFIGURATION
            return _tell(lifecycle.start(home, command_name()))
        case "stop" | "restart":
            from hermes.hosting import lifecycle

            act = lifecycle.stop if args.verb == "stop" else lifecycle.restart
            return _tell(act(home, command_name()))
        case "status":
            return _status(home, as_json=args.as_json)
        case "reset":
            from hermes.cli.repairs import reset

            return reset.run(args, home)
        case _:
            from importlib import import_module

            return cast("int", import_module(_WIZARD[args.verb]).run(args))


def _run(home: Path, *, replace: bool) -> int:
    if not _is_usable(home):
        return CONFIGURATION
    if replace and launch.is_inside(str(home)):
        from hermes.hosting import lifecycle

        # Stopping the gateway ends this very command, so the new one is set free first.
        lifecycle.start_detached(home, replace=True).returncode = 0
        out(tr(f"✓ A new gateway takes over, in the background. How it is: {command_name()} gateway status"))
        return 0
    return launch.become_supervisor(str(home), replace=replace)


def _tell(outcome: LifecycleResult) -> int:
    (out if outcome.exit_code == 0 else err)(tr(outcome.text))
    return outcome.exit_code


def _status(home: Path, *, as_json: bool) -> int:
    from hermes.cli.support.client import load_config, outside_platforms
    from hermes.hosting import lifecycle, status

    facts = lifecycle.look(home, command_name(), lambda: outside_platforms(load_config(home).config))
    judged = status.judge(facts)
    profile = profiles.profile_of(str(home))
    lines = (*judged.lines, f"  profile    {profile}") if profile else judged.lines
    if as_json:
        value = {"state": judged.state.value, "text": "\n".join(lines), "snapshot": facts.snapshot, "profile": profile}
        out_json(value)
    else:
        out(as_typed(tr("\n".join(lines))))
    return judged.exit_code


def _is_usable(home: Path) -> bool:
    """False, with the words, when the home is another program's: nothing is written there, not even a lock."""
    if (home / launch.MARKER).exists():
        return True  # ours; the worker reads what the marker says, and every start is quicker by a sqlite3
    from hermes.store.home import Whose, inspect_home

    state = inspect_home(home)
    if state.whose is not Whose.FOREIGN:
        return True
    from hermes.hosting import banner

    shown = banner.short_home(str(home), os.path.expanduser("~"))
    err(tr(banner.foreign_home(shown, state.description, command_name())))
    if sys.stdin.isatty() and sys.stderr.isatty():
        from hermes.cli.import_home import offer

        offer(home, state.description)
    return False
