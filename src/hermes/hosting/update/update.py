"""Take an update up, or go back: back up, try on a copy, switch, restart, and undo the switch where that fails."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.hosting import lifecycle, locks, paths
from hermes.hosting.control import client as control
from hermes.hosting.update.installation import Installation, NewVersion, UpdateFailedError
from hermes.hosting.update.probe import probe
from hermes.store import migrate
from hermes.store.backup import contents, restore
from hermes.store.backup.archive import ArchiveRefusedError
from hermes.store.home import make_private_folder
from hermes.store.private_files import write_private
from hermes.store.sqlite.backup import newest

log = logging.getLogger(__name__)

FOLDER = "updates"
LAST = "last.json"
OWNER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """``make_backup`` gives the archive of the home; ``say`` is told each step; ``command`` is `hermes` as typed."""

    home: Path
    installation: Installation
    make_backup: Callable[[], Path]
    say: Callable[[str], None]
    command: str


def update(options: UpdateOptions, version: NewVersion) -> str:
    """Take a version up; returns what the gateway did. Raises UpdateFailedError: the version from before runs on."""
    with _alone(options):
        before = options.installation.present()
        options.installation.refuse_changes()
        options.say("Backing up the home")
        backup = options.make_backup()
        options.say(f"Preparing {version.name} beside {before.name}")
        staged = options.installation.stage(version)
        try:
            options.say("Testing the new version on a copy: migrations, a start, one answer")
            with _work_folder(options.home) as folder:
                probe(staged, backup, folder)
        except BaseException:
            shutil.rmtree(staged.folder, ignore_errors=True)
            raise
        _record(options.home, before, version, backup)
        options.say(f"Switching to {version.name}")
        options.installation.switch(staged)
        if not control.is_running(options.home):
            return ""
        outcome = lifecycle.restart(options.home, options.command)
        if outcome.exit_code == 0:
            return outcome.text
        options.say(outcome.text)
        options.say(f"The new version does not run here: switching back to {before.name}")
        result = _go_back(options, was_up_to_now=True)
        raise UpdateFailedError(f"{version.name} did not start, so the old version was put back.\n{result}")


def rollback(options: UpdateOptions) -> str:
    """Return to the version from before the last update; returns what happened to the gateway."""
    with _alone(options):
        options.installation.refuse_changes()
        return _go_back(options)


def needs_older_store(home: Path) -> Path | None:
    """The backup that a rollback must restore, because the version from before cannot read the present stores."""
    try:
        last = json.loads((home / FOLDER / LAST).read_text("utf-8"))
        known = {str(name): int(number) for name, number in last["schemas"].items()}
        backup = Path(str(last["backup"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    is_too_new = any(_min_reader(home / name) > number for name, number in known.items())
    return backup if is_too_new else None


def _go_back(options: UpdateOptions, *, was_up_to_now: bool = False) -> str:
    """Switch the code back, and the stores where the code from before could not read them. Both or none are seen.

    ``was_up_to_now``: the new code has only just been switched to, so the stores as they were before it are newer
    than the backup: they hold what arrived while the new version was tried.
    """
    home = options.home
    names = _older_stores(home, was_up_to_now=was_up_to_now)
    options.installation.switch_back()
    if names:
        aside = restore.decide(home, names, time.time())
        what = "as they were before it" if was_up_to_now else "of the backup"
        options.say(f"The stores are too new for it: restoring those {what}; the current ones are in {aside}")
    if control.is_running(home):
        return lifecycle.restart(home, options.command).text
    if names:
        lock = locks.take(paths.owner_lock(str(home)), "hermes rollback", OWNER_SECONDS)
        if lock is None:
            return "The stores change with the next start."
        try:
            restore.finish(home)
        finally:
            lock.release()
    return ""


def _older_stores(home: Path, *, was_up_to_now: bool) -> Sequence[str]:
    """Prepare stores that the code from before can read; returns what is to be put back, nothing where it can."""
    backup = needs_older_store(home)
    if backup is None:
        return ()
    copies = _copies_before_migration(home) if was_up_to_now else {}
    if copies:
        try:
            return restore.prepare_copies(home, copies)
        except ArchiveRefusedError as error:
            log.warning("Copy of before the update not used", extra={"reason": str(error)})
    return restore.prepare(home, backup).names


def _copies_before_migration(home: Path) -> dict[str, Path]:
    """The copies that the new code made ahead of its first migration, of the stores that are too new now.

    Empty unless each of them has one: then the backup is used.
    """
    last = json.loads((home / FOLDER / LAST).read_text("utf-8"))
    copies = {}
    for name, number in last["schemas"].items():
        if _min_reader(home / name) > int(number):
            made = [copy for copy in newest(home / name) if copy.stat().st_mtime >= float(last["at"])]
            first = [copy for copy in made if copy.suffix.startswith(".before-")][-1:]
            if not first:
                return {}
            copies[str(name)] = first[0]
    return copies


def _record(home: Path, before: NewVersion, after: NewVersion, backup: Path) -> None:
    """Write down what a rollback needs to know: which schemas the present code can read, and the backup."""
    schemas = {name: migrate.load(package)[-1].number for name, package in contents.MIGRATIONS.items()}
    plain = {"at": time.time(), "from": before.name, "to": after.name, "backup": str(backup), "schemas": schemas}
    make_private_folder(home / FOLDER)
    write_private(home / FOLDER / LAST, json.dumps(plain))


def _min_reader(path: Path) -> int:
    """The oldest schema that can read this store; 0 where there is none."""
    if not path.exists():
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
        row = connection.execute("SELECT value FROM meta WHERE key = 'min_reader'").fetchone()
    return int(row[0]) if row else 0


@contextlib.contextmanager
def _alone(options: UpdateOptions) -> Iterator[None]:
    lock = locks.take(str(options.installation.work / "lock"), "hermes update")
    if lock is None:
        raise GatewayError("Another update is running. Wait until it has ended.")
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _work_folder(home: Path) -> Iterator[Path]:
    folder = home / FOLDER / "probe"
    shutil.rmtree(folder, ignore_errors=True)
    make_private_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
