"""Store what is to go out until it is sent, refused or expired.

The partial indexes are used only where a statement repeats their condition word for word; hence conditions that
look doubled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import takewhile

from hermes.core.dataclasses import dataclass
from hermes.core.keys import Target
from hermes.core.messages import OutboundMessage
from hermes.store import claims, codec, outbox_files, outbox_quota
from hermes.store.claims import Claim
from hermes.store.db import Tx
from hermes.store.outbox_quota import ReplyQuota

MAX_REPEATS = 3
LOOKED_AT = 100
NOTE_SECONDS = 60.0
IS_DEAD_LETTER = "state = 'dead' AND kind NOT IN ('preview', 'edit')"  # what only refreshes is no loss
TOLD_TO_WAIT = "told to wait"  # how the reason of a rate limit begins
PARKED_BECAUSE = "waits for the person's next message: "
SPENT = "as many as may follow their last one were sent"
BEHIND = "something before it waits too"


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


@dataclass(frozen=True, slots=True)
class _Open:
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
        rows = _open_rows(tx, held.key)
        for row in rows:
            if row.expires_at <= now:
                expired += _die(tx, row.id, "expired: it was not delivered in time", now)
            elif reason := _why_never(tx, row, rows):
                _die(tx, row.id, reason, now)
            elif row.not_before > now:
                next_at = row.not_before  # order holds: what stands behind it waits with it
                break
            elif not may_begin:
                next_at, rests = now, True
                break
            elif (due := row if terms is None else on_terms(tx, row, rows, terms, now=now)) is not None:
                return BegunDelivery(held, _begin(tx, due, is_counted=terms is not None), expired)
        if next_at is None and len(rows) == LOOKED_AT:
            seen = None
            continue  # all of these are dead now, and more may stand behind them
        if claims.release(tx, "targets", held, seen=seen, next_at=next_at):
            return BegunDelivery(held, None, expired, rests)
        seen = None
    return None


def _why_never(tx: Tx, row: _Open, rows: list[_Open]) -> str:
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


def rest(tx: Tx, held: Claim) -> bool:
    """Give the target back if nothing was added since it was claimed and nothing is left to send there."""
    return tx.run(_REST, key=held.key, token=held.token, seen=held.seq) == 1


_REST = """
    UPDATE targets SET owner = NULL, next_at = NULL
    WHERE key = :key AND token = :token AND seq = :seen AND NOT EXISTS (
        SELECT 1 FROM outbox
        WHERE target = :key AND (state = 'ready' OR state = 'unknown' OR state = 'parked') AND state <> 'parked')
