"""Store jobs: what is to be done, for whom, and when it is due next. ``job_slots`` is the ledger of due times."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.core.entries.schedule import Schedule, ScheduleKind
from hermes.store import inbox
from hermes.store.db import Tx


class JobState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"


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


COLUMNS = (
    "id, name, person_id, role, prompt, script, skills, model, workdir, no_agent, deliver, origin, catch_up, quiet, "
    "timezone, schedule, kind, at, seconds, is_relative, runs_left, state, reason, next_slot, next_at, failures, "
    "undelivered, created_at, updated_at"
)
_NAMES = tuple(COLUMNS.split(", "))
_VALUES = ", ".join(f":{name}" for name in _NAMES)
_CHANGES = ", ".join(f"{name} = :{name}" for name in _NAMES if name not in ("id", "created_at"))


def _job(*row: object) -> JobRow:
    return JobRow(**dict(zip(_NAMES, row, strict=True)))  # type: ignore[arg-type] # the types of the columns


# Jobs


def insert(tx: Tx, job: JobRow) -> bool:
    """Store a job. False: one with this id is there already."""
    return tx.run(f"INSERT INTO jobs ({COLUMNS}) VALUES ({_VALUES}) ON CONFLICT (id) DO NOTHING", **asdict(job)) == 1


def update(tx: Tx, job: JobRow) -> bool:
    given = {name: value for name, value in asdict(job).items() if name != "created_at"}
    return tx.run(f"UPDATE jobs SET {_CHANGES} WHERE id = :id", **given) == 1


def get(tx: Tx, job_id: str) -> JobRow | None:
    return tx.one(f"SELECT {COLUMNS} FROM jobs WHERE id = :id", _job, id=job_id)


def listed(tx: Tx, *, person_id: str = "", limit: int = 1000) -> list[JobRow]:
    """List jobs, the next due first; those of one person, or all."""
    whose, given = ("WHERE person_id = :person_id", {"person_id": person_id}) if person_id else ("", {})
    return tx.all(
        f"SELECT {COLUMNS} FROM jobs {whose} ORDER BY next_at IS NULL, next_at, created_at, id LIMIT :limit",
        _job,
        limit=limit,
        **given,
    )


def named(tx: Tx, name: str, *, person_id: str = "") -> list[JobRow]:
    """Find jobs by id, by name, or by the end of an id."""
    whose, given = ("AND person_id = :person_id", {"person_id": person_id}) if person_id else ("", {})
    for where in ("id = :name", "lower(name) = lower(:name)", "length(:name) >= 4 AND id LIKE '%' || :name"):
        found = tx.all(f"SELECT {COLUMNS} FROM jobs WHERE {where} {whose} LIMIT 3", _job, name=name, **given)
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
        """,
        _job,
        now=now,
        limit=limit,
    )


def overdue(tx: Tx, *, before: float) -> int:
    return int(tx.value("SELECT COUNT(*) FROM jobs WHERE next_at IS NOT NULL AND next_at < :before", before=before))


# What became of runs


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
    return tx.all(f"SELECT {COLUMNS} FROM jobs WHERE next_slot IS NOT NULL AND kind = 'cron'", _job)


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
