"""Prune what has served its time: settled rows, sessions of single requests, files. A bite at a time.

Between two bites the store is left to the messages for longer than the bite took, so nobody waits for the pruning.
"""

from __future__ import annotations

import asyncio
import calendar
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from hermes.config.schema import Config, RetentionConfig
from hermes.core.dataclasses import dataclass
from hermes.core.errors import StoreIsDownError
from hermes.core.ports import Clock
from hermes.services.deletion import NIGHT_HOUR, SessionDeletion
from hermes.services.time_zone import zone_of
from hermes.store import pairings
from hermes.store.db import Database, Tx
from hermes.store.retention import pruning
from hermes.store.retention.pruning import START, Bite, Place
from hermes.store.sessions import sessions

log = logging.getLogger(__name__)

DAY = 86400.0
LOOK_SECONDS = 60.0
PASS_SECONDS = 3600.0
"""How often all old rows are looked at."""
PAUSE_FACTOR = 3.0
"""The pause after a bite is so many times as long as the bite took."""
MIN_PAUSE_SECONDS = 0.005
BITE_SECONDS = 0.005
"""A bite that takes longer is followed by a smaller one."""
MIN_BITE, MAX_BITE = 10, 100
LEAST_DAYS = 2
"""Also a store that is too large keeps settled rows for so long: repeats and retries may refer to them."""
MB = 1_000_000

_CORRUPT = re.compile(r".+\.db\.(?:corrupt|replaced|damaged)\.(\d{14})(?:-wal|-shm)?")
_ROTATED = re.compile(r".+\.log\.\d+")


class Retention:
    """``is_mine``: in a cluster, whether this node prunes the rows for all. Files are each node's own."""

    def __init__(
        self,
        db: Database,
        home: Path,
        clock: Clock,
        config: Callable[[], Config],
        sessions: SessionDeletion,
        is_mine: Callable[[], bool] | None = None,
    ) -> None:
        self._db = db
        self._home = home
        self._clock = clock
        self._config = config
        self._sessions = sessions
        self._is_mine = is_mine
        self._passed_at: float | None = None

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "pruning", "reason": str(error)})
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Go on with deletions that are not complete; once an hour, prune."""
        is_mine = self._is_mine is None or self._is_mine()
        if is_mine:
            hour = datetime.fromtimestamp(self._clock.now(), zone_of(self._config().timezone)).hour
            await self._sessions.sweep(is_night=hour == NIGHT_HOUR)
            await self._prune_refused()
        now = self._clock.monotonic()
        if self._passed_at is None or now - self._passed_at >= PASS_SECONDS:
            self._passed_at = now
            if is_mine:
                await self.prune_rows()
            await asyncio.to_thread(prune_files, self._home, self._config().retention, time.time())

    async def prune_rows(self) -> Counter[str]:
        """Prune every table once; returns how many rows went, by table."""
        limits, now = self._config().retention, self._clock.now()
        pruned: Counter[str] = Counter()
        for table, prune in pruning.PRUNED.items():
            pruned[table] += await self._prune(prune, before=now - limits.days * DAY)
        pruned["sessions"] += await self._prune_requests(before=now - limits.requests_days * DAY)
        if self._db.dialect.name == "sqlite":
            for table, prune in pruning.PRUNED.items():
                if not await self._is_too_large(limits.max_mb):
                    break
                pruned[table] += await self._prune(prune, before=now - LEAST_DAYS * DAY, until_mb=limits.max_mb)
        if gone := {table: count for table, count in pruned.items() if count}:
            log.info("Old rows pruned", extra=gone)
        return pruned

    async def _prune(self, prune: Callable[..., Bite], *, before: float, until_mb: int | None = None) -> int:
        after: Place | None = START
        count = bites = 0
        size = MIN_BITE
        while after is not None:
            began = time.monotonic()
            bite = await self._db.prune(prune, before=before, after=after, bite=size)
            count, after, bites = count + bite.pruned, bite.after, bites + 1
            took = time.monotonic() - began
            size = max(MIN_BITE, size // 2) if took > BITE_SECONDS else min(MAX_BITE, size + MIN_BITE)
            await self._pause(began)
            if until_mb is not None and bites % 50 == 0 and not await self._is_too_large(until_mb):
                break
        return count

    async def _prune_refused(self) -> None:
        before = self._clock.now() - self._config().retention.refused_days * DAY
        while True:
            began = time.monotonic()
            if not await self._db.prune(pairings.forget_strangers, before=before):
                return
            await self._pause(began)

    async def _prune_requests(self, *, before: float) -> int:
        """Delete sessions of single requests with their files. Their words go with the rows, at the rows' age."""
        after: Place | None = START
        count = 0
        while after is not None:
            began = time.monotonic()
            found, after = await self._db.read(pruning.old_requests, before=before, after=after)
            for start in range(0, len(found), 20):
                began = time.monotonic()
                count += await self._db.alone(_delete_requests, found[start : start + 20])
                await self._pause(began)
        return count

    async def _is_too_large(self, max_mb: int) -> bool:
        found = await self._db.read(pruning.stored)
        return bool(found["bytes"] - found["free"] > max_mb * MB)

    async def _pause(self, began: float) -> None:
        await asyncio.sleep(max(MIN_PAUSE_SECONDS, PAUSE_FACTOR * (time.monotonic() - began)))


def _delete_requests(tx: Tx, session_ids: Sequence[str]) -> int:
    count = 0
    for session_id in session_ids:
        session = sessions.get(tx, session_id)
        count += sessions.delete(tx, session_id)
        if session is not None:
            pruning.forget_lane(tx, session.key)
    return count


# Files


@dataclass(frozen=True, slots=True)
class AgedFile:
    path: Path
    at: float
    size: int


def prune_files(home: Path, limits: RetentionConfig, now: float) -> int:
    """Remove old outputs, rotated logs and damaged stores; returns how many. Blocking."""
    seconds, most = limits.files_days * DAY, limits.files_max_mb * MB
    gone = 0
    for found in (_outputs(home), _set_aside(home), _logs(home)):
        files = sorted(found, key=lambda file: file.at, reverse=True)
        total = 0
        for file in files:
            total += file.size
            # What is young stays even where it is too much: somebody may be looking at it.
            if now - file.at > seconds or (total > most and now - file.at > DAY):
                try:
                    file.path.unlink(missing_ok=True)
                    gone += 1
                except OSError as error:
                    log.warning("File not removed", extra={"path": str(file.path), "reason": str(error)})
    if gone:
        log.info("Old files pruned", extra={"count": gone})
    return gone


def _files(paths: Iterator[Path]) -> Iterator[AgedFile]:
    for path in paths:
        try:
            found = path.lstat()
        except OSError:  # gone meanwhile
            continue
        yield AgedFile(path, found.st_mtime, found.st_size)


def _outputs(home: Path) -> list[AgedFile]:
    return [*_files((home / "outputs").glob("*.log")), *_files((home / "cron" / "output").glob("*/*.md"))]


def _logs(home: Path) -> list[AgedFile]:
    return [file for file in _files((home / "logs").glob("*.log.*")) if _ROTATED.fullmatch(file.path.name)]


def _set_aside(home: Path) -> list[AgedFile]:
    """Damaged stores; their age is that of the damage, which stands in the name."""
    found = []
    for file in _files(home.glob("*.db.*")):
        if named := _CORRUPT.fullmatch(file.path.name):
            at = float(calendar.timegm(time.strptime(named[1], "%Y%m%d%H%M%S")))
            found.append(AgedFile(file.path, at, file.size))
    return found
