"""Take the rows of the outbox that are due, and record how each send ended.

A row is marked unknown before its bytes leave, and settled with the receipt: what is between the two when a process
dies is sent again, marked. For doubled conditions see ``outbox``.
"""

from __future__ import annotations

from hermes.core.dataclasses import dataclass
from hermes.store import claims, outbox, outbox_quota
from hermes.store.claims import Claim
from hermes.store.db import Tx
from hermes.store.outbox import OpenRow, OutboxKind, OutboxState
from hermes.store.outbox_quota import ReplyQuota

MAX_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Sending:
    """A row in hand. ``repeats``: earlier attempts of unknown outcome. ``is_counted``: it used up one of the quota."""

    id: str
    target: str
    kind: str
    body: str
    attempts: int
    repeats: int
    replaces_message: str
    is_counted: bool = False


@dataclass(frozen=True, slots=True)
class BegunDelivery:
    """The claim and the row to send now, if any. ``rests``: a row waits because ``may_begin`` was False."""

    claim: Claim
    sending: Sending | None
    expired: int = 0
    rests: bool = False


def take(tx: Tx, target: str, *, owner: str, now: float, terms: ReplyQuota | None = None) -> BegunDelivery | None:
    """Claim a target and begin its first row, in one transaction."""
    held = claims.claim(tx, "targets", target, owner=owner, now=now)
    return None if held is None else begin_next(tx, held, now=now, terms=terms, seen=held.seq)


def begin_next(
    tx: Tx,
    held: Claim,
    *,
    now: float,
    may_begin: bool = True,
    terms: ReplyQuota | None = None,
    seen: int | None = None,
) -> BegunDelivery | None:
    """Mark the next row unknown and hand it out; with none due, give the target back.

    ``terms`` are those of a platform that counts what follows a person's message. With ``may_begin`` False nothing is
    begun: what is due stays ready and due, for a time when it can be sent.
    None means that the claim was lost to a successor: whoever calls must stop. ``seen`` is the target's seq, where the
    claim of this same transaction has just read it.
    """
    expired = 0
    while (seen := claims.seq_of(tx, "targets", held) if seen is None else seen) is not None:
        next_at: float | None = None
        rests = False
        rows = outbox.open_rows(tx, held.key)
        for row in rows:
            if row.expires_at <= now:
                expired += outbox.give_up(tx, row.id, "expired: it was not delivered in time", now)
            elif reason := _why_never(tx, row, rows):
                outbox.give_up(tx, row.id, reason, now)
            elif row.not_before > now:
                next_at = row.not_before  # order holds: what stands behind it waits with it
                break
            elif not may_begin:
                next_at, rests = now, True
                break
            elif (
                due := row if terms is None else outbox_quota.row_within_quota(tx, row, rows, terms, now=now)
            ) is not None:
                return BegunDelivery(held, _begin(tx, due, is_counted=terms is not None), expired)
        if next_at is None and len(rows) == outbox.MAX_OPEN_ROWS:
            seen = None
            continue  # all of these are dead now, and more may stand behind them
        if claims.release(tx, "targets", held, seen=seen, next_at=next_at):
            return BegunDelivery(held, None, expired, rests)
        seen = None
    return None


def _why_never(tx: Tx, row: OpenRow, rows: list[OpenRow]) -> str:
    """Why a row is not worth sending, now or later; '' where it is."""
    if row.kind == OutboxKind.EDIT and not _message_of(tx, row.replaces):
        return "there is nothing to edit"
    if row.state == OutboxState.UNKNOWN and row.kind == OutboxKind.PREVIEW:
        return "nobody knows whether it was shown; its final text comes anyway"
    if row.kind == OutboxKind.PREVIEW and any(other.replaces == row.id for other in rows):
        return "its final text was there before it could be shown"
    if row.state == OutboxState.UNKNOWN and row.unknowns >= MAX_REPEATS:
        return f"no answer from the platform after {MAX_REPEATS} repeats"
    return ""


