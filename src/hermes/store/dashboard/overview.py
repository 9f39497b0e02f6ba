"""Count what the overview of the dashboard shows."""

from __future__ import annotations

import math

from hermes.core.dataclasses import dataclass
from hermes.store import approvals
from hermes.store.db import Tx
from hermes.store.reports import stats

MAX_LATENCIES = 1000
"""Latency is of so many messages at most, the newest of today."""


@dataclass(frozen=True, slots=True)
class OverviewCounts:
    """``lane_ending`` limited them to one key's own, or not. Ages and latencies are in seconds."""

    arrived: int
    sent: int
    waiting: int
    oldest_age: float | None
    answers_waiting: int
    approvals_waiting: int
    dead_letters: int
    latencies: tuple[float, ...]
    turns: int
    prompt_tokens: int
    completion_tokens: int
    cost: float


def counts(tx: Tx, *, since: float, now: float, lane_ending: str = "", person_id: str = "") -> OverviewCounts:
    """Count since a time; with ``lane_ending`` only lanes that end so, and turns of that person."""
    own = "AND (:ending = '' OR substr(lane, length(lane) - length(:ending) + 1) = :ending)"
    of_all = not lane_ending
    waiting, oldest = tx.all(
        f"""
        SELECT COUNT(*), MIN(received_at) FROM inbox
        WHERE (state = 'queued' OR state = 'acting' OR state = 'taken') {own}
        """,
        lambda *row: row,
        ending=lane_ending,
    )[0]
    latencies = tx.all(
        f"""
        SELECT settled_at - received_at FROM inbox
        WHERE received_at >= :since AND state = 'answered' AND turn_id <> '' AND settled_at IS NOT NULL {own}
        ORDER BY received_at DESC LIMIT :limit
        """,
        float,
        since=since,
        ending=lane_ending,
        limit=MAX_LATENCIES,
    )
    turns, prompt, completion, cost = tx.all(
        """
        SELECT COUNT(*), COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(completion_tokens), 0), COALESCE(SUM(cost), 0)
        FROM turns
        WHERE created_at >= :since AND (:person = '' OR person_id = :person)
        """,
        lambda *row: row,
        since=since,
        person=person_id,
    )[0]
    # Without a condition on the lane the index alone answers: the rows hold whole messages.
    given = {} if of_all else {"ending": lane_ending}
    arrived = tx.value(
        f"SELECT COUNT(*) FROM inbox WHERE received_at >= :since {'' if of_all else own}",
        since=since,
        **given,
    )
    sent = (
        tx.value(
            "SELECT COUNT(*) FROM outbox WHERE created_at >= :since AND state = 'sent' AND kind <> 'preview'",
            since=since,
        )
        if of_all
        else 0
    )
    return OverviewCounts(
        arrived=int(arrived),
        sent=int(sent),
        waiting=int(waiting),
        oldest_age=max(0.0, now - float(oldest)) if oldest is not None else None,
        answers_waiting=stats.unsent_count(tx) if of_all else 0,
        approvals_waiting=approvals.pending_count(tx) if of_all else 0,
        dead_letters=stats.dead_letter_count(tx) if of_all else 0,
        latencies=tuple(latencies),
        turns=int(turns),
        prompt_tokens=int(prompt),
        completion_tokens=int(completion),
        cost=float(cost),
    )


def percentile(values: tuple[float, ...], share: float) -> float | None:
    """Return the value that this share of the values does not exceed; None for no values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
