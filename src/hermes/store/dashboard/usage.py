"""Sum tokens and turns by day, by model and by person."""

from __future__ import annotations

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx

BUCKET_SECONDS = 900
"""Days begin at whole quarters of an hour, in every time zone: sums of these make days of any zone."""
MAX_NAMES = 50


@dataclass(frozen=True, slots=True)
class UsageSum:
    """``name`` is of a model or a person, or the number of a bucket of time. ``cost`` is in dollars, 0: not told."""

    name: str
    turns: int
    prompt_tokens: int
    completion_tokens: int
    cost: float


_SUMS = "COUNT(*), COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(completion_tokens), 0), COALESCE(SUM(turns.cost), 0)"


def _bucket(tx: Tx, column: str) -> str:
    """PostgreSQL rounds where SQLite cuts off."""
    return f"CAST({column} / {BUCKET_SECONDS} AS BIGINT)" if tx.dialect.name == "sqlite" else (
        f"CAST(FLOOR({column} / {BUCKET_SECONDS}) AS BIGINT)"
    )  # fmt: skip


def by_bucket(tx: Tx, *, since: float, person_id: str = "") -> list[UsageSum]:
    bucket = _bucket(tx, "created_at")
    return tx.all(
        f"""
        SELECT {bucket}, {_SUMS} FROM turns
        WHERE created_at >= :since AND (:person = '' OR person_id = :person) GROUP BY {bucket}
        """,
        _sum,
        since=since,
        person=person_id,
    )


def messages_by_bucket(tx: Tx, *, since: float, lane_ending: str = "") -> list[tuple[int, int]]:
    bucket = _bucket(tx, "received_at")
    # Without a condition on the lane the index alone answers: the rows hold whole messages.
    own = "AND substr(lane, length(lane) - length(:ending) + 1) = :ending" if lane_ending else ""
    given = {"ending": lane_ending} if lane_ending else {}
    return tx.all(
        f"SELECT {bucket}, COUNT(*) FROM inbox WHERE received_at >= :since {own} GROUP BY {bucket}",
        lambda number, count: (int(number), int(count)),
        since=since,
        **given,
    )


def by_model(tx: Tx, *, since: float, person_id: str = "") -> list[UsageSum]:
    return tx.all(
        f"""
        SELECT model, {_SUMS} FROM turns WHERE created_at >= :since AND (:person = '' OR person_id = :person)
        GROUP BY model ORDER BY SUM(prompt_tokens + completion_tokens) DESC, COUNT(*) DESC LIMIT :limit
        """,
        _sum,
        since=since,
        person=person_id,
        limit=MAX_NAMES,
    )


def by_person(tx: Tx, *, since: float) -> list[UsageSum]:
    """Sum everybody's by name, whoever spent most first. Nobody's turns have the name ''."""
    return tx.all(
        f"""
        SELECT COALESCE(MAX(NULLIF(people.name, '')), turns.person_id), {_SUMS}
        FROM turns LEFT JOIN people ON people.id = turns.person_id
        WHERE turns.created_at >= :since GROUP BY turns.person_id
        ORDER BY SUM(prompt_tokens + completion_tokens) DESC, COUNT(*) DESC LIMIT :limit
        """,
        _sum,
        since=since,
        limit=MAX_NAMES,
    )


def _sum(name: object, turns: int, prompt: int, completion: int, cost: float) -> UsageSum:
    return UsageSum(str(name or ""), int(turns), int(prompt), int(completion), float(cost))
