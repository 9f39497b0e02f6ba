"""Kill -9 during `backup`, `restore` and `update`: afterwards there is the old state or the new one, whole."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hermes.store.backup import restore, shelf
from hermes.store.backup.archive import ArchiveRefusedError
from tests.chaos.telling import Options, Told
from tests.fakes.installations import Installed, InstalledClone, InstalledPackage
from tests.fakes.started_home import copy_home

SHARES = {"backup": 0.4, "restore": 0.4, "update of a clone": 0.1, "update of a package": 0.1}


@dataclass(slots=True)
class CountedKills:
    """``outcomes`` counts what was found after each kill; ``wrong`` says where it was neither old nor new."""

    kills: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def until(self, kind: str, kills: int) -> Iterator[int]:
        """Number the tries until so many were killed; one that ends before its kill is no kill."""
        for number in range(3 * kills):
            if self.kills[kind] >= kills:
                return
            yield number


class MarkedHome:
    """A home in which every kind of thing carries the same word, so that a mixture of two states is seen."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "home"
        copy_home(self.path)
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "HERMES_HOME": str(self.path)}
        self.environ["PYTHONPATH"] = os.pathsep.join(sys.path[1:])

    def mark(self, word: str) -> None:
        (self.path / "config.yaml").write_text(f"# {word}\n")
        (self.path / "SOUL.md").write_text(word)
        (self.path / "skills" / "mine").mkdir(parents=True, exist_ok=True)
        for number in range(20):
            (self.path / "skills" / "mine" / f"{number}.md").write_text(word)
        connection = sqlite3.connect(self.path / "state.db", isolation_level=None)
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('word', ?)", [word])
        connection.close()

    def words(self) -> set[str]:
        connection = sqlite3.connect(self.path / "state.db")
        found = {str(connection.execute("SELECT value FROM meta WHERE key = 'word'").fetchone()[0])}
        connection.close()
        found.add((self.path / "config.yaml").read_text()[2:].strip())
        texts = [self.path / "SOUL.md", *(self.path / "skills" / "mine").glob("*.md")]
        return found | {path.read_text() for path in texts}

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", "hermes", *words]
        return subprocess.Popen(command, env=self.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Kill the process after so long; False when it had ended before."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def timed(process: subprocess.Popen[bytes]) -> float:
    began = time.monotonic()
    assert process.wait(300) == 0
    return time.monotonic() - began


def kill_backups(folder: Path, kills: int, chance: random.Random, counted: CountedKills) -> None:
    home = MarkedHome(folder)
    home.mark("old")
    shelf_folder = shelf.default_folder(home.path)
    seconds, before = timed(home.start("backup", "create")), 1
    for number in counted.until("backup", kills):
        counted.kills["backup"] += kill_after(home.start("backup", "create"), chance.uniform(0.02, seconds))
        key = shelf.read_key(home.path)
        try:
            made = [restore.verify(entry.path, key) for entry in shelf.entries(shelf_folder)]
        except ArchiveRefusedError as error:
            counted.wrong.append(f"backup {number}: {error}")
            continue
        counted.outcomes["backup: a new archive" if len(made) > before else "backup: none"] += 1
        before = len(made)
        if home.words() != {"old"}:
            counted.wrong.append(f"backup {number}: the home changed")
    assert home.start("backup", "create").wait(300) == 0
    if left := list(shelf_folder.glob(".making-*")):
        counted.wrong.append(f"backup: {left} is left")


def kill_restores(folder: Path, kills: int, chance: random.Random, counted: CountedKills) -> None:
    home = MarkedHome(folder)
    home.mark("then")
    timed(home.start("backup", "create"))
    archive = str(shelf.entries(shelf.default_folder(home.path))[0].path)
    seconds = timed(home.start("backup", "restore", archive, "--yes"))
    for number in counted.until("restore", kills):
        now = f"now {number}"
        home.mark(now)
        command = home.start("backup", "restore", archive, "--yes")
        counted.kills["restore"] += kill_after(command, chance.uniform(seconds * 0.4, seconds * 1.1))
        restore.finish(home.path)  # as the next start does
        words = home.words()
        if words not in ({"then"}, {now}):
            counted.wrong.append(f"restore {number}: {words}")
        counted.outcomes["restore: new state" if words == {"then"} else "restore: old state"] += 1


def kill_updates(installed: Installed, kind: str, kills: int, chance: random.Random, counted: CountedKills) -> None:
    assert installed.hermes("backup", "list").returncode == 0
    installed.hermes("config", "set", "model.default", "openai/gpt-4o-mini")
    installed.offer("0.2.0")
    began = time.monotonic()
    done = installed.hermes("update")
    assert done.returncode == 0, done.stderr
    seconds = time.monotonic() - began
    assert installed.hermes("rollback", "--yes").returncode == 0
    for number in counted.until(kind, kills):
        counted.kills[kind] += kill_after(installed.start("update"), chance.uniform(0.1, seconds * 1.1))
        installed.next_start()
        version = installed.hermes("--version").stdout.strip().removeprefix("hermes ")
        if version not in {"0.1.0", "0.2.0"} or not installed.is_whole(version):
            counted.wrong.append(f"{kind} {number}: {version!r} is not whole")
        counted.outcomes[f"{kind}: {'new' if version == '0.2.0' else 'old'} version"] += 1
        if version == "0.2.0":
            back = installed.hermes("rollback", "--yes")
            if back.returncode:
                counted.wrong.append(f"{kind} {number}: no way back: {back.stderr}")
                return


def kill_all(folder: Path, kills: int, seed: int, kinds: tuple[str, ...] = tuple(SHARES)) -> CountedKills:
    """Kill so often in all, shared among the kinds."""
    counted, chance = CountedKills(), random.Random(seed)
    for kind in kinds:
        share = max(1, round(kills * SHARES[kind])) if len(kinds) == len(SHARES) else max(1, kills // len(kinds))
        place = folder / kind.replace(" ", "-")
        place.mkdir(parents=True)
        match kind:
            case "backup":
                kill_backups(place, share, chance, counted)
            case "restore":
                kill_restores(place, share, chance, counted)
            case _:
                make = InstalledClone if "clone" in kind else InstalledPackage
                kill_updates(make(place), kind, share, chance, counted)
    return counted


async def kill_backups_and_updates(options: Options) -> Told:
    counted = await asyncio.to_thread(kill_all, options.folder / "backups", min(options.kills, 100), options.seed)
    for one in counted.wrong:
        print(f"wrong: {one}")
    where = ", ".join(f"{kind} {count}" for kind, count in counted.kills.items())
    found = ", ".join(f"{kind} {count}" for kind, count in sorted(counted.outcomes.items()) if count)
    rows = [
        ("kill -9 during backup, restore and update", f"{sum(counted.kills.values())} ({where}; seed {options.seed})"),
        ("… afterwards neither the old state nor the new", str(len(counted.wrong))),
        ("… found afterwards", found),
    ]
    return Told(rows, not counted.wrong)
