"""``hermes profile``: list, create, show and remove profiles, each an agent with a home of its own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import refuse_agent
from hermes.cli.support.home import home_folder, load_config, refuse_foreign
from hermes.cli.support.program_name import command_name, program
from hermes.cli.support.prompts import confirm
from hermes.core.errors import ConfigError, GatewayError
from hermes.core.i18n.failures import describe_failure
from hermes.hosting import profiles
from hermes.hosting.banner import short_home
from hermes.hosting.terminal import out_result
from hermes.hosting.translation import tr

if TYPE_CHECKING:
    import argparse

    from hermes.config import Loaded

PORT_STEP = 10
MAX_STEPS = 1000
PORTS = {"api.port": 8642, "webhooks.port": 8644}
"""Settings that two gateways on one machine cannot share, with their defaults."""

OF_ONE_AGENT = frozenset({"platforms", "chats", "owners", "database", "database_url", "webhooks"})
"""Sections of config.yaml that a clone does not get."""

EXAMPLES = """\
  hermes profile create work                create a second agent with its own ports
  hermes profile create work --clone        with the settings and model keys of this one, without its chats
  hermes -p work gateway setup telegram     connect a separate bot to it
  hermes -p work gateway start              run it beside the first
  hermes profile list                       all profiles: state, ports, folder
  hermes profile show work                  the same for one profile
  hermes profile remove work                delete it with everything it stores
