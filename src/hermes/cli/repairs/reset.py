"""``hermes gateway reset``: put a new state.db in the place of one that cannot be used, and verify the start."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.checks import stores
from hermes.cli.repairs.open_stores import open_each
from hermes.cli.support.home import load_config, outside_platforms, refuse_foreign
from hermes.cli.support.program_name import as_typed, command_name
from hermes.cli.support.prompts import confirm
from hermes.core.durations import count
from hermes.core.errors import ConfigError, GatewayError
from hermes.hosting import launch, lifecycle, locks, paths, processes, status
from hermes.hosting.terminal import err, out, out_json
from hermes.hosting.translation import tr

if TYPE_CHECKING:
    import argparse

_Tell = Callable[[str], None]

LOCK_SECONDS = 10.0
MAX_ERRORS = 5
_SET = ("-wal", "-shm", ".pages", "")


def run(args: argparse.Namespace, home: Path) -> int:
    refuse_foreign(home)
    if load_config(home).config.database_url:
        raise ConfigError(
            "The store is PostgreSQL: there is no state.db to set aside. "
            f"Restart the gateway instead: {command_name()} gateway restart"
        )
    if launch.is_inside(str(home)):
        raise GatewayError(
            "This runs in the agent's own terminal, and the agent does not reset its own gateway. "
            f"Type it in a terminal that you opened yourself: {command_name()} gateway reset --keep-backup"
        )
    if not _is_meant(args):
        return 1
    lines: list[str] = []

    def tell(text: str) -> None:
        lines.append(text)
        if not args.as_json:
            out(as_typed(tr(text)), flush=True)

    stopped = lifecycle.stop(home, command_name())
    if stopped.exit_code not in (0, lifecycle.NOT_RUNNING):
        raise GatewayError(stopped.text.removeprefix("✗ "))
    tell(stopped.text.partition(". Start it")[0].rstrip(".") + ".")
    kept = _renew(home, tell)
    code = _start_and_watch(home, args.watch, tell)
    if kept is not None and not args.keep_backup and code == 0:
        _delete_set(kept)
        tell("✓ The old state.db was deleted, because --keep-backup was not given.")
    elif kept is not None:
        tell(f"✓ The old state.db is kept as {kept}.")
    if args.as_json:
        out_json({"ok": code == 0, "kept_as": str(kept or ""), "lines": lines})
    return code


def _is_meant(args: argparse.Namespace) -> bool:
    """Ask before the only copy of something is deleted."""
    if args.keep_backup or args.yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        err(tr("✗ Without --keep-backup the old state.db is deleted. Type --keep-backup, or --yes to delete it."))
        return False
    question = "Without --keep-backup the old state.db is deleted. Go on?"
    return confirm(question)


# A new file


def _renew(home: Path, tell: _Tell) -> Path | None:
    """Mend the stores beside state.db, set state.db aside, and make a new one from the mirror and the transcripts."""
    from hermes.store.open import DEFAULT_MIGRATIONS

    with _alone(home):
        files = [file for file in stores.look_at_files(home) if not file.is_sound]
        for text in open_each(home, {file.name: stores.side_stores()[file.name] for file in files}):
            tell(f"✓ {text}")
        if not (home / "state.db").exists():
            return None
        kept = _set_aside(home)
        open_each(home, {"state.db": DEFAULT_MIGRATIONS})
        sessions = _count_sessions(home / "state.db")
        tell(f"✓ A new state.db is there: people are back, and {count(sessions, 'session')} from the transcripts.")
        tell("  Pending messages and answers are only in the old file.")
        return kept


def _set_aside(home: Path) -> Path:
    """Move state.db and what belongs to it into backups/; its head stays, so that the new file is a recovery."""
    from hermes.store.home import make_private_folder
    from hermes.store.sqlite.file import beside, stamp

    folder = home / "backups"
    make_private_folder(folder)
    now = time.time()
    while (kept := folder / f"state.db.{stamp(now)}.reset").exists():
        now += 1
    for suffix in _SET:
        with contextlib.suppress(FileNotFoundError):
            os.rename(beside(home / "state.db", suffix), beside(kept, suffix))
    return kept


def _delete_set(kept: Path) -> None:
    from hermes.store.sqlite.file import beside

    for suffix in _SET:
        beside(kept, suffix).unlink(missing_ok=True)


def _count_sessions(path: Path) -> int:
    from hermes.store.home import read_only

    with contextlib.closing(read_only(path)) as file:
        return int(file.execute("SELECT COUNT(*) FROM sessions").fetchone()[0])


@contextlib.contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Hold the home: a gateway that a service manager starts meanwhile waits."""
    lock = locks.take(paths.owner_lock(str(home)), "hermes gateway reset", LOCK_SECONDS)
    if lock is None:
        holder = locks.holder(paths.owner_lock(str(home))) or locks.Holder()
        raise GatewayError(f"{home} is in use by {holder.describe()}{holder.how_to_end()}")
    try:
        yield
    finally:
        lock.release()


# The start


def _start_and_watch(home: Path, seconds: float, tell: _Tell) -> int:
    """Start, watch the state for a while, and count the errors of the log since."""
    log = Path(paths.error_log(str(home)))
    size = log.stat().st_size if log.exists() else 0
    started = lifecycle.start(home, command_name())
    tell(started.text.partition("\n")[0])
    if started.exit_code:
        return started.exit_code
    loaded = load_config(home)

    def judge() -> status.Status:
        return status.judge(lifecycle.look(home, command_name(), lambda: outside_platforms(loaded.config)))

    processes.wait_until(lambda: judge().state is status.State.NOT_RUNNING, seconds)
    judged = judge()
    tell(judged.lines[0])
    errors = _errors_since(log, size)
    if errors:
        tell(f"! {count(len(errors), 'error')} in the log since the start → {command_name()} logs --level error")
        for line in errors[:MAX_ERRORS]:
            tell(f"  {line}")
    else:
        tell(f"✓ No error in the log since the start, {seconds:.0f} s ago.")
    return judged.exit_code


def _errors_since(log: Path, offset: int) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(offset)
            rows = file.read().decode("utf-8", "replace").splitlines()
    except OSError:  # there is none: nothing went wrong yet
        return []
    return [row for row in rows if " ERROR " in row or " CRITICAL " in row]
