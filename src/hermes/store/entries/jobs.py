"""Store jobs and the ledger of their due times.

The ledger holds each slot once: its primary key is the last word on whether a slot was decided, also after the clock
was set back and between two nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.core.entries.job_slots import Passed, SlotState
from hermes.core.entries.schedule import Schedule, ScheduleKind
from hermes.store import inbox
from hermes.store.db import Tx
from hermes.store.inbox import InboxState
from hermes.store.outbox import OutboxState
from hermes.store.turns import turns

KEPT_SLOTS = 500
"""Slots of one job that are kept, however old."""
KEPT_SECONDS = 90 * 86400.0


class JobState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One row of ``jobs``. ``skills`` are names separated by commas, ``origin`` is the lane where it was made."""

    id: str
    name: str
    person_id: str
    role: str
    prompt: str
    script: str = ""
    skills: str = ""
    model: str = ""
    workdir: str = ""
    no_agent: int = 0
    deliver: str = "local"
    origin: str = ""
    catch_up: str = "run_once"
    quiet: str = ""
    timezone: str = ""
    schedule: str = ""
    kind: str = ""
    at: float = 0.0
    seconds: int = 0
    is_relative: int = 0
    runs_left: int | None = None
    state: str = JobState.ACTIVE.value
    reason: str = ""
    next_slot: float | None = None
    next_at: float | None = None
    failures: int = 0
    undelivered: int = 0
    created_at: float = 0.0
    updated_at: float = 0.0

    @property
    def due(self) -> Schedule:
        return Schedule(ScheduleKind(self.kind), self.schedule, self.at, self.seconds, bool(self.is_relative))


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


COLUMNS = (
    "id, name, person_id, role, prompt, script, skills, model, workdir, no_agent, deliver, origin, catch_up, quiet, "
    "timezone, schedule, kind, at, seconds, is_relative, runs_left, state, reason, next_slot, next_at, failures, "
    "undelivered, created_at, updated_at"
)
_NAMES = tuple(COLUMNS.split(", "))
_VALUES = ", ".join(f":{name}" for name in _NAMES)
_CHANGES = ", ".join(f"{name} = :{name}" for name in _NAMES if name not in ("id", "created_at"))
_SLOT_COLUMNS = (
    "job_slots.job_id, job_slots.slot, job_slots.last_slot, job_slots.slots, job_slots.state, job_slots.reason, "
    "job_slots.event_id, job_slots.outcome, job_slots.error, job_slots.delivery, job_slots.script_state, "
    "job_slots.script_output, job_slots.decided_at, job_slots.ended_at, COALESCE(inbox.turn_id, '')"
)
_SLOTS = f"SELECT {_SLOT_COLUMNS} FROM job_slots LEFT JOIN inbox ON inbox.id = job_slots.event_id"  # noqa: S608


def _job(*row: object) -> JobRow:
    return JobRow(**dict(zip(_NAMES, row, strict=True)))  # type: ignore[arg-type]


# Jobs


def insert(tx: Tx, job: JobRow) -> bool:
    """Store a job. False: one with this id is there already."""
    return tx.run(f"INSERT INTO jobs ({COLUMNS}) VALUES ({_VALUES}) ON CONFLICT (id) DO NOTHING", **asdict(job)) == 1  # noqa: S608


def update(tx: Tx, job: JobRow) -> bool:
    given = {name: value for name, value in asdict(job).items() if name != "created_at"}
    return tx.run(f"UPDATE jobs SET {_CHANGES} WHERE id = :id", **given) == 1  # noqa: S608


def get(tx: Tx, job_id: str) -> JobRow | None:
    return tx.one(f"SELECT {COLUMNS} FROM jobs WHERE id = :id", _job, id=job_id)  # noqa: S608


def listed(tx: Tx, *, person_id: str = "", limit: int = 1000) -> list[JobRow]:
    """List jobs, the next due first; those of one person, or all."""
    whose, given = ("WHERE person_id = :person_id", {"person_id": person_id}) if person_id else ("", {})
    return tx.all(
        f"SELECT {COLUMNS} FROM jobs {whose} ORDER BY next_at IS NULL, next_at, created_at, id LIMIT :limit",  # noqa: S608
        _job,
        limit=limit,
        **given,
    )


def named(tx: Tx, name: str, *, person_id: str = "") -> list[JobRow]:
    """Find jobs by id, by name, or by the end of an id."""
    whose, given = ("AND person_id = :person_id", {"person_id": person_id}) if person_id else ("", {})
    for where in ("id = :name", "lower(name) = lower(:name)", "length(:name) >= 4 AND id LIKE '%' || :name"):
        found = tx.all(f"SELECT {COLUMNS} FROM jobs WHERE {where} {whose} LIMIT 3", _job, name=name, **given)  # noqa: S608
        if found:
            return found
    return []


