"""Save a file before each change, so that the change can be undone.

The order is what makes it safe: first the former bytes (a blob named by its hash), then the row that says where they
belong, then the file itself. A crash at any point leaves a file that is whole, and a row from which it comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from collections.abc import Callable
from pathlib import Path

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.workspace.files import File, NoFileError, place_of, refuse_unwritable
from hermes.config.agent_settings import CheckpointsConfig
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.core.i18n.catalogue import LocalizedText
from hermes.core.i18n.failures import describe_failure
from hermes.core.ports import Clock
from hermes.store import checkpoints as rows
from hermes.store.checkpoints import ABSENT, Checkpoint
from hermes.store.db import Database, Tx
from hermes.store.home import make_private_folder
from hermes.store.private_files import sync_folder, write_private

log = logging.getLogger(__name__)

KEEP_BYTES = 50_000_000
"""A larger file is not changed by our tools, since its copy would push everybody else's out."""

FOLDER = "checkpoints"
UNDO = "rollback"
LISTED = 15
BITE = 200
BITES_PER_SWEEP = 20
BITES_PER_CHANGE = 5
DAY = 86400.0
_LOCKS = 64


@dataclass(frozen=True, slots=True)
class FileChange:
    """What was done to a file. ``before`` None: it was made. ``is_repeat``: a run before a crash had done it."""

    target: Path
    before: File | None
    after: bytes
    is_repeat: bool = False


class ChangedSinceError(ToolError):
    """Somebody else has changed the file after the change that is to be taken back."""


def hash_of(data: bytes | None) -> str:
    return ABSENT if data is None else hashlib.sha256(data).hexdigest()


