"""Search a person's own earlier sessions."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError, StoreIsDownError
from hermes.core.messages import Role
from hermes.core.ports import Clock
from hermes.store import codec
from hermes.store.db import Database, Tx
from hermes.store.sessions import sessions, transcripts
from hermes.store.sessions.sessions import Session
from hermes.store.sqlite import search_index
from hermes.store.sqlite.search_index import IndexedLine, IndexHit

log = logging.getLogger(__name__)

T = TypeVar("T")

KEEP_UP_SECONDS = 60.0
FIRST_SECONDS = 8.0
"""How long a search waits for an index that is behind; what is not in it yet is told."""
BITE_SESSIONS = 100
BITE_LINES = 500
BITE_KNOWN = 500
OVERLAP_SECONDS = 5.0
"""A session whose last use was written late may be older than the mark."""
PAGE = 50
MAX_HITS = 500
MAX_TEXT_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class SessionHit:
    session: Session
    hit: IndexHit


@dataclass(frozen=True, slots=True)
class SessionSearchResult:
    found: Sequence[SessionHit]
    is_complete: bool


class SessionSearch:
    """Searches the transcripts of the store through an index beside it, which follows by itself."""

    def __init__(self, db: Database, home: Path, clock: Clock) -> None:
        self._db = db
        self._home = home
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()

    async def search(self, query: str, *, person_id: str, session_id: str, count: int) -> SessionSearchResult:
        """Return the best matches among what belongs to this person alone, and in the session in which is asked."""
        deadline = self._clock.monotonic() + FIRST_SECONDS
        is_complete = await self._catch_up(deadline)
        found: list[SessionHit] = []
        for after in range(0, MAX_HITS, PAGE):
            hits = await self._run(search_index.find, query, person_id=person_id, limit=PAGE, after=after)
            found += await self._db.read(_visible, hits, person_id, session_id)
            if len(found) >= count or len(hits) < PAGE:
                break
        return SessionSearchResult(found[:count], is_complete)

    async def search_all(
        self, query: str, *, person_id: str, count: int, seconds: float
    ) -> tuple[list[IndexHit], bool]:
        """Return the best match of each session, and whether the index was up to date within so many seconds.

        For those who see all sessions: whose they are is not looked at. With ``person_id`` only that person's turns.
        """
        is_complete = await self._catch_up(self._clock.monotonic() + seconds)
        best: dict[str, IndexHit] = {}
        for after in range(0, MAX_HITS, PAGE):
            hits = await self._run(search_index.find, query, person_id=person_id, limit=PAGE, after=after)
            for hit in hits:
                best.setdefault(hit.session_id, hit)
            if len(best) >= count or len(hits) < PAGE:
                break
        return list(best.values())[:count], is_complete

    async def read(self, name: str, *, person_id: str, session_id: str, after: int, count: int) -> list[IndexedLine]:
        """Lines of one session, if it is this person's. Empty when there is none that they may read."""
        return await self._db.read(_lines_of, name, person_id, session_id, after, count)

    async def run(self) -> None:
        """Follow what is written, now and then, once somebody has searched. Until then it costs nothing."""
        while True:
            await asyncio.sleep(KEEP_UP_SECONDS)
            if not await asyncio.to_thread((self._home / search_index.FILE).exists):
                continue
            try:
                await self.follow()
            except (GatewayError, StoreIsDownError, sqlite3.Error, OSError) as error:
                log.warning("Search index update failed", extra={"reason": str(error)})

    async def follow(self) -> None:
        """Index what is new, and forget what was deleted."""
        await self._catch_up(self._clock.monotonic() + KEEP_UP_SECONDS / 2)
        last = ""
        while known := await self._run(search_index.known_sessions, last, BITE_KNOWN):
            if gone := await self._db.read(_gone, known):
                await self._run(search_index.forget, gone)
            last = known[-1]

    async def _catch_up(self, deadline: float) -> bool:
        """Index what is new, until the deadline. False when there is more to do."""
        async with self._one_at_a_time:
            at, last = await self._run(search_index.mark) - OVERLAP_SECONDS, ""
            while True:
                batch = await self._db.read(_used_since, at, last)
                have = await self._run(search_index.progress, [session.id for session in batch])
                for session in batch:
                    if have[session.id] >= session.seq:
                        continue
                    if self._clock.monotonic() > deadline:
                        return False
                    await self._index(session, have[session.id])
                if len(batch) < BITE_SESSIONS:
                    if batch:
                        await self._run(search_index.set_mark, batch[-1].updated_at)
                    return True
                at, last = batch[-1].updated_at, batch[-1].id
                await self._run(search_index.set_mark, at)

    async def _index(self, session: Session, have: int) -> None:
        while have < session.seq:
            lines, up_to = await self._db.read(_lines_to_index, session.id, have)
            if up_to == have:
                return
            await self._run(search_index.add, session.id, lines, up_to=up_to)
            have = up_to

    async def _run(self, function: Callable[..., T], *args: object, **named: object) -> T:
        """In a thread, with a connection of its own for as long as it takes: searches are rare."""

        def work() -> T:
            db = search_index.open_index(self._home)
            try:
                return function(db, *args, **named)
            finally:
                db.close()

        return await asyncio.to_thread(work)