def _begin(tx: Tx, row: OpenRow, *, is_counted: bool) -> Sending:
    repeats = row.unknowns + (1 if row.state == OutboxState.UNKNOWN else 0)
    tx.run(
        "UPDATE outbox SET state = 'unknown', attempts = attempts + 1, unknowns = :repeats WHERE id = :id",
        repeats=repeats,
        id=row.id,
    )
    replaced = _message_of(tx, row.replaces)
    return Sending(row.id, row.target, row.kind, row.body, row.attempts + 1, repeats, replaced, is_counted)


def _message_of(tx: Tx, row_id: str) -> str:
    """The platform's id of what this row became, '' when it has none."""
    return str(tx.value("SELECT message_id FROM outbox WHERE id = :id", id=row_id) or "") if row_id else ""


def rest(tx: Tx, held: Claim) -> bool:
    """Give the target back if nothing was added since it was claimed and nothing is left to send there."""
    return tx.run(_REST, key=held.key, token=held.token, seen=held.seq) == 1


_REST = """
    UPDATE targets SET owner = NULL, next_at = NULL
    WHERE key = :key AND token = :token AND seq = :seen AND NOT EXISTS (
        SELECT 1 FROM outbox
        WHERE target = :key AND (state = 'ready' OR state = 'unknown' OR state = 'parked') AND state <> 'parked')
"""


def record_sent(tx: Tx, row_id: str, *, message_id: str, note: str, now: float) -> None:
    """A receipt in hand is recorded, however often it takes; also for what went out with this row."""
    tx.run(
        """
        UPDATE outbox SET state = 'sent', message_id = :message_id, settled_at = :now,
            reason = CASE WHEN id = :id THEN :note ELSE reason END
        WHERE (id = :id AND state <> 'sent') OR (joined_to = :id AND joined_to <> '' AND state = 'joined')
        """,
        id=row_id,
        message_id=message_id,
        note=note,
        now=now,
    )


def record_not_sent(tx: Tx, row_id: str, *, not_before: float, reason: str, was_counted: bool = True) -> None:
    """Record that nothing left: the row is ready again later, and its use of the quota is given back."""
    changed = tx.run(
        """
        UPDATE outbox SET state = 'ready', not_before = :not_before, reason = :reason
        WHERE id = :id AND state = 'unknown'
        """,
        id=row_id,
        not_before=not_before,
        reason=reason,
    )
    if changed and was_counted:
        tx.run(
            """
            UPDATE allowances SET sends_left = sends_left + 1
            WHERE target = (SELECT target FROM outbox WHERE id = :id)
            """,
            id=row_id,
        )


def record_unknown(tx: Tx, row_id: str, *, not_before: float, reason: str) -> None:
    """Record that a send got no answer: it is repeated later, marked."""
    tx.run(
        "UPDATE outbox SET not_before = :not_before, reason = :reason WHERE id = :id AND state = 'unknown'",
        id=row_id,
        not_before=not_before,
        reason=reason,
    )


def record_rejected(tx: Tx, row_id: str, *, reason: str, now: float) -> None:
    """Record a refusal: this part is dead, and the rest of its group with it."""
    group_id = tx.value("SELECT group_id FROM outbox WHERE id = :id", id=row_id)
    outbox.give_up(tx, row_id, reason, now)
    tx.run(
        """
        UPDATE outbox SET state = 'dead', reason = 'an earlier part of this message was refused', settled_at = :now
        WHERE group_id = :group_id AND state IN ('ready', 'parked')
        """,
        group_id=group_id,
        now=now,
    )


def send_anew(tx: Tx, row_id: str, *, reason: str) -> None:
    """The message to overwrite is gone: send this row as one of its own."""
    tx.run(
        "UPDATE outbox SET state = 'ready', replaces = '', reason = :reason WHERE id = :id", id=row_id, reason=reason
    )