class Blobs:
    """Contents by their hash, each once, readable by the owner of the home alone. Blocking."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        return self._folder / name[:2] / name

    def put(self, data: bytes) -> str:
        """Store the bytes for good (they are on the disk when this returns) and say their name."""
        name = hash_of(data)
        path = self.path(name)
        if not path.exists():
            make_private_folder(path.parent)
            write_private(path, data)
            sync_folder(path.parent)
        return name

    def get(self, name: str) -> bytes | None:
        """Return the bytes; None when they are gone or are not what they were."""
        try:
            data = self.path(name).read_bytes()
        except OSError:
            return None
        return data if hash_of(data) == name else None

    def remove(self, names: list[str]) -> None:
        for name in names:
            try:
                self.path(name).unlink(missing_ok=True)
            except OSError as error:  # it only takes room; the next sweep tries again
                log.warning("Checkpoint copy not removed", extra={"blob": name, "reason": str(error)})

    def left_behind(self, before: float) -> list[str]:
        """Names of those that were last written before this time: what nothing needs may have been left by a crash."""
        found = []
        for file in self._folder.glob("??/*"):
            with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                if len(file.name) == 64 and file.stat(follow_symlinks=False).st_mtime < before:
                    found.append(file.name)
        return found


class Checkpoints:
    """Changes files of a workspace so that each change can be taken back, and takes them back."""

    def __init__(self, db: Database, clock: Clock, home: Path, limits: Callable[[], CheckpointsConfig]) -> None:
        self._db = db
        self._clock = clock
        self._blobs = Blobs(home / FOLDER)
        self._limits = limits
        # One change of a file at a time. So few locks for all paths: two that share one only wait a little.
        self._locks = tuple(asyncio.Lock() for _ in range(_LOCKS))
        # A blob is not thrown away between the look that found it and the row that needs it.
        self._storing = asyncio.Lock()
        self._swept_at: float | None = None

    # Changing

    async def change(
        self, ctx: ToolContext, tool: str, path: str, make: Callable[[File | None], bytes], *, repeats: bool = False
    ) -> FileChange:
        """Replace a file by what ``make`` makes of it, or make it. The former content is kept first.

        ``make`` runs in a thread; a ToolError from it leaves everything as it is. With ``repeats``, a call that has
        changed this file already, before a crash, and finds its own work is not made again.
        """
        target = await asyncio.to_thread(ctx.inside, path)
        refuse_unwritable(path, target)
        async with self._lock_of(target):
            before = await asyncio.to_thread(former, ctx, path)
            found = hash_of(before.data if before else None)
            if repeats and await self._has_done(ctx, str(target), found):
                return FileChange(target, before, before.data if before else b"", is_repeat=True)
            data = await asyncio.to_thread(make, before)
            if before is not None and data == before.data:
                return FileChange(target, before, data)
            row = self._row(ctx, tool, target, before, after=hash_of(data))
            mode, owner = (before.mode, before.owner) if before else (None, None)
            await self._carry_out(row, before, lambda: _write(ctx, path, data, row.id, mode, owner))
            return FileChange(target, before, data)

    async def keep(self, ctx: ToolContext, path: str, *, tool: str, after: bytes | None = None) -> str:
        """Keep a file as it is, for a tool that changes it by itself right after. Returns the name for ``changed``.

        Without ``after``, call ``changed`` when it is done: until then only a forced rollback takes it back.
        """
        target = await asyncio.to_thread(ctx.inside, path)
        refuse_unwritable(path, target)
        before = await asyncio.to_thread(former, ctx, path)
        row = self._row(ctx, tool, target, before, after="" if after is None else hash_of(after))
        return (await self._keep(row, before)).id

    async def changed(self, ctx: ToolContext, path: str, checkpoint_id: str) -> None:
        """Note what a change that was announced with ``keep`` has left."""
        now = await asyncio.to_thread(former, ctx, path)
        await self._db.write(rows.note_after, checkpoint_id, after=hash_of(now.data if now else None))

    def _lock_of(self, target: Path) -> asyncio.Lock:
        return self._locks[hash(target) % _LOCKS]

    def _row(
        self, ctx: ToolContext, tool: str, target: Path, before: File | None, *, after: str, undoes: str = ""
    ) -> Checkpoint:
        found = hash_of(before.data if before else None)
        # A repeat finds its own row by what it starts from, and never takes the place of an older original.
        name = hashlib.sha256(f"{target}\n{found}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return Checkpoint(
            id=f"{ctx.call_id}:{name}",
            lane=str(ctx.origin),
            number=0,
            session_id=ctx.session_id,
            turn_id=ctx.turn_id,
            call_id=ctx.call_id,
            person_id=ctx.person_id,
            tool=tool,
            path=str(target),
            before=found,
            size=len(before.data) if before else 0,
            mode=before.mode if before else 0,
            after=after,
            undoes=undoes,
            created_at=self._clock.now(),
        )

    async def _has_done(self, ctx: ToolContext, target: str, found: str) -> bool:
        done = await self._db.read(rows.of_call, ctx.call_id)
        return any(row.path == target and row.after == found for row in done)

    async def _keep(self, row: Checkpoint, before: File | None) -> Checkpoint:
        async with self._storing:
            if before is not None:
                try:
                    await asyncio.to_thread(self._blobs.put, before.data)
                except OSError as error:
                    why = error.strerror or describe_failure(error)
                    raise ToolError(
                        f"Nothing was changed, since what {Path(row.path).name!r} holds could not be kept first: {why}."
                    ) from error
            limits = self._limits()
            kept, unneeded = await self._db.write(
                _keep_within,
                row,
                max_bytes=limits.person_max_mb * 1_000_000,
                max_rows=limits.person_max_changes,
            )
            if unneeded:
                await asyncio.to_thread(self._blobs.remove, unneeded)
            return kept

    async def _carry_out(self, row: Checkpoint, before: File | None, act: Callable[[], None]) -> Checkpoint:
        kept = await self._keep(row, before)
        try:
            await _to_the_end(act)
        except ToolError:
            await self._db.write(rows.withdraw, kept.id)
            raise
        return kept

    # Taking back

    async def listed(self, lane: str, person_id: str) -> list[Checkpoint]:
        """This person's changes in this chat, the newest first."""
        return await self._db.read(rows.newest, lane, person_id, limit=LISTED)

    async def undo(self, ctx: ToolContext, number: int | None, *, force: bool) -> Checkpoint:
        """Take a change back; without a number, the newest that stands. Returns the change.

        That is a change itself and can be taken back. ``ctx.call_id`` names this undo: repeated after a crash, it
        goes on where it was and takes nothing else back. ToolError says why it cannot be.
        """
        begun = await self._db.read(rows.of_call, ctx.call_id)
        lane = str(ctx.origin)
        if begun:
            wanted = await self._db.read(rows.get, begun[0].undoes)
        elif number is None:
            wanted = await self._db.read(rows.last, lane, ctx.person_id)
        else:
            wanted = await self._db.read(rows.numbered, lane, ctx.person_id, number)
        if wanted is None:
            raise ToolError(LocalizedText(lambda words: words.ROLLBACK_NO_SUCH if number else words.ROLLBACK_NONE_LEFT))
        if wanted.undone_at is not None and not begun:
            taken = wanted.number
            raise ToolError(LocalizedText(lambda words: words.ROLLBACK_ALREADY.format(number=taken)))
        async with self._lock_of(Path(wanted.path)):
            await self._put_back(ctx, wanted, begun[0] if begun else None, force=force)
        return wanted

    async def _put_back(self, ctx: ToolContext, wanted: Checkpoint, begun: Checkpoint | None, *, force: bool) -> None:
        now = await asyncio.to_thread(former, ctx, wanted.path)
        found = hash_of(now.data if now else None)
        data = await self._content(wanted)
        row = begun or self._row(ctx, UNDO, Path(wanted.path), now, after=wanted.before, undoes=wanted.id)

        def act() -> None:
            if data is None:
                with contextlib.suppress(NoFileError), place_of(ctx, wanted.path) as place:
                    place.remove()
            else:
                _write(ctx, wanted.path, data, row.id, wanted.mode, now.owner if now else None)

        if begun is not None:
            if found == begun.before:  # the crash came before the file was touched
                await _to_the_end(act)
            return
        if found not in (wanted.after, wanted.before) and not force:
            raise ChangedSinceError(changed_since(wanted, is_gone=now is None))
        await self._carry_out(row, now, act)

    async def _content(self, wanted: Checkpoint) -> bytes | None:
        """Return what the file held before; None when there was none."""
        if wanted.before == ABSENT:
            return None
        data = await asyncio.to_thread(self._blobs.get, wanted.before)
        if data is None:
            raise ToolError(
                f"What {Path(wanted.path).name!r} held before change {wanted.number} is not kept on this machine."
            )
        return data

    # Retention

    async def sweep(self) -> None:
        """Forget what is too old or too much, a bounded bite at a time; once a day, blobs that nothing needs."""
        limits, now = self._limits(), self._clock.now()
        for _ in range(BITES_PER_SWEEP):
            ids = await self._db.read(rows.older, before=now - limits.days * DAY, limit=BITE)
            if not ids:
                too_much = await self._db.read(rows.total_bytes) - limits.max_mb * 1_000_000
                ids = await self._db.read(rows.oldest_of_heaviest, at_least_bytes=too_much, limit=BITE)
            if not ids:
                break
            async with self._storing:
                await asyncio.to_thread(self._blobs.remove, await self._db.alone(rows.forget, ids))
        if self._swept_at is None or now - self._swept_at > DAY:
            self._swept_at = now
            async with self._storing:
                # The times of files are the machine's, so they are compared with its own clock.
                old = await asyncio.to_thread(self._blobs.left_behind, time.time() - DAY)
                unneeded = await self._db.read(rows.unneeded, old)
                await asyncio.to_thread(self._blobs.remove, unneeded)
            if unneeded:
                log.info("Removed unneeded checkpoint copies", extra={"count": len(unneeded)})


