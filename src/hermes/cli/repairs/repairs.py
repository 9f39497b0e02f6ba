"""Plan and do the repairs of ``doctor --fix``: each says what it will do before it does it."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.checks import stores
from hermes.cli.checks.home import exposed_paths, leftovers
from hermes.cli.repairs.open_stores import open_each
from hermes.cli.repairs.undo import UndoRecord
from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.home import load_config, outside_platforms
from hermes.core.dataclasses import dataclass
from hermes.core.durations import count
from hermes.core.errors import GatewayError
from hermes.hosting import lifecycle, locks, paths, status
from hermes.store import home_faults
from hermes.store.private_files import write_private

if TYPE_CHECKING:
    from hermes.config import Loaded, Problem

HEAL_SECONDS = 120.0
SETTING_FILES = (".env", "config.yaml", "gateway.json")
"""Of the home. A file elsewhere that HERMES_CONFIG or HERMES_ENV names may belong to others too."""

Act = Callable[[UndoRecord], list[str]]


@dataclass(frozen=True, slots=True)
class Repair:
    """``name`` is the check that it cures, ``plan`` says what it will do; ``act`` does it and says what it did."""

    name: str
    plan: str
    act: Act


def plan_repairs(home: Path, command: str, wanted: set[str]) -> list[Repair]:
    """List the repairs for the checks that asked for one, in the order in which they help each other."""
    planned: list[Repair] = []
    if "permissions" in wanted:
        planned += _plan_permissions(home)
    if "config" in wanted:
        planned += _plan_config(load_config(home))
    if "leftovers" in wanted:
        planned += _plan_leftovers(home)
    if "stores" in wanted:
        planned.append(Repair("stores", "recover damaged stores, add missing tables and columns", _heal_stores(home)))
    if "gateway" in wanted:
        planned.append(Repair("service", "start the gateway again", _wake_gateway(home, command)))
    return planned


# Rights


def _plan_permissions(home: Path) -> Iterator[Repair]:
    modes = {
        path: (0o700 if path.is_dir() else 0o600 | _may_run(path)) for path in exposed_paths(home) if _is_mine(path)
    }
    for path in _unusable(home):
        modes[path] = 0o700 if path.is_dir() else 0o600
    if not modes:
        return

    def act(record: UndoRecord) -> list[str]:
        changed = []
        for path, mode in modes.items():
            with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                record.chmod(path, mode)
                changed.append(path)
        names = ", ".join(_short(home, path) for path in changed[:3])
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        return [f"{names}{more}: only you can read and write them now"]

    yield Repair("home", f"make {count(len(modes), 'file')} readable and writable by you alone", act)


def _is_mine(path: Path) -> bool:
    """Only root can change the mode of somebody else's file."""
    return os.geteuid() in (0, path.lstat().st_uid)


def _may_run(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode) & 0o100


def _unusable(home: Path) -> list[Path]:
    """Files of ours that belong to us and that we may not use."""
    found = []
    for folder in (home, home / "logs", home / "run"):
        with contextlib.suppress(OSError):  # what cannot be listed is named itself
            found += sorted(folder.iterdir())
    return [
        path
        for path in found
        if not path.is_symlink()
        and (fault := home_faults.access_fault(path)) is not None
        and fault.cure.startswith("chmod ")
    ]


def _short(home: Path, path: Path) -> str:
    return home_faults.display_path(path) if path == home else str(path.relative_to(home))


# Settings


def _plan_config(loaded: Loaded) -> Iterator[Repair]:
    for problem in loaded.problems:
        match problem.repair:
            case ("rename", file, written, meant) if file in SETTING_FILES:
                path = loaded.config.home / file
                yield Repair("config", f"{file}: write {meant} instead of {written}", _rename(path, written, meant))
            case ("set", key, value):
                yield Repair("config", f"set {key} to {value}", _set(loaded, key, value))


def _rename(path: Path, written: str, corrected: str) -> Act:
    """Rename a setting in its file, if the configuration has fewer problems afterwards."""
    name = re.escape(written)
    pattern = (
        rf"(?m)^(\s*(?:export\s+)?){name}(?=\s*=)" if path.name == ".env" else rf"(?m)^(\s*['\"]?){name}(?=['\"]?\s*:)"
    )

    def act(record: UndoRecord) -> list[str]:
        before = path.read_text(encoding="utf-8")
        after, times = re.subn(pattern, lambda found: f"{found[1]}{corrected}", before)
        if times != 1:
            raise GatewayError(f"{path.name}: {written} stands there {count(times, 'time')}; change it by hand.")
        return _rewritten(record, path, before, after, f"{path.name}: {written} is {corrected} now")

    return act


