"""Delete sessions with all their words: in the tables, in files, and in the free pages of the database files.

Ids and states stay, so that ``hermes trace`` still tells what became of a message. What is not touched: backups and
damaged files that were set aside (they go with their age), memory, the board, jobs, other files of the workspace, and
forks.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from hermes.core.errors import GatewayError
from hermes.core.keys import SessionKey
from hermes.core.ports import Clock
from hermes.store.api import responses
from hermes.store.api.api_keys import DEFAULT_NAME, sender_id_of
from hermes.store.db import Database, StoreLimits
from hermes.store.private_files import write_private
from hermes.store.retention import deletion
from hermes.store.retention.deletion import DeletedSession, Traces
from hermes.store.retention.pruning import forget_lane
from hermes.store.sqlite import search_index
from hermes.store.sqlite.transcript_files import Journal

log = logging.getLogger(__name__)

COMPACTED_BYTES = 256 * 1024 * 1024
"""A larger database file is not written anew at once, since messages wait meanwhile, but at night."""
NIGHT_HOUR = 4
PAUSE_FACTOR = 10.0
"""Writing a file anew is not repeated before ten times as long has passed as it took."""
_SAYS = re.compile(rb"says=(\"(?:[^\"\\]|\\.)*\"|\S+)|\"says\": ?\"((?:[^\"\\]|\\.)*)\"")


class SessionDeletion:
    """``open_stores`` give the store of responses where a server has it open; otherwise it is opened here."""

    def __init__(
        self,
        db: Database,
        home: Path,
        clock: Clock,
        open_stores: Sequence[Callable[[], Awaitable[Database]]] = (),
    ) -> None:
        self._db = db
        self._home = home
        self._clock = clock
        self._open_stores = open_stores
        self._one_at_a_time = asyncio.Lock()
        self._compacted_at = -1e9
        self._took = 0.0

    async def erase(self, session_ids: Sequence[str]) -> bool:
        """Remove the words of sessions that ``store.retention.deletion.delete`` has just removed.

        Returns whether nothing is left to be done. What is left (something of it is under way, or the database file is
        large) is done by ``sweep``. Repeating it does no harm.
        """
        async with self._one_at_a_time:
            await self._blank_all(session_ids)
            return await self._compact(is_night=False)

    async def sweep(self, *, is_night: bool) -> None:
        """Go on with what could not be completed when it was asked for. Called now and then."""
        async with self._one_at_a_time:
            waiting = await self._db.read(deletion.unfinished)
            if not waiting and not await self._db.read(deletion.pictures_to_check):
                return
            await self._blank_all([gone.id for gone in waiting if not gone.is_blank])
            is_late = any(self._clock.now() - gone.deleted_at > 86400.0 for gone in waiting)
            await self._compact(is_night=is_night or is_late)

    async def _blank_all(self, session_ids: Sequence[str]) -> None:
        """Blank sessions, and those of their subtasks, which are deleted with them."""
        waiting, done = list(session_ids), set[str]()
        commands = await self._find_commands(session_ids)
        while waiting:
            session_id = waiting.pop()
            gone = await self._db.read(deletion.get, session_id)
            if gone is None or session_id in done:
                continue
            done.add(session_id)
            traces = await self._blank(gone, commands.get(session_id, ()))
            for child in await self._db.read(deletion.children_of, traces.children):
                await self._db.alone(deletion.delete, child, now=self._clock.now())
                waiting.append(child)
            await self._forget_responses(gone)
            await asyncio.to_thread(remove_files, self._home, gone, traces)
        if done:
            await self._forget_index(sorted(done))
        for name in await self._db.read(deletion.pictures_to_check):
            looked_at = self._clock.now() - 60.0
            is_named = await self._db.read(deletion.is_named, name)
            await self._db.alone(deletion.drop_picture, name, is_named_before=is_named, looked_at=looked_at)

    async def _find_commands(self, session_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Find the commands given in these chats, in one pass over the messages of that time."""
        found = [await self._db.read(deletion.get, session_id) for session_id in session_ids]
        chats = [gone for gone in found if gone is not None and deletion.has_commands(gone.key)]
        commands: dict[str, list[str]] = {}
        place: tuple[float, str] | None = (min(gone.since for gone in chats) - 60.0, "") if chats else None
        until = max((gone.until for gone in chats), default=0.0)
        while place is not None:
            rows, place = await self._db.read(deletion.commands_in, chats, after=place, until=until)
            for session_id, event_id in rows:
                commands.setdefault(session_id, []).append(event_id)
        return commands

    async def _blank(self, gone: DeletedSession, ids: Sequence[str]) -> Traces:
        traces, is_more = Traces(), True
        while is_more:
            found, is_more = await self._db.alone(deletion.blank_turns, gone.id)
            traces.add(found)
        for start in range(0, len(ids), deletion.BITE_TURNS):
            bite = ids[start : start + deletion.BITE_TURNS]
            traces.add(await self._db.alone(deletion.blank_commands, gone.id, bite))
        traces.add(await self._db.alone(deletion.blank_rest, gone.id))
        await self._db.alone(forget_lane, gone.key)
        await self._db.alone(deletion.finish, gone.id)
        return traces

    async def _forget_responses(self, gone: DeletedSession) -> None:
        if self._open_stores:
            await self._drop_responses(await self._open_stores[0](), gone)
        elif self._db.dialect.name != "sqlite" or await asyncio.to_thread((self._home / responses.FILE).exists):
            async with responses.open_store(self._db, self._home, limits=StoreLimits(readers=1)) as store:
                await self._drop_responses(store, gone)

    async def _drop_responses(self, store: Database, gone: DeletedSession) -> None:
        dropped = [await store.alone(responses.delete_session, gone.id)]
        if chat := deletion.chat_of(gone.key):  # a request of the API names its session by the chat of its key
            asked_by = SessionKey.parse(gone.key).person or sender_id_of(DEFAULT_NAME)
            dropped.append(await store.alone(responses.delete_session, chat, asked_by))
        if any(dropped) and store is not self._db:
            await store.compact()

    async def _forget_index(self, session_ids: Sequence[str]) -> None:
        def work() -> None:
            if not (self._home / search_index.FILE).exists():
                return
            with contextlib.closing(search_index.open_index(self._home)) as db:
                search_index.erase(db, session_ids)

        try:
            await asyncio.to_thread(work)
        except (GatewayError, sqlite3.Error, OSError) as error:
            log.warning("Search index not cleaned", extra={"reason": str(error)})

    async def _compact(self, *, is_night: bool) -> bool:
        """Write the database file anew, unless that would hold up messages for too long; then a sweep does it."""
        until = self._clock.now()
        is_complete = all(gone.is_blank for gone in await self._db.read(deletion.unfinished))
        if self._db.dialect.name == "sqlite":
            size = await asyncio.to_thread(_size, self._home / "state.db")
            if size > COMPACTED_BYTES and not is_night:
                return False
            since = self._clock.monotonic() - self._compacted_at
            if since < self._took * PAUSE_FACTOR:
                await asyncio.sleep(min(self._took * PAUSE_FACTOR - since, 30.0))
            began = self._clock.monotonic()
            await self._db.compact()
            self._compacted_at = self._clock.monotonic()
            self._took = self._compacted_at - began
            log.info("Store compacted", extra={"bytes": size, "seconds": self._took})
        await self._db.alone(deletion.forget_blank, deleted_until=until)
        return is_complete