def _keep_within(tx: Tx, row: Checkpoint, *, max_bytes: int, max_rows: int) -> tuple[Checkpoint, list[str]]:
    """Store a change. The oldest changes of its person go when these are too many; returns blobs that nothing needs."""
    kept = rows.keep(tx, row)
    unneeded: list[str] = []
    for _ in range(BITES_PER_CHANGE):  # a blob may be kept by several rows, so one bite may free too little
        surplus = rows.beyond(tx, row.person_id, but=kept.id, max_bytes=max_bytes, max_rows=max_rows, limit=BITE)
        if not surplus:
            break
        unneeded += rows.forget(tx, surplus)
    return kept, unneeded


def former(ctx: ToolContext, path: str) -> File | None:
    """Return a file as it is now, None when there is none. Blocking."""
    try:
        with place_of(ctx, path) as place:
            return place.read(KEEP_BYTES)
    except NoFileError:
        return None


def _write(
    ctx: ToolContext, path: str, data: bytes, token: str, mode: int | None, owner: tuple[int, int] | None
) -> None:
    with place_of(ctx, path, makes_folders=True) as place:
        place.write(data, token=token, mode=mode, owner=owner)


async def _to_the_end(act: Callable[[], None]) -> None:
    """A thread cannot be cancelled: whoever is, waits for it, so that no lock is given up while it still writes."""
    task = asyncio.ensure_future(asyncio.to_thread(act))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled() and task.exception() is not None:
            log.warning("File change failed", extra={"reason": str(task.exception())})
        raise


def changed_since(wanted: Checkpoint, *, is_gone: bool) -> str:
    change = "is gone" if is_gone else "has been changed by somebody else"
    unknown = "what change {number} left is not known" if not wanted.after else "it {what} since change {number}"
    why = unknown.format(what=change, number=wanted.number)
    return (
        f"I left {Path(wanted.path).name!r} as it is: {why}. "
        f"/rollback {wanted.number} force takes the change back all the same; that can be taken back too."
    )