def _set(loaded: Loaded, key: str, value: str) -> Act:
    from hermes.config.edit import edited_file

    def act(record: UndoRecord) -> list[str]:
        path, after = edited_file(loaded, key, value)
        if path.parent != loaded.config.home:
            raise GatewayError(f"{path} is not in the home; change it by hand.")
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        return _rewritten(record, path, before, after, f"{path.name}: {key} is {value} now")

    return act


def _rewritten(record: UndoRecord, path: Path, before: str, after: str, done: str) -> list[str]:
    """Write the new content, unless the configuration would have a problem that it has not now."""
    known = {str(problem) for problem in _problems_with(path, before)}
    if new := [str(found) for found in _problems_with(path, after) if str(found) not in known]:
        raise GatewayError(f"{path.name}: the change would bring another problem ({new[0]}); change it by hand.")
    record.rewrite(path, after.encode())
    return [done]


def _problems_with(path: Path, content: str) -> list[Problem]:
    """What the configuration would complain about with this content of one file; tried on a copy."""
    from hermes.config import load
    from hermes.services.adapters.registry import find_platforms

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in SETTING_FILES:
            with contextlib.suppress(OSError):  # it is not there
                write_private(copy / name, (path.parent / name).read_bytes())
        write_private(copy / path.name, content)
        loaded = load(copy, os.environ, copy, tuple(find_platforms().manifests.values()))
        return list(loaded.problems)


# What was left behind


def _plan_leftovers(home: Path) -> Iterator[Repair]:
    is_used = _is_used(home)
    found = leftovers(home, is_used=is_used, now=time.time())
    if not found:
        return

    def act(record: UndoRecord) -> list[str]:
        moved = []
        for path in found:
            with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                record.set_aside(path)
                moved.append(_short(home, path))
        return [f"set aside: {', '.join(moved)}"]

    yield Repair("leftovers", f"set aside {count(len(found), 'file')} that killed processes left behind", act)


def _is_used(home: Path) -> bool:
    return any(locks.holder(path) is not None for path in (paths.owner_lock(str(home)), paths.parent_lock(str(home))))


# The stores


def _heal_stores(home: Path) -> Act:
    def act(_record: UndoRecord) -> list[str]:
        from hermes.store.sqlite import losses

        before = len(losses.read(home))
        files = [file for file in stores.look_at_files(home) if not file.is_sound]
        if _is_used(home):
            with GatewayClient(home, Standalone.NEVER) as client:
                client.ask("doctor.heal", timeout=HEAL_SECONDS)
            outcomes: list[str] = []
        else:
            outcomes = _open_alone(home, files)
        reports = [report.text(home) for report in losses.read(home)[before:]]
        healed = [file.name for file in files if stores.look_at_file(home / file.name, _steps(file.name)).is_sound]
        lines = reports or outcomes or [f"{name} is sound" for name in healed]
        if bad := [file.name for file in files if file.name not in healed]:
            raise GatewayError(f"{', '.join(bad)} could not be recovered. Why: hermes logs --level warning")
        return lines or ["every store is sound"]

    return act


def _steps(name: str) -> str:
    return stores.side_stores()[name]


def _open_alone(home: Path, files: Sequence[stores.StoreFile]) -> list[str]:
    lock = locks.take(paths.owner_lock(str(home)), "hermes doctor")
    if lock is None:
        raise GatewayError("Another process has just taken the home. Try again: hermes doctor --fix")
    try:
        return open_each(home, {file.name: _steps(file.name) for file in files})
    finally:
        lock.release()


# The gateway


def _wake_gateway(home: Path, command: str) -> Act:
    """Start a gateway that died, and restart one whose loop has stalled."""

    def act(_record: UndoRecord) -> list[str]:
        loaded = load_config(home)
        judged = status.judge(lifecycle.look(home, command, lambda: outside_platforms(loaded.config)))
        if judged.state is status.State.STALLED:
            outcome = lifecycle.restart(home, command)
        elif judged.state is status.State.NOT_RUNNING:
            outcome = lifecycle.start(home, command)
        else:
            return ["the gateway runs again already"]
        if outcome.exit_code:
            raise GatewayError(outcome.text.removeprefix("✗ "))
        return [outcome.text.partition("\n")[0].removeprefix("✓ ").removeprefix("! ")]

    return act
