"""Delete sessions, and blank their words in every other table. Ids and states stay, for ``hermes trace``.

``delete`` removes the session and its transcript at once, and notes it in ``deleted_sessions``. The rest is done in
bites, so that a long session holds up nobody: ``blank_turns`` and ``blank_commands`` until they say that nothing is
left. Deliveries and processes that are under way keep their words until they end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from hermes.core.dataclasses import dataclass
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.lane import DOORS
from hermes.store import checkpoints
from hermes.store.db import Tx
from hermes.store.sessions import sessions

BITE_TURNS = 50
BITE_EVENTS = 2000
CHILDREN = 20
"""Subtasks of one call that are looked for."""

_NAMES = ("keys", "session_key", "sender_id", "sent_at", "message_id", "kind", "person_id", "target")
_WORDS: Mapping[str, object] = {"text": "", "data": "", "messages": []}
_PICTURE = re.compile(r"picture:([0-9a-f]{64})")
_OPEN_DELIVERY = "(state = 'ready' OR state = 'unknown' OR state = 'parked')"
_OPEN_TURN = "(state = 'running' OR state = 'waiting')"
_IS_SETTLED = "state <> 'queued' AND state <> 'acting' AND state <> 'taken'"


@dataclass(frozen=True, slots=True)
class DeletedSession:
    id: str
    key: str
    since: float
    until: float
    deleted_at: float
    turn_at: float
    turn_id: str
    is_blank: int


@dataclass(slots=True)
class Traces:
    """Names of files that hold words of a session, found on the way."""

    turns: list[str] = field(default_factory=list)
    deliveries: list[str] = field(default_factory=list)
    local_files: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    blobs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    children: list[str] = field(default_factory=list)

    def add(self, other: Traces) -> None:
        for name in ("turns", "deliveries", "local_files", "typed", "blobs", "outputs", "children"):
            getattr(self, name).extend(getattr(other, name))


COLUMNS = "id, key, since, until, deleted_at, turn_at, turn_id, is_blank"


def delete(tx: Tx, session_id: str, *, now: float) -> bool:
    """Remove a session and its transcript, and note that its words are to go. False where there is none."""
    session = sessions.get(tx, session_id)
    if session is None:
        return False
    tx.run(
        """
        INSERT INTO deleted_sessions (id, key, since, until, deleted_at) VALUES (:id, :key, :since, :until, :now)
        ON CONFLICT (id) DO UPDATE SET is_blank = 0, turn_at = 0, turn_id = '', until = excluded.until
        """,
        id=session.id,
        key=session.key,
        since=session.created_at,
        until=session.ended_at or now,
        now=now,
    )
    shown = "SELECT body FROM transcript WHERE session_id = :id AND body LIKE '%picture:%'"
    _note_pictures(tx, tx.all(shown, str, id=session.id), now=now)
    return sessions.delete(tx, session.id)


def unfinished(tx: Tx, *, limit: int = 100) -> list[DeletedSession]:
    """Sessions whose words may still stand somewhere, the oldest deletion first."""
    return tx.all(
        f"SELECT {COLUMNS} FROM deleted_sessions ORDER BY deleted_at, id LIMIT :limit",
        DeletedSession,
        limit=limit,
    )


def get(tx: Tx, session_id: str) -> DeletedSession | None:
    return tx.one(f"SELECT {COLUMNS} FROM deleted_sessions WHERE id = :id", DeletedSession, id=session_id)


def blank_turns(tx: Tx, session_id: str, *, bite: int = BITE_TURNS) -> tuple[Traces, bool]:
    """Blank the next turns of a deleted session; returns what points to files, and whether more are left."""
    gone = get(tx, session_id)
    traces = Traces()
    if gone is None:
        return traces, False
    found: list[tuple[str, float]] = tx.all(
        """
        SELECT id, created_at FROM turns
        WHERE session_id = :id AND (created_at > :at OR (created_at = :at AND id > :after))
            AND state <> 'running' AND state <> 'waiting'
        ORDER BY created_at, id LIMIT :limit
        """,
        lambda *row: row,
        id=session_id,
        at=gone.turn_at,
        after=gone.turn_id,
        limit=bite,
    )
    for turn_id, _ in found:
        _blank_turn(tx, turn_id, traces, now=gone.deleted_at)
    if found:
        last_id, last_at = found[-1]
        sql = "UPDATE deleted_sessions SET turn_at = :at, turn_id = :turn WHERE id = :id"
        tx.run(sql, at=last_at, turn=last_id, id=session_id)
    return traces, len(found) == bite


def _blank_turn(tx: Tx, turn_id: str, traces: Traces, *, now: float) -> None:
    traces.turns.append(turn_id)
    events = "SELECT id, platform, body FROM inbox WHERE turn_id = :turn"
    _blank_events(tx, tx.all(events, lambda *row: row, turn=turn_id), traces, now=now)
    calls = "SELECT id FROM tool_calls WHERE turn_id = :turn AND name = 'delegate_task'"
    traces.children += [f"{call}.{number}" for call in tx.all(calls, str, turn=turn_id) for number in range(CHILDREN)]
    tx.run("UPDATE tool_calls SET arguments = '{}', result = '' WHERE turn_id = :turn", turn=turn_id)
    tx.run("UPDATE turns SET reason = '' WHERE id = :turn", turn=turn_id)
    tx.run("DELETE FROM turn_progress WHERE turn_id = :turn", turn=turn_id)
    blank = "question = '', subject = '', where_run = '', reason = '', proof = ''"
    tx.run(f"UPDATE approvals SET {blank} WHERE turn_id = :turn", turn=turn_id)
    _blank_deliveries(tx, "turn_id = :name AND turn_id <> ''", turn_id, traces)


def _blank_events(tx: Tx, events: Sequence[tuple[str, str, str]], traces: Traces, *, now: float) -> None:
    for event_id, platform, body in events:
        if platform == "local":
            _note_local(body, traces)
        _note_pictures(tx, [body], now=now)
        tx.run(
            "UPDATE inbox SET body = :blank, reason = '', attempt = '' WHERE id = :id",
            blank=without_words(body),
            id=event_id,
        )


def _blank_deliveries(tx: Tx, where: str, name: str, traces: Traces) -> None:
    """Blank what was sent or refused. What still waits is sent first: the session is looked at again."""
    rows = f"SELECT id, joined_to, body FROM outbox WHERE {where} AND NOT {_OPEN_DELIVERY}"
    found: list[tuple[str, str, str]] = tx.all(rows, lambda *row: row, name=name)
    for delivery, joined_to, body in found:
        if (blank := without_words(body)) == body:
            continue
        traces.deliveries.append(delivery)
        if joined_to:  # its text went out with that row
            _blank_deliveries(tx, "id = :name", joined_to, traces)
        tx.run("UPDATE outbox SET body = :blank, reason = '' WHERE id = :id", blank=blank, id=delivery)
        tx.run("DELETE FROM files_out WHERE outbox_id = :id", id=delivery)


def has_commands(key: str) -> bool:
    """Whether commands can be given under a key: not by requests, subtasks, jobs and webhooks."""
    where = _parsed(key)
    return where is None or where.platform not in DOORS


def commands_in(
    tx: Tx, chats: Sequence[DeletedSession], *, after: tuple[float, str], until: float
) -> tuple[list[tuple[str, str]], tuple[float, str] | None]:
    """Commands and presses in these chats while their sessions lasted: session and event; and where to read on."""
    rows: list[tuple[str, float, str, str]] = tx.all(
        """
        SELECT id, received_at, lane, turn_id FROM inbox
        WHERE received_at >= :at AND (received_at > :at OR id > :after) AND received_at <= :until
        ORDER BY received_at, id LIMIT :limit
        """,
        lambda *row: row,
        at=after[0],
        after=after[1],
        until=until,
        limit=BITE_EVENTS,
    )
    by_key: dict[str, list[DeletedSession]] = {}
    for gone in chats:
        by_key.setdefault(gone.key, []).append(gone)
    found = [
        (gone.id, event_id)
        for event_id, at, lane, turn_id in rows
        if not turn_id
        for gone in by_key.get(lane, ())
        if gone.since - 60.0 <= at <= gone.until
    ]
    return found, (rows[-1][1], rows[-1][0]) if len(rows) == BITE_EVENTS else None


def blank_commands(tx: Tx, session_id: str, ids: Sequence[str]) -> Traces:
    """Blank commands that began no turn, and the replies to them."""
    traces = Traces()
    gone = get(tx, session_id)
    for event_id in ids if gone is not None else ():
        found = f"SELECT id, platform, body FROM inbox WHERE id = :id AND {_IS_SETTLED}"
        events: list[tuple[str, str, str]] = tx.all(found, lambda *row: row, id=event_id)
        _blank_events(tx, events, traces, now=gone.deleted_at if gone else 0.0)
        _blank_deliveries(tx, "group_id = :name", f"ob_{event_id}", traces)
        traces.children.append(f"bg_{event_id}")
    return traces


def blank_rest(tx: Tx, session_id: str) -> Traces:
    """Blank what belongs to the session itself: grants, checkpoints, ended processes, answers kept for repeats."""
    traces = Traces()
    gone = get(tx, session_id)
    if gone is None:
        return traces
    tx.run("DELETE FROM grants WHERE session_id = :id AND session_id <> ''", id=session_id)
    changes = tx.all("SELECT id FROM checkpoints WHERE session_id = :id", str, id=session_id)
    traces.blobs = checkpoints.forget(tx, changes)
    ended = "session_id = :id AND ended_at IS NOT NULL"
    traces.outputs = tx.all(f"SELECT log FROM processes WHERE {ended}", str, id=session_id)
    tx.run(f"UPDATE processes SET command = '' WHERE {ended}", id=session_id)
    if chat := chat_of(gone.key):
        named = json.dumps(chat, ensure_ascii=False).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        named = f'%"X-Hermes-Session-Id":{named}%'
        tx.run("DELETE FROM idempotency WHERE headers LIKE :named ESCAPE '\\'", named=named)
    return traces


def finish(tx: Tx, session_id: str) -> bool:
    """Note that all words are blanked, unless something of the session is still under way."""
    deliveries = tx.value(
        f"""
        SELECT 1 FROM turns JOIN outbox ON outbox.turn_id = turns.id AND outbox.turn_id <> ''
        WHERE turns.session_id = :id AND {_OPEN_DELIVERY.replace("state", "outbox.state")} LIMIT 1
        """,
        id=session_id,
    )
    turns = tx.value(f"SELECT 1 FROM turns WHERE session_id = :id AND {_OPEN_TURN} LIMIT 1", id=session_id)
    running = tx.value("SELECT 1 FROM processes WHERE session_id = :id AND ended_at IS NULL LIMIT 1", id=session_id)
    if deliveries or turns or running:
        # From the beginning at the next look: what is under way has its words until it ends.
        tx.run("UPDATE deleted_sessions SET turn_at = 0, turn_id = '' WHERE id = :id", id=session_id)
        return False
    return tx.run("UPDATE deleted_sessions SET is_blank = 1 WHERE id = :id", id=session_id) == 1


def forget_blank(tx: Tx, *, deleted_until: float) -> int:
    """Forget deletions that are complete: no word is left, in the tables or in the free pages."""
    sql = "DELETE FROM deleted_sessions WHERE is_blank = 1 AND deleted_at <= :until"
    return tx.run(sql, until=deleted_until)


def children_of(tx: Tx, names: Iterable[str]) -> list[str]:
    """Sessions of subtasks and background tasks that were begun under these names."""
    found: list[str] = []
    for name in names:
        key = str(SessionKey("task", ChatKind.DM, name))
        found += tx.all("SELECT id FROM sessions WHERE key = :key", str, key=key)
    return found


def without_words(body: str) -> str:
    """A stored message that says where it came from and nothing else. It can still be read as what it was."""
    try:
        body_data = json.loads(body)
    except ValueError:
        return "{}"
    if not isinstance(body_data, dict):
        return "{}"
    kept = {name: value for name, value in body_data.items() if name in _NAMES}
    kept |= {name: empty for name, empty in _WORDS.items() if name in body_data}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


# Pictures


def pictures_to_check(tx: Tx, *, limit: int = 20) -> list[str]:
    return tx.all("SELECT hash FROM deleted_pictures ORDER BY hash LIMIT :limit", str, limit=limit)


def is_named(tx: Tx, name: str, *, since: float = 0.0) -> bool:
    """Whether a message names this picture, among those that arrived since then. Reads the messages' bodies."""
    part = f"%picture:{name}%"
    if tx.value("SELECT 1 FROM inbox WHERE received_at >= :since AND body LIKE :part LIMIT 1", since=since, part=part):
        return True
    if since:
        return False
    return tx.value("SELECT 1 FROM transcript WHERE body LIKE :part LIMIT 1", part=part) is not None


