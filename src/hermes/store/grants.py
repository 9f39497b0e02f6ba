"""Store grants: what a person's turns may do without asking, until revoked."""

from __future__ import annotations

from dataclasses import asdict

from hermes.core.dataclasses import dataclass
from hermes.core.roles import Action, PersonRole, may
from hermes.store.db import Tx


@dataclass(frozen=True, slots=True)
class Grant:
    """``person_id`` is whose turns it is for, ``granted_by`` the person who gave it; ``session_id`` '' is for good."""

    id: str
    person_id: str
    scope: str
    subject: str
    session_id: str
    touches_host: int
    granted_by: str
    granted_at: float
    reason: str
    revoked_at: float | None


JOB_GRANTS = "job:"
"""A grant for the runs of a job has this and the job's id in the place of a session."""
COLUMNS = "id, person_id, scope, subject, session_id, touches_host, granted_by, granted_at, reason, revoked_at"


def give(tx: Tx, grant: Grant) -> None:
    """Store a grant. One that says the same and stands is left as it is."""
    given = asdict(grant)
    same = tx.value(
        """
        SELECT id FROM grants
        WHERE revoked_at IS NULL AND person_id = :person_id AND subject = :subject AND session_id = :session_id
            AND touches_host = :touches_host AND granted_by = :granted_by
        """,
        **given,
    )
    if same is not None:
        return
    tx.run(
        """
        INSERT INTO grants (id, person_id, scope, subject, session_id, touches_host, granted_by, granted_at, reason)
        VALUES (:id, :person_id, :scope, :subject, :session_id, :touches_host, :granted_by, :granted_at, :reason)
        ON CONFLICT (id) DO NOTHING
        """,
        **given,
    )


def covering(tx: Tx, *, person_id: str, session_id: str, subject: str, touches_host: bool) -> Grant | None:
    """Return a grant that answers the question. Host access needs a host grant whose giver may still allow it."""
    if not subject or not person_id:
        return None
    found = tx.all(
        f"""
        SELECT {COLUMNS} FROM grants
        WHERE person_id = :person_id AND subject = :subject AND revoked_at IS NULL
            AND session_id IN ('', :session_id) AND touches_host >= :touches_host
        ORDER BY granted_at LIMIT 20
        """,
        Grant,
        person_id=person_id,
        subject=subject,
        session_id=session_id,
        touches_host=int(touches_host),
    )
    for grant in found:
        role = tx.value("SELECT role FROM people WHERE id = :id", id=grant.granted_by) if touches_host else None
        if not touches_host or (role in list(PersonRole) and may(PersonRole(role), Action.APPROVE_HOST)):
            return grant
    return None


def get(tx: Tx, grant_id: str) -> Grant | None:
    return tx.one(f"SELECT {COLUMNS} FROM grants WHERE id = :id", Grant, id=grant_id)


def standing(tx: Tx, *, person_id: str = "", limit: int = 200) -> list[Grant]:
    """List grants in force, newest first, of one person or all; those of ended sessions are over."""
    whose = " AND person_id = :person_id" if person_id else ""
    given = {"person_id": person_id} if person_id else {}
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM grants
        WHERE revoked_at IS NULL{whose} AND (session_id = '' OR EXISTS (
            SELECT 1 FROM sessions WHERE sessions.id = grants.session_id AND sessions.ended_at IS NULL)
            OR session_id LIKE 'job:%')
        ORDER BY granted_at DESC, id LIMIT :limit
        """,
        Grant,
        limit=limit,
        **given,
    )


def revoke_session(tx: Tx, session_id: str, *, now: float) -> int:
    """End every grant of a session, or of a job."""
    return tx.run(
        "UPDATE grants SET revoked_at = :now WHERE session_id = :id AND session_id <> '' AND revoked_at IS NULL",
        id=session_id,
        now=now,
    )


def revoke(tx: Tx, grant_id: str, *, now: float) -> Grant | None:
    """End a grant: from now on it is asked about again. None: there is none with this id, or it has ended."""
    return tx.one(
        f"UPDATE grants SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL RETURNING {COLUMNS}",
        Grant,
        id=grant_id,
        now=now,
    )