def count(tx: Tx, *, person_id: str) -> int:
    """Count the jobs of a person that are not done."""
    return int(
        tx.value("SELECT COUNT(*) FROM jobs WHERE person_id = :person_id AND state <> 'done'", person_id=person_id)
    )


def counts(tx: Tx) -> dict[str, int]:
    return {str(state): int(number) for state, number in tx.all(
        "SELECT state, COUNT(*) FROM jobs GROUP BY state", lambda *row: row
    )}  # fmt: skip


def remove(tx: Tx, job_id: str, *, lane: str, now: float) -> bool:
    """Delete a job with its ledger; what waits in its lane does not begin. A turn that runs goes on."""
    inbox.set_aside_queued(tx, lane, reason="the job was removed", up_to=2**62, now=now)
    tx.run("DELETE FROM job_slots WHERE job_id = :id", id=job_id)
    return tx.run("DELETE FROM jobs WHERE id = :id", id=job_id) == 1


# Due


def next_due(tx: Tx) -> float | None:
    """Return the time of the job that is due next."""
    found = tx.value("SELECT MIN(next_at) FROM jobs WHERE next_at IS NOT NULL")
    return None if found is None else float(found)


def take_due(tx: Tx, *, now: float, limit: int) -> list[JobRow]:
    """Return jobs that are due. On PostgreSQL their rows are locked, and those another node holds are left to it."""
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM jobs WHERE next_at IS NOT NULL AND next_at <= :now
        ORDER BY next_at LIMIT :limit {tx.dialect.skip_locked}
        """,  # noqa: S608
        _job,
        now=now,
        limit=limit,
    )


def overdue(tx: Tx, *, before: float) -> int:
    return int(tx.value("SELECT COUNT(*) FROM jobs WHERE next_at IS NOT NULL AND next_at < :before", before=before))


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


# The ledger


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


def count_failure(tx: Tx, job_id: str, *, failed: bool) -> int:
    """Count failures in a row; returns how many it is now."""
    found = tx.value(
        """
        UPDATE jobs SET failures = CASE WHEN :failed = 1 THEN failures + 1 ELSE 0 END
        WHERE id = :id RETURNING failures
        """,
        id=job_id,
        failed=int(failed),
    )
    return int(found or 0)


def count_undelivered(tx: Tx, job_id: str, *, failed: bool) -> int:
    found = tx.value(
        """
        UPDATE jobs SET undelivered = CASE WHEN :failed = 1 THEN undelivered + 1 ELSE 0 END
        WHERE id = :id RETURNING undelivered
        """,
        id=job_id,
        failed=int(failed),
    )
    return int(found or 0)


def pause(tx: Tx, job_id: str, *, reason: str, now: float) -> bool:
    return (
        tx.run(
            """
            UPDATE jobs SET state = 'paused', reason = :reason, next_slot = NULL, next_at = NULL, updated_at = :now
            WHERE id = :id AND state = 'active'
            """,
            id=job_id,
            reason=reason,
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


# The clock


def shift_relative(tx: Tx, *, by: float) -> int:
    """Move jobs that count from a moment with a clock that was set: they wait as long as before."""
    return tx.run(
        """
        UPDATE jobs SET at = at + :by, next_slot = next_slot + :by, next_at = next_at + :by
        WHERE is_relative = 1 AND next_slot IS NOT NULL
        """,
        by=by,
    )


def by_calendar(tx: Tx) -> list[JobRow]:
    """List waiting jobs that go by the calendar and come again."""
    return tx.all(f"SELECT {COLUMNS} FROM jobs WHERE next_slot IS NOT NULL AND kind = 'cron'", _job)  # noqa: S608


def move_on(
    tx: Tx,
    job_id: str,
    *,
    state: JobState,
    slot: float | None,
    at: float | None,
    runs_left: int | None,
    now: float,
) -> None:
    """Set the next due time of a job that is active."""
    tx.run(
        """
        UPDATE jobs SET state = :state, next_slot = :slot, next_at = :at, runs_left = :runs_left, updated_at = :now
        WHERE id = :id AND state = 'active'
        """,
        id=job_id,
        state=state.value,
        slot=slot,
        at=at,
        runs_left=runs_left,
        now=now,
    )


def set_next(tx: Tx, job_id: str, slot: float | None, at: float | None) -> None:
    tx.run("UPDATE jobs SET next_slot = :slot, next_at = :at WHERE id = :id", id=job_id, slot=slot, at=at)


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
