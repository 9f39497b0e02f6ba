"""Store what arrived once, and settle it once.

The partial indexes are used only where a statement repeats their condition word for word; hence conditions that
look doubled.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.core.roles import capped
from hermes.store import claims, people
from hermes.store.db import Tx


class InboxState(StrEnum):
    QUEUED = "queued"  # waits for its lane
    ACTING = "acting"  # a command or a press that acts at once
    TAKEN = "taken"  # in the prompt of a running turn
    ANSWERED = "answered"
    REFUSED = "refused"
    SET_ASIDE = "set_aside"


@dataclass(frozen=True, slots=True)
class Incoming:
    """An event that was judged and is ready to be stored. ``keys`` are scoped already.

    ``role`` limits the turn that the event begins; '' stands for the role that its sender has when it is stored.
    ``attempt`` is the fingerprint of a request that may be sent again.
    """

    id: str
    keys: tuple[str, ...]
    lane: str
    platform: str
    account: str
    kind: str
    sender_id: str
    body: str
    state: InboxState
    ready_at: float
    reason: str = ""
    role: str = ""
    attempt: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of one event. ``turn_id`` is the turn its lane was in, if any.

    ``is_own``: that turn is the sender's, who may steer it. ``is_below``: the sender has a lower role than the turn.
    """

    event_id: str
    is_new: bool
    turn_id: str = ""
    turn_state: str = ""
    busy_mode: str = ""
    is_own: bool = True
    is_below: bool = False


@dataclass(frozen=True, slots=True)
class InboxRow:
    id: str
    lane: str
    seq: int
    kind: str
    sender_id: str
    body: str
    state: str
    reason: str
    turn_id: str
    received_at: float
    ready_at: float
    settled_at: float | None
    role: str = ""


COLUMNS = "id, lane, seq, kind, sender_id, body, state, reason, turn_id, received_at, ready_at, settled_at, role"


def accept(tx: Tx, events: Sequence[Incoming], *, now: float) -> list[Accepted]:
    """Store each event that none of its keys has named before. Repeating the whole call changes nothing."""
    return [_accept_one(tx, event, now) for event in events]


def _accept_one(tx: Tx, event: Incoming, now: float) -> Accepted:
    """Store one event. A command takes the number of the message before it."""
    # Most have one name, which nobody has seen: noting it says so at once.
    has_one_name = len(event.keys) == 1
    if event.keys and (not has_one_name or not _remember(tx, event, now)):
        # The events that any of these names was noted for.
        found = (tx.value("SELECT event_id FROM dedupe WHERE key = :key", key=key) for key in event.keys)
        seen = {str(event_id) for event_id in found if event_id is not None}
        if event.id in seen:
            return _accepted_before(tx, event)
        if seen or has_one_name or not _remember(tx, event, now):
            return Accepted(event.id, is_new=False)
    turn, seq = _queue(tx, event) if event.state is InboxState.QUEUED else _lane_now(tx, event.lane)
    tx.run(
        """
        INSERT INTO inbox (id, lane, seq, platform, account, kind, sender_id, body, state, reason,
                           received_at, ready_at, settled_at, attempt, role)
        VALUES (:id, :lane, :seq, :platform, :account, :kind, :sender_id, :body, :state, :reason,
                :now, :ready_at, :settled_at, :attempt, COALESCE(NULLIF(:role, ''), (
                    SELECT people.role FROM person_accounts JOIN people ON people.id = person_accounts.person_id
                    WHERE person_accounts.platform = :platform AND person_accounts.user_id = :sender_id), ''))
        ON CONFLICT (id) DO NOTHING
        """,
        id=event.id,
        lane=event.lane,
        seq=seq,
        platform=event.platform,
        account=event.account,
        kind=event.kind,
        sender_id=event.sender_id,
        body=event.body,
        state=event.state.value,
        reason=event.reason,
        now=now,
        ready_at=event.ready_at,
        settled_at=now if event.state in (InboxState.REFUSED, InboxState.SET_ASIDE) else None,
        attempt=event.attempt,
        role=event.role,
    )
    return _accepted(tx, event, turn, is_new=True)


def _accepted_before(tx: Tx, event: Incoming) -> Accepted:
    """Written once more, since whoever wrote it never learned of its COMMIT.

    For that writer it is new and what follows from it is still to be done, unless its lane took it up meanwhile.
    """
    row = get(tx, event.id)
    turn, _ = _lane_now(tx, event.lane)
    return _accepted(tx, event, turn, is_new=row is not None and row.state == event.state)


