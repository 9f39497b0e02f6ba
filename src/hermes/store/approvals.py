"""Approvals: stored questions that outlive their connection and their process."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hermes.store import claims
from hermes.store.db import Tx


class ApprovalState(StrEnum):
    PENDING = "pending"
    ALLOWED = "allowed"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    code: str
    asked_of: str
    touches_host: bool
    question: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class Approval:
    id: str
    code: str
    lane: str
    turn_id: str
    tool_call_id: str
    asked_of: str
    touches_host: int
    question: str
    state: str
    created_at: float
    expires_at: float
    answered_by: str
    answered_at: float | None
    reason: str


COLUMNS = (
    "id, code, lane, turn_id, tool_call_id, asked_of, touches_host, question, state, created_at, expires_at, "
    "answered_by, answered_at, reason"
)


def ask(tx: Tx, question: Question, *, lane: str, turn_id: str, tool_call_id: str, now: float) -> None:
    tx.run(
        """
        INSERT INTO approvals (id, code, lane, turn_id, tool_call_id, asked_of, touches_host, question, state,
                               created_at, expires_at)
        VALUES (:id, :code, :lane, :turn_id, :tool_call_id, :asked_of, :touches_host, :question, 'pending',
                :now, :expires_at)
        """,
        id=question.id,
        code=question.code,
        lane=lane,
        turn_id=turn_id,
        tool_call_id=tool_call_id,
        asked_of=question.asked_of,
        touches_host=int(question.touches_host),
        question=question.question,
        expires_at=question.expires_at,
        now=now,
    )


def answer(tx: Tx, approval_id: str, *, allow: bool, by: str, reason: str, now: float) -> bool:
    """Answer a pending question and make its lane runnable, together. False: it was not pending any more."""
    state = ApprovalState.ALLOWED if allow else ApprovalState.DENIED
    lane = tx.value(
        """
        UPDATE approvals SET state = :state, answered_by = :by, answered_at = :now, reason = :reason
        WHERE id = :id AND state = 'pending' AND expires_at > :now RETURNING lane
        """,
        id=approval_id,
        state=state.value,
        by=by,
        reason=reason,
        now=now,
    )
    if lane is None:
        return False
    _move_calls(tx, approval_id, "allowed" if allow else "refused")
    claims.wake(tx, "lanes", str(lane), at=now)
    return True


def _move_calls(tx: Tx, approval_id: str, state: str) -> None:
    tx.run(
        """
        UPDATE tool_calls SET state = :state
        WHERE id = (SELECT tool_call_id FROM approvals WHERE id = :id) AND state = 'waiting'
        """,
        state=state,
        id=approval_id,
    )


def expire(tx: Tx, turn_id: str, *, now: float) -> list[Approval]:
    """End this turn's questions whose time is over."""
    late = tx.all(
        f"SELECT {COLUMNS} FROM approvals WHERE turn_id = :id AND state = 'pending' AND expires_at <= :now",  # noqa: S608
        Approval,
        id=turn_id,
        now=now,
    )
    for approval in late:
        _end(tx, approval.id, ApprovalState.EXPIRED, "nobody answered in time", now)
    return late


def cancel(tx: Tx, turn_id: str, *, reason: str, now: float) -> None:
    for approval in of_turn(tx, turn_id):
        if approval.state == ApprovalState.PENDING:
            _end(tx, approval.id, ApprovalState.CANCELLED, reason, now)


def _end(tx: Tx, approval_id: str, state: ApprovalState, reason: str, now: float) -> None:
    tx.run(
        """
        UPDATE approvals SET state = :state, reason = :reason, answered_at = :now
        WHERE id = :id AND state = 'pending'
        """,
        state=state.value,
        reason=reason,
        now=now,
        id=approval_id,
    )
    _move_calls(tx, approval_id, "refused")


def pending_until(tx: Tx, turn_id: str) -> float | None:
    """When the first pending question of a turn expires; None when none is pending."""
    found = tx.value("SELECT MIN(expires_at) FROM approvals WHERE turn_id = :id AND state = 'pending'", id=turn_id)
    return None if found is None else float(found)


def get(tx: Tx, approval_id: str) -> Approval | None:
    return tx.one(f"SELECT {COLUMNS} FROM approvals WHERE id = :id", Approval, id=approval_id)  # noqa: S608


def by_code(tx: Tx, code: str) -> Approval | None:
    """The newest question with this code."""
    return tx.one(
        f"SELECT {COLUMNS} FROM approvals WHERE code = :code ORDER BY created_at DESC LIMIT 1",  # noqa: S608
        Approval,
        code=code,
    )


def pending(tx: Tx, lane: str = "", *, asked_of: str = "") -> list[Approval]:
    """What waits, the oldest first: everything, or that of one lane or person."""
    chosen = {name: value for name, value in (("lane", lane), ("asked_of", asked_of)) if value}
    where = "".join(f" AND {name} = :{name}" for name in chosen)
    return tx.all(
        f"SELECT {COLUMNS} FROM approvals WHERE state = 'pending'{where} ORDER BY created_at LIMIT 200",  # noqa: S608
        Approval,
        **chosen,
    )


def of_turn(tx: Tx, turn_id: str) -> list[Approval]:
    return tx.all(f"SELECT {COLUMNS} FROM approvals WHERE turn_id = :id ORDER BY created_at", Approval, id=turn_id)  # noqa: S608


def pending_count(tx: Tx) -> int:
    return int(tx.value("SELECT COUNT(*) FROM approvals WHERE state = 'pending'"))
