"""Answer calls that need only the store, in a gateway or without one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from hermes.core.errors import GatewayError
from hermes.core.keys import SessionKey
from hermes.core.ports import Clock
from hermes.hosting.control.handlers.api_keys import KeyVerbs
from hermes.hosting.control.handlers.approvals import ApprovalVerbs
from hermes.hosting.control.handlers.people import PeopleVerbs
from hermes.hosting.control.server import Handler, Reply
from hermes.services.approvals import Approvals
from hermes.store import codec, inbox, outbox
from hermes.store.db import Database, Tx
from hermes.store.inbox import InboxState
from hermes.store.outbox import OutboxKind, OutboxRow, OutboxState
from hermes.store.reports import stats, trace
from hermes.store.reports.trace import Latest, Life
from hermes.store.sessions import sessions, transcripts
from hermes.store.sqlite import backup, losses
from hermes.store.sqlite.transcript_files import Journal
from hermes.store.turns.turns import TurnState

if TYPE_CHECKING:
    from hermes.hosting.control.handlers.imports import ImportVerbs
    from hermes.services.deletion import SessionDeletion

MAX_LISTED = 10_000

RECOVERY_SHOWN_SECONDS = 7 * 86400.0
"""How long ``doctor`` tells of a recovery."""


class NotFoundError(GatewayError):
    """There is nothing with this id; the text says where to look."""


class StoreVerbs:
    """What can be read and changed with a database in hand."""

    def __init__(
        self, home: Path, db: Database, clock: Clock, deletion: Callable[[], SessionDeletion] | None = None
    ) -> None:
        """``deletion``: a running gateway's own."""
        self._home = home
        self._db = db
        self._clock = clock
        self._deletion = deletion or self._make_deletion

    def _make_deletion(self) -> SessionDeletion:
        from hermes.services.deletion import SessionDeletion

        return SessionDeletion(self._db, self._home, self._clock)

    def mapping(self) -> Mapping[str, Handler]:
        return {
            "trace": self.trace,
            "trace.list": self.latest,
            "outbox.dead": self.dead,
            "sessions.list": self.listed,
            "sessions.count": self.counted,
            "sessions.show": self.show,
            "sessions.rename": self.rename,
            "sessions.delete": self.delete,
            "sessions.prune": self.prune,
            "sessions.rebuild": self.rebuild,
            "doctor.stores": self.stores,
            "doctor.work": self.work,
            "doctor.heal": self.heal,
            "store.counts": self.counts,
            "sessions.import": self.import_sessions,
            "sessions.delete_import": self.delete_import,
            **KeyVerbs(self._db, self._clock).mapping(),
            **ApprovalVerbs(self._db, Approvals(self._db, self._clock)).mapping(),
            **PeopleVerbs(self._db).mapping(),
        }

    async def trace(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{id}``: the whole life of a message, as plain data."""
        name = _word(args, "id")
        life = await self._db.read(trace.life_of, name)
        if life is None:
            lost = losses.of_id(await asyncio.to_thread(losses.read, self._home), name)
            raise NotFoundError(" ".join([f"There is no message, turn or delivery {name!r} in this home.", *lost]))
        return life_to_dict(life)

    async def latest(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{limit?}``: the latest messages, the newest first, how many are kept in all, and why there are none."""
        limit = min(max(1, _number(args, "limit", 20)), MAX_LISTED)
        found = await self._db.read(trace.newest, limit=limit)
        lost = [] if found else losses.of_id(await asyncio.to_thread(losses.read, self._home), "")
        messages = [latest_to_dict(message) for message in found]
        return {"messages": messages, "total": await self._db.read(inbox.count), "lost": lost}

    async def dead(self, args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        rows = await self._db.read(outbox.dead_letters, limit=_number(args, "limit", 50))
        return [delivery_to_dict(row) for row in rows]

    # Sessions

    async def listed(self, args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        key, limit = str(args.get("key") or ""), _number(args, "limit", 50)
        return await self._db.read(_listed, key, limit)

    def _imports(self) -> ImportVerbs:
        from hermes.hosting.control.handlers.imports import ImportVerbs  # not at every start

        return ImportVerbs(self._home, self._db, self._clock, self._deletion)

    async def import_sessions(self, args: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
        return await self._imports().bring_in(args, reply)

    async def delete_import(self, args: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
        return await self._imports().remove(args, reply)

    async def counted(self, args: Mapping[str, Any], _: Reply) -> int:
        """``{key?}``: how many sessions there are."""
        return await self._db.read(sessions.count, key=str(args.get("key") or ""))

    async def show(self, args: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
        """``{id, after?}``: the session; it and its lines are told as events, since there may be very many.

        Each says what a line of its file does, so that printed they can be imported again.
        """
        session = await self._session(args)
        name = {"session": session["id"]}
        await reply.event({**name, "seq": 0, "at": session["updated_at"], "role": "session", "body": session})
        after = _number(args, "after", 0)
        while lines := await self._db.read(transcripts.lines, session["id"], after=after, limit=200):
            for line in lines:
                life_to_dict = {"seq": line.seq, "turn": line.turn_id, "at": line.at, "kind": line.kind}
                await reply.event({**name, **life_to_dict, "message": _json(line.body)})
            after = lines[-1].seq
        return session

    async def rename(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        session = await self._session(args)
        await self._db.write(sessions.rename, session["id"], str(args.get("title") or "").strip())
        return {**session, "title": str(args.get("title") or "").strip(), "was": session["title"]}

    async def delete(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        session = await self._session(args)
        await self._delete(session["id"])
        return {**session, "is_complete": await self._deletion().erase([session["id"]])}

    async def prune(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{older_than_seconds, dry_run?}``: delete ended sessions nobody touched for so long."""
        before = self._clock.now() - float(args.get("older_than_seconds") or 0)
        found = await self._db.read(sessions.stale, before)
        if not args.get("dry_run"):
            for session_id in found:
                await self._delete(session_id)
            await self._deletion().erase(found)
        return {"sessions": found}

    async def rebuild(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{id?}``: put back what the transcripts' files hold and the store lacks."""
        from hermes.store.sessions import rebuild  # a start needs it not

        wanted = str(args.get("id") or "")
        journal = Journal(self._home / "sessions")
        files = [wanted] if wanted else await asyncio.to_thread(self._files)
        restored: dict[str, int] = {}
        for session_id in files:
            rebuilt = await asyncio.to_thread(journal.rebuild, session_id)
            if wanted and not rebuilt.lines:
                raise NotFoundError(f"There is no transcript sessions/{wanted}.jsonl in this home.")
            count = await self._db.write(rebuild.put_back, rebuilt.session_id, rebuilt.session, rebuilt.lines)
            if count:
                restored[session_id] = count
        return {"looked_at": len(files), "restored": restored}

    async def _session(self, args: Mapping[str, Any]) -> dict[str, Any]:
        name = _word(args, "id")
        found = await self._db.read(_find_session, name)
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFoundError(f"{name!r} begins {len(found)} session ids; type more of it.")
        raise NotFoundError(f"There is no session {name!r}. Look: hermes sessions list")

    async def _delete(self, session_id: str) -> None:
        if not await self._db.write(_delete_idle, session_id, now=self._clock.now()):
            raise GatewayError(f"A turn is running in {session_id}. Stop it first: /stop in its chat.")

    def _files(self) -> list[str]:
        return sorted(path.stem for path in (self._home / "sessions").glob("*.jsonl"))

    # Soundness

    async def stores(self, _args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """Check the integrity of the stores."""
        began = time.monotonic()
        verdict = await self._db.read(stats.check)
        newest = await asyncio.to_thread(self._last_backup)
        return {
            "name": "state.db" if verdict["engine"] == "sqlite" else "PostgreSQL",
            **verdict,
            "seconds": round(time.monotonic() - began, 3),
            "last_backup": newest,
            "recoveries": await asyncio.to_thread(self._recoveries),
        }

    async def work(self, _args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """What waits, for whom and since when, and how the jobs do."""
        return await self._db.read(stats.open_work, now=self._clock.now())

    async def heal(self, _args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """Look at every open store now, and recover those that are damaged. Tells which were looked at."""
        from hermes.store import migrate
        from hermes.store.api import responses
        from hermes.store.kanban import open as board
        from hermes.store.open import DEFAULT_MIGRATIONS
        from hermes.store.sqlite import schema_repair

        if self._db.dialect.name != "sqlite":
            return {"stores": []}
        steps = {"state.db": DEFAULT_MIGRATIONS, board.FILE: board.MIGRATIONS, responses.FILE: responses.MIGRATIONS}
        looked_at = {"state.db": self._db, **self._db.beside}
        for name, db in looked_at.items():
            await db.write(stats.touch)
            made = schema_repair.expected(tuple(migrate.load(steps[name])))
            tables = {table: [column.name for column in columns] for kind, table, _, columns in made if kind == "table"}
            await db.read(stats.insist_on_schema, tables)
        return {"stores": list(looked_at)}

    def _recoveries(self) -> list[str]:
        """What was recovered in the last days, the newest first."""
        since = self._clock.now() - RECOVERY_SHOWN_SECONDS
        reports = [report for report in losses.read(self._home) if report.at >= since]
        return [f"{losses.clock_time(report.at)}: {report.text(self._home)}" for report in reversed(reports)]

    def _last_backup(self) -> float | None:
        made = [*backup.newest(self._home / "state.db"), *(self._home / "backups").glob("hermes-*.tar.gz")]
        return max((path.stat().st_mtime for path in made), default=None)

    async def counts(self, _args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        return await self._db.read(stats.counts, now=self._clock.now())


# As plain data


def life_to_dict(life: Life) -> dict[str, Any]:
    return {
        "events": [_event_to_dict(row) for row in life.events],
        "turn": asdict(life.turn) if life.turn else None,
        "lines": [{"seq": line.seq, "at": line.at, "message": _json(line.body)} for line in life.lines],
        "calls": [asdict(call) for call in life.calls],
        "approvals": [asdict(approval) for approval in life.approvals],
        "letters": [delivery_to_dict(row) for row in life.letters],
    }


def latest_to_dict(latest: Latest) -> dict[str, Any]:
    event = latest.event
    outcome, reason = _outcome(latest)
    body = _json(event.body)
    named = str(body.get("sender_name") or "") if isinstance(body, dict) else ""
    return {
        "id": event.id,
        "at": event.received_at,
        "chat": _chat(latest),
        "person": latest.person or named or event.sender_id,
        "sender_id": event.sender_id,
        "kind": event.kind,
        "outcome": outcome,
        "reason": reason,
        "turn": event.turn_id,
        "text": _text_of(body) if isinstance(body, dict) else str(body),
    }


def _outcome(latest: Latest) -> tuple[str, str]:
    """What became of a message, in a word or two, and why."""
    event, turn = latest.event, latest.turn
    if event.state == InboxState.QUEUED:
        return "waiting", ""
    if turn is not None and turn.state == TurnState.WAITING:
        return "asks first", ""
    if event.state in (InboxState.ACTING, InboxState.TAKEN):
        return "running", ""
    if event.state != InboxState.ANSWERED:
        return event.state.replace("_", " "), event.reason
    if turn is not None and turn.state != TurnState.DONE:
        return turn.state.replace("_", " "), turn.reason
    # What only refreshes a message that is there (a preview, an edit) is no loss.
    letters = [row for row in latest.letters if row.kind not in (OutboxKind.PREVIEW, OutboxKind.EDIT)]
    if dead := next((row for row in letters if row.state == OutboxState.DEAD), None):
        return "not delivered", dead.reason
    if late := next((row for row in letters if row.settled_at is None), None):
        return "on its way", late.reason
    return "answered", ""


def _chat(latest: Latest) -> str:
    try:
        return str(SessionKey.parse(latest.event.lane).target)
    except ValueError:  # an event that could not be read belongs to no conversation
        return latest.platform


def _event_to_dict(row: Any) -> dict[str, Any]:
    body = _json(row.body)
    return {**asdict(row), "body": body, "text": _text_of(body) if isinstance(body, dict) else str(body)}


def _text_of(body: Mapping[str, Any]) -> str:
    """What was said: by a message, a button, or the last message of a request."""
    message = body["messages"][-1] if body.get("messages") else body
    return str(message.get("text", message.get("data", "")))


def delivery_to_dict(row: OutboxRow) -> dict[str, Any]:
    try:
        text = codec.load_outbound(row.body).text
    except ValueError:
        text = row.body
    return {**{name: value for name, value in asdict(row).items() if name != "body"}, "text": text}


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return text


def _word(args: Mapping[str, Any], name: str) -> str:
    value = args.get(name)
    if not isinstance(value, str) or not value.strip():
        raise GatewayError(f"An {name} is missing.")
    return value.strip()


def _number(args: Mapping[str, Any], name: str, default: int) -> int:
    value = args.get(name)
    return default if value is None else int(value)


# In the store


def _listed(tx: Tx, key: str, limit: int) -> list[dict[str, Any]]:
    return [_session_to_dict(tx, session) for session in sessions.newest(tx, key=key, limit=limit)]


def _session_to_dict(tx: Tx, session: sessions.Session) -> dict[str, Any]:
    first = ""
    if not session.title:
        for line in transcripts.lines(tx, session.id, limit=1):
            body = _json(line.body)
            first = str(body.get("text", "")) if isinstance(body, dict) else ""
    return {**asdict(session), "first": first}


def _find_session(tx: Tx, name: str) -> list[dict[str, Any]]:
    return [_session_to_dict(tx, session) for session in sessions.find(tx, name)]


def _delete_idle(tx: Tx, session_id: str, *, now: float) -> bool:
    from hermes.store.retention import deletion  # a start deletes nothing

    if sessions.is_busy(tx, session_id):
        return False
    deletion.delete(tx, session_id, now=now)
    return True
