"""Count the tokens of turns, as their models reported them."""

from __future__ import annotations

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx


@dataclass(frozen=True, slots=True)
class Spent:
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


SUMS = "COUNT(*), COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(completion_tokens), 0)"


def of_session(tx: Tx, session_id: str) -> Spent:
    found = tx.one(f"SELECT {SUMS} FROM turns WHERE session_id = :id", _spent, id=session_id)
    return found or Spent()


def of_person(tx: Tx, person_id: str, *, since: float) -> Spent:
    if not person_id:
        return Spent()
    found = tx.one(
        # By the time: what everybody did today is less than what one person ever did.
        f"SELECT {SUMS} FROM turns WHERE created_at >= :since AND person_id = :id",
        _spent,
        id=person_id,
        since=since,
    )
    return found or Spent()


def by_person(tx: Tx, *, since: float, limit: int = 20) -> list[tuple[str, Spent]]:
    """Everybody who had turns since then, by name, whoever spent most first. Nobody's turns have the name ''."""
    return tx.all(
        f"""
        SELECT COALESCE(MAX(NULLIF(people.name, '')), turns.person_id), {SUMS}
        FROM turns LEFT JOIN people ON people.id = turns.person_id
        WHERE turns.created_at >= :since GROUP BY turns.person_id
        ORDER BY SUM(prompt_tokens + completion_tokens) DESC, COUNT(*) DESC LIMIT :limit
        """,
        lambda name, *sums: (str(name or ""), _spent(*sums)),
        since=since,
        limit=limit,
    )


def _spent(*sums: int) -> Spent:
    return Spent(*(int(number) for number in sums))