def _accepted(tx: Tx, event: Incoming, turn: tuple[str, str, str], *, is_new: bool) -> Accepted:
    """Add whose turn runs in the lane; only a queued event joins or ends a turn."""
    turn_id = turn[0]
    if not turn_id or event.state is not InboxState.QUEUED:
        return Accepted(event.id, is_new, *turn)
    return Accepted(event.id, is_new, *turn, *standing(tx, event.platform, event.sender_id, turn_id))


def standing(tx: Tx, platform: str, sender_id: str, turn_id: str) -> tuple[bool, bool]:
    """Return whether a turn is the sender's own, and whether the sender's role is below the turn's."""
    found = tx.one("SELECT person_id, role FROM turns WHERE id = :id", lambda *row: row, id=turn_id)
    if found is None:
        return False, True
    whose, needed = str(found[0]), str(found[1])
    person = people.find(tx, platform, sender_id)
    if person is None:  # an unknown sender has no rights, and joins only a turn without a person
        return not whose, bool(needed)
    return person.id == whose, bool(needed) and capped(person.role, needed) != needed


def _remember(tx: Tx, event: Incoming, now: float) -> bool:
    """Note the event's names."""
    for key in dict.fromkeys(event.keys):
        added = tx.run(
            "INSERT INTO dedupe (key, event_id, seen_at) VALUES (:key, :id, :now) ON CONFLICT (key) DO NOTHING",
            key=key,
            id=event.id,
            now=now,
        )
        if not added:  # another process stored it since we looked
            return False
    return True


def _queue(tx: Tx, event: Incoming) -> tuple[tuple[str, str, str], int]:
    """Wake the lane; what it is in, as ``_lane_now`` tells it, and the number of this message."""
    seq, turn_id, busy_mode = claims.wake_lane(tx, event.lane, at=event.ready_at)
    state = tx.value("SELECT state FROM turns WHERE id = :id", id=turn_id) if turn_id else None
    return (turn_id, str(state or ""), busy_mode), seq


def _lane_now(tx: Tx, lane: str) -> tuple[tuple[str, str, str], int]:
    """The lane's turn, that turn's state and the lane's busy mode; and how many messages came so far."""
    found = tx.one(
        """
        SELECT lanes.turn_id, COALESCE(turns.state, ''), lanes.busy_mode, lanes.seq
        FROM lanes LEFT JOIN turns ON turns.id = lanes.turn_id WHERE lanes.key = :lane
        """,
        lambda *row: (row[:3], row[3]),
        lane=lane,
    )
    return found or (("", "", ""), 0)


def settle(tx: Tx, event_id: str, *, state: InboxState, reason: str = "", now: float) -> bool:
    """End an open event. A second call changes nothing. What was written after a command need not wait any longer."""
    ended = tx.one(
        """
        UPDATE inbox SET state = :state, reason = :reason, settled_at = :now
        WHERE id = :id AND (state = 'queued' OR state = 'acting' OR state = 'taken') RETURNING lane, kind
        """,
        lambda *row: row,
        id=event_id,
        state=state.value,
        reason=reason,
        now=now,
    )
    if ended is None:
        return False
    lane, kind = ended
    if kind == "command":
        # Without looking whether anything waits: of two commands that end at once, each would see the other open.
        claims.wake(tx, "lanes", lane, at=now)
    return True


def settle_turn(tx: Tx, turn_id: str, *, state: InboxState, reason: str = "", now: float) -> int:
    """End every event that this turn consumed, and no other."""
    return tx.run(
        """
        UPDATE inbox SET state = :state, reason = :reason, settled_at = :now
        WHERE turn_id = :turn_id AND turn_id <> '' AND state = 'taken'
        """,
        turn_id=turn_id,
        state=state.value,
        reason=reason,
        now=now,
    )


def set_aside_queued(tx: Tx, lane: str, *, reason: str, up_to: int, now: float) -> int:
    """End what waits in a lane and was not begun yet, up to the number of the command that says so."""
    return tx.run(
        """
        UPDATE inbox SET state = 'set_aside', reason = :reason, settled_at = :now
        WHERE lane = :lane AND (state = 'queued' OR state = 'acting' OR state = 'taken')
            AND state = 'queued' AND seq <= :up_to
        """,
        lane=lane,
        reason=reason,
        up_to=up_to,
        now=now,
    )