def drop_picture(tx: Tx, name: str, *, is_named_before: bool, looked_at: float) -> None:
    """Delete a picture, unless it is shown elsewhere or a message named it since ``looked_at``."""
    if not is_named_before and not is_named(tx, name, since=looked_at):
        tx.run("DELETE FROM pictures WHERE hash = :hash", hash=name)
    tx.run("DELETE FROM deleted_pictures WHERE hash = :hash", hash=name)


def _note_pictures(tx: Tx, bodies: Iterable[str], *, now: float) -> None:
    for name in {name for body in bodies for name in _PICTURE.findall(body)}:
        tx.run(
            "INSERT INTO deleted_pictures (hash, deleted_at) VALUES (:hash, :now) ON CONFLICT (hash) DO NOTHING",
            hash=name,
            now=now,
        )


def _note_local(body: str, traces: Traces) -> None:
    """Note what was typed in a terminal, and the pictures that were sent from there."""
    try:
        data = json.loads(body)
    except ValueError:
        return
    if not isinstance(data, dict):
        return
    if text := str(data.get("text") or ""):
        traces.typed.append(text)
    for attachment in data.get("attachments") or ():
        if isinstance(attachment, dict) and attachment.get("file_id"):
            traces.local_files.append(str(attachment["file_id"]))


def chat_of(key: str) -> str:
    """The chat of a session key: how the API names the session; '' for another platform."""
    where = _parsed(key)
    return where.chat if where is not None and where.platform == "api" else ""


def _parsed(key: str) -> SessionKey | None:
    try:
        return SessionKey.parse(key)
    except ValueError:
        return None
