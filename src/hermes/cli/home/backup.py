"""``hermes backup``: make, check, list and restore backups of the home."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.support.backups import PG_DUMP, backup_folder, find_archive, known_secrets, make_backup, request_of
from hermes.cli.support.client import refuse_agent
from hermes.cli.support.home import home_folder, load_config
from hermes.cli.support.program_name import command_name
from hermes.cli.support.prompts import confirm
from hermes.cli.support.screen import note, telling_interruption
from hermes.cli.support.sizes import format_size
from hermes.core.durations import count, format_duration
from hermes.core.errors import ConfigError, GatewayError
from hermes.hosting import locks, paths
from hermes.hosting.control import client as control
from hermes.hosting.terminal import ask_hidden, out_result
from hermes.hosting.translation import tr

if TYPE_CHECKING:
    import argparse

    from hermes.store.backup.archive import BackupManifest
    from hermes.store.backup.restore import PreparedRestore

EXAMPLES = """\
  hermes backup create                      make a backup now, and print its path
  hermes backup create --with-secrets       with .env and other keys, encrypted with a passphrase
  hermes backup list                        the newest first
  hermes backup verify latest               read the whole file and compare every checksum
  hermes backup restore latest              go back to it; the current files are kept for --undo
  hermes backup restore --undo              revert the last restore