"""


# Platforms that count what follows a person's message


def allow(tx: Tx, target: str, *, sends: int) -> None:
    """Somebody wrote there: so many messages may follow."""
    tx.run(
        """
        INSERT INTO allowances (target, sends_left) VALUES (:target, :sends)
        ON CONFLICT (target) DO UPDATE SET sends_left = :sends
        """,
        target=target,
        sends=sends,
    )


def sends_left(tx: Tx, target: str) -> int | None:
    """How many may follow; None where nobody has written yet, and nothing is counted."""
    left = tx.value("SELECT sends_left FROM allowances WHERE target = :target", target=target)
    return None if left is None else int(left)


def on_terms(tx: Tx, row: _Open, rows: Sequence[_Open], terms: ReplyQuota, *, now: float) -> _Open | None:
    """The row as it may be sent now, with what waits behind it joined to it; None when it has to wait, or is given up.

    The last one that may be sent carries a word of ours, so that nobody waits in vain for what comes after it.
    """
    left = sends_left(tx, row.target)
    why = SPENT if left == 0 else BEHIND if _has_parked(tx, row.target) else ""
    if why:
        _set_by(tx, row, why, terms, now=now)
        return None
    if left == 1 and row.kind not in _LASTING:
        _die(tx, row.id, "the last one that may be sent is kept for the answer", now)
        return None
    notes = terms.notes(tx, row.turn_id)
    whole = _joined(tx, row, rows, terms, now=now) if row.state == OutboxState.READY else row
    is_late = row.reason.startswith(PARKED_BECAUSE) and not row.reason.endswith(SPENT)
    body = outbox_quota.noted(whole.body, notes, terms, is_last=left == 1, is_late=is_late)
    if body is None:  # a file, or a text that has no room: the last one is the note itself
        _set_by(tx, whole, SPENT, terms, now=now)
        name = f"{whole.id}_more{whole.attempts}"
        note = codec.dump(OutboundMessage(Target.parse(row.target), notes.last, idempotency_key=name))
        # Stale after a minute.
        until = now + NOTE_SECONDS
        enqueue(tx, [Outgoing(name, row.target, name, 0, OutboxKind.NOTICE, note, until, whole.turn_id)], now=now)
        whole = next(each for each in _open_rows(tx, row.target) if each.id == name)
    elif body != whole.body:
        whole = _rewritten(tx, whole, body, whole.expires_at)
    tx.run("UPDATE allowances SET sends_left = sends_left - 1 WHERE target = :target", target=row.target)
    return whole


_LASTING = (OutboxKind.REPLY, OutboxKind.QUESTION)


def _has_parked(tx: Tx, target: str) -> bool:
    found = tx.value(
        """
        SELECT 1 FROM outbox
        WHERE target = :target AND (state = 'ready' OR state = 'unknown' OR state = 'parked')
            AND state = 'parked' LIMIT 1
        """,
        target=target,
    )
    return found is not None


def _set_by(tx: Tx, row: _Open, why: str, terms: ReplyQuota, *, now: float) -> None:
    """Let it wait for the person's next message. What was said only for the moment is given up."""
    if row.kind not in _LASTING:
        _die(tx, row.id, why, now)
        return
    if row.state == OutboxState.UNKNOWN:  # it may have arrived: that must not be forgotten
        tx.run("UPDATE outbox SET unknowns = unknowns + 1 WHERE id = :id", id=row.id)
    record_parked(tx, row.id, expires_at=now + terms.parked_seconds, reason=why)


def _joined(tx: Tx, row: _Open, rows: Sequence[_Open], terms: ReplyQuota, *, now: float) -> _Open:
    """The row with the texts of those right behind it, as far as they fit into one message."""
    message = outbox_quota.plain_text(row.body)
    if message is None or row.replaces or row.kind == OutboxKind.QUESTION:  # a question may yet be withdrawn
        return row
    behind = rows[next(place for place, each in enumerate(rows) if each.id == row.id) + 1 :]
    may_join = list(takewhile(lambda other: _may_join(row, other, now), behind))
    text, count = outbox_quota.joined(message.text, [outbox_quota.plain_text(other.body) for other in may_join], terms)
    for other in may_join[:count]:
        # What was joined to that one goes along.
        tx.run(
            """
            UPDATE outbox SET state = 'joined', joined_to = :row
            WHERE id = :id OR (joined_to = :id AND joined_to <> '')
            """,
            id=other.id,
            row=row.id,
        )
    if not count:
        return row
    expires_at = max(each.expires_at for each in (row, *may_join[:count]))
    return _rewritten(tx, row, codec.dump(replace(message, text=text)), expires_at)


def _rewritten(tx: Tx, row: _Open, body: str, expires_at: float) -> _Open:
    tx.run(
        "UPDATE outbox SET body = :body, expires_at = :expires_at WHERE id = :id",
        id=row.id,
        body=body,
        expires_at=expires_at,
    )
    return replace(row, body=body, expires_at=expires_at)


def _may_join(row: _Open, other: _Open, now: float) -> bool:
    fits = other.kind == OutboxKind.NOTICE or row.kind == other.kind == OutboxKind.REPLY
    return (
        fits and not other.replaces and other.state == OutboxState.READY and other.not_before <= now < other.expires_at
    )


# Beginning


