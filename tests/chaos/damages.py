"""A store with rows of every kind, damaged at random again and again: what comes back, and whether the report is true.

The damages are bytes, runs of bytes, whole pages (zeros, noise, another page, the same page as it was earlier) and
truncations, of a store at rest, of one whose process was killed, and of one that is running. A running store is damaged
by another process: a plain open() and close in its own would drop its locks on the file.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes.core.errors import StoreIsDownError
from hermes.store.db import Database, StoreLimits, Trouble, Tx
from hermes.store.open import open_database
from hermes.store.sqlite import losses, mirror, row_shapes
from hermes.store.sqlite.losses import LAST_CHANGES, Report
from hermes.store.sqlite.mirror import MIRRORED
from hermes.store.sqlite.page_map import SUFFIX
from tests.chaos.telling import Options, Row, Told

PAGE = 4096
DAY = 86_400.0
BEGAN = 1_780_000_000.0
PATIENCE_SECONDS = 60.0
QUEUES = frozenset({"lanes", "targets"})
"""A queue that is lost is made again for the work that waits in it, without what else was noted there."""

ROLES = ("owner", "admin", "user", "guest")
WHO_MAY = frozenset({"people", "api_keys", "grants", "pairings"})
RIGHTS = {*ROLES, "approved", "refused", "revoked", "pending", "once", "session", "always"}
STATES = {
    "inbox": ("answered", "refused", "set_aside", "queued"),
    "turns": ("done", "failed", "stopped"),
    "tool_calls": ("done", "refused"),
    "outbox": ("sent", "dead", "ready"),
    "approvals": ("allowed", "denied", "expired"),
    "pairings": ("approved", "refused", "revoked"),
}

Key = tuple[object, ...]
Content = Mapping[str, Mapping[Key, Key]]


# The store


def digest(number: int) -> str:
    return f"{number * 2654435761 % (1 << 64):016x}" * 4


def value(table: str, column: str, kind: str, number: int, chance: random.Random) -> object:
    """A value as the gateway would have written it, for row ``number`` of a table."""
    at = BEGAN + number * 60.0
    lane = f"agent:main:telegram:dm:{number}"
    plain: dict[str, object] = {
        "lane": lane,
        "platform": f"platform{number}" if table == "pairing_tries" else "telegram",
        "account": "main",
        "session_id": f"s_{number:06}",
        "turn_id": f"t_{number:06}",
        "person_id": f"p_telegram_{number}",
        "target": f"telegram:{number}",
        "role": ROLES[number % 4],
        "heard": ROLES[number % 4],
        "state": STATES.get(table, ("",))[number % len(STATES.get(table, ("",)))],
        "kind": {"inbox": "message", "transcript": "message", "outbox": "reply"}.get(table, ""),
        "scope": "always" if table == "grants" else "once",
        "status": 200,
        "headers": "{}",
        "before_hash": digest(number),
        "hash": digest(number + 7),
        "event_id": f"ev_{number:06}",
        "group_id": f"ob_{number:06}",
        "outbox_id": f"ob_{number:06}",
        "user_id": str(number),
        "items": json.dumps([{"text": f"thing {number}", "done": False}]),
        "arguments": json.dumps({"path": f"file {number}"}),
        "language": "en",
    }
    own: dict[str, object] = {
        "inbox.id": f"ev_{number:06}",
        "dedupe.key": f"telegram/77/msg:{number}:1",
        "turns.id": f"t_{number:06}",
        "sessions.id": f"s_{number:06}",
        "sessions.key": lane,
        "sessions.seq": 1,
        "sessions.revision": 0,
        "transcript.seq": 1,
        "outbox.id": f"ob_{number:06}",
        "approvals.id": f"ap_{number:06}",
        "grants.id": f"gr_{number:06}",
        "people.id": f"p_telegram_{number}",
        "lanes.key": lane,
        "targets.key": f"telegram:{number}",
        "revisions.revision": 1,
        "api_keys.name": f"key {number}",
        "cursors.name": f"chat {number}",
        "allowances.target": f"telegram:{number}",
        "lanes.owner": None,
        "targets.owner": None,
        "sessions.batch": "",
        "sessions.end_reason": "",
        "sessions.title": f"session {number}",
    }
    if (name := f"{table}.{column}") in own:
        return own[name]
    if column in plain:
        return plain[column]
    if column == "body":
        words = "".join(chance.choices("abcdefgh 中文", k=chance.choice((20,) * 15 + (200,) * 14 + (6000,))))
        return json.dumps({"role": "user", "text": f"{number} {words}"}, ensure_ascii=False)
    if column in {"ended_at", "revoked_at", "undone_at", "next_at"}:
        return None
    if column.endswith("_at") or column in {"at", "not_before", "locked_until"}:
        return at
    if "INT" in kind:
        return number % 50
    return f"{column} {number}"


def plant(tx: Tx, first: int, last: int, chance: random.Random) -> None:
    for table in tables_of(tx):
        columns = tx.all("SELECT name, type FROM pragma_table_info(:table)", lambda *row: row, table=table)
        marks = ", ".join(f":{name}" for name, _ in columns)
        for number in range(first, last):
            row = {name: value(table, name, kind.upper(), number, chance) for name, kind in columns}
            if "id" in row and row["id"] == f"id {number}":
                row["id"] = f"{table[:2]}_{number:06}"
            tx.run(f"INSERT INTO {table} ({', '.join(name for name, _ in columns)}) VALUES ({marks})", **row)


def tables_of(tx: Tx) -> list[str]:
    names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'meta'"
    return tx.all(names, str)


def content_of(tx: Tx) -> Content:
    """Every row of every table, by its key."""
    found: dict[str, dict[Key, Key]] = {}
    for table in tables_of(tx):
        columns = tx.all("SELECT name, pk FROM pragma_table_info(:table) ORDER BY cid", lambda *row: row, table=table)
        places = [place for place, (_, is_key) in enumerate(columns) if is_key]
        rows = tx.all(f"SELECT {', '.join(name for name, _ in columns)} FROM {table}", lambda *row: row)
        found[table] = {tuple(row[place] for place in places): row for row in rows}
    return found


def change(tx: Tx, number: int, chance: random.Random) -> None:
    """What goes on in a running gateway: rows come, are changed and go."""
    for _ in range(20):
        which = chance.randrange(number)
        tx.run("UPDATE inbox SET state = 'answered', reason = :why WHERE id = :id", id=f"ev_{which:06}", why=f"{which}")
        tx.run("UPDATE outbox SET state = 'sent', attempts = attempts + 1 WHERE id = :id", id=f"ob_{which:06}")
        tx.run("UPDATE people SET role = :role WHERE id = :id", role=chance.choice(ROLES), id=f"p_telegram_{which}")
        tx.run("DELETE FROM idempotency WHERE key = :key", key=f"key {which // 20 * 20}")


@dataclass(slots=True)
class Template:
    """A home at rest, the same home as a kill left it, and what each of them holds.

    ``history`` is every row that was ever committed: what a damaged log loses leaves an older one.
    """

    rest: Path
    killed: Path
    older: bytes
    content: Content
    killed_content: Content
    history: set[tuple[str, Key]]


async def make_template(folder: Path, rows: int, seed: int) -> Template:
    chance = random.Random(seed)
    rest, killed = folder / "rest", folder / "killed"
    state = rest / "state.db"
    database = await open_database(state)
    await database.write(plant, 0, rows + rows // 10, chance)
    history = history_of(await database.read(content_of))
    await database.write(forget_last, rows)
    await database.close()
    older = state.read_bytes()
    database = await open_database(state)
    for _ in range(5):
        await database.write(change, rows, chance)
        history |= history_of(await database.read(content_of))
    content = await database.read(content_of)
    await database.close()

    shutil.copytree(rest, killed / "before")
    running = killed / "before" / "state.db"
    database = await open_database(running)
    for number in range(8):
        await database.write(plant, rows + 1000 + number, rows + 1001 + number, chance)
        await database.write(change, rows, chance)
        history |= history_of(await database.read(content_of))
    await settled_beside(running.parent, (await database.read(content_of))["people"])
    left = killed / "left"
    left.mkdir()
    for entry in running.parent.iterdir():  # as a killed process leaves them; a copy of the log is no open of the file
        if entry.is_file():
            (left / entry.name).write_bytes(await asyncio.to_thread(copied_elsewhere, entry))
    shutil.copytree(running.parent / "sessions", left / "sessions")
    killed_content = await database.read(content_of)
    await database.close()
    return Template(rest, left, older, content, killed_content, history)


def forget_last(tx: Tx, rows: int) -> None:
    """Rows that were there once and must not come back."""
    for table in tables_of(tx):
        tx.run(f"DELETE FROM {table} WHERE rowid > {rows}")


def history_of(content: Content) -> set[tuple[str, Key]]:
    return {(table, row) for table, rows in content.items() for row in rows.values()}


async def settled_beside(home: Path, people: Mapping[Key, Key]) -> None:
    """Until the mirror tells of everybody as they are now."""
    wanted = {key: row[2] for key, row in people.items()}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while {(row["id"],): row["role"] for row in mirror.read(home).of("people")} != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.05)  # a file gives no signal


def copied_elsewhere(path: Path) -> bytes:
    return subprocess.run(["cat", str(path)], check=True, capture_output=True, timeout=20).stdout


# Damages

_SCRIBE = """
import json, os, sys
for line in sys.stdin:
    for path, at, data in json.loads(line):
        if data is None:
            os.truncate(path, at)
        else:
            with open(path, "r+b") as file:
                file.seek(at)
                file.write(bytes.fromhex(data))
    print("done", flush=True)
