"""Store which files go with outbox rows; the model is told of lost ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx

UNDELIVERED = "[undelivered files]"
"""How a line begins that tells the model what never arrived."""


@dataclass(frozen=True, slots=True)
class OutboxFile:
    """A file that goes with an outbox row; ``position`` counts within its album."""

    outbox_id: str
    position: int
    lane: str
    name: str


@dataclass(frozen=True, slots=True)
class LostFile:
    """``was_told``: the person has read of it already, in the message that took its place."""

    name: str
    reason: str
    was_told: bool = False


def word_of(outbox_id: str) -> str:
    """The name of the letter that tells of a file which was refused."""
    return f"{outbox_id}.lost"


def note(tx: Tx, files: Sequence[OutboxFile]) -> None:
    """Remember them, in the transaction that stores their rows. Noting one twice is noting it once."""
    for file in files:
        tx.run(
            """
            INSERT INTO files_out (outbox_id, position, lane, name) VALUES (:outbox_id, :position, :lane, :name)
            ON CONFLICT (outbox_id, position) DO NOTHING
            """,
            **asdict(file),
        )


def row_died(tx: Tx, outbox_id: str) -> None:
    """An outbox row is dead: if files went with it, their chat has something to be told."""
    tx.run(
        "UPDATE lanes SET files_lost = 1 WHERE key IN (SELECT lane FROM files_out WHERE outbox_id = :id)", id=outbox_id
    )


def take_lost(tx: Tx, lane: str) -> list[LostFile]:
    """What never arrived, each told once: whoever asks writes it down in this transaction."""
    lost = tx.all(
        """
        SELECT files_out.name, outbox.reason, files_out.outbox_id
        FROM files_out JOIN outbox ON outbox.id = files_out.outbox_id
        WHERE files_out.lane = :lane AND outbox.state = 'dead' ORDER BY outbox.seq, files_out.position
        """,
        lambda name, reason, outbox_id: LostFile(name, reason, _exists(tx, word_of(outbox_id))),
        lane=lane,
    )
    tx.run(
        """
        DELETE FROM files_out WHERE lane = :lane AND EXISTS (
            SELECT 1 FROM outbox WHERE outbox.id = files_out.outbox_id AND outbox.state = 'dead')
        """,
        lane=lane,
    )
    tx.run("UPDATE lanes SET files_lost = 0 WHERE key = :lane", lane=lane)
    return lost


def _exists(tx: Tx, outbox_id: str) -> bool:
    return tx.value("SELECT 1 FROM outbox WHERE id = :id", id=outbox_id) is not None


def sweep(tx: Tx) -> None:
    """Forget what arrived, and mark the chats of what died in a bunch."""
    tx.run(
        """
        DELETE FROM files_out WHERE NOT EXISTS (
            SELECT 1 FROM outbox WHERE outbox.id = files_out.outbox_id AND outbox.state <> 'sent')
        """
    )
    # EXISTS, not JOIN: SQLite would begin with the outbox, which is never small, and read all of it.
    tx.run(
        """
        UPDATE lanes SET files_lost = 1 WHERE files_lost = 0 AND key IN (
            SELECT lane FROM files_out WHERE EXISTS (
                SELECT 1 FROM outbox WHERE outbox.id = files_out.outbox_id AND outbox.state = 'dead'))
        """
    )
