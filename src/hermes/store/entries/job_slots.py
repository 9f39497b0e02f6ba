"""Store the ledger of the due times of jobs: what was decided of each, and what came of it.

The ledger holds each slot once: its primary key is the last word on whether a slot was decided, also after the clock
was set back and between two nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.core.entries.job_slots import Passed, SlotState
from hermes.store import inbox
from hermes.store.db import Tx
from hermes.store.inbox import InboxState
from hermes.store.outbox import OutboxState
from hermes.store.turns import turns

KEPT_SLOTS = 500
"""Slots of one job that are kept, however old."""
KEPT_SECONDS = 90 * 86400.0


class Outcome(StrEnum):
    """How a run ended."""

    OPEN = "open"
    DONE = "done"
    SILENT = "silent"
    FAILED = "failed"
    STOPPED = "stopped"


class SlotDelivery(StrEnum):
    """What became of the answer of a run: apart from the run itself."""

    NONE = "none"
    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class JobSlot:
    """One row of the ledger, with the state of its turn; '' where it has none."""

    job_id: str
    slot: float
    last_slot: float
    slots: int
    state: str
    reason: str
    event_id: str
    outcome: str
    error: str
    delivery: str
    script_state: str
    script_output: str
    decided_at: float
    ended_at: float | None
    turn_id: str = ""


_SLOT_COLUMNS = (
    "job_slots.job_id, job_slots.slot, job_slots.last_slot, job_slots.slots, job_slots.state, job_slots.reason, "
    "job_slots.event_id, job_slots.outcome, job_slots.error, job_slots.delivery, job_slots.script_state, "
    "job_slots.script_output, job_slots.decided_at, job_slots.ended_at, COALESCE(inbox.turn_id, '')"
)
_SLOTS = f"SELECT {_SLOT_COLUMNS} FROM job_slots LEFT JOIN inbox ON inbox.id = job_slots.event_id"


def is_busy(tx: Tx, job_id: str) -> bool:
    """Tell whether a run of this job has not ended."""
    return (
        tx.value(
            """
            SELECT 1 FROM job_slots JOIN inbox ON inbox.id = job_slots.event_id
            WHERE job_slots.job_id = :id AND job_slots.outcome = 'open'
                AND (inbox.state = 'queued' OR inbox.state = 'taken') LIMIT 1
            """,
            id=job_id,
        )
        is not None
    )


# Deciding


def note_run(
    tx: Tx, job_id: str, slot: float, *, state: SlotState, event_id: str, reason: str = "", now: float
) -> bool:
    """Enter a slot that runs. False: the ledger has it already, so it must not run again."""
    return (
        tx.run(
            """
            INSERT INTO job_slots (job_id, slot, last_slot, state, reason, event_id, outcome, decided_at)
            VALUES (:id, :slot, :slot, :state, :reason, :event_id, 'open', :now)
            ON CONFLICT (job_id, slot) DO NOTHING
            """,
            id=job_id,
            slot=slot,
            state=state.value,
            reason=reason,
            event_id=event_id,
            now=now,
        )
        == 1
    )


def note_passed(tx: Tx, job_id: str, passed: Passed, *, now: float) -> bool:
    """Enter slots that do not run. Slots that the ledger has already stay as they are."""
    return (
        tx.run(
            """
            INSERT INTO job_slots (job_id, slot, last_slot, slots, state, reason, decided_at)
            VALUES (:id, :first, :last, :count, :state, :reason, :now)
            ON CONFLICT (job_id, slot) DO NOTHING
            """,
            id=job_id,
            first=passed.first,
            last=passed.last,
            count=passed.count,
            state=passed.state.value,
            reason=passed.reason,
            now=now,
        )
        == 1
    )


def newest_slot(tx: Tx, job_id: str) -> float:
    """Return the newest slot that was decided; 0 without one."""
    return float(tx.value("SELECT MAX(last_slot) FROM job_slots WHERE job_id = :id", id=job_id) or 0.0)


def is_decided(tx: Tx, job_id: str, slot: float) -> bool:
    """Tell whether the ledger has a slot, alone or among several."""
    found = tx.value(
        "SELECT 1 FROM job_slots WHERE job_id = :id AND slot <= :slot AND last_slot >= :slot LIMIT 1",
        id=job_id,
        slot=slot,
    )
    return found is not None


def event_of_run(tx: Tx, job_id: str, reason: str) -> str:
    """Return the event of a run that was asked for under this reason; '' without one."""
    found = tx.value(
        "SELECT event_id FROM job_slots WHERE job_id = :id AND reason = :reason LIMIT 1", id=job_id, reason=reason
    )
    return str(found or "")


def slots_of(tx: Tx, job_id: str, *, limit: int = 50) -> list[JobSlot]:
    """List what became of a job's slots, the newest first."""
    return tx.all(f"{_SLOTS} WHERE job_slots.job_id = :id ORDER BY job_slots.slot DESC LIMIT :limit", JobSlot,
                  id=job_id, limit=limit)  # fmt: skip


def slot_of(tx: Tx, job_id: str, slot: float) -> JobSlot | None:
    return tx.one(f"{_SLOTS} WHERE job_slots.job_id = :id AND job_slots.slot = :slot", JobSlot, id=job_id, slot=slot)


