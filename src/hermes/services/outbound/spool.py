"""Keep outgoing files in the home until they are sent: nobody changes them there."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from hermes.core.ports import Clock
from hermes.store import outbox, outbox_files
from hermes.store.db import Database
from hermes.store.home import make_private_folder
from hermes.store.outbox import OutboxState

FOLDER = "spool"
KEPT_DEAD_SECONDS = 86400.0  # so long a dead letter can be sent again by hand, with its file
KEPT_UNKNOWN_SECONDS = 3600.0  # a copy whose row was never committed
_STEP = 1 << 20


class TooBigError(Exception):
    """It has more bytes than were allowed; nothing is left of the copy."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class Spool:
    """A file is named after the outbox row it goes with and its place in it: so its end follows from the row's."""

    def __init__(self, home: Path, db: Database, clock: Clock) -> None:
        self._folder = home / FOLDER
        self._db = db
        self._clock = clock

    def place(self, row_id: str, position: int = 0) -> Path:
        return self._folder / f"{row_id}+{position}"

    def take_in(self, source: BinaryIO, row_id: str, position: int, most: int) -> Path:
        """A copy that is on the disk when this returns. Blocking: call it in a thread. OSError or TooBigError."""
        make_private_folder(self._folder)
        place = self.place(row_id, position)
        half = place.with_name(f"{place.name}.half")
        try:
            with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as copy:
                size = 0
                while piece := source.read(_STEP):
                    size += len(piece)
                    if size > most:
                        raise TooBigError(max(size, os.fstat(source.fileno()).st_size))
                    copy.write(piece)
                copy.flush()
                os.fsync(copy.fileno())
            os.replace(half, place)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                half.unlink()
            raise
        return place

    def put(self, data: bytes, row_id: str) -> Path:
        """The same for bytes that we have."""
        return self.take_in(io.BytesIO(data), row_id, 0, len(data))

    async def sweep(self) -> None:
        """Remove what has been sent, has been dead for a day, or belongs to no row."""
        names = await asyncio.to_thread(self._names)
        rows = await self._db.read(outbox.states, list(names.values())) if names else {}
        now = self._clock.now()
        gone = [name for name, row_id in names.items() if _is_over(rows.get(row_id), now)]
        await asyncio.to_thread(self._remove, gone, lambda name: names[name] in rows)
        await self._db.alone(outbox_files.sweep)

    def _names(self) -> dict[str, str]:
        try:
            return {entry.name: entry.name.partition("+")[0] for entry in os.scandir(self._folder)}
        except FileNotFoundError:
            return {}

    def _remove(self, names: list[str], has_row: Callable[[str], bool]) -> None:
        for name in names:
            path = self._folder / name
            with contextlib.suppress(FileNotFoundError):  # somebody else tidied
                if has_row(name) or time.time() - path.stat().st_mtime > KEPT_UNKNOWN_SECONDS:
                    path.unlink()


def _is_over(row: tuple[str, float] | None, now: float) -> bool:
    if row is None:
        return True
    state, settled_at = row
    return state == OutboxState.SENT or (state == OutboxState.DEAD and now - settled_at > KEPT_DEAD_SECONDS)
