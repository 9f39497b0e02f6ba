"""Check the stores: state.db through its owner, the others by a look at their files."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hermes.cli.checks.finding import Finding
from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.sizes import format_size
from hermes.core.dataclasses import dataclass
from hermes.core.durations import count, format_duration
from hermes.core.errors import GatewayError

if TYPE_CHECKING:
    from hermes.config import Config

ANSWER_SECONDS = 20.0  # a quick look over a database of gigabytes takes a while
LOCKED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Store:
    """What the store said of itself, or why it said nothing."""

    sound: Mapping[str, Any] | None = None
    counts: Mapping[str, Any] | None = None
    silence: str = ""
    is_empty: bool = False
    recovered: tuple[str, ...] = ()
    work: Mapping[str, Any] | None = None


def ask_store(home: Path, config: Config, *, is_stalled: bool) -> Store:
    """A database that a gateway has open is asked through it, and never opened beside it."""
    if is_stalled:
        return Store(silence="they belong to a gateway that is starting or does not answer")
    if not config.database_url and not (home / "state.db").exists():
        return Store(is_empty=True)
    recovered: list[str] = []
    try:
        with GatewayClient(home, Standalone.STORE, recovered.append) as client:
            sound = client.ask("doctor.stores", timeout=ANSWER_SECONDS)
            counts = client.ask("store.counts")
            return Store(sound, counts, recovered=tuple(recovered), work=_ask_work(client))
    except GatewayError as error:
        return Store(silence=str(error), recovered=tuple(recovered))
    except OSError as error:  # no room for a lock, or no rights: the home tells why
        return Store(silence=f"{error.strerror} ({error.filename})", recovered=tuple(recovered))


def _ask_work(client: GatewayClient) -> Mapping[str, Any] | None:
    try:
        work: Mapping[str, Any] = client.ask("doctor.work", timeout=ANSWER_SECONDS)
        return work
    except GatewayError:  # a gateway of before an update does not know the question
        return None


# The other files

UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class StoreFile:
    """How a store's file looks from outside. ``complaint``: SQLite's own words, '' where it is sound.

    ``missing``: tables and columns that its own version should have.
    """

    name: str
    size: int = 0
    complaint: str = ""
    missing: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        return not self.complaint and not self.missing


def side_stores() -> dict[str, str]:
    """The files beside state.db, each with its migrations."""
    from hermes.store.api import responses
    from hermes.store.kanban import open as board

    return {board.FILE: board.MIGRATIONS, responses.FILE: responses.MIGRATIONS}


def look_at_files(home: Path) -> list[StoreFile]:
    """Look at each store beside state.db that is there. Nothing is changed, and no gateway is held up."""
    return [look_at_file(home / name, steps) for name, steps in side_stores().items() if (home / name).exists()]


def look_at_file(path: Path, migrations: str) -> StoreFile:
    from hermes.store import migrate
    from hermes.store.sqlite import schema_repair
    from hermes.store.sqlite.file import APPLICATION_ID

    if not os.access(path, os.R_OK):  # rights: the home names the cure
        return StoreFile(path.name, complaint=UNREADABLE)
    try:
        size = path.stat().st_size
        with contextlib.closing(_read_only(path)) as file:
            (mark,) = file.execute("PRAGMA application_id").fetchone()
            words = str(file.execute("PRAGMA quick_check(1)").fetchone()[0])
            if words != "ok":
                return StoreFile(path.name, size, words)
            if not schema_repair.tables(file):
                return StoreFile(path.name, size)
            if mark != APPLICATION_ID:
                return StoreFile(path.name, size, "another program made it")
            row = file.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
            version = int(row[0]) if row else 0
            steps = [step for step in migrate.load(migrations) if step.number <= version]
            return StoreFile(path.name, size, missing=tuple(_missing(file, steps)))
    except (sqlite3.Error, UnicodeDecodeError, ValueError) as error:
        return StoreFile(path.name, complaint=str(error))
    except OSError:  # gone, or a disk that fails: the home names the cure
        return StoreFile(path.name, complaint=UNREADABLE)


def _read_only(path: Path) -> sqlite3.Connection:
    """A file that was closed well is read without any trace; one with a log is read with it."""
    has_log = path.with_name(f"{path.name}-wal").exists()
    address = f"file:{quote(str(path.absolute()))}?mode=ro{'' if has_log else '&immutable=1'}"
    return sqlite3.connect(address, uri=True, timeout=LOCKED_SECONDS)


def _missing(file: sqlite3.Connection, steps: Sequence[Any]) -> list[str]:
    from hermes.store.sqlite import schema_repair

    have = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
    found = []
    for kind, name, _, wanted in schema_repair.expected(tuple(steps)) if steps else ():
        if name not in have:
            found.append(f"{kind} {name}")
        elif kind == "table":
            present = {column.name for column in schema_repair.columns(file, name)}
            found += [f"column {name}.{column.name}" for column in wanted if column.name not in present]
    return found


# The verdict


def stores_check(store: Store, command: str = "hermes", files: Sequence[StoreFile] = ()) -> Finding:
    bad = [_complaint(file, command) for file in files if not file.is_sound]
    if store.sound is None and not store.is_empty:
        cure = f"why the gateway does not answer → {command} gateway status"
        more = (*store.recovered, *bad, *([] if "→" in store.silence else [cure]))
        return Finding("stores", "trouble", f"could not be checked: {store.silence}", more)
    if store.sound is not None and not store.sound["is_sound"]:
        sound = store.sound
        words = f"{sound['name']} is damaged ({sound['words']}) → {command} doctor --fix"
        return Finding("stores", "trouble", words, tuple(bad), fix="stores")
    if bad:
        can_fix = any(not file.is_sound and file.complaint != UNREADABLE for file in files)
        return Finding("stores", "trouble", bad[0], tuple(bad[1:]), fix="stores" if can_fix else "")
    if store.sound is None:
        return Finding("stores", "good", "nothing stored yet")
    return _sound(store, store.sound, command, files)


def _complaint(file: StoreFile, command: str) -> str:
    if file.complaint == UNREADABLE:
        return f"{file.name} cannot be read"
    if file.complaint:
        return f"{file.name} is damaged ({file.complaint}) → {command} doctor --fix"
    return f"{file.name} lacks {', '.join(file.missing)} → {command} doctor --fix"


def _sound(store: Store, sound: Mapping[str, Any], command: str, files: Sequence[StoreFile]) -> Finding:
    bytes_used = int(sound.get("bytes") or 0) + sum(file.size for file in files)
    size = f", {format_size(bytes_used)}" if sound.get("bytes") else ""
    copy = sound["last_backup"]
    backed_up = f"; last backup {format_duration(time.time() - copy)} ago" if copy else ""
    letters = store.counts["dead_letters"] if store.counts else 0
    names = ", ".join([sound["name"], *(file.name for file in files)])
    good = Finding("stores", "good", f"{names} sound{size}{backed_up}", tuple(sound.get("recoveries", ())))
    if store.recovered:  # just now, by this command
        first, *more = store.recovered
        hint = f"what became of a message → {command} trace ID"
        return replace(good, level="hint", text=first, more=(*more, hint))
    if letters:
        words = f"{count(letters, 'message')} could not be delivered → {command} send --dead"
        return replace(good, level="hint", text=f"{good.text}; {words}")
    return good
