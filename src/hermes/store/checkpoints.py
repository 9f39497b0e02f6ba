"""Store checkpoints: what a file was before a tool changed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx

ABSENT = "absent"
"""In place of a hash: there is no file."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One change of one file. ``before`` and ``after`` are hashes or ABSENT; ``after`` '' is not known.

    ``number`` counts the changes of a lane. ``undoes`` names the change that this one took back.
    """

    id: str
    lane: str
    number: int
    session_id: str
    turn_id: str
    call_id: str
    person_id: str
    tool: str
    path: str
    before: str
    size: int
    mode: int
    after: str
    undoes: str
    created_at: float
    undone_at: float | None = None


COLUMNS = (
    "id, lane, number, session_id, turn_id, call_id, person_id, tool, path, before_hash, size, mode, after_hash, "
    "undoes, created_at, undone_at"
)


def keep(tx: Tx, new: Checkpoint) -> Checkpoint:
    """Store a change that is about to happen and number it; flip the undone mark of what it takes back. Idempotent."""
    stored = get(tx, new.id)
    if stored is not None:
        return stored
    # Taken first, this row keeps two that come at once from counting to the same number.
    tx.run("UPDATE lanes SET seq = seq WHERE key = :lane", lane=new.lane)
    last_number = tx.value("SELECT MAX(number) FROM checkpoints WHERE lane = :lane", lane=new.lane)
    tx.run(
        f"""
        INSERT INTO checkpoints ({COLUMNS})
        VALUES (:id, :lane, :number, :session_id, :turn_id, :call_id, :person_id, :tool, :path,
                :before, :size, :mode, :after, :undoes, :created_at, NULL)
        """,
        **asdict(replace(new, number=int(last_number or 0) + 1)),
    )
    _mark(tx, new.undoes, undone_at=new.created_at)
    kept = get(tx, new.id)
    assert kept is not None  # noqa: S101 - written above
    return kept


def withdraw(tx: Tx, checkpoint_id: str) -> None:
    """Forget a change that did not happen after all."""
    row = get(tx, checkpoint_id)
    if row is not None:
        tx.run("DELETE FROM checkpoints WHERE id = :id", id=row.id)
        _mark(tx, row.undoes, undone_at=None)


def _mark(tx: Tx, checkpoint_id: str, *, undone_at: float | None) -> None:
    """Mark a change as taken back or as standing; what it had itself taken back becomes the opposite, and so on."""
    row = get(tx, checkpoint_id) if checkpoint_id else None
    while row is not None:
        tx.run("UPDATE checkpoints SET undone_at = :at WHERE id = :id", at=undone_at, id=row.id)
        undone_at = row.created_at if undone_at is None else None
        row = get(tx, row.undoes) if row.undoes else None


def note_after(tx: Tx, checkpoint_id: str, *, after: str) -> None:
    tx.run("UPDATE checkpoints SET after_hash = :after WHERE id = :id", after=after, id=checkpoint_id)


def get(tx: Tx, checkpoint_id: str) -> Checkpoint | None:
    return tx.one(f"SELECT {COLUMNS} FROM checkpoints WHERE id = :id", Checkpoint, id=checkpoint_id)


def of_call(tx: Tx, call_id: str) -> list[Checkpoint]:
    """What a call has kept, the oldest first."""
    return tx.all(
        f"SELECT {COLUMNS} FROM checkpoints WHERE call_id = :call ORDER BY number",
        Checkpoint,
        call=call_id,
    )


def newest(tx: Tx, lane: str, person_id: str, *, limit: int) -> list[Checkpoint]:
    """A person's changes in a lane, the newest first."""
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM checkpoints WHERE lane = :lane AND person_id = :person
        ORDER BY number DESC LIMIT :limit
        """,
        Checkpoint,
        lane=lane,
        person=person_id,
        limit=limit,
    )


def numbered(tx: Tx, lane: str, person_id: str, number: int) -> Checkpoint | None:
    return tx.one(
        f"SELECT {COLUMNS} FROM checkpoints WHERE lane = :lane AND number = :number AND person_id = :person",
        Checkpoint,
        lane=lane,
        number=number,
        person=person_id,
    )


def last(tx: Tx, lane: str, person_id: str) -> Checkpoint | None:
    """The newest change that stands, leaving out those that took others back: so one goes back step by step."""
    return tx.one(
        f"""
        SELECT {COLUMNS} FROM checkpoints
        WHERE lane = :lane AND person_id = :person AND undone_at IS NULL AND undoes = '' ORDER BY number DESC LIMIT 1
        """,
        Checkpoint,
        lane=lane,
        person=person_id,
    )


# Retention


def older(tx: Tx, *, before: float, limit: int) -> list[str]:
    return tx.all(
        "SELECT id FROM checkpoints WHERE created_at < :before ORDER BY created_at LIMIT :limit",
        str,
        before=before,
        limit=limit,
    )


def oldest_of_heaviest(tx: Tx, *, at_least_bytes: int, limit: int) -> list[str]:
    """Return the oldest rows of the person who keeps most, until these bytes are reached."""
    if at_least_bytes <= 0:
        return []
    person = tx.value("SELECT person_id FROM checkpoints GROUP BY person_id ORDER BY SUM(size) DESC LIMIT 1")
    return _oldest(tx, str(person), at_least_bytes=at_least_bytes, at_least_rows=0, limit=limit)


def beyond(tx: Tx, person_id: str, *, but: str, max_bytes: int, max_rows: int, limit: int) -> list[str]:
    """Return the oldest rows of a person beyond these limits; never the row ``but``."""
    rows = int(tx.value("SELECT COUNT(*) FROM checkpoints WHERE person_id = :person", person=person_id))
    size = int(
        tx.value(
            "SELECT COALESCE(SUM(size), 0) FROM "
            "(SELECT DISTINCT before_hash, size FROM checkpoints WHERE person_id = :person) AS blobs",
            person=person_id,
        )
    )
    if rows <= max_rows and size <= max_bytes:
        return []
    ids = _oldest(tx, person_id, at_least_bytes=size - max_bytes, at_least_rows=rows - max_rows, limit=limit)
    return [checkpoint_id for checkpoint_id in ids if checkpoint_id != but]


def _oldest(tx: Tx, person_id: str, *, at_least_bytes: int, at_least_rows: int, limit: int) -> list[str]:
    ids: list[str] = []
    for checkpoint_id, size in tx.all(
        "SELECT id, size FROM checkpoints WHERE person_id = :person ORDER BY created_at, number LIMIT :limit",
        lambda *row: row,
        person=person_id,
        limit=limit,
    ):
        if at_least_bytes <= 0 and len(ids) >= at_least_rows:
            break
        ids.append(str(checkpoint_id))
        at_least_bytes -= int(size)
    return ids


def total_bytes(tx: Tx) -> int:
    """What the blobs take together, each counted once."""
    return int(
        tx.value("SELECT COALESCE(SUM(size), 0) FROM (SELECT DISTINCT before_hash, size FROM checkpoints) AS blobs")
    )


def forget(tx: Tx, ids: Sequence[str]) -> list[str]:
    """Remove these rows; returns the blobs that nothing needs any more."""
    blobs = {
        str(tx.value("DELETE FROM checkpoints WHERE id = :id RETURNING before_hash", id=checkpoint_id) or "")
        for checkpoint_id in ids
    }
    return unneeded(tx, sorted(blobs - {"", ABSENT}))


def unneeded(tx: Tx, blobs: Sequence[str]) -> list[str]:
    return [
        blob
        for blob in blobs
        if tx.value("SELECT 1 FROM checkpoints WHERE before_hash = :blob LIMIT 1", blob=blob) is None
    ]
