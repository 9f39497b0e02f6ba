"""``hermes gateway``: run, start, stop and set up the gateway."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hermes.cli.support.help import add_verbs
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
  hermes gateway stop             finish running work, then stop
  hermes gateway restart          finish running work, then start again
  hermes gateway status           running, degraded, stalled or not running (exit code 0, 1, 1, 3; 1 if it died)
  hermes gateway install          keep it running: a service of systemd or launchd that starts with the machine
  hermes gateway install --dry-run   show the unit and the commands, change nothing
  sudo hermes gateway install --system   for the whole machine, under a separate user
  hermes gateway uninstall        stop the service and remove it; the data stays
  hermes gateway setup            connect chat platforms, question by question
  hermes gateway setup telegram --token 123:abc --dm-policy pairing --yes
  hermes gateway test             every account and the model: names, test messages, one small answer
  hermes gateway test telegram    name of the account, and a test message to the home channel
  hermes gateway reset --keep-backup   the old state.db goes to backups/; people and conversations are restored
"""

VERBS = {
    "run": "run in the foreground; restarts itself after a crash",
    "start": "run in the background",
    "stop": "finish running work, then stop",
    "restart": "finish running work, then start again; paused platforms are resumed",
    "status": "show the state; exit code 0 running, 1 degraded, stalled or dead, 3 not running",
    "install": "install the gateway as a service that starts with the machine",
    "uninstall": "stop the service and remove its unit; the data stays",
    "reset": "set a damaged state.db aside, start with a new one, and verify the start",
    "setup": "connect a chat platform, test its token, choose who may write",
    "test": "check accounts on their platforms, send a test message, ask the model for an answer",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for verb, of_verb in add_verbs(parser, VERBS, EXAMPLES, without_json=VERBS.keys() - {"status"}).items():
        if verb == "run":
            of_verb.add_argument("--replace", action="store_true", help="stop the running gateway of this home first")
        if verb == "reset":
            flags.add_reset(of_verb)
        if verb in SERVICE_VERBS:
            of_verb.add_argument("--system", action="store_true", help="the system service, not that of your account")
        if verb in ("install", "uninstall"):
            of_verb.add_argument("--dry-run", action="store_true", help="show what would be done, change nothing")
            of_verb.add_argument("--yes", "-y", action="store_true", help="ask no questions")
        if verb == "install":
            _add_install_options(of_verb)
        if verb == "setup":
            flags.add_setup(of_verb)
        if verb == "test":
            flags.add_test(of_verb)


def _add_install_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run-as", default="", metavar="USER", help="with --system: run as this user (default: a new user hermes)"
    )
    parser.add_argument(
        "--replace", action="store_true", help="replace a unit that was changed by hand; the old file is kept as .old"
    )
    linger = parser.add_mutually_exclusive_group()
    linger.add_argument(
        "--linger", action="store_true", default=None, help="keep it running after you log out, without asking"
    )
    linger.add_argument(
        "--no-linger", action="store_false", dest="linger", default=None, help="stop it when you log out"
    )
    parser.add_argument(
        "--watch", type=float, default=30.0, metavar="SECONDS", help="how long to watch the status (default: 30)"
    )


SERVICE_VERBS = ("install", "uninstall", "start", "stop", "restart", "status")

_WIZARD = {"setup": "hermes.cli.wizard.platform", "test": "hermes.cli.wizard.test_message"}


def run(args: argparse.Namespace) -> int:
    if args.verb == "install":
        return _install(args)
    if args.verb == "run":
        return _run(home_folder(), replace=args.replace)
    if args.verb == "reset":
        from hermes.cli.repairs import reset

        return reset.run(args, home_folder())
    if args.verb not in SERVICE_VERBS:
        from importlib import import_module

        return cast("int", import_module(_WIZARD[args.verb]).run(args))
    from hermes.hosting.service import services

    home, user = services.system_service() if args.system else (home_folder(), "")
    if user and os.getuid() != 0 and services.user_name(os.getuid()) != user:
        err(tr(f"✗ The service of the system belongs to the user {user}. Repeat the command with sudo."))
        return 1
    if args.verb == "status":
        with services.acting_as(user):
            return _status(home, as_json=args.as_json)
    if args.verb == "uninstall":
        from hermes.cli.service.install import uninstall

        return uninstall(
            services.find_installed(str(home)), home, is_dry_run=args.dry_run, is_yes=args.yes, hermes=command_name()
        )
    with services.acting_as(user):
        return _act(args.verb, home)


def _act(verb: str, home: Path) -> int:
    from hermes.hosting import lifecycle

    match verb:
        case "start":
            if not _is_usable(home):
                return CONFIGURATION
            return _tell(lifecycle.start(home, command_name()))
        case "stop":
            return _tell(lifecycle.stop(home, command_name()))
        case _:
            return _tell(lifecycle.restart(home, command_name()))


def _install(args: argparse.Namespace) -> int:
    from hermes.cli.service.install import install
    from hermes.cli.service.plan import InstallRequest

    home = home_folder()
    if not args.system and not _is_usable(home):
        return CONFIGURATION
    request = InstallRequest(
        is_system=args.system,
        run_as=args.run_as,
        is_dry_run=args.dry_run,
        is_yes=args.yes,
        replaces=args.replace,
        linger=args.linger,
        watch_seconds=max(0.0, args.watch),
    )
    return install(request, home, command_name())


def _run(home: Path, *, replace: bool) -> int:
    if not _is_usable(home):
        return CONFIGURATION
    if replace and (words := _belongs_to_service(home)):
        err(tr(words))
        return 1
    if replace and launch.is_inside(str(home)):
        from hermes.hosting import lifecycle

        # Stopping the gateway ends this very command, so the new one is set free first.
        lifecycle.start_detached(home, replace=True).returncode = 0
        out(tr(f"✓ A new gateway takes over, in the background. Its status: {command_name()} gateway status"))
        return 0
    return launch.become_supervisor(str(home), replace=replace)


def _belongs_to_service(home: Path) -> str:
    """Say that the running gateway is a service's: its manager would start it again beside the one that replaced it."""
    from hermes.hosting import lifecycle
    from hermes.hosting.service import services

    service = services.find_installed(str(home))
    if service is None or (lifecycle.look(home, "").snapshot or {}).get("kept_up_by") != service.describe():
        return ""
    return (
        f"✗ The gateway is a service of {service.describe()}, which would start it again. "
        f"Stop the service first: {command_name()} gateway stop"
    )


def _tell(outcome: LifecycleResult) -> int:
    (out if outcome.exit_code == 0 else err)(tr(outcome.text))
    return outcome.exit_code


def _status(home: Path, *, as_json: bool) -> int:
    from hermes.cli.support.home import load_config, outside_platforms
    from hermes.hosting import lifecycle, status

    facts = lifecycle.look(home, command_name(), lambda: outside_platforms(load_config(home).config))
    judged = status.judge(facts)
    profile = profiles.profile_of(str(home))
    lines = (*judged.lines, f"  profile    {profile}") if profile else judged.lines
    if as_json:
        value = {
            "state": judged.state.value,
            "text": "\n".join(lines),
            "service": facts.service,
            "snapshot": facts.snapshot,
            "profile": profile,
        }
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
        from hermes.cli.home.import_home import offer

        offer(home, state.description)
    return False