"""

Stroke = tuple[int, bytes | None]
"""Where, and what is written there; None cuts the file off."""


@dataclass(frozen=True, slots=True)
class Damage:
    kind: str
    when: str
    has_map: bool
    strokes: Sequence[Stroke]
    file: str = "state.db"

    def __str__(self) -> str:
        where = ", ".join(f"{at}+{len(data) if data is not None else 'cut'}" for at, data in self.strokes[:4])
        return f"{self.kind} {self.when}{'' if self.has_map else ' without its map'} ({self.file} at {where})"


def plan(chance: random.Random, data: bytes, older: bytes, log: bytes, when: str, *, has_map: bool) -> Damage:
    size = len(data)
    kind = chance.choice(("byte", "bytes", "run", "noise", "zeros", "other page", "earlier page", "cut", "header"))
    page = chance.randrange(size // PAGE) * PAGE
    strokes: list[Stroke]
    file = "state.db"
    match kind:
        case "byte":
            strokes = [(chance.randrange(size), chance.randbytes(1))]
        case "bytes":
            strokes = [(chance.randrange(size), chance.randbytes(1)) for _ in range(chance.randint(2, 30))]
        case "run":
            strokes = [(chance.randrange(size), chance.randbytes(chance.randint(2, 3000)))]
        case "noise":
            strokes = [(page, chance.randbytes(PAGE * chance.randint(1, 20)))]
        case "zeros":
            strokes = [(page, bytes(PAGE * chance.randint(1, 20)))]
        case "other page":
            other = chance.randrange(size // PAGE) * PAGE
            strokes = [(page, data[other : other + PAGE])]
        case "earlier page":
            page = min(page, len(older) - PAGE)
            strokes = [(page, older[page : page + PAGE])]
        case "cut":
            strokes = [(chance.randrange(size), None)]
        case _:
            strokes = [(0, bytes(chance.choice((16, 100, 512, PAGE))))]
    if when == "after a kill" and log and chance.random() < 0.4:
        file, at = "state.db-wal", chance.randrange(len(log))
        strokes = [(at, None if chance.random() < 0.5 else chance.randbytes(chance.randint(1, 5000)))]
        kind = "log"
    strokes = [(at, piece if piece is None else piece[: max(1, size - at)]) for at, piece in strokes]
    return Damage(kind, when, has_map=has_map, strokes=strokes, file=file)


# What came of it


@dataclass(slots=True)
class Tally:
    damages: int = 0
    noticed: int = 0
    recovered: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    invented: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    altered_without_map: int = 0
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return not (self.invented or self.roles or self.untold or self.untrue)


class Damager:
    """Damages copies of a template, one after the other."""

    def __init__(self, template: Template, folder: Path, seed: int, *, without_map: float = 0.125) -> None:
        """``without_map`` is the share of damages that hit the map of the pages too."""
        self._without_map = without_map
        self._template = template
        self._folder = folder
        self._chance = random.Random(seed)
        self.tally = Tally()

    async def play(self, count: int) -> Tally:
        began = time.monotonic()
        with scribe() as write:
            for number in range(count):
                when = ("at rest", "after a kill", "at rest", "while running")[number % 4]
                await self._play(when, write)
                if number % 100 == 99:
                    print(f"{number + 1:>5} damages in {time.monotonic() - began:.0f} s", flush=True)
        self.tally.seconds = time.monotonic() - began
        return self.tally

    async def _play(self, when: str, write: Any) -> None:
        source = self._template.killed if when == "after a kill" else self._template.rest
        home = self._folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        for entry in source.iterdir():
            if entry.is_file():
                shutil.copyfile(entry, home / entry.name)
        (home / "sessions").symlink_to(source / "sessions")
        state, log = home / "state.db", home / "state.db-wal"
        log_data = log.read_bytes() if log.exists() else b""
        has_map = self._chance.random() >= self._without_map
        damage = plan(self._chance, state.read_bytes(), self._template.older, log_data, when, has_map=has_map)
        if not damage.has_map:
            state.with_name(f"state.db{SUFFIX}").unlink()
        strokes = [
            (str(home / damage.file), at, data.hex() if data is not None else None) for at, data in damage.strokes
        ]
        troubles: list[Trouble] = []
        if when == "while running":
            async with opened(state, troubles) as database:
                await database.write(change, len(self._template.content["inbox"]), self._chance)
                before = await database.read(content_of)
                if not damage.has_map:  # it was made when the file was opened
                    state.with_name(f"state.db{SUFFIX}").unlink()
                    await settled_beside(home, before["people"])
                await asyncio.to_thread(write, strokes)
                key = await written(database)
                after = await database.read(content_of)
            before = with_row(before, key, after)
        else:
            await asyncio.to_thread(write, strokes)
            async with opened(state, troubles) as database:
                after = await database.read(content_of)
            before = self._template.killed_content if when == "after a kill" else self._template.content
        self._judge(damage, before, after, losses.read(home), troubles)

    def _judge(
        self, damage: Damage, before: Content, after: Content, reports: Sequence[Report], troubles: Sequence[Trouble]
    ) -> None:
        tally = self.tally
        tally.damages += 1
        tally.kinds[f"{damage.kind} {damage.when}"] += 1
        tally.noticed += bool(troubles)
        tally.recovered += bool(reports)
        is_log = any(loss.table == LAST_CHANGES for report in reports for loss in report.losses)
        for table, rows in after.items():
            for key, row in rows.items():
                was = before[table].get(key)
                is_older = is_log and table not in MIRRORED and (table, row) in self._template.history
                if row == was or is_older:
                    continue
                if table in QUEUES and key in before[table] and reports:
                    continue
                # Without the map a page as it was earlier looks like any other: what it says was true once.
                is_once_true = not damage.has_map and damage.kind == "earlier page"
                if was is not None and table in WHO_MAY and set(was) & RIGHTS != set(row) & RIGHTS and not is_once_true:
                    tally.roles.append(f"{damage}: {table} {key}: {was} → {row}")
                elif was is not None and not damage.has_map:  # nothing can tell such a text from the right one
                    tally.altered_without_map += 1
                else:
                    tally.invented.append(f"{damage}: {table} {key}: {was} → {row}")
        gone = {table: rows.keys() - after[table].keys() for table, rows in before.items()}
        tally.lost += sum(map(len, gone.values()))
        for table, keys in gone.items():
            self._judge_loss(damage, table, len(keys), reports, [before[table][key] for key in keys])

    def _judge_loss(
        self, damage: Damage, table: str, count: int, reports: Sequence[Report], rows: Sequence[Key]
    ) -> None:
        found = [loss for report in reports for loss in report.losses if loss.table in {table, LAST_CHANGES}]
        exact = sum(loss.rows for loss in found)
        if count and not found:
            self.tally.untold.append(f"{damage}: {count} of {table}")
        elif all(loss.is_exact for loss in found) and exact != count:
            self.tally.untrue.append(f"{damage}: {count} of {table} lost, and {exact} told")
        elif not all(loss.is_exact for loss in found) and exact > count:
            self.tally.untrue.append(f"{damage}: {count} of {table} lost, and at least {exact} told")
        for loss in found:
            times = [at for at in (time_in(table, row) for row in rows) if at is not None]
            if loss.is_exact and loss.table == table and not all(loss.covers(at) for at in times):
                self.tally.untrue.append(f"{damage}: {loss} is told, and rows from {min(times)} to {max(times)} lost")


def time_in(table: str, row: Key) -> float | None:
    found = [at for at in row if isinstance(at, float) and row_shapes.is_time(at)]
    return found[0] if found and table not in QUEUES else None


def with_row(before: Content, key: str, after: Content) -> Content:
    """What was written after the damage belongs to what must be there."""
    row = after["idempotency"].get((key,), (key,))
    return {**before, "idempotency": {**before["idempotency"], (key,): row}}


async def written(database: Database) -> str:
    """Write a row, however often that takes."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await database.write(put, "after the damage")
            except StoreIsDownError:
                await asyncio.sleep(0.02)