_MAY_BEGIN = """
    lane = :lane AND (state = 'queued' OR state = 'acting' OR state = 'taken') AND state = 'queued'
    AND NOT EXISTS (
        SELECT 1 FROM inbox AS earlier
        WHERE earlier.lane = :lane AND (earlier.state = 'queued' OR earlier.state = 'acting' OR earlier.state = 'taken')
            AND earlier.state = 'acting' AND earlier.kind = 'command' AND earlier.seq < inbox.seq)
"""


_QUEUED = f"SELECT {COLUMNS} FROM inbox WHERE {_MAY_BEGIN} ORDER BY seq LIMIT 200"
HAS_QUEUED = f"SELECT 1 FROM inbox WHERE {_MAY_BEGIN}"
"""Finds something when anything in the lane ``:lane`` may be begun."""


def queued(tx: Tx, lane: str) -> list[InboxRow]:
    """What may be begun, in order. A message waits for the commands before it, as "hello" for "/new"."""
    return tx.all(_QUEUED, InboxRow, lane=lane)


def has_queued(tx: Tx, lane: str) -> bool:
    """Whether anything in this lane may be begun."""
    return tx.value(f"{HAS_QUEUED} LIMIT 1", lane=lane) is not None


def last_seq(tx: Tx, lane: str) -> int:
    """The number of the newest message of a lane; 0 where there is none."""
    return int(tx.value("SELECT COALESCE(MAX(seq), 0) FROM inbox WHERE lane = :lane", lane=lane))


def acting(tx: Tx) -> list[InboxRow]:
    """List commands and presses that have not acted yet, oldest first. The plus keeps SQLite off the index of times."""
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM inbox
        WHERE (state = 'queued' OR state = 'acting' OR state = 'taken') AND state = 'acting'
        ORDER BY +received_at LIMIT 1000
        """,
        InboxRow,
    )


def last_of(tx: Tx, platform: str, sender_id: str) -> InboxRow | None:
    """The newest event of this sender that is still kept. Looks through them all: for a person who asks, not a turn."""
    return tx.one(
        f"""
        SELECT {COLUMNS} FROM inbox WHERE platform = :platform AND sender_id = :sender_id
        ORDER BY received_at DESC LIMIT 1
        """,
        InboxRow,
        platform=platform,
        sender_id=sender_id,
    )


def get(tx: Tx, event_id: str) -> InboxRow | None:
    return tx.one(f"SELECT {COLUMNS} FROM inbox WHERE id = :id", InboxRow, id=event_id)


def of_turn(tx: Tx, turn_id: str) -> list[InboxRow]:
    return tx.all(
        f"SELECT {COLUMNS} FROM inbox WHERE turn_id = :id AND turn_id <> '' ORDER BY seq",
        InboxRow,
        id=turn_id,
    )


def open_requests(tx: Tx, platform: str) -> list[InboxRow]:
    """What was asked through a door other than a chat and has not ended."""
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM inbox
        WHERE (state = 'queued' OR state = 'acting' OR state = 'taken') AND kind = 'request' AND platform = :platform
        """,
        InboxRow,
        platform=platform,
    )


def arrived_counts(tx: Tx, *, since: float, before: float) -> dict[tuple[str, str], int]:
    """How many events each (platform, account) brought in that time; what a command queued again is none."""
    rows = tx.all(
        """
        SELECT platform, account, COUNT(*) FROM inbox
        WHERE received_at >= :since AND received_at < :before AND id NOT LIKE '%.%' GROUP BY platform, account
        """,
        lambda *row: row,
        since=since,
        before=before,
    )
    return {(str(platform), str(account)): int(count) for platform, account, count in rows}


def waiting_count(tx: Tx) -> int:
    return int(tx.value("SELECT COUNT(*) FROM inbox WHERE (state = 'queued' OR state = 'acting' OR state = 'taken')"))


def count(tx: Tx) -> int:
    """How many events are kept, of whatever kind."""
    return int(tx.value("SELECT COUNT(*) FROM inbox"))


def forget_keys(tx: Tx, *, before: float) -> int:
    """Drop dedupe keys that are too old to come again; a bounded bite at a time."""
    return tx.run(
        "DELETE FROM dedupe WHERE key IN (SELECT key FROM dedupe WHERE seen_at < :before LIMIT 5000)", before=before
    )
