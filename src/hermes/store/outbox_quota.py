"""Keep to the quota of platforms that count what follows a person's message.

What is over the quota waits for the person's next message; waiting texts are joined, and our notes say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile

from hermes.core.dataclasses import dataclass
from hermes.core.keys import Target
from hermes.core.messages import OutboundMessage, TextUnit
from hermes.core.text import length
from hermes.store import codec, outbox
from hermes.store.db import Tx
from hermes.store.outbox import OpenRow, OutboxKind, OutboxState, Outgoing

NOTE_SECONDS = 60.0
SPENT = "as many as may follow their last one were sent"
BEHIND = "something before it waits too"
_LASTING = (OutboxKind.REPLY, OutboxKind.QUESTION)


@dataclass(frozen=True, slots=True)
class LateNotes:
    """Our words around what goes out late: below the last one that may be sent for now, above what is late."""

    last: str
    late: str


@dataclass(frozen=True, slots=True)
class ReplyQuota:
    """``note_room`` is what a message may have beyond ``text_limit`` for our own words.

    ``notes`` gives these in the language of whoever a turn is for.
    """

    text_limit: int
    unit: TextUnit
    note_room: int
    parked_seconds: float
    notes: Callable[[Tx, str], LateNotes]


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


def row_within_quota(tx: Tx, row: OpenRow, rows: Sequence[OpenRow], terms: ReplyQuota, *, now: float) -> OpenRow | None:
    """The row as it may be sent now, with what waits behind it joined to it; None when it has to wait, or is given up.

    The last one that may be sent carries a word of ours, so that nobody waits in vain for what comes after it.
    """
    left = sends_left(tx, row.target)
    why = SPENT if left == 0 else BEHIND if _has_parked(tx, row.target) else ""
    if why:
        _set_by(tx, row, why, terms, now=now)
        return None
    if left == 1 and row.kind not in _LASTING:
        outbox.give_up(tx, row.id, "the last one that may be sent is kept for the answer", now)
        return None
    notes = terms.notes(tx, row.turn_id)
    whole = _with_rows_behind(tx, row, rows, terms, now=now) if row.state == OutboxState.READY else row
    is_late = row.reason.startswith(outbox.PARKED_BECAUSE) and not row.reason.endswith(SPENT)
    body = noted(whole.body, notes, terms, is_last=left == 1, is_late=is_late)
    if body is None:  # a file, or a text that has no room: the last one is the note itself
        _set_by(tx, whole, SPENT, terms, now=now)
        name = f"{whole.id}_more{whole.attempts}"
        note = codec.dump(OutboundMessage(Target.parse(row.target), notes.last, idempotency_key=name))
        # Stale after a minute.
        until = now + NOTE_SECONDS
        outbox.enqueue(
            tx, [Outgoing(name, row.target, name, 0, OutboxKind.NOTICE, note, until, whole.turn_id)], now=now
        )
        whole = next(each for each in outbox.open_rows(tx, row.target) if each.id == name)
    elif body != whole.body:
        whole = _rewritten(tx, whole, body, whole.expires_at)
    tx.run("UPDATE allowances SET sends_left = sends_left - 1 WHERE target = :target", target=row.target)
    return whole


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


def _set_by(tx: Tx, row: OpenRow, why: str, terms: ReplyQuota, *, now: float) -> None:
    """Let it wait for the person's next message. What was said only for the moment is given up."""
    if row.kind not in _LASTING:
        outbox.give_up(tx, row.id, why, now)
        return
    if row.state == OutboxState.UNKNOWN:  # it may have arrived: that must not be forgotten
        tx.run("UPDATE outbox SET unknowns = unknowns + 1 WHERE id = :id", id=row.id)
    outbox.record_parked(tx, row.id, expires_at=now + terms.parked_seconds, reason=why)


def _with_rows_behind(tx: Tx, row: OpenRow, rows: Sequence[OpenRow], terms: ReplyQuota, *, now: float) -> OpenRow:
    """The row with the texts of those right behind it, as far as they fit into one message."""
    message = plain_text(row.body)
    if message is None or row.replaces or row.kind == OutboxKind.QUESTION:  # a question may yet be withdrawn
        return row
    behind = rows[next(place for place, each in enumerate(rows) if each.id == row.id) + 1 :]
    may_join = list(takewhile(lambda other: _may_join(row, other, now), behind))
    text, count = joined(message.text, [plain_text(other.body) for other in may_join], terms)
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


def _rewritten(tx: Tx, row: OpenRow, body: str, expires_at: float) -> OpenRow:
    tx.run(
        "UPDATE outbox SET body = :body, expires_at = :expires_at WHERE id = :id",
        id=row.id,
        body=body,
        expires_at=expires_at,
    )
    return replace(row, body=body, expires_at=expires_at)


def _may_join(row: OpenRow, other: OpenRow, now: float) -> bool:
    fits = other.kind == OutboxKind.NOTICE or row.kind == other.kind == OutboxKind.REPLY
    return (
        fits and not other.replaces and other.state == OutboxState.READY and other.not_before <= now < other.expires_at
    )


# Texts


def plain_text(body: str) -> OutboundMessage | None:
    """The message, if it is nothing but a text."""
    try:
        message = codec.load_outbound(body)
    except ValueError:  # a damaged row is told so when it is its turn
        return None
    is_plain = message.attachment is None and not message.buttons and bool(message.text)
    return message if is_plain else None


def joined(text: str, others: Sequence[OutboundMessage | None], terms: ReplyQuota) -> tuple[str, int]:
    """The text with those behind it, as far as they fit into one message; and how many did."""
    for count, other in enumerate(others):
        longer = f"{text}\n\n{other.text}" if other is not None else ""
        if not longer or length(longer, terms.unit) > terms.text_limit:
            return text, count
        text = longer
    return text, len(others)


def noted(body: str, notes: LateNotes, terms: ReplyQuota, *, is_last: bool, is_late: bool) -> str | None:
    """The body with our words above and below, where they belong. None: the word below has no room in it."""
    message = plain_text(body)
    if message is None:
        return None if is_last else body
    most = terms.text_limit + terms.note_room
    text = message.text.removesuffix(f"\n\n{notes.last}")  # of a try that came to nothing
    below = f"\n\n{notes.last}" if is_last else ""
    if length(text + below, terms.unit) > most:
        return None
    above = f"{notes.late}\n" if is_late and not text.startswith(notes.late) else ""
    if length(above + text + below, terms.unit) <= most:
        text = above + text
    text += below
    return body if text == message.text else codec.dump(replace(message, text=text))
