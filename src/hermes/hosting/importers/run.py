"""Import a whole home of another gateway: read it, write what is new here, report the rest."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from hermes.config import Loaded
from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.hosting.importers import write_files, write_settings, write_store
from hermes.hosting.importers.found import FoundHome
from hermes.hosting.importers.report import Fate, ImportReport
from hermes.hosting.importers.source import SourceHome
from hermes.services.cron.jobs import Jobs
from hermes.store.db import Database
from hermes.store.home import MARKER
from hermes.store.ids import new_id
from hermes.store.sessions.imports import ImportedSession

BATCH = "im"
KINDS = ("hermes-agent", "openclaw")
TOLD_EVERY = 20


@dataclass(slots=True)
class ImportTarget:
    """Our side. Without ``jobs`` nothing is written anywhere: the report says what would come."""

    home: Path
    db: Database
    loaded: Callable[[], Loaded]
    reload: Callable[[], Awaitable[object]]
    board: Callable[[], Awaitable[Database | None]]
    skills: Path
    commands: Collection[str]
    now: float
    jobs: Callable[[], Jobs] | None = None
    refresh_skills: Callable[[], object] = lambda: None
    has_addresses: bool = False
    """Whether settings come, too, that decide where words and keys go."""

    @property
    def is_dry(self) -> bool:
        return self.jobs is None


def reader_of(kind: str) -> Callable[[SourceHome], FoundHome]:
    if kind == "openclaw":
        from hermes.hosting.importers.openclaw_home import read_home as read_openclaw

        return read_openclaw
    from hermes.hosting.importers.hermes_agent_home import read_home as read_hermes_agent

    return read_hermes_agent


def check_source(kind: str, path: Path, home: Path) -> Path:
    """The folder to read. GatewayError says why it cannot be imported."""
    if kind not in KINDS:
        raise GatewayError(f"There is no import from {kind!r}. There are: {', '.join(KINDS)}.")
    if not path.is_dir():
        raise GatewayError(f"There is no folder {path}. Name the home of {kind}.")
    found, ours = path.resolve(), home.resolve()
    if found == ours:
        raise GatewayError("That is this home itself. Name the home of the other gateway.")
    if (found / MARKER).exists():
        raise GatewayError(f"{path} is a home of this program. To copy its sessions: hermes sessions import {path}")
    known = {
        "hermes-agent": ("state.db", "config.yaml", "cron", "sessions", "gateway.json", "kanban.db"),
        "openclaw": ("openclaw.json", "agents", "workspace", "state", "clawdbot.json", "moltbot.json"),
    }
    if not any((found / name).exists() for name in known[kind]):
        raise GatewayError(f"{path} is not a home of {kind}: it contains none of {', '.join(known[kind][:4])}.")
    return found


async def import_home(
    kind: str, path: Path, target: ImportTarget, on_progress: Callable[[int], Awaitable[None]]
) -> ImportReport:
    """Import everything that is new. A second time it changes nothing. The source is only read."""
    source_path = check_source(kind, path, target.home)
    report = ImportReport(kind, str(path), target.is_dry)
    # One thread reads: a database is used by the thread that opened it.
    reader = ThreadPoolExecutor(1)
    with tempfile.TemporaryDirectory(prefix="hermes-import-") as scratch:
        try:
            await _import(kind, SourceHome(source_path, Path(scratch)), target, report, reader, on_progress)
        finally:
            # In a thread: a copy of a large database that goes on must not hold up the gateway.
            await asyncio.shield(asyncio.to_thread(reader.shutdown, cancel_futures=True))
    return report


async def _import(
    kind: str,
    source: SourceHome,
    target: ImportTarget,
    report: ImportReport,
    reader: ThreadPoolExecutor,
    on_progress: Callable[[int], Awaitable[None]],
) -> None:
    """Settings first: what follows is checked by them."""
    found = await asyncio.get_running_loop().run_in_executor(reader, reader_of(kind), source)
    is_dry = target.is_dry
    settings = partial(write_settings.import_settings, has_addresses=target.has_addresses)
    await asyncio.to_thread(settings, found, target.loaded(), report, is_dry=is_dry)
    if not is_dry:
        await target.reload()
    platforms = frozenset(manifest.id for manifest in target.loaded().schema.manifests)
    await write_store.import_people(found, target.db, platforms, report, now=target.now, is_dry=is_dry)
    await _sessions(found, target, report, reader, on_progress)
    skills = partial(write_files.import_skills, found, target.skills, target.commands, report)
    await asyncio.to_thread(skills, now=target.now, is_dry=is_dry)
    await asyncio.to_thread(target.refresh_skills)
    jobs = target.jobs() if target.jobs is not None else None
    await write_store.import_jobs(found, target.db, jobs, target.loaded().config.timezone, report, now=target.now)
    if found.tasks:
        await write_store.import_tasks(found, await target.board(), report, now=target.now, is_dry=is_dry)
    await asyncio.to_thread(write_files.import_files, found, target.home, report, is_dry=is_dry)
    report.leave_out(found.left_out)


async def _sessions(
    found: FoundHome,
    target: ImportTarget,
    report: ImportReport,
    reader: ThreadPoolExecutor,
    on_progress: Callable[[int], Awaitable[None]],
) -> None:
    batch = "" if target.is_dry else new_id(BATCH)
    loop = asyncio.get_running_loop()
    waiting: Iterator[ImportedSession] = found.sessions()
    number = 0
    try:
        while (session := await loop.run_in_executor(reader, next, waiting, None)) is not None:
            await write_store.import_session(session, target.db, report, batch=batch)
            number += 1
            if number % TOLD_EVERY == 0:
                await on_progress(number)
    finally:
        close = getattr(waiting, "close", None)
        if close is not None:
            await loop.run_in_executor(reader, close)
    if report.counts["sessions"][Fate.CAME]:
        report.batch = batch