"""

VERBS = {
    "create": "make a backup without stopping the gateway",
    "list": "list the backups, the newest first",
    "verify": "read the whole backup and compare every checksum",
    "restore": "replace the current files with a backup; they are kept for --undo",
}

PASSPHRASE = "HERMES_BACKUP_PASSPHRASE"  # noqa: S105 - the name of a variable
OWNER_SECONDS = 10.0
LOWEST_PRIORITY = 19


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hermes.cli.support.help import add_verbs

    verbs = add_verbs(parser, VERBS, EXAMPLES)
    create, verify, restore = verbs["create"], verbs["verify"], verbs["restore"]
    create.add_argument(
        "file", nargs="?", default="", help="the file to write (default: a new one in the backup folder)"
    )
    create.add_argument("--with-secrets", action="store_true", help="add .env and other keys, encrypted")
    create.add_argument("--workspaces", action="store_true", help="add the files of workspaces/")
    create.add_argument("--hourly", action="store_true", help="make an hourly backup, and delete old ones")
    verify.add_argument("file", help="a file, a name from the list, or latest")
    restore.add_argument("file", nargs="?", default="", help="a file, a name from the list, or latest")
    restore.add_argument("--yes", action="store_true", help="do not ask")
    restore.add_argument("--undo", action="store_true", help="revert the last restore")
    restore.add_argument("--other-home", action="store_true", help="accept a backup that another home made")
    for verb in (create, verify, restore):
        verb.add_argument(
            "--passphrase-file", default="", metavar="FILE", help="read the passphrase from FILE; - is stdin"
        )


def run(args: argparse.Namespace) -> int:
    home = home_folder()
    if args.verb == "restore" or (args.verb == "create" and not args.hourly):  # the gateway itself makes those
        refuse_agent()
    match args.verb:
        case "create":
            return _create(args, home)
        case "list":
            return _list(args, home)
        case "verify":
            return _verify(args, home)
        case _:
            return _restore(args, home)


def _create(args: argparse.Namespace, home: Path) -> int:
    from dataclasses import replace

    from hermes.store.backup.create import create
    from hermes.store.open import is_postgres

    os.nice(LOWEST_PRIORITY)  # messages go first
    began = time.monotonic()
    if args.hourly:
        made = make_backup(home, reason="hourly")
    else:
        request = request_of(home, reason="manual", has_workspaces=args.workspaces)
        if args.file:
            request = replace(request, to=Path(args.file).expanduser().absolute())
        if args.with_secrets:
            request = replace(request, passphrase=_passphrase(args, is_new=True))
        made = create(request)
    config = load_config(home).config
    size = made.path.stat().st_size
    lines = [
        f"✓ {made.path}",
        f"  {_about(made.manifest)}; {format_size(size)}, {format_duration(time.monotonic() - began)}.",
    ]
    if not args.with_secrets:
        lines.append("  It contains no secrets: copy .env yourself, or use --with-secrets.")
    if is_postgres(config.database_url):
        lines.append("  It does not contain the PostgreSQL database: use pg_dump for that.")
        lines.append(f"  {PG_DUMP}")
    result = {"file": str(made.path), "bytes": size, "files": len(made.manifest.files)}
    return out_result(result, "\n".join(map(tr, lines)), as_json=args.as_json)


def _list(args: argparse.Namespace, home: Path) -> int:
    from hermes.store.backup import shelf

    folder = backup_folder(home, load_config(home).config)
    key = shelf.read_key(home)
    lines, rows = [], []
    for entry in shelf.entries(folder):
        manifest = shelf.read_manifest(entry.path, key)
        age = format_duration(max(0.0, time.time() - entry.made_at))
        about = tr(manifest) if isinstance(manifest, str) else tr(_about(manifest))
        lines.append(f"{entry.path.name:<38} {format_size(entry.size):>9}  {age:>7}  {about}")
        rows.append(
            {
                "file": str(entry.path),
                "bytes": entry.size,
                "made_at": entry.made_at,
                "reason": entry.reason,
                "refused": manifest if isinstance(manifest, str) else "",
            }
        )
    if not lines:
        lines = [tr(f"There is no backup in {folder}. Make one: {command_name()} backup create")]
    return out_result(rows, lines, as_json=args.as_json)


def _verify(args: argparse.Namespace, home: Path) -> int:
    from hermes.store.backup import restore, shelf

    path = find_archive(args.file, backup_folder(home, load_config(home).config))
    passphrase = _passphrase(args) if _has_passphrase(args) else ""
    key = shelf.read_key(home)
    manifest = restore.verify(path, key, passphrase)
    lines = [f"✓ {path.name} is whole: {_about(manifest)}."]
    if key is None or manifest.home != _key_id(key):
        lines.append("! Another home made it: the checksums are right, the signature was not checked.")
    if manifest.has_secrets and not passphrase:
        lines.append("  Its secrets are encrypted; with the passphrase they are checked too.")
    result = {"file": str(path), "files": len(manifest.files), "bytes": manifest.size, "version": manifest.version}
    return out_result(result, "\n".join(map(tr, lines)), as_json=args.as_json)


def _key_id(key: bytes) -> str:
    from hermes.store.backup.archive import key_id

    return key_id(key)


def _restore(args: argparse.Namespace, home: Path) -> int:
    from hermes.store.backup import restore, shelf
    from hermes.store.home import make_home

    if bool(args.file) == args.undo:
        raise ConfigError("Name the backup to restore, or type --undo. The list: hermes backup list")
    make_home(home)
    loaded = load_config(home)
    prepared: PreparedRestore | None = None
    question = "Revert the last restore?"
    if not args.undo:
        path = find_archive(args.file, backup_folder(home, loaded.config))
        passphrase = _passphrase(args) if _has_passphrase(args) else ""
        prepared = restore.prepare(
            home,
            path,
            passphrase=passphrase,
            secrets=known_secrets(loaded),
            accepts_other_home=args.other_home,
        )
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(prepared.manifest.created_at))
        question = f"Go back to {when}? The current files are kept for --undo."
    if not args.yes and not _is_wanted(question):
        restore.drop_unfinished(home)
        note("Nothing was changed.")
        return 1
    before = shelf.set_aside_folders(home)
    with telling_interruption(lambda: _describe_interrupted(home, before)):
        aside, text, code = carry_out(home, prepared)
    lines = [f"✓ Restored. The replaced files are in {aside}.", f"  To undo: {command_name()} backup restore --undo"]
    if prepared is not None and prepared.missing_secrets:
        lines.append(f"! config.yaml lacks {count(prepared.missing_secrets, 'secret')}, which this home does not know.")
        lines.append(f"  Look for <secret:…> in it: {command_name()} config path")
    if prepared is not None and prepared.manifest.has_secrets and not prepared.has_secrets:
        lines.append("! Its secrets were not restored, because no passphrase was given.")
    if text:
        lines.append(text)
    out_result({"set_aside": str(aside)}, "\n".join(map(tr, lines)), as_json=args.as_json)
    return code


def _describe_interrupted(home: Path, before: Sequence[Path]) -> str:
    """Say how far an interrupted restore came. ``before``: the folders that held replaced files at its beginning."""
    from hermes.store.backup import restore, shelf

    if restore.is_planned(home):
        return f"The gateway completes the restore when it starts. To undo: {command_name()} backup restore --undo"
    if list(shelf.set_aside_folders(home)) != list(before):
        return f"The restore is complete. To undo: {command_name()} backup restore --undo"
    return "Nothing was changed."


def carry_out(home: Path, prepared: PreparedRestore | None) -> tuple[Path, str, int]:
    """Restore what is prepared (None: take the last one back). A running gateway does it as it restarts."""
    from hermes.hosting import lifecycle
    from hermes.store.backup import restore

    def plan() -> Path:
        return (
            restore.undo(home, time.time()) if prepared is None else restore.decide(home, prepared.names, time.time())
        )

    if control.is_running(home):
        aside = plan()
        outcome = lifecycle.restart(home, command_name())
        return aside, outcome.text, outcome.exit_code
    lock = locks.take(paths.owner_lock(str(home)), "hermes backup restore", OWNER_SECONDS)
    if lock is None:
        holder = locks.holder(paths.owner_lock(str(home))) or locks.Holder()
        restore.drop_unfinished(home)
        raise GatewayError(f"{home} is in use by {holder.describe()}. Stop that process first, then restore.")
    try:
        if restore.is_planned(home):
            restore.finish(home)
        aside = plan()
        restore.finish(home)
    finally:
        lock.release()
    return aside, "", 0


def _is_wanted(question: str) -> bool:
    if not sys.stdin.isatty():
        raise ConfigError("There is no terminal to ask for confirmation. Repeat it with --yes.")
    return confirm(question)


def _has_passphrase(args: argparse.Namespace) -> bool:
    return bool(args.passphrase_file or os.environ.get(PASSPHRASE))


def _passphrase(args: argparse.Namespace, *, is_new: bool = False) -> str:
    """The passphrase from a file, the environment or the terminal."""
    if args.passphrase_file:
        is_stdin = args.passphrase_file == "-"  # noqa: S105 - the usual name of stdin
        text = sys.stdin.read() if is_stdin else Path(args.passphrase_file).read_text("utf-8")
        return text.rstrip("\r\n")
    if found := os.environ.get(PASSPHRASE):
        return found
    if not sys.stdin.isatty():
        raise ConfigError(f"A passphrase is needed: --passphrase-file FILE, or {PASSPHRASE}.")
    first = ask_hidden(tr("Passphrase for the secrets: "))
    if is_new and ask_hidden(tr("Again: ")) != first:
        raise ConfigError("The two passphrases differ. No backup was made.")
    return first


def _about(manifest: BackupManifest) -> str:
    """A backup in a few words: ``12 files of 3.4 MB by Hermes 0.9.0``."""
    secrets = ", with secrets" if manifest.has_secrets else ""
    return f"{count(len(manifest.files), 'file')} of {format_size(manifest.size)} by Hermes {manifest.version}{secrets}"
