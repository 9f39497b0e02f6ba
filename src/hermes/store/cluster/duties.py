"""Claim duties: what exactly one node does, such as an account of a platform or the janitor's work."""

from __future__ import annotations

from hermes.core.dataclasses import dataclass
from hermes.store.cluster.notifications import notify
from hermes.store.db import Tx


@dataclass(frozen=True, slots=True)
class Duty:
    key: str
    owner: str
    token: int
    since: float


def claim(tx: Tx, key: str, *, owner: str) -> int | None:
    """Take a duty that nobody has, or that is the owner's already; return its token. None: another node has it."""
    found = tx.value(
        f"""
        INSERT INTO duties (key, owner, token, since) VALUES (:key, :owner, 1, {tx.dialect.now})
        ON CONFLICT (key) DO UPDATE SET owner = :owner, token = duties.token + 1, since = {tx.dialect.now}
        WHERE duties.owner IS NULL OR duties.owner = :owner
        RETURNING token
        """,
        key=key,
        owner=owner,
    )
    return None if found is None else int(found)


def release(tx: Tx, key: str, *, owner: str) -> bool:
    """Give a duty back, for the next node. False: it was not the owner's."""
    changed = tx.run("UPDATE duties SET owner = NULL WHERE key = :key AND owner = :owner", key=key, owner=owner)
    if changed:
        notify(tx, "duty", key)
    return changed == 1


def release_all(tx: Tx, *, owner: str) -> list[str]:
    """Give back every duty of a node; returns their keys."""
    keys = tx.all("UPDATE duties SET owner = NULL WHERE owner = :owner RETURNING key", str, owner=owner)
    for key in keys:
        notify(tx, "duty", key)
    return keys


def free_of(tx: Tx, *, owner: str) -> int:
    """Free the duties of a node that is gone."""
    return tx.run("UPDATE duties SET owner = NULL, token = token + 1 WHERE owner = :owner", owner=owner)


def owners(tx: Tx) -> dict[str, str]:
    """The duties that somebody has, with their owners."""
    return dict(tx.all("SELECT key, owner FROM duties WHERE owner IS NOT NULL ORDER BY key", lambda *row: row))


def held_by(tx: Tx, *, owner: str) -> list[Duty]:
    return tx.all("SELECT key, owner, token, since FROM duties WHERE owner = :owner ORDER BY key", Duty, owner=owner)
