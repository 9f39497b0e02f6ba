"""Store what is to go out until it is sent, refused or expired.

``outbox_sending`` takes the rows that are due and records how each send ended.

The partial indexes are used only where a statement repeats their condition word for word; hence conditions that
look doubled.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.store import claims, codec, outbox_files
from hermes.store.db import Tx

MAX_OPEN_ROWS = 100
IS_DEAD_LETTER = "state = 'dead' AND kind NOT IN ('preview', 'edit')"  # what only refreshes is no loss
TOLD_TO_WAIT = "told to wait"  # how the reason of a rate limit begins
PARKED_BECAUSE = "waits for the person's next message: "


class OutboxState(StrEnum):
    READY = "ready"
    UNKNOWN = "unknown"  # the bytes may have left; set just before they are written
    PARKED = "parked"  # the platform takes it only after the person's next message
    JOINED = "joined"  # its text goes out with another row
    SENT = "sent"
    DEAD = "dead"  # kept with its reason


class OutboxKind(StrEnum):
    REPLY = "reply"
    NOTICE = "notice"
    PREVIEW = "preview"
    QUESTION = "question"
    EDIT = "edit"  # changes a message of ours that is there; where there is none, nothing is sent


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A row to be stored. ``replaces`` is the outbox id of the preview that this row overwrites."""

    id: str
    target: str
    group_id: str
    idx: int
    kind: OutboxKind
    body: str
    expires_at: float
    turn_id: str = ""
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class OutboxRow:
    id: str
    target: str
    turn_id: str
    group_id: str
    idx: int
    kind: str
    body: str
    state: str
    attempts: int
    unknowns: int
    message_id: str
    not_before: float
    expires_at: float
    created_at: float
    settled_at: float | None
    reason: str


COLUMNS = (
    "id, target, turn_id, group_id, idx, kind, body, state, attempts, unknowns, message_id, "
    "not_before, expires_at, created_at, settled_at, reason"
)


@dataclass(frozen=True, slots=True)
class OpenRow:
    """A row that is neither parked nor settled, with what decides whether it may be sent now."""

    id: str
    target: str
    kind: str
    body: str
    state: str
    attempts: int
    unknowns: int
    replaces: str
    not_before: float
    expires_at: float
    turn_id: str
    reason: str


def enqueue(tx: Tx, rows: Sequence[Outgoing], *, now: float) -> None:
    """Store rows in order; their targets are due. A row that is there already is left alone."""
    for row in rows:
        seq = claims.wake(tx, "targets", row.target, at=now)
        tx.run(
            """
            INSERT INTO outbox (id, target, seq, turn_id, group_id, idx, kind, body, state, replaces,
                                not_before, expires_at, created_at)
            VALUES (:id, :target, :seq, :turn_id, :group_id, :idx, :kind, :body, 'ready', :replaces,
                    :now, :expires_at, :now)
            ON CONFLICT (id) DO NOTHING
            """,
            id=row.id,
            target=row.target,
            seq=seq,
            turn_id=row.turn_id,
            group_id=row.group_id,
            idx=row.idx,
            kind=row.kind.value,
            body=row.body,
            replaces=row.replaces,
            expires_at=row.expires_at,
            now=now,
        )


def get(tx: Tx, row_id: str) -> OutboxRow | None:
    return tx.one(f"SELECT {COLUMNS} FROM outbox WHERE id = :id", OutboxRow, id=row_id)


def states(tx: Tx, row_ids: Sequence[str]) -> dict[str, tuple[str, float]]:
    """State and time of settling (0: not settled) of those rows that there are."""
    found = {}
    for row_id in row_ids:
        row = get(tx, row_id)
        if row is not None:
            found[row_id] = (row.state, row.settled_at or 0.0)
    return found


def of_turn(tx: Tx, turn_id: str) -> list[OutboxRow]:
    return tx.all(
        f"SELECT {COLUMNS} FROM outbox WHERE turn_id = :id AND turn_id <> '' ORDER BY created_at, idx",
        OutboxRow,
        id=turn_id,
    )


def of_group(tx: Tx, group_id: str) -> list[OutboxRow]:
    return tx.all(f"SELECT {COLUMNS} FROM outbox WHERE group_id = :id ORDER BY idx", OutboxRow, id=group_id)


def preview_of_turn(tx: Tx, turn_id: str) -> str:
    """The preview that a turn was showing when its process ended, or '': it was none, or has its final text."""
    rows = tx.all(
        """
        SELECT id, kind, state, replaces FROM outbox WHERE turn_id = :id AND turn_id <> '' ORDER BY seq DESC LIMIT 100
        """,
        lambda *row: row,
        id=turn_id,
    )
    finished = {replaces for *_, replaces in rows}
    shown = (row_id for row_id, kind, state, _ in rows if kind == OutboxKind.PREVIEW and state != OutboxState.DEAD)
    return next((str(row_id) for row_id in shown if row_id not in finished), "")


def open_rows(tx: Tx, target: str) -> list[OpenRow]:
    """The first rows that a target waits for, in their order, at most ``MAX_OPEN_ROWS``."""
    return tx.all(
        """
        SELECT id, target, kind, body, state, attempts, unknowns, replaces, not_before, expires_at, turn_id, reason
        FROM outbox
        WHERE target = :target AND (state = 'ready' OR state = 'unknown' OR state = 'parked') AND state <> 'parked'
        ORDER BY seq, idx LIMIT :limit
        """,
        OpenRow,
        target=target,
        limit=MAX_OPEN_ROWS,
    )