def newest_decided(tx: Tx) -> float:
    """Return when the newest slot was decided: a later time than now says that the clock was set back."""
    return float(tx.value("SELECT MAX(decided_at) FROM job_slots") or 0.0)


def ended(tx: Tx, *, limit: int = 200) -> list[JobSlot]:
    """List runs that have ended and are not settled yet."""
    return tx.all(
        f"""
        {_SLOTS} WHERE job_slots.outcome = 'open' AND (inbox.id IS NULL OR inbox.settled_at IS NOT NULL)
        ORDER BY job_slots.decided_at LIMIT :limit
        """,
        JobSlot,
        limit=limit,
    )


def outcome_of(tx: Tx, slot: JobSlot) -> tuple[Outcome, str]:
    """Read how a run ended, and why."""
    row = inbox.get(tx, slot.event_id)
    if row is None:
        return Outcome.FAILED, "its event is gone"
    turn = turns.get(tx, row.turn_id) if row.turn_id else None
    if row.state == InboxState.ANSWERED:
        return Outcome.DONE, ""
    reason = (turn.reason if turn is not None else "") or row.reason
    is_stopped = turn is None or turn.state in ("stopped", "interrupted")
    return (Outcome.STOPPED if is_stopped else Outcome.FAILED), reason


def settle(tx: Tx, slot: JobSlot, *, outcome: Outcome, error: str, delivery: SlotDelivery, now: float) -> bool:
    """Enter the end of a run. False: it was entered before."""
    return (
        tx.run(
            """
            UPDATE job_slots SET outcome = :outcome, error = :error, delivery = :delivery, ended_at = :now
            WHERE job_id = :id AND slot = :slot AND outcome = 'open'
            """,
            id=slot.job_id,
            slot=slot.slot,
            outcome=outcome.value,
            error=error,
            delivery=delivery.value,
            now=now,
        )
        == 1
    )


# Delivery


def delivery_of(tx: Tx, turn_id: str) -> tuple[SlotDelivery, str]:
    """Read what became of the messages of a run's turn: all sent, some given up (and why), or some on the way."""
    found = tx.all(
        "SELECT state, target, reason FROM outbox WHERE turn_id = :id AND turn_id <> '' AND kind = 'reply'",
        lambda *row: row,
        id=turn_id,
    )
    if not found:
        return SlotDelivery.NONE, ""
    dead = [f"{target}: {reason}" if reason else str(target) for state, target, reason in found if state == "dead"]
    if dead:
        return SlotDelivery.FAILED, "; ".join(dict.fromkeys(dead))
    is_open = any(state in (OutboxState.READY, OutboxState.UNKNOWN, OutboxState.PARKED) for state, _, _ in found)
    return (SlotDelivery.WAITING if is_open else SlotDelivery.SENT), ""


def undelivered(tx: Tx, *, limit: int = 500) -> list[JobSlot]:
    """List ended runs whose answer was on its way when last looked at."""
    return tx.all(
        f"{_SLOTS} WHERE job_slots.delivery = 'waiting' ORDER BY job_slots.decided_at LIMIT :limit",
        JobSlot,
        limit=limit,
    )


def note_delivery(tx: Tx, job_id: str, slot: float, delivery: SlotDelivery, reason: str) -> None:
    tx.run(
        """
        UPDATE job_slots SET delivery = :delivery, error = CASE WHEN error = '' THEN :reason ELSE error END
        WHERE job_id = :id AND slot = :slot
        """,
        id=job_id,
        slot=slot,
        delivery=delivery.value,
        reason=reason,
    )


# Scripts


def begin_script(tx: Tx, job_id: str, slot: float) -> bool:
    """Note that the script of a run starts. False: it was started before, by a process that died."""
    return (
        tx.run(
            """
            UPDATE job_slots SET script_state = 'started' WHERE job_id = :id AND slot = :slot AND script_state = ''
            """,
            id=job_id,
            slot=slot,
        )
        == 1
    )


def end_script(tx: Tx, job_id: str, slot: float, *, output: str, error: str) -> None:
    tx.run(
        """
        UPDATE job_slots SET script_state = :state, script_output = :output WHERE job_id = :id AND slot = :slot
        """,
        id=job_id,
        slot=slot,
        state="failed" if error else "done",
        output=error or output,
    )


# Ageing


def forget_slots(tx: Tx, *, before: float, limit: int = 500) -> int:
    """Drop old entries of the ledger, a bite at a time; the newest of each job stay."""
    old: Sequence[tuple[str, float]] = tx.all(
        """
        SELECT job_id, slot FROM job_slots WHERE decided_at < :before AND outcome <> 'open' AND delivery <> 'waiting'
        ORDER BY decided_at LIMIT :limit
        """,
        lambda *row: (str(row[0]), float(row[1])),
        before=before,
        limit=limit,
    )
    gone = 0
    for job_id in {job for job, _ in old}:
        floor = tx.value(
            "SELECT slot FROM job_slots WHERE job_id = :id ORDER BY slot DESC LIMIT 1 OFFSET :kept",
            id=job_id,
            kept=KEPT_SLOTS,
        )
        if floor is not None:
            gone += tx.run(
                """
                DELETE FROM job_slots
                WHERE job_id = :id AND slot <= :floor AND decided_at < :before AND outcome <> 'open'
                """,
                id=job_id,
                floor=floor,
                before=before,
            )
    return gone