def put(tx: Tx, key: str) -> str:
    tx.run(
        "INSERT INTO idempotency (key, fingerprint, status, headers, body, created_at)"
        " VALUES (:key, 'f', 200, '{}', '{}', :at)",
        key=key,
        at=BEGAN + 365 * DAY,
    )
    return key


@asynccontextmanager
async def opened(state: Path, troubles: list[Trouble]) -> AsyncIterator[Database]:
    database = await open_database(
        state, on_trouble=troubles.append, limits=StoreLimits(heal_wait_seconds=PATIENCE_SECONDS)
    )
    try:
        yield database
    finally:
        await database.close()


@contextmanager
def scribe() -> Iterator[Any]:
    """Another process that writes what it is told into files."""
    command = [sys.executable, "-I", "-S", "-c", _SCRIBE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines_in, lines_out = process.stdin, process.stdout

        def write(strokes: Sequence[tuple[str, int, str | None]]) -> None:
            lines_in.write(json.dumps(strokes) + "\n")
            lines_in.flush()
            assert lines_out.readline() == "done\n"

        yield write
        lines_in.close()


# The long form

DAMAGES = 1000
ROWS = 1000


async def damage_again_and_again(options: Options) -> Told:
    folder = options.folder / "damages"
    folder.mkdir()
    template = await make_template(folder, ROWS, options.seed)
    tally = await Damager(template, folder, options.seed).play(DAMAGES)
    wrong = (*tally.invented, *tally.roles, *tally.untold, *tally.untrue)
    for one in wrong[:50]:
        print(f"wrong: {one}")
    rows: list[Row] = [
        ("damages of state.db / noticed / recovered", f"{tally.damages} / {tally.noticed} / {tally.recovered}"),
        ("… rows of each kind, kinds, rows lost in all", f"{ROWS}, {len(template.content)}, {tally.lost}"),
        ("… rows invented, roles changed", f"{len(tally.invented)}, {len(tally.roles)}"),
        ("… losses not told, told wrongly", f"{len(tally.untold)}, {len(tally.untrue)}"),
        ("… rows altered where the map of pages was gone too", str(tally.altered_without_map)),
        ("… time", f"{tally.seconds:.0f} s"),
    ]
    return Told(rows, tally.is_good)
