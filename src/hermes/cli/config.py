"""``hermes config``: show and change settings. Needs no gateway."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.support.home import home_folder, load_config, refuse_foreign
from hermes.cli.support.program_name import command_name
from hermes.cli.support.screen import complain
from hermes.core.errors import ConfigError
from hermes.hosting.terminal import out, out_json, out_result
from hermes.hosting.translation import tr

if TYPE_CHECKING:
    import argparse

    from hermes.config import Loaded

EXAMPLES = """\
  hermes config show                              settings that are set, and where (--all: every setting)
  hermes config get model.default
  hermes config set agent.busy_mode queue         a running gateway applies it within a second
  hermes config set TELEGRAM_BOT_TOKEN -          reads the value from stdin; secrets go to .env
  hermes config explain OPENAI_API_KEY            where its value comes from
  hermes config check                             look for mistakes; exit code 1 if there is one
  hermes config path                              paths of the configuration files
  hermes config migrate --dry-run                 what an older gateway.json would move into config.yaml
"""

VERBS = {
    "show": "show the settings that are set",
    "get": "print one value",
    "set": "change one value",
    "explain": "show where a value comes from",
    "check": "look for mistakes",
    "path": "print the paths of the configuration files",
    "migrate": "move the settings of an older gateway.json into config.yaml",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    added = add_verbs(parser, VERBS, EXAMPLES)
    for verb in ("get", "set", "explain"):
        added[verb].add_argument("key", help="for example agent.busy_mode, or an environment name such as HERMES_MODEL")
    added["set"].add_argument("value", help="the new value; - reads it from stdin")
    added["migrate"].add_argument("--dry-run", action="store_true", help="only show what would be moved")
    added["show"].add_argument("--all", action="store_true", help="also show settings left at their default")


def run(args: argparse.Namespace) -> int:
    try:
        return _run(args, home_folder())
    except ConfigError as error:
        complain(error)
        return 1


def _run(args: argparse.Namespace, home: Path) -> int:
    match args.verb:
        case "show":
            return _show(load_config(home), every=args.all, as_json=args.as_json)
        case "get":
            return _get(load_config(home), args.key, as_json=args.as_json)
        case "set":
            value = sys.stdin.read().strip() if args.value == "-" else args.value
            return _set(home, args.key, value, as_json=args.as_json)
        case "explain":
            return _explain(load_config(home), args.key, as_json=args.as_json)
        case "check":
            return _check(load_config(home), as_json=args.as_json)
        case "migrate":
            return _migrate(home, args)
        case _:
            return _path(home, as_json=args.as_json)


def _show(loaded: Loaded, *, every: bool, as_json: bool) -> int:
    from hermes.config import explain, known_keys

    settings = [explain(loaded, name) for name in sorted(known_keys(loaded))]
    shown = [setting for setting in settings if every or setting.stated]
    if as_json:
        out_json({setting.key: {"value": setting.value, "from": setting.winner} for setting in shown})
        return 0
    width = max((len(setting.key) for setting in shown), default=0)
    for setting in shown:
        out(f"{setting.key:<{width}}  {setting.value}   ({setting.winner})")
    if not shown:
        out(f"Nothing is set; every setting has its default. List them: {command_name()} config show --all")
    return 0


def _get(loaded: Loaded, key: str, *, as_json: bool) -> int:
    from hermes.config import explain

    found = explain(loaded, key)
    return out_result({"key": found.key, "value": found.value}, found.value, as_json=as_json)


def _explain(loaded: Loaded, key: str, *, as_json: bool) -> int:
    from dataclasses import asdict

    from hermes.config import explain, keys_under

    found = [explain(loaded, name) for name in keys_under(loaded, key) or [key]]
    value = [asdict(setting) for setting in found] if len(found) > 1 else asdict(found[0])
    return out_result(value, "\n".join(map(str, found)), as_json=as_json)


def _set(home: Path, name: str, value: str, *, as_json: bool) -> int:
    """Change one value; a change that would make the configuration wrong is taken back."""
    from hermes.config import explain
    from hermes.config.edit import set_value
    from hermes.store.home import make_home
    from hermes.store.private_files import write_private

    refuse_foreign(home)
    before = load_config(home)
    was = explain(before, name)
    make_home(home)
    kept = {path: path.read_bytes() if path.exists() else None for path in (before.files.env, before.files.config)}
    change = set_value(before, name, value)
    after = load_config(home)
    if wrong := [problem for problem in _errors(after) if problem not in _errors(before)]:
        if (content := kept[change.file]) is None:
            change.file.unlink(missing_ok=True)
        else:
            write_private(change.file, content)
        raise ConfigError(f"{wrong[0]} Nothing was changed.")
    now, file, note = explain(after, name), change.file, change.note
    answer = {"key": now.key, "value": now.value, "was": was.value, "file": str(file), "note": note}
    lines = [f"✓ {now.key} = {now.value}   (was {was.value}; written to {file})"]
    return out_result(answer, [*lines, f"! Not in effect yet: {note}"] if note else lines, as_json=as_json)


def _errors(loaded: Loaded) -> list[Any]:
    return [problem for problem in loaded.problems if problem.level == "error"]


def _check(loaded: Loaded, *, as_json: bool) -> int:
    from dataclasses import asdict

    lines = [f"{'✗' if problem.level == 'error' else '!'} {problem}" for problem in loaded.problems]
    lines = lines or ["✓ The configuration is in order."]
    out_result([asdict(problem) for problem in loaded.problems], "\n".join(lines), as_json=as_json)
    return 1 if _errors(loaded) else 0


def _path(home: Path, *, as_json: bool) -> int:
    from hermes.config import watched_files

    files = watched_files(home, os.environ)
    lines = [str(file) if file.exists() else f"{file}   (not there)" for file in files]
    return out_result({str(file): file.exists() for file in files}, lines, as_json=as_json)


def _migrate(home: Path, args: argparse.Namespace) -> int:
    from hermes.config.migrate_json import migrate_gateway_json
    from hermes.store.home import make_home

    refuse_foreign(home)
    if not args.dry_run:
        make_home(home)
    done = migrate_gateway_json(load_config(home), is_dry=args.dry_run)
    lines = [f"  {name}" for name in done.moved]
    lines += [f"  {name}: set elsewhere, which stays" for name in done.kept]
    lines += [f"! {name}: {reason}" for name, reason in done.refused.items()]
    if done.set_aside is None:
        lines.append(f"! {done.file} stays: correct these lines, then do it again.")
    elif args.dry_run:
        lines.append(f"{len(done.moved)} would be moved. Nothing was written.")
    else:
        lines.append(f"✓ {len(done.moved)} moved. The old file is {done.set_aside}.")
    answer = {
        "moved": list(done.moved),
        "kept": list(done.kept),
        "refused": done.refused,
        "set_aside": str(done.set_aside or ""),
        "dry_run": args.dry_run,
    }
    out_result(answer, [tr(line) for line in lines], as_json=args.as_json)
    return 1 if done.refused else 0