def _open_rows(tx: Tx, target: str) -> list[_Open]:
    return tx.all(
        """
        SELECT id, target, kind, body, state, attempts, unknowns, replaces, not_before, expires_at, turn_id, reason
        FROM outbox
        WHERE target = :target AND (state = 'ready' OR state = 'unknown' OR state = 'parked') AND state <> 'parked'
        ORDER BY seq, idx LIMIT :limit
        """,
        _Open,
        target=target,
        limit=LOOKED_AT,
    )


def _begin(tx: Tx, row: _Open, *, is_counted: bool) -> Sending:
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


def record_parked(tx: Tx, row_id: str, *, expires_at: float, reason: str) -> None:
    tx.run(
        "UPDATE outbox SET state = 'parked', expires_at = :expires_at, reason = :reason WHERE id = :id",
        id=row_id,
        expires_at=expires_at,
        reason=f"{PARKED_BECAUSE}{reason}",
    )


def record_rejected(tx: Tx, row_id: str, *, reason: str, now: float) -> None:
    """Record a refusal: this part is dead, and the rest of its group with it."""
    group_id = tx.value("SELECT group_id FROM outbox WHERE id = :id", id=row_id)
    _die(tx, row_id, reason, now)
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


def _die(tx: Tx, row_id: str, reason: str, now: float) -> int:
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


def states(tx: Tx, row_ids: Sequence[str]) -> dict[str, tuple[str, float]]:
    """State and time of settling (0: not settled) of those rows that there are."""
    found = {}
    for row_id in row_ids:
        row = get(tx, row_id)
        if row is not None:
            found[row_id] = (row.state, row.settled_at or 0.0)
    return found


def get(tx: Tx, row_id: str) -> OutboxRow | None:
    return tx.one(f"SELECT {COLUMNS} FROM outbox WHERE id = :id", OutboxRow, id=row_id)


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


def of_turn(tx: Tx, turn_id: str) -> list[OutboxRow]:
    return tx.all(
        f"SELECT {COLUMNS} FROM outbox WHERE turn_id = :id AND turn_id <> '' ORDER BY created_at, idx",
        OutboxRow,
        id=turn_id,
    )


def of_group(tx: Tx, group_id: str) -> list[OutboxRow]:
    return tx.all(f"SELECT {COLUMNS} FROM outbox WHERE group_id = :id ORDER BY idx", OutboxRow, id=group_id)


def counts(tx: Tx, *, since: float) -> dict[str, int]:
    """How many rows are in each state, of those made since then or still open."""
    rows = tx.all(
        "SELECT state, COUNT(*) FROM outbox WHERE created_at >= :since GROUP BY state", lambda *row: row, since=since
    )
    return {str(state): int(count) for state, count in rows}


def sent_counts(tx: Tx, *, since: float, before: float) -> dict[str, int]:
    """How many rows each target was sent in that time, of those made up to an hour before it."""
    rows = tx.all(
        """
        SELECT target, COUNT(*) FROM outbox WHERE created_at >= :made_since AND created_at < :before
            AND state = 'sent' AND settled_at >= :since AND settled_at < :before GROUP BY target
        """,
        lambda *row: row,
        made_since=since - 3600.0,
        since=since,
        before=before,
    )
    return {str(target): int(count) for target, count in rows}


def waiting_count(tx: Tx) -> int:
    return int(tx.value("SELECT COUNT(*) FROM outbox WHERE (state = 'ready' OR state = 'unknown' OR state = 'parked')"))


def dead_letter_count(tx: Tx) -> int:
    return int(tx.value(f"SELECT COUNT(*) FROM outbox WHERE {IS_DEAD_LETTER}"))


def dead_letters(tx: Tx, *, limit: int = 50) -> list[OutboxRow]:
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM outbox WHERE {IS_DEAD_LETTER} ORDER BY settled_at DESC LIMIT :limit
        """,
        OutboxRow,
        limit=limit,
    )