# Files


def remove_files(home: Path, gone: DeletedSession, traces: Traces) -> None:
    """Remove the files that hold words of a session, and its words from logs and from what was typed. Blocking."""
    from hermes.agent.workspace import checkpoints  # neither is needed before something is deleted
    from hermes.services.turns import attachments

    checkpoints.Blobs(home / checkpoints.FOLDER).remove(traces.blobs)
    if transcript := Journal(home / "sessions").path(gone.id):
        _unlink(transcript)
    for name in traces.outputs:
        _unlink(home / "outputs" / Path(name).name)
    for name in traces.local_files:
        _unlink(home / "pictures" / Path(name).name)
    for turn_id in traces.turns:
        for folder in (home / "workspaces").glob(f"*/{attachments.FOLDER}/{turn_id}"):
            shutil.rmtree(folder, ignore_errors=True)
    deliveries = set(traces.deliveries)
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(home / "spool"):
            if entry.name.partition("+")[0] in deliveries:
                _unlink(Path(entry.path))
    try:
        forget_typed(home / "history", traces.typed)
        for log_file in (home / "logs").glob("*.log*"):
            blank_log(log_file, gone)
    except OSError as error:
        log.warning("Words not removed", extra={"session": gone.id, "reason": str(error)})


def forget_typed(path: Path, texts: Sequence[str]) -> None:
    """Take texts out of the history of a terminal: blocks of lines that begin with ``+``, after one with ``#``."""
    if not texts or not path.exists():
        return
    unwanted = {text.strip() for text in texts}
    kept: list[str] = []
    for block in re.split(r"(?m)^(?=# )", path.read_text("utf-8", "replace")):
        lines = [line[1:] for line in block.splitlines() if line.startswith("+")]
        if not lines or "\n".join(lines).strip() not in unwanted:
            kept.append(block)
    write_private(path, "".join(kept))


def blank_log(path: Path, gone: DeletedSession) -> None:
    """Overwrite what a session said in a log of level DEBUG, in its place: the file may be in use."""
    name = deletion.chat_of(gone.key) or gone.id
    with path.open("r+b") as file:
        at = 0
        for line in file.readlines():
            if gone.id.encode() in line or name.encode() in line:
                for match in _SAYS.finditer(line):
                    which = 2 if match[2] is not None else 1
                    start, end = match.span(which)
                    os.pwrite(file.fileno(), b"x" * (end - start), at + start)
            at += len(line)


def _unlink(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("File not removed", extra={"path": str(path), "reason": str(error)})


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
