"""``hermes import``: bring the home of another gateway over."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import home_folder, load_config, refuse_foreign
from hermes.cli.support.program_name import as_typed, command_name
from hermes.cli.support.screen import telling_interruption
from hermes.core.durations import count
from hermes.hosting.terminal import out_result, rewrite_line
from hermes.hosting.translation import tr

if TYPE_CHECKING:
    import argparse

IMPORT_SECONDS = 3600.0
HERMES_AGENT = "hermes-agent"

EXAMPLES = """\
  hermes import hermes-agent ~/.hermes-old --dry-run     show what would be imported; nothing is written
  hermes import hermes-agent ~/.hermes-old               import it; a second import changes nothing
  hermes import openclaw                                 from ~/.openclaw
"""

VERBS = {
    "hermes-agent": "settings, keys, people, sessions, jobs, tasks, skills and texts of hermes-agent",
    "openclaw": "settings, keys, people, sessions, jobs, skills and texts of OpenClaw",
}
USUAL = {"hermes-agent": "~/.hermes", "openclaw": "~/.openclaw"}

UNITS = {
    "settings": "setting",
    "keys": "key",
    "people": "person",
    "sessions": "session",
    "jobs": "job",
    "tasks": "task",
    "skills": "skill",
    "files": "text",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES)
    for verb in VERBS:
        added[verb].add_argument("path", metavar="PATH", nargs="?", default="", help="the home of the other gateway")
        added[verb].add_argument("--dry-run", action="store_true", help="only show what would be imported")
        words = "also import settings that decide where messages and keys are sent: base_url, proxies, api, tracing"
        added[verb].add_argument("--addresses", action="store_true", help=words)


def run(args: argparse.Namespace) -> int:
    home = home_folder()
    path = os.path.abspath(os.path.expanduser(args.path or USUAL[args.verb]))
    refuse_foreign(home)
    asked = {
        "kind": args.verb,
        "path": path,
        "dry_run": args.dry_run,
        "commands": _slash_commands(),
        "addresses": args.addresses,
    }
    with telling_interruption(lambda: "Type the same command again: an import adds only what is missing."):
        answer = _dry_run_alone(home, asked) if args.dry_run and _is_alone(home) else _ask(home, asked)
    code = out_result(answer, _render(answer), as_json=args.as_json)
    if not args.dry_run and not args.as_json and _wants_addresses(answer):
        out_result(answer := _ask(home, {**asked, "addresses": True}), _render(answer), as_json=False)
    return code


def _wants_addresses(answer: Mapping[str, Any]) -> bool:
    """Ask the person at the terminal about the settings that were left out because of where they lead."""
    if not answer["addresses"] or not sys.stdin.isatty() or not sys.stdout.isatty():
        return False
    from hermes.cli.support.prompts import confirm
    from hermes.hosting.terminal import out

    out(tr("These settings decide where messages and keys are sent:"))
    for one in answer["addresses"]:
        out(f"  {one['name']}  {one['value']}".rstrip())
    return confirm("Import them, too?")


def _ask(home: Path, asked: Mapping[str, Any]) -> Any:
    with GatewayClient(home, Standalone.GATEWAY) as client:
        return client.ask("import.home", asked, _tell_progress, timeout=IMPORT_SECONDS)


def _tell_progress(event: Mapping[str, Any]) -> None:
    if sys.stderr.isatty() and "sessions" in event:
        rewrite_line(sys.stderr, f"  {count(event['sessions'], 'session')}")


def _slash_commands() -> list[str]:
    from hermes.app.tools import COMMANDS
    from hermes.services.commands.base import collect

    return list(collect(COMMANDS))


def offer(home: Path, description: str) -> None:
    """Ask the person at the terminal whether a home of hermes-agent is to be imported into one beside it."""
    from hermes.cli.support.prompts import confirm
    from hermes.hosting.terminal import out

    second_home = Path(f"{home}-two")
    if not description.startswith(HERMES_AGENT):
        return
    if not confirm(f"Import it into {second_home} now?"):
        return
    asked = {"kind": HERMES_AGENT, "path": str(home), "dry_run": False, "commands": _slash_commands()}
    os.environ["HERMES_HOME"] = str(second_home)
    refuse_foreign(second_home)
    out_result(answer := _ask(second_home, asked), _render(answer), as_json=False)
    out(tr(f"Then: HERMES_HOME={second_home} {command_name()} gateway run"))


# What would come


def _is_alone(home: Path) -> bool:
    from hermes.cli.support.holder import is_listening
    from hermes.hosting.control import client as control

    return not control.is_running(home) and not is_listening(home)


def _dry_run_alone(home: Path, asked: Mapping[str, Any]) -> Any:
    """Compare with a copy of our stores, so that not even a lock or a journal appears in the home."""
    import asyncio

    return asyncio.run(_compare(home, asked))


async def _compare(home: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    import shutil
    import tempfile
    import time
    from contextlib import AsyncExitStack

    from hermes.agent.skills.parse import same_name
    from hermes.hosting.importers.run import ImportTarget, import_home
    from hermes.store.db import Database
    from hermes.store.kanban.open import open_board
    from hermes.store.open import open_database

    loaded = load_config(home)
    async with AsyncExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hermes-import-")))
        for name in ("state.db", "kanban.db"):
            for suffix in ("", "-wal"):
                if (home / f"{name}{suffix}").is_file():
                    shutil.copyfile(home / f"{name}{suffix}", scratch / f"{name}{suffix}")
        db = await open_database(loaded.config.database_url or scratch / "state.db")
        stack.push_async_callback(db.close)

        async def board() -> Database | None:
            if not loaded.config.database_url and not (scratch / "kanban.db").exists():
                return None
            return await stack.enter_async_context(open_board(db, scratch))

        async def nothing(*_: object) -> None:
            """Nothing was written, so nothing is read again; and nobody waits long enough to be told."""

        target = ImportTarget(
            home=home,
            db=db,
            loaded=lambda: loaded,
            reload=nothing,
            board=board,
            skills=home / "skills",
            commands=frozenset(same_name(name) for name in asked["commands"]),
            now=time.time(),
            has_addresses=bool(asked.get("addresses")),
        )
        report = await import_home(asked["kind"], Path(asked["path"]), target, nothing)
        return report.to_dict()


# The report


def _render(answer: Mapping[str, Any]) -> list[str]:
    return [as_typed(tr(line)) for line in _lines(answer)]


def _lines(answer: Mapping[str, Any]) -> Iterator[str]:
    is_dry = answer["dry_run"]
    came = sum(part["came"] + part["longer"] for part in answer["parts"].values())
    if is_dry:
        yield f"{answer['kind']} in {answer['path']}: this would be imported. Nothing was written."
    elif came:
        yield f"✓ {answer['kind']} in {answer['path']} is imported. Nothing was changed there."
    else:
        yield f"✓ {answer['kind']} in {answer['path']}: nothing new. Nothing was changed."
    for name, part in answer["parts"].items():
        if any(part.values()):
            yield f"  {name:<9} {_part(name, part, answer)}"
    if answer["notes"]:
        yield "Differences from the other home:"
        for note in answer["notes"]:
            yield f"  {note['part']:<9} {note['name']}: {note['reason']}"
        if answer["more_notes"]:
            yield f"  … and {answer['more_notes']} more (--json shows the first hundred)"
    if is_dry:
        if came:
            yield f"Import it: {command_name()} import {answer['kind']} {answer['path']}"
        return
    if answer["batch"]:
        yield f"To delete the imported sessions: {command_name()} sessions delete {answer['batch']}"
    if answer["parts"]["keys"]["came"]:
        yield f"! Stop {answer['kind']} before you start the gateway here: only one gateway gets a bot's messages."


def _part(name: str, part: Mapping[str, int], answer: Mapping[str, Any]) -> str:
    words = []
    if part["came"]:
        lines = f" ({count(answer['lines'], 'line')})" if name == "sessions" else ""
        number = f"{part['came']} people" if name == "people" and part["came"] > 1 else count(part["came"], UNITS[name])
        words.append(f"{number}{lines} {'to import' if answer['dry_run'] else 'imported'}")
    for fate, word in (
        ("longer", "longer than at the last import"),
        ("same", "already here"),
        ("kept", "kept as they are here"),
        ("left_out", "left out"),
    ):
        if part[fate]:
            words.append(f"{part[fate]} {word}")
    return ", ".join(words)
