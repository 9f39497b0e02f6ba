"""Store answers for a day, for repeats under the same Idempotency-Key; find the attempts of one request."""

from __future__ import annotations

from dataclasses import asdict

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx

KEPT_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """``fingerprint`` names the request that was answered; ``headers`` is JSON."""

    key: str
    fingerprint: str
    status: int
    headers: str
    body: str
    created_at: float


def find(tx: Tx, key: str, *, now: float) -> StoredAnswer | None:
    return tx.one(
        """
        SELECT key, fingerprint, status, headers, body, created_at FROM idempotency
        WHERE key = :key AND created_at > :since
        """,
        StoredAnswer,
        key=key,
        since=now - KEPT_SECONDS,
    )


def keep(tx: Tx, kept: StoredAnswer) -> None:
    """Store an answer; the first one under a key stays. What is older than a day goes."""
    tx.run("DELETE FROM idempotency WHERE created_at <= :until", until=kept.created_at - KEPT_SECONDS)
    tx.run(
        """
        INSERT INTO idempotency (key, fingerprint, status, headers, body, created_at)
        VALUES (:key, :fingerprint, :status, :headers, :body, :created_at)
        ON CONFLICT (key) DO NOTHING
        """,
        **asdict(kept),
    )


def attempts_of(tx: Tx, attempt: str, *, since: float, limit: int = 5) -> list[str]:
    """Return the events that were asked for with this fingerprint since then, the newest first."""
    return tx.all(
        """
        SELECT id FROM inbox WHERE received_at >= :since AND attempt = :attempt ORDER BY received_at DESC LIMIT :limit
        """,
        str,
        attempt=attempt,
        since=since,
        limit=limit,
    )


def attempts_between(tx: Tx, since: float, until: float) -> list[str]:
    """Return the fingerprints of the events received in this period."""
    return tx.all(
        "SELECT DISTINCT attempt FROM inbox WHERE received_at >= :since AND received_at < :until AND attempt <> ''",
        str,
        since=since,
        until=until,
    )
