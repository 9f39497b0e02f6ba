"""Store background commands: whose they are, their output, how they ended."""

from __future__ import annotations

from dataclasses import asdict

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx


@dataclass(frozen=True, slots=True)
class Process:
    """``log`` is the name of the file with its output. ``exit_code`` None after its end: it ended with the gateway."""

    id: str
    session_id: str
    lane: str
    person_id: str
    command: str
    backend: str
    folder: str
    log: str
    host: str
    process_group: int
    process_started: str
    started_at: float
    ended_at: float | None = None
    exit_code: int | None = None

    @property
    def is_running(self) -> bool:
        return self.ended_at is None


_COLUMNS = (
    "id, session_id, lane, person_id, command, backend, folder, log, host, process_group, process_started, started_at, "
    "ended_at, exit_code"
)


def record(tx: Tx, process: Process) -> None:
    """Keep it. A second call with the same id changes nothing."""
    tx.run(
        f"""
        INSERT INTO processes ({_COLUMNS})
        VALUES (:id, :session_id, :lane, :person_id, :command, :backend, :folder, :log, :host, :process_group,
                :process_started, :started_at, :ended_at, :exit_code)
        ON CONFLICT (id) DO NOTHING
        """,
        **asdict(process),
    )


def end(tx: Tx, process_id: str, *, exit_code: int | None, now: float) -> bool:
    """Write down how it ended; False when that is known already."""
    ended = tx.run(
        "UPDATE processes SET ended_at = :now, exit_code = :exit_code WHERE id = :id AND ended_at IS NULL",
        id=process_id,
        exit_code=exit_code,
        now=now,
    )
    return ended == 1


def get(tx: Tx, process_id: str, *, person_id: str, session_id: str) -> Process | None:
    """One of this person's own; of somebody without a name, one of this session's."""
    found = tx.one(
        f"SELECT {_COLUMNS} FROM processes WHERE id = :id",
        Process,
        id=process_id,
    )
    if found is None or found.person_id != person_id or (not person_id and found.session_id != session_id):
        return None
    return found


def of_host(tx: Tx, process_id: str, *, host: str) -> Process | None:
    """A process of this machine, whoever it belongs to: for a node that was asked by another one."""
    return tx.one(
        f"SELECT {_COLUMNS} FROM processes WHERE id = :id AND host = :host",
        Process,
        id=process_id,
        host=host,
    )


def listed(tx: Tx, *, person_id: str, session_id: str, limit: int) -> list[Process]:
    """This person's own, the newest first; of somebody without a name, this session's."""
    return tx.all(
        f"""
        SELECT {_COLUMNS} FROM processes
        WHERE person_id = :person_id AND (person_id <> '' OR session_id = :session_id)
        ORDER BY started_at DESC, id DESC LIMIT :limit
        """,
        Process,
        person_id=person_id,
        session_id=session_id,
        limit=limit,
    )


def left_open(tx: Tx, host: str) -> list[Process]:
    """What runs, or ran when its gateway died, on this machine."""
    return tx.all(
        f"SELECT {_COLUMNS} FROM processes WHERE ended_at IS NULL AND host = :host",
        Process,
        host=host,
    )


def has_old(tx: Tx, *, host: str, before: float) -> bool:
    """Whether there is something to forget: asked now and then, and most of the time there is not."""
    found = tx.value(
        "SELECT 1 FROM processes WHERE host = :host AND ended_at < :before LIMIT 1", host=host, before=before
    )
    return found is not None


def forget(tx: Tx, *, host: str, before: float) -> list[str]:
    """Drop what ended before that time; the names of the files that kept their output."""
    return tx.all(
        "DELETE FROM processes WHERE host = :host AND ended_at < :before RETURNING log", str, host=host, before=before
    )
