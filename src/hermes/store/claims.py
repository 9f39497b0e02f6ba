"""Claim lanes and targets: one owner, a growing token, a sequence that wakes.

``seq`` grows whenever work is added, in the transaction that adds it. An owner lets go only by showing the
token and the ``seq`` it saw: no row updated means that work arrived meanwhile, so it looks again. That is
what keeps a lane from falling asleep with a message in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx

Table = Literal["lanes", "targets"]


@dataclass(frozen=True, slots=True)
class Claim:
    key: str
    token: int
    seq: int


def wake(tx: Tx, table: Table, key: str, *, at: float) -> int:
    """Record that ``key`` has work from ``at`` on, and return its new seq. An earlier time stays."""
    return int(tx.value(_WAKE[table], key=key, at=at))


def wake_lane(tx: Tx, key: str, *, at: float) -> tuple[int, str, str]:
    """Wake a lane; return its seq, its turn and the busy mode of its chat."""
    woken: tuple[int, str, str] | None = tx.one(_WAKE_LANE, lambda *row: row, key=key, at=at)
    assert woken is not None  # noqa: S101 - it is there, or was made
    return woken


def _wake(table: Table, returned: str) -> str:
    return f"""
        INSERT INTO {table} (key, seq, next_at) VALUES (:key, 1, :at)
        ON CONFLICT (key) DO UPDATE SET seq = {table}.seq + 1,
            next_at = CASE WHEN {table}.next_at < :at THEN {table}.next_at ELSE :at END
        RETURNING {returned}
        """


_WAKE: dict[Table, str] = {"lanes": _wake("lanes", "seq"), "targets": _wake("targets", "seq")}
_WAKE_LANE = _wake("lanes", "seq, turn_id, busy_mode")


def claim(tx: Tx, table: Table, key: str, *, owner: str, now: float) -> Claim | None:
    """Take this one if it is free and due, or return None."""
    return tx.one(_CLAIM[table], Claim, owner=owner, key=key, now=now)


def claiming(table: Table, returned: str = "key, token, seq") -> str:
    """The statement that takes one, for whoever wants more of its row."""
    return f"""
        UPDATE {table} SET owner = :owner, token = token + 1
        WHERE key = :key AND owner IS NULL AND next_at <= :now
        RETURNING {returned}
        """


_CLAIM: dict[Table, str] = {"lanes": claiming("lanes"), "targets": claiming("targets")}


def seq_of(tx: Tx, table: Table, held: Claim) -> int | None:
    """The seq now, or None when the claim was lost."""
    found = tx.value(f"SELECT seq FROM {table} WHERE key = :key AND token = :token", key=held.key, token=held.token)
    return None if found is None else int(found)


def release(tx: Tx, table: Table, held: Claim, *, seen: int, next_at: float | None) -> bool:
    """Let go until ``next_at`` (None: until woken). False means work arrived or the claim was lost: look again."""
    return (
        tx.run(
            f"UPDATE {table} SET owner = NULL, next_at = :next_at WHERE key = :key AND token = :token AND seq = :seen",
            next_at=next_at,
            key=held.key,
            token=held.token,
            seen=seen,
        )
        == 1
    )


def abandon(tx: Tx, table: Table, held: Claim, *, now: float) -> None:
    """Release a claim with its work undone, for the next owner."""
    tx.run(
        f"UPDATE {table} SET owner = NULL, next_at = :now WHERE key = :key AND token = :token",
        now=now,
        key=held.key,
        token=held.token,
    )


def free_older(tx: Tx, table: Table, *, owner: str, now: float) -> int:
    """At start: whatever an earlier incarnation held is free, and due."""
    return tx.run(
        f"""
        UPDATE {table} SET owner = NULL, token = token + 1, next_at = :now
        WHERE owner IS NOT NULL AND owner <> :owner
        """,
        owner=owner,
        now=now,
    )


def free_of(tx: Tx, table: Table, *, owner: str) -> int:
    """Free what a node held that is gone, due at once whatever the clock of the next owner says."""
    return tx.run(
        f"UPDATE {table} SET owner = NULL, token = token + 1, next_at = 0 WHERE owner = :owner",
        owner=owner,
    )


def free_unknown(tx: Tx, table: Table) -> int:
    """Free what belongs to no node: of a gateway of before there were nodes, or of a store that was copied here.

    A node joins before it claims anything, so an owner without a row in ``nodes`` is dead.
    """
    return tx.run(
        f"""
        UPDATE {table} SET owner = NULL, token = token + 1, next_at = 0
        WHERE owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = {table}.owner)
        """
    )


def due(tx: Tx, table: Table, *, now: float, limit: int = 200) -> list[str]:
    """Free keys with work to do now, the longest waiting first."""
    return tx.all(
        f"SELECT key FROM {table} WHERE owner IS NULL AND next_at <= :now ORDER BY next_at LIMIT :limit",
        str,
        now=now,
        limit=limit,
    )


def due_targets(tx: Tx, prefixes: Sequence[str], *, now: float, limit: int = 200) -> list[str]:
    """Free targets with something to send now whose keys begin so: of the accounts that a node has."""
    if not prefixes:
        return []
    begins = " OR ".join(f"substr(key, 1, {len(prefix)}) = :p{number}" for number, prefix in enumerate(prefixes))
    return tx.all(
        f"""
        SELECT key FROM targets WHERE owner IS NULL AND next_at <= :now AND ({begins}) ORDER BY next_at LIMIT :limit
        """,
        str,
        now=now,
        limit=limit,
        **{f"p{number}": prefix for number, prefix in enumerate(prefixes)},
    )


def next_due(tx: Tx, table: Table) -> float | None:
    found = tx.value(f"SELECT MIN(next_at) FROM {table} WHERE owner IS NULL AND next_at IS NOT NULL")
    return None if found is None else float(found)


def held_by(tx: Tx, table: Table, *, owner: str) -> list[Claim]:
    return tx.all(f"SELECT key, token, seq FROM {table} WHERE owner = :owner", Claim, owner=owner)
