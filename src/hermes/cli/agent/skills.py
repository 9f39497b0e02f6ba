"""``hermes skills``: list, read, install, remove and switch skills."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.support.home import home_folder, load_config, refuse_foreign
from hermes.cli.support.program_name import command_name
from hermes.core.text import one_line
from hermes.hosting.terminal import err, out, out_json, out_result

if TYPE_CHECKING:
    import argparse

    from hermes.agent.skills import Skill, SkillLibrary
    from hermes.agent.skills.install import Candidate
    from hermes.config import Loaded

EXAMPLES = """\
  hermes skills list                              all skills, and which are disabled (--json for programs)
  hermes skills show git-work                     read a skill; another file of it: hermes skills show NAME FILE
  hermes skills scan https://example.org/a/skill  check a skill without installing it
  hermes skills install ./my-skill                from a folder, an archive or a git address (https://, file://)
  hermes skills install skills.zip --only notes   one of several; --yes accepts its warnings
  hermes skills remove notes                      hermes skills remove notes --restore brings it back
  hermes skills disable git-work --platform telegram
  hermes skills enable git-work
  hermes skills sync                              copy the bundled skills now; --reset NAME undoes your changes
"""

VERBS = {
    "list": "list the skills, and which are disabled",
    "show": "read a skill",
    "install": "install a skill from a folder, an archive or a git address",
    "remove": "remove a skill, or restore it",
    "enable": "enable a skill",
    "disable": "disable a skill",
    "sync": "copy the bundled skills into the home",
    "scan": "check a skill for dangerous content",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES)
    for verb in ("show", "remove", "enable", "disable"):
        added[verb].add_argument("name", help="name of the skill, or category/name")
    added["show"].add_argument("file", nargs="?", default="", help="another file of the skill, such as references/x.md")
    for verb in ("install", "scan"):
        added[verb].add_argument("source", help="a folder, an archive, or an address with https:// or file://")
        added[verb].add_argument(
            "--only", default="", metavar="NAME", help="name of the skill, if the source has several"
        )
    added["install"].add_argument("--category", default="", help="folder for the skill (default: installed)")
    added["install"].add_argument("--replace", action="store_true", help="replace the installed skill of the same name")
    added["install"].add_argument("--yes", action="store_true", help="install despite warnings")
    added["remove"].add_argument("--restore", action="store_true", help="restore the removed skill")
    for verb in ("enable", "disable"):
        added[verb].add_argument("--platform", default="", help="only on this platform")
    added["sync"].add_argument(
        "--reset", default="", metavar="NAME", help="restore this skill (or all) to the bundled version"
    )


def run(args: argparse.Namespace) -> int:
    home = home_folder()
    refuse_foreign(home)
    loaded = load_config(home)
    library = open_library(home, loaded)
    match args.verb:
        case "list":
            return _list(library, as_json=args.as_json)
        case "show":
            return _show(library, args)
        case "install":
            return _install(library, args)
        case "remove":
            return _remove(library, args)
        case "enable" | "disable":
            from hermes.agent.skills.enable import switch

            skill = library.get(args.name)
            return _done(args, skill.name, switch(loaded, skill, on=args.verb == "enable", platform=args.platform))
        case "sync":
            return _sync(library, args)
        case _:
            return _scan(library, args)


def open_library(home: Path, loaded: Loaded) -> SkillLibrary:
    from hermes.agent.skills import SkillLibrary
    from hermes.config import EnvFiles, secret_variables
    from hermes.store.home import make_home

    make_home(home)
    files = EnvFiles.of(home, os.environ)
    library = SkillLibrary(
        home,
        lambda: loaded.config.skills,
        value_of=lambda name: os.environ.get(name) or files.get(name),
        own_variables=lambda: secret_variables(loaded),
        now=time.time,
    )
    if not library.all():
        library.bring_in()  # no gateway has been here yet
    library.refresh()
    return library


def _print_json(value: Any) -> int:
    out_json(value)
    return 0


def _list(library: SkillLibrary, *, as_json: bool) -> int:
    from hermes.agent.skills.install import origins

    came = origins(library.folder)
    if as_json:
        return _print_json([_skill_to_dict(library, skill, came) for skill in library.all()])
    width = max((len(skill.name) for skill in library.all()), default=0)
    category = None
    for skill in library.all():
        if skill.category != category:
            category = skill.category
            out(f"{category or '(no category)'}")
        off = f"  [{why}]" if (why := library.why_off(skill)) else ""
        out(f"  {skill.name:<{width}}  {one_line(skill.description, 80)}{off}")
    if not library.all():
        out(f"There are no skills in {library.folder}. The shipped ones: {command_name()} skills sync")
    for trouble in library.troubles():
        err(f"! {trouble}")
    return 0


def _skill_to_dict(library: SkillLibrary, skill: Skill, came: Any) -> dict[str, Any]:
    return {
        "name": skill.name,
        "category": skill.category,
        "description": skill.description,
        "version": skill.version,
        "from": "bundled" if skill.is_bundled else came.get(skill.address, "own"),
        "is_on": not library.why_off(skill),
        "why_off": library.why_off(skill),
        "missing_variables": [variable.name for variable in library.missing(skill)],
        "folder": str(skill.folder),
    }


def _show(library: SkillLibrary, args: argparse.Namespace) -> int:
    from hermes.agent.skills.render import view

    skill = library.get(args.name)
    text = library.read(skill, args.file) if args.file else view(library, skill)
    value = {"name": skill.name, "file": args.file or "SKILL.md", "text": text}
    return out_result(value, text.rstrip(), as_json=args.as_json)


def _install(library: SkillLibrary, args: argparse.Namespace) -> int:
    from hermes.agent.skills.install import install
    from hermes.agent.skills.parse import same_name
    from hermes.agent.skills.render import missing_lines

    candidate = install(
        args.source,
        library.folder,
        environ=os.environ,
        cwd=Path.cwd(),
        now=time.time(),
        category=args.category,
        only=args.only,
        is_agreed=args.yes,
        replaces=args.replace,
        taken=frozenset(same_name(name) for name in _slash_commands()),
    )
    library.refresh()
    skill = library.get(candidate.skill.name)
    if args.as_json:
        return _print_json(
            {**_skill_to_dict(library, skill, {}), "warnings": list(map(str, candidate.report.warnings))}
        )
    _tell_left_out(candidate)
    out(f"✓ {skill.name} is installed: {one_line(skill.description, 100)}")
    out(f"  In a chat: /{skill.name}. To take it away: {command_name()} skills remove {skill.name}")
    for line in missing_lines(library, skill):
        out(f"! {line}")
    return 0


def _slash_commands() -> list[str]:
    from hermes.app.tools import COMMANDS
    from hermes.services.commands.base import collect

    return list(collect(COMMANDS))


def _tell_left_out(candidate: Candidate) -> None:
    if candidate.left_out:
        names = ", ".join(one_line(name, 60) for name in candidate.left_out[:5])
        out(f"  Left out (hidden files are not part of a skill): {names}")


def _remove(library: SkillLibrary, args: argparse.Namespace) -> int:
    from hermes.agent.skills.install import remove, restore

    if args.restore:
        place = restore(library.folder, args.name)
        return _done(args, place.name, f"{place.name} is back.")
    skill = library.get(args.name)
    remove(library.folder, skill, now=time.time())
    again = f"{command_name()} skills remove {skill.name} --restore"
    return _done(args, skill.name, f"{skill.name} is removed. To bring it back: {again}")


def _done(args: argparse.Namespace, name: str, text: str) -> int:
    return out_result({"name": name, "did": args.verb, "told": text}, [f"✓ {text}"], as_json=args.as_json)


def _sync(library: SkillLibrary, args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from hermes.agent.skills.sync import sync

    synced = sync(library.folder, now=time.time(), reset=args.reset)
    lines = [f"Syncing bundled skills into {library.folder}/ ...  {synced}"]
    return out_result({**asdict(synced), "total": synced.total}, lines, as_json=args.as_json)


def _scan(library: SkillLibrary, args: argparse.Namespace) -> int:
    from hermes.agent.skills.install import looked_at

    known = library.find(args.source)
    source = str(known.folder) if known is not None and not Path(args.source).exists() else args.source
    with looked_at(source, library.folder, environ=os.environ, cwd=Path.cwd(), only=args.only) as candidate:
        warnings = candidate.report.warnings
        if args.as_json:
            return _print_json({"name": candidate.skill.name, "warnings": list(map(str, warnings))})
        _tell_left_out(candidate)
        for warning in warnings:
            out(f"! {warning}")
        if not warnings:
            out(f"✓ {candidate.skill.name}: no warnings.")
        return 1 if warnings else 0
