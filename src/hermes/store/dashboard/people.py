"""Read pages of people, the newest first."""

from __future__ import annotations

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx
from hermes.store.people import Person


@dataclass(frozen=True, slots=True)
class MetPerson:
    person: Person
    created_at: float


def page(tx: Tx, words: str, *, before: tuple[float, str], limit: int) -> list[MetPerson]:
    """Return people that come after ``before`` (time, id) in a list that is newest first; '' for all words.

    ``words``, in lower case, stand in the name, the id or the id on a platform.
    """
    find = tx.dialect.find
    return tx.all(
        f"""
        SELECT id, name, role, language, created_at FROM people
        WHERE (created_at < :at OR (created_at = :at AND id < :id))
            AND (:words = '' OR {find}(lower(name), :words) > 0 OR {find}(lower(id), :words) > 0 OR EXISTS (
                SELECT 1 FROM person_accounts
                WHERE person_accounts.person_id = people.id AND {find}(lower(user_id), :words) > 0))
        ORDER BY created_at DESC, id DESC LIMIT :limit
        """,
        lambda name, *row: MetPerson(Person(str(name), *row[:3]), float(row[3])),
        at=before[0],
        id=before[1],
        words=words,
        limit=limit,
    )
