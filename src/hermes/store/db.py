"""Run store functions in transactions, off the event loop, on either database.

A store function is plain and synchronous, ``def accept(tx, …)``. ``write`` runs it in a transaction and returns
its result after COMMIT; ``read`` runs it off the writer; ``alone`` is a write that shares its transaction with
nobody, and ``prune`` one of these whose loss in a power cut does no harm. SQL is written once, with ``:name``
parameters, in the subset both databases speak.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from hermes.core.dataclasses import dataclass

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where the two databases must differ, visible in the statement that differs."""

    name: str
    skip_locked: str
    join: str
    """The function that joins the texts of a group of rows."""
    now: str
    """The database's own clock, in seconds: several nodes have no other clock in common."""
    find: str
    """The function that says where a text begins in another, from 1 on; 0 if nowhere."""


SQLITE = Dialect("sqlite", "", "group_concat", "((julianday('now') - 2440587.5) * 86400.0)", "instr")
POSTGRES = Dialect(
    "postgres",
    "FOR UPDATE SKIP LOCKED",
    "string_agg",
    "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS FLOAT8)",
    "strpos",
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something for the owner.

    ``kind``: damage, replaced, journal, drift, locked, full, down, back, notifications or old.
    """

    kind: str
    text: str


PASSING = frozenset({"locked", "full", "down"})
"""Troubles that last until one of the kind ``back`` is told."""

REPAIRED = frozenset({"damage", "replaced", "drift"})
"""Troubles that are over when they are told."""

OnTrouble = Callable[[Trouble], None]


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """How long and how wide. Tests shorten the times."""

    busy_seconds: float = 5.0
    """How long a write waits for another process's lock before it says that the store is down."""
    heal_wait_seconds: float = 10.0
    """How long a write waits for a recovery that is under way."""
    checked_at_open_bytes: int = 8 * 1024 * 1024
    """SQLite files up to this size are checked whole at every start, which takes milliseconds."""
    group: int = 128
    readers: int = 2
    connections: int = 4
    """PostgreSQL: threads, each with one connection."""
    close_seconds: float = 10.0
    """How long closing waits for a recovery or a long statement; either may be cut off without harm."""
    statement_seconds: float = 30.0
    own_seconds: float = 3.0
    """PostgreSQL: how long to wait for a gateway of an older Hermes that may be dying."""
    connect_seconds: float = 5.0


class Cursor(Protocol):
    """What the cursors of sqlite3 and psycopg have in common."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def close(self) -> None: ...


class Tx:
    """One transaction, as a store function sees it. Parameters are written ``:name`` and given by keyword."""

    __slots__ = ("_execute", "dialect")

    def __init__(self, dialect: Dialect, execute: Callable[[str, dict[str, Any]], Cursor]) -> None:
        self.dialect = dialect
        self._execute = execute

    def one(self, sql: str, row: Callable[..., T], **params: object) -> T | None:
        """Return ``row(*columns)`` of the first row, or None."""
        found = self._execute(sql, params).fetchone()
        return None if found is None else row(*found)

    def all(self, sql: str, row: Callable[..., T], **params: object) -> list[T]:
        return [row(*found) for found in self._execute(sql, params).fetchall()]

    def value(self, sql: str, **params: object) -> Any:
        """Return the first column of the first row, or None."""
        found = self._execute(sql, params).fetchone()
        return None if found is None else found[0]

    def run(self, sql: str, **params: object) -> int:
        """Execute and say how many rows changed. A statement with RETURNING belongs to ``one`` or ``all``."""
        return self._execute(sql, params).rowcount


class Job(Generic[T]):
    """One call on its way to a database thread and back. ``future`` is touched on the event loop only."""

    __slots__ = ("args", "error", "fn", "future", "is_deserted", "is_settled", "kind", "kwargs", "result")

    def __init__(
        self,
        kind: str,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        future: asyncio.Future[Any],
    ) -> None:
        self.kind = kind
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_settled = False
        self.is_deserted = False

    def run(self, tx: Tx) -> None:
        self.result = self.fn(tx, *self.args, **self.kwargs)

    def fail(self, error: BaseException) -> None:
        # A future cannot carry StopIteration; refusing it later would strand the rest of the group.
        self.error = RuntimeError("StopIteration left a store function") if isinstance(error, StopIteration) else error


def release(jobs: Iterable[Job[Any]]) -> None:
    """Hand the outcomes to their callers. Runs on the event loop, once for a whole group."""
    for job in jobs:
        job.is_settled = True
        future = job.future
        if future.done():
            continue
        if job.is_deserted:
            future.set_result(None)
        elif job.error is not None:
            future.set_exception(job.error)
        else:
            future.set_result(job.result)


class Database(ABC):
    """Runs store functions. Built by ``open_database``; closed by whoever opened it."""

    dialect: Dialect
    schema_version: int = 0
    """The newest migration that this program knows."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_trouble: OnTrouble | None) -> None:
        self._loop = loop
        self._on_trouble = on_trouble
        self.beside: dict[str, Database] = {}
        """The stores that are open beside this one, by the names of their files."""

    @abstractmethod
    def _submit(self, job: Job[Any]) -> None:
        """Queue a job; never blocks."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what is queued, then close every connection. A second call does nothing."""

    async def write(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``fn(tx, …)`` in a transaction and return its result after COMMIT.

        Raises what ``fn`` raised (its writes are then undone), or StoreIsDownError. A cancelled caller still
        waits for the outcome, so that nothing is committed behind its back.
        """
        return await self._finish(Job("write", fn, args, kwargs, self._loop.create_future()))

    async def alone(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """A write that never rides in a group: pruning and other long ones."""
        return await self._finish(Job("alone", fn, args, kwargs, self._loop.create_future()))

    async def prune(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """An ``alone`` that nobody needs on the disk at once: after a power cut the same rows are pruned again."""
        return await self._finish(Job("prune", fn, args, kwargs, self._loop.create_future()))

    async def read(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``fn(tx, …)`` over one consistent snapshot. It may not write."""
        job: Job[T] = Job("read", fn, args, kwargs, self._loop.create_future())
        self._submit(job)
        return await job.future  # type: ignore[no-any-return] # of T: ``fn`` made it

    async def claim(self, fn: Callable[..., T], /, *args: Any, if_gone: Callable[[Tx, T], object], **kwargs: Any) -> T:
        """Write; if the caller is cancelled meanwhile, ``if_gone(tx, result)`` gives back what was claimed."""
        job: Job[T] = Job("write", fn, args, kwargs, self._loop.create_future())
        try:
            return await self._finish(job)
        except asyncio.CancelledError:
            if job.error is None:
                undo: Job[object] = Job("write", if_gone, (job.result,), {}, self._loop.create_future())
                self._submit(undo)
                await self._settled(undo)
                if undo.error is not None:
                    log.warning("Claim not given back", extra={"reason": str(undo.error)})
            raise

    @abstractmethod
    async def compact(self) -> None:
        """Write the database anew without its free space, where deleted rows still stand. Others wait meanwhile."""

    @abstractmethod
    def free_caches(self) -> None:
        """Give back the memory that connections keep only to be quick. Safe from any thread; waits for nobody."""

    async def _finish(self, job: Job[T]) -> T:
        """Submit a write and wait for it; a cancelled caller still waits for the outcome."""
        self._submit(job)
        try:
            return await job.future  # type: ignore[no-any-return] # of T: ``fn`` made it
        except asyncio.CancelledError:
            await self._settled(job)
            raise

    async def _settled(self, job: Job[Any]) -> None:
        """Wait until the job's outcome is known, however often the caller is cancelled meanwhile."""
        while not job.is_settled:
            job.is_deserted = True
            job.future = self._loop.create_future()
            with contextlib.suppress(asyncio.CancelledError):  # the first cancellation travels on afterwards
                await job.future

    async def _join(self, threads: Sequence[threading.Thread], seconds: float) -> None:
        """Wait for database threads to end; one that does not is left behind, and says so."""
        deadline = time.monotonic() + seconds
        for thread in threads:
            await asyncio.to_thread(thread.join, max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                log.warning("Store thread left behind", extra={"who": thread.name, "seconds": seconds})

    def _release_later(self, jobs: Sequence[Job[Any]]) -> None:
        """Called by a database thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            self._loop.call_soon_threadsafe(release, jobs)

    def _tell(self, trouble: Trouble) -> None:
        """Called by a database thread: log it, and pass it on to whoever tells the owner."""
        log.warning("Store trouble", extra={"kind": trouble.kind, "reason": trouble.text})
        if self._on_trouble is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the log has it
                self._loop.call_soon_threadsafe(self._on_trouble, trouble)


class Pause:
    """A test aid for the chaos suite: stand still at one point so that a kill can hit it.

    ``HERMES_TEST_PAUSE=before_commit:SECONDS`` or ``after_commit:SECONDS``; with a third part, a path, only
    while that file exists. Several are separated by commas. Read once, when the database is opened.
    """

    def __init__(self, text: str) -> None:
        self._points: list[tuple[str, float, str]] = []
        for part in text.split(","):
            point, _, rest = part.partition(":")
            seconds, _, path = rest.partition(":")
            self._points.append((point, float(seconds) if seconds else 0.0, path))

    @classmethod
    def from_environment(cls) -> Pause | None:
        text = os.environ.get("HERMES_TEST_PAUSE", "")
        return cls(text) if text else None

    def at(self, point: str) -> None:
        for wanted, seconds, path in self._points:
            until = time.monotonic() + seconds
            while point == wanted and time.monotonic() < until and (not path or os.path.exists(path)):
                time.sleep(0.005)
