"""Import sessions of other gateways, and undo an import."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.core.errors import GatewayError
from hermes.core.ports import Clock
from hermes.hosting.control.server import Reply
from hermes.hosting.importers import hermes_agent
from hermes.hosting.importers.hermes_agent import Read
from hermes.store.db import Database, Tx
from hermes.store.ids import new_id
from hermes.store.sessions import imports, rebuild, sessions
from hermes.store.sessions.imports import ImportOutcome
from hermes.store.sqlite import transcript_files

if TYPE_CHECKING:
    from hermes.services.deletion import SessionDeletion

BATCH = "im"
TOLD_EVERY = 20
MAX_TROUBLES = 50


class ImportVerbs:
    def __init__(self, home: Path, db: Database, clock: Clock, deletion: Callable[[], SessionDeletion]) -> None:
        self._home = home
        self._db = db
        self._clock = clock
        self._deletion = deletion

    async def bring_in(self, args: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
        """``{path, dry_run?}``: read the sessions there into the store. What was brought in before is known again.

        Nothing is written where they are. How far it is is told on the way.
        """
        source = await asyncio.to_thread(self._find, Path(str(args.get("path") or "")))
        batch = "" if args.get("dry_run") else new_id(BATCH)
        counts: Counter[str] = Counter()
        troubles = list(source.troubles)
        for number, file in enumerate(source.files, 1):
            read = await self._read(file, source)
            outcome, lines = await self._store(read, batch)
            counts[outcome] += 1
            counts["lines"] += lines
            troubles += read.troubles
            if number % TOLD_EVERY == 0 or number == len(source.files):
                await reply.event({"done": number, "of": len(source.files)})
        return {
            "batch": batch if counts[ImportOutcome.NEW] else "",
            "transcripts": len(source.files),
            **{name: counts[name] for name in (*ImportOutcome, "empty", "lines")},
            "troubles": troubles[:MAX_TROUBLES],
            "more_troubles": max(0, len(troubles) - MAX_TROUBLES),
        }

    def _find(self, path: Path) -> hermes_agent.OldTranscripts:
        if path.resolve() in (self._home.resolve(), (self._home / "sessions").resolve()):
            raise GatewayError("That is this home itself. To put back what the store has lost: hermes sessions rebuild")
        return hermes_agent.find(path)

    async def _read(self, file: Path, source: hermes_agent.OldTranscripts) -> Read:
        try:
            return await asyncio.to_thread(hermes_agent.read, file, source)
        except OSError as error:
            return Read(file, troubles=[f"{file.name}: {error.strerror or error}; left out."])

    async def _store(self, read: Read, batch: str) -> tuple[str, int]:
        if read.our_id:
            return await self._store_ours(read, batch)
        session = read.session
        if session is None:
            return "empty", 0
        if not batch:
            known = await self._db.read(sessions.get, session.id)
            more = len(session.lines) - (known.seq if known is not None else 0)
            return (
                (ImportOutcome.SAME, 0) if more <= 0 else (ImportOutcome.LONGER if known else ImportOutcome.NEW, more)
            )
        return await self._db.write(imports.bring_in, session, batch=batch)

    async def _store_ours(self, read: Read, batch: str) -> tuple[str, int]:
        """A transcript of another home of ours keeps its id, its revisions and what was taken back in it."""
        found = await asyncio.to_thread(transcript_files.read, read.path)
        found.session_id = read.our_id  # an exported one may have another name
        if not found.lines or not found.session.get("key"):
            return "empty", 0
        if not batch:
            known = await self._db.read(sessions.get, found.session_id)
            return (ImportOutcome.NEW, len(found.lines)) if known is None else (ImportOutcome.SAME, 0)
        return await self._db.write(_put_back, found, batch)

    async def remove(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{batch}``: delete what one import brought, but for what was gone on with since."""
        batch = str(args.get("batch") or "")
        gone, kept = await self._db.write(imports.remove, batch, now=self._clock.now())
        if not gone and not kept:
            raise GatewayError(f"There is no import {batch!r}, or it was undone already.")
        await self._deletion().erase(gone)
        return {"batch": batch, "deleted": gone, "kept": kept}


def _put_back(tx: Tx, found: transcript_files.Rebuilt, batch: str) -> tuple[str, int]:
    is_new = sessions.get(tx, found.session_id) is None
    if not is_new and imports.is_used(tx, found.session_id):
        return ImportOutcome.OURS, 0
    added = rebuild.put_back(tx, found.session_id, found.session, found.lines)
    if is_new:
        imports.note_batch(tx, found.session_id, batch)
    return (ImportOutcome.NEW if is_new else ImportOutcome.LONGER if added else ImportOutcome.SAME), added