def _used_since(tx: Tx, at: float, last: str) -> list[Session]:
    return tx.all(
        f"""
        SELECT {sessions.COLUMNS} FROM sessions WHERE updated_at > :at OR (updated_at = :at AND id > :last)
        ORDER BY updated_at, id LIMIT :limit
        """,  # noqa: S608 - columns of ours
        Session,
        at=at,
        last=last,
        limit=BITE_SESSIONS,
    )


def _lines_to_index(tx: Tx, session_id: str, after: int) -> tuple[list[IndexedLine], int]:
    lines = transcripts.lines(tx, session_id, after=after, limit=BITE_LINES)
    return _spoken(tx, session_id, lines), lines[-1].seq if lines else after


def _spoken(tx: Tx, session_id: str, lines: Sequence[transcripts.TranscriptLine]) -> list[IndexedLine]:
    """Return what people and the agent said; results of tools are noise, and may be another's files."""
    whose: dict[str, str] = {}
    found = []
    for line in lines:
        message = codec.read_chat(line.body) if line.kind == "message" else None
        if message is None or message.role not in (Role.USER, Role.ASSISTANT) or not message.text.strip():
            continue
        if line.turn_id not in whose:
            whose[line.turn_id] = _person_of(tx, session_id, line.turn_id)
        text = message.text[:MAX_TEXT_CHARS]
        found.append(IndexedLine(session_id, line.seq, whose[line.turn_id], message.role.value, text, line.at))
    return found


def _person_of(tx: Tx, session_id: str, turn_id: str) -> str:
    """Whose turn it was. One that was pruned belongs to the only person of its session, if there is only one."""
    found = tx.value("SELECT person_id FROM turns WHERE id = :id", id=turn_id)
    if found is not None:
        return str(found)
    people = tx.all("SELECT DISTINCT person_id FROM turns WHERE session_id = :id LIMIT 2", str, id=session_id)
    return people[0] if len(people) == 1 else ""


def _visible(tx: Tx, hits: Sequence[IndexHit], person_id: str, session_id: str) -> list[SessionHit]:
    known: dict[str, Session | None] = {}
    for hit in hits:
        if hit.session_id not in known:
            known[hit.session_id] = _own(tx, hit.session_id, person_id, session_id)
    return [SessionHit(session, hit) for hit in hits if (session := known[hit.session_id]) is not None]


def _own(tx: Tx, wanted: str, person_id: str, current: str) -> Session | None:
    """Return the session, if nobody else ever had a turn in it, or if it is the one we are in."""
    if wanted != current and not sessions.belongs_to(tx, wanted, person_id):
        return None
    return sessions.get(tx, wanted)


def _lines_of(tx: Tx, name: str, person_id: str, current: str, after: int, count: int) -> list[IndexedLine]:
    found = [own for session in sessions.find(tx, name) if (own := _own(tx, session.id, person_id, current))]
    if not found:
        return []
    spoken: list[IndexedLine] = []
    while len(spoken) < count:
        lines = transcripts.lines(tx, found[0].id, after=after, limit=BITE_LINES)
        if not lines:
            break
        spoken += _spoken(tx, found[0].id, lines)
        after = lines[-1].seq
    return spoken[:count]


def _gone(tx: Tx, known: Sequence[str]) -> list[str]:
    return [
        session_id for session_id in known if tx.value("SELECT 1 FROM sessions WHERE id = :id", id=session_id) is None
    ]