def dead_letters(tx: Tx, *, limit: int = 50) -> list[OutboxRow]:
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM outbox WHERE {IS_DEAD_LETTER} ORDER BY settled_at DESC LIMIT :limit
        """,
        OutboxRow,
        limit=limit,
    )


def give_up(tx: Tx, row_id: str, reason: str, now: float) -> int:
    """Make a row and what was joined to it dead letters; the chat is told of files that went with it."""
    outbox_files.row_died(tx, row_id)
    tx.run(
        """
        UPDATE outbox SET state = 'dead', reason = :reason, settled_at = :now
        WHERE joined_to = :id AND joined_to <> '' AND state = 'joined'
        """,
        id=row_id,
        reason=reason,
        now=now,
    )
    return tx.run(
        "UPDATE outbox SET state = 'dead', reason = :reason, settled_at = :now WHERE id = :id",
        id=row_id,
        reason=reason,
        now=now,
    )


def withdraw(tx: Tx, group_id: str, *, reason: str, now: float) -> int:
    """Do not send what has not left yet of this letter."""
    return tx.run(
        """
        UPDATE outbox SET state = 'dead', reason = :reason, settled_at = :now
        WHERE group_id = :group_id AND state IN ('ready', 'parked')
        """,
        group_id=group_id,
        reason=reason,
        now=now,
    )


def record_parked(tx: Tx, row_id: str, *, expires_at: float, reason: str) -> None:
    tx.run(
        "UPDATE outbox SET state = 'parked', expires_at = :expires_at, reason = :reason WHERE id = :id",
        id=row_id,
        expires_at=expires_at,
        reason=f"{PARKED_BECAUSE}{reason}",
    )


def unpark(tx: Tx, target: str, *, now: float) -> int:
    """The person wrote: the window is open, and what waited for it is due."""
    count = tx.run(
        """
        UPDATE outbox SET state = 'ready', not_before = :now
        WHERE target = :target AND (state = 'ready' OR state = 'unknown' OR state = 'parked') AND state = 'parked'
        """,
        target=target,
        now=now,
    )
    if count:
        claims.wake(tx, "targets", target, at=now)
    return count


def hasten(tx: Tx, account: str, *, now: float) -> int:
    """An account is connected again: whatever waits for it is due now, but for what the platform told to wait."""
    prefix = f"{account}:"
    tx.run(
        """
        UPDATE outbox SET not_before = :now
        WHERE (state = 'ready' OR state = 'unknown' OR state = 'parked') AND state = 'ready' AND not_before > :now
            AND substr(target, 1, :length) = :prefix AND substr(reason, 1, :told_length) <> :told
        """,
        now=now,
        length=len(prefix),
        prefix=prefix,
        told_length=len(TOLD_TO_WAIT),
        told=TOLD_TO_WAIT,
    )
    return tx.run(
        """
        UPDATE targets SET next_at = :now
        WHERE owner IS NULL AND next_at > :now AND substr(key, 1, :length) = :prefix
        """,
        now=now,
        length=len(prefix),
        prefix=prefix,
    )


def expire_parked(tx: Tx, *, now: float) -> int:
    return tx.run(
        """
        UPDATE outbox SET state = 'dead', reason = 'expired while parked', settled_at = :now
        WHERE (state = 'ready' OR state = 'unknown' OR state = 'parked') AND state = 'parked' AND expires_at <= :now
        """,
        now=now,
    )


def expire_unclaimed(tx: Tx, *, now: float) -> int:
    """In a cluster: give up what expired in targets that no node serves, as their accounts are nowhere configured."""
    return tx.run(
        """
        UPDATE outbox SET state = 'dead', reason = 'expired: no node has this account', settled_at = :now
        WHERE (state = 'ready' OR state = 'unknown' OR state = 'parked') AND state = 'ready' AND expires_at <= :now
            AND EXISTS (SELECT 1 FROM targets WHERE targets.key = outbox.target AND targets.owner IS NULL)
        """,
        now=now,
    )


def retry_dead(tx: Tx, row_id: str, *, expires_at: float, now: float) -> bool:
    """Offer a dead letter again, because a person asked for it."""
    target = tx.value("SELECT target FROM outbox WHERE id = :id AND state = 'dead'", id=row_id)
    if target is None or _is_blank(tx, row_id):
        return False
    tx.run(
        """
        UPDATE outbox SET state = 'ready', unknowns = 0, not_before = :now, expires_at = :expires_at,
            settled_at = NULL, reason = 'retried by hand' WHERE id = :id
        """,
        id=row_id,
        now=now,
        expires_at=expires_at,
    )
    # What was joined to it is still in its text.
    tx.run("UPDATE outbox SET state = 'joined' WHERE joined_to = :id AND joined_to <> '' AND state = 'dead'", id=row_id)
    claims.wake(tx, "targets", str(target), at=now)
    return True


def _is_blank(tx: Tx, row_id: str) -> bool:
    """Whether the words of a delivery went with its session."""
    body = str(tx.value("SELECT body FROM outbox WHERE id = :id", id=row_id) or "")
    try:
        message = codec.load_outbound(body)
    except ValueError:  # damaged: sending it says so
        return False
    return not message.text and message.attachment is None