"""

VERBS = {
    "list": "list the profiles: state, ports, folder",
    "create": "create a profile with its own home and ports",
    "show": "show one profile",
    "remove": "delete a profile with everything it stores",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES)
    for verb in ("create", "show", "remove"):
        added[verb].add_argument("name", help="name of the profile: a-z, 0-9, - and _")
    added["create"].add_argument(
        "--clone", action="store_true", help="copy settings, model keys and SOUL.md of this home, but no chat platform"
    )
    added["remove"].add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run(args: argparse.Namespace) -> int:
    here = home_folder()
    root = Path(profiles.root_of(str(here), os.environ.get("HERMES_PROFILE", "")))
    if args.verb in ("create", "remove"):
        refuse_agent()
    match args.verb:
        case "list":
            return _list(root, here, as_json=args.as_json)
        case "create":
            return _create(root, here, args)
        case "show":
            found = _describe(root, _known(root, args.name))
            lines = [f"{name:<9}{found[name]}" for name in ("name", "state", "home", "ports", "service", "command")]
            return out_result(found, lines, as_json=args.as_json)
        case _:
            return _remove(root, args)


def _list(root: Path, here: Path, *, as_json: bool) -> int:
    found = [_describe(root, name) for name in (profiles.DEFAULT, *profiles.names(str(root)))]
    width = max(len(profile["name"]) for profile in found)
    lines = [
        f"{'*' if profile['path'] == str(here) else ' '} {profile['name']:<{width}}  {profile['state']:<11}  "
        f"ports {profile['ports']:<11}  {profile['home']}"
        for profile in found
    ]
    return out_result(found, lines, as_json=as_json)


def _describe(root: Path, name: str) -> dict[str, Any]:
    from hermes.hosting import lifecycle, status

    home = Path(profiles.home_in(str(root), name))
    judged = status.judge(lifecycle.look(home, command_name()))
    return {
        "name": name,
        "state": judged.state.value,
        "home": short_home(str(home), os.path.expanduser("~")),
        "path": str(home),
        "ports": ", ".join(map(str, _ports(load_config(home)).values())),
        "service": profiles.unit_name(str(home)),
        "command": f"{program()} -p {name}",
    }


def _known(root: Path, name: str) -> str:
    if name == profiles.DEFAULT or name in profiles.names(str(root)):
        return name
    there = ", ".join((profiles.DEFAULT, *profiles.names(str(root))))
    raise ConfigError(f"There is no profile {name!r}. There are: {there}.")


# Making one


def _create(root: Path, here: Path, args: argparse.Namespace) -> int:
    from hermes.config.edit import set_values
    from hermes.store.home import make_home

    name: str = args.name
    if reason := profiles.why_no_name(name):
        raise ConfigError(f"Invalid profile name {name!r}: the name {reason}.")
    if name == profiles.DEFAULT:
        raise ConfigError("The profile default always exists: it is the home itself.")
    refuse_foreign(root)
    home = Path(profiles.home_in(str(root), name))
    if os.path.lexists(home):
        raise ConfigError(f"{home} already exists. Use it: {program()} -p {name} status")
    make_home(root)
    ports = _free_ports(root)
    source = load_config(here if here.exists() else root)
    make_home(home)
    if args.clone:
        _clone(source, home)
    set_values(load_config(home), {key: str(port) for key, port in ports.items()})
    answer = {"name": name, "path": str(home), **{key.partition(".")[0]: port for key, port in ports.items()}}
    typed = f"{program()} -p {name}"
    lines = [
        f"✓ The profile {name} was created: {short_home(str(home), os.path.expanduser('~'))}, "
        f"ports {', '.join(map(str, ports.values()))}.",
        f"  A model: {typed} setup     A chat: {typed} gateway setup     Run it: {typed} gateway start",
    ]
    return out_result(answer, [tr(line) for line in lines], as_json=args.as_json)


def _ports(loaded: Loaded) -> dict[str, int]:
    return {"api.port": loaded.config.api.port, "webhooks.port": loaded.config.webhooks.port}


def _free_ports(root: Path) -> dict[str, int]:
    """The first ports, counted up in tens, that no other profile has written down."""
    homes = [root, *(Path(profiles.home_in(str(root), name)) for name in profiles.names(str(root)))]
    taken = {port for home in homes for port in _ports(load_config(home)).values()}
    for step in range(1, MAX_STEPS):
        found = {key: port + step * PORT_STEP for key, port in PORTS.items()}
        if not taken & set(found.values()):
            return found
    raise GatewayError("No port is left for another profile. Remove one: hermes profile remove NAME")


def _clone(source: Loaded, home: Path) -> None:
    """Copy what is not of a chat: two gateways cannot listen for one bot."""
    from hermes.config.trees import Table, read_yaml
    from hermes.config.write import render_yaml
    from hermes.store.private_files import write_private

    of_chats = {name for keys in source.schema.of_platform.values() for key in keys for name in key.env}
    of_chats |= {"API_SERVER_PORT", "WEBHOOK_PORT", "HERMES_DATABASE_URL"}
    old = source.config.home
    if text := _text(old / ".env"):
        kept = [line for line in text.splitlines() if _variable(line) not in of_chats]
        write_private(home / ".env", "\n".join(kept) + "\n")
    if text := _text(old / "config.yaml"):
        tree, _ = read_yaml(text.encode(), "config.yaml")
        kept_sections = {name: part for name, part in (tree or Table()).entries.items() if name not in OF_ONE_AGENT}
        write_private(home / "config.yaml", render_yaml(Table(kept_sections)))
    if text := _text(old / "SOUL.md"):
        write_private(home / "SOUL.md", text)


def _variable(line: str) -> str:
    return line.partition("=")[0].strip().removeprefix("export ").strip()


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be copied: {describe_failure(error)}. The profile is created without it."
        ) from None


# Removing one


def _remove(root: Path, args: argparse.Namespace) -> int:
    from hermes.hosting.control import client as control

    name = _known(root, args.name)
    if name == profiles.DEFAULT:
        raise ConfigError("The profile default is the home itself, which holds the other profiles. It stays.")
    home = Path(profiles.home_in(str(root), name))
    if home.is_symlink() or home.resolve() != home.parent.resolve() / name:
        raise ConfigError(f"{home} is a link. Remove the link by hand.")
    if control.is_running(home):
        raise GatewayError(f"The gateway of this profile is running. Stop it first: {program()} -p {name} gateway stop")
    if not args.yes and not (sys.stdin.isatty() and confirm(f"Delete {home} with all its conversations?")):
        again = f"{program()} profile remove {name} --yes"
        raise GatewayError(f"Nothing was deleted. To delete it without a question: {again}")
    shutil.rmtree(home)
    answer: Mapping[str, Any] = {"name": name, "path": str(home), "removed": True}
    return out_result(answer, [tr(f"✓ The profile {name} is deleted.")], as_json=args.as_json)
