"""Keep outgoing files in the home until they are sent: nobody changes them there.

On PostgreSQL a copy goes into the database as well, before the outbox row is stored: the node that sends the row may be
another one, with a home of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import logging
import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hermes.core.messages import Attachment, OutboundMessage
from hermes.core.ports import Clock
from hermes.store import outbox, outbox_files
from hermes.store.db import Database
from hermes.store.home import make_private_folder
from hermes.store.ids import time_of
from hermes.store.outbox import OutboxState

if TYPE_CHECKING:
    from hermes.store.cluster.files import StoredFile

log = logging.getLogger(__name__)

FOLDER = "spool"
KEPT_DEAD_SECONDS = 86400.0  # so long a dead letter can be sent again by hand, with its file
KEPT_UNKNOWN_SECONDS = 3600.0  # a copy whose row was never committed
_STEP = 1 << 20
_NAME = re.compile(r"[\w.-]+\+\d{1,4}")


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
            with _new_private(half) as copy:
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

    # Other nodes

    @property
    def is_shared(self) -> bool:
        """Whether files are stored for other nodes too."""
        return self._db.dialect.name == "postgres"

    async def share(self, attachments: Iterable[Attachment]) -> None:
        """Store the files of a message for whichever node sends it. With SQLite there is one node: nothing to do."""
        if not self.is_shared:
            return
        for attachment in attachments:
            await self._share(Path(attachment.path), attachment.name)

    def limit(self, most: int) -> int:
        """How large a file may be whose platform takes ``most`` bytes."""
        if not self.is_shared:
            return most
        from hermes.store.cluster import files  # only in a cluster

        return min(most, files.MAX_FILE_BYTES)

    async def _share(self, path: Path, name: str) -> None:
        from hermes.store.cluster import files

        size = (await asyncio.to_thread(path.stat)).st_size
        if await self._db.read(files.used_bytes) + size > files.MAX_ALL_BYTES:
            # This node can still send it; another would say that it cannot be read.
            log.warning("File not shared", extra={"file": path.name, "reason": "too many files wait to be sent"})
            return
        whole, number = hashlib.sha256(), 0
        with await asyncio.to_thread(path.open, "rb") as file:
            while piece := await asyncio.to_thread(file.read, files.CHUNK_BYTES):
                whole.update(piece)
                await self._db.alone(files.put_chunk, path.name, number, piece)
                number += 1
        await self._db.alone(files.complete, files.StoredFile(path.name, name, size, whole.hexdigest(), 0.0), number)

    async def bring(self, message: OutboundMessage) -> OutboundMessage:
        """Have the files of a message in this node's own spool; the message with their paths.

        A file that no node stored keeps its path: the adapter then says that it cannot be read.
        """
        if message.attachment is None:
            return message
        brought = [await self._bring(attachment) for attachment in (message.attachment, *message.album)]
        if brought == [message.attachment, *message.album]:
            return message
        return replace(message, attachment=brought[0], album=tuple(brought[1:]))

    async def _bring(self, attachment: Attachment) -> Attachment:
        name = os.path.basename(attachment.path)
        if not _NAME.fullmatch(name) or await asyncio.to_thread(os.path.exists, attachment.path):
            return attachment
        from hermes.store.cluster import files

        place = self._folder / name
        if not await asyncio.to_thread(place.exists):
            stored = await self._db.read(files.get, name)
            if stored is None or not await self._fetch(stored, place):
                return attachment
        return replace(attachment, path=str(place))

    async def _fetch(self, stored: StoredFile, place: Path) -> bool:
        """Write a stored file into the spool; False for one that is not whole."""
        from hermes.store.cluster import files

        await asyncio.to_thread(make_private_folder, self._folder)
        half = place.with_name(f"{place.name}.half")
        whole, number = hashlib.sha256(), 0
        try:
            with await asyncio.to_thread(_new_private, half) as file:
                while (piece := await self._db.read(files.chunk, stored.id, number)) is not None:
                    whole.update(piece)
                    await asyncio.to_thread(file.write, piece)
                    number += 1
            if whole.hexdigest() != stored.sha256:
                log.warning("Stored file is damaged", extra={"file": stored.id})
                return False
            await asyncio.to_thread(os.replace, half, place)
        finally:
            with contextlib.suppress(FileNotFoundError):
                half.unlink()
        return True

    async def sweep(self) -> None:
        """Remove what has been sent, has been dead for a day, or belongs to no row."""
        names = await asyncio.to_thread(self._names)
        rows = await self._db.read(outbox.states, list(names.values())) if names else {}
        now = self._clock.now()
        gone = [name for name, row_id in names.items() if _is_over(rows.get(row_id), now)]
        await asyncio.to_thread(self._remove, gone, lambda name: names[name] in rows)
        if self.is_shared:
            await self._sweep_shared(now)
        await self._db.alone(outbox_files.sweep)

    async def _sweep_shared(self, now: float) -> None:
        from hermes.store.cluster import files

        names = {name: name.partition("+")[0] for name in await self._db.read(files.ids)}
        rows = await self._db.read(outbox.states, list(names.values())) if names else {}
        for name, row_id in names.items():
            # Without a row it was never committed, or is pruned.
            if _is_over(rows[row_id], now) if row_id in rows else _is_old(row_id, now):
                await self._db.alone(files.remove, name)

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


def _is_old(row_id: str, now: float) -> bool:
    made_at = time_of(row_id)
    return made_at is None or now - made_at > KEPT_UNKNOWN_SECONDS


def _new_private(path: Path) -> BinaryIO:
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb")


def _is_over(row: tuple[str, float] | None, now: float) -> bool:
    if row is None:
        return True
    state, settled_at = row
    return state == OutboxState.SENT or (state == OutboxState.DEAD and now - settled_at > KEPT_DEAD_SECONDS)
