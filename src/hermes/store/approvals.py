"""Store approvals: questions that outlive their connection and their process."""

from __future__ import annotations

from dataclasses import asdict, replace

from hermes.core.approval import ApprovalState
from hermes.core.dataclasses import dataclass
from hermes.store import claims
from hermes.store.db import Tx

MAX_LISTED = 200


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. ``subject`` is what a grant would be for; ``target`` and ``question_id`` say where it is put.

    ``session_id`` is filled in when it is stored: the session a grant would be given for. ``proof`` is the code at the
    end of what did not fit into one message: a yes must show it.
    """

    id: str
    code: str
    asked_of: str
    touches_host: bool
    question: str
    expires_at: float
    subject: str = ""
    where_run: str = ""
    target: str = ""
    question_id: str = ""
    session_id: str = ""
    proof: str = ""


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
    subject: str
    scope: str
    where_run: str
    target: str
    question_id: str
    session_id: str
    proof: str = ""

    @property
    def is_pending(self) -> bool:
        return self.state == ApprovalState.PENDING


COLUMNS = (
    "id, code, lane, turn_id, tool_call_id, asked_of, touches_host, question, state, created_at, expires_at, "
    "answered_by, answered_at, reason, subject, scope, where_run, target, question_id, session_id, proof"
)


def ask(tx: Tx, question: Question, *, lane: str, turn_id: str, tool_call_id: str, now: float) -> None:
    _insert(tx, question, ApprovalState.PENDING, lane=lane, turn_id=turn_id, tool_call_id=tool_call_id, now=now)


def note_granted(
    tx: Tx, question: Question, *, lane: str, turn_id: str, tool_call_id: str, by: str, scope: str, now: float
) -> None:
    """Nobody was asked, since a standing grant covers it; that is written down like an answer."""
    _insert(tx, question, ApprovalState.ALLOWED, lane=lane, turn_id=turn_id, tool_call_id=tool_call_id, now=now)
    tx.run(
        """
        UPDATE approvals SET answered_by = :by, answered_at = :now, scope = :scope, target = '', question_id = ''
        WHERE id = :id
        """,
        id=question.id,
        by=by,
        scope=scope,
        now=now,
    )


def _insert(
    tx: Tx, question: Question, state: ApprovalState, *, lane: str, turn_id: str, tool_call_id: str, now: float
) -> None:
    tx.run(
        """
        INSERT INTO approvals (id, code, lane, turn_id, tool_call_id, asked_of, touches_host, question, state,
                               created_at, expires_at, subject, where_run, target, question_id,
                               session_id, proof)
        VALUES (:id, :code, :lane, :turn_id, :tool_call_id, :asked_of, :touches_host, :question, :state,
                :now, :expires_at, :subject, :where_run, :target, :question_id, :session_id, :proof)
        """,
        **{**asdict(question), "touches_host": int(question.touches_host)},
        lane=lane,
        turn_id=turn_id,
        tool_call_id=tool_call_id,
        state=state.value,
        now=now,
    )


def answer(
    tx: Tx, approval_id: str, *, allow: bool, by: str, reason: str, now: float, scope: str = ""
) -> Approval | None:
    """Answer a pending question and make its lane runnable, together. None: it was not pending any more."""
    state = ApprovalState.ALLOWED if allow else ApprovalState.DENIED
    answered = tx.one(
        f"""
        UPDATE approvals SET state = :state, answered_by = :by, answered_at = :now, reason = :reason, scope = :scope
        WHERE id = :id AND state = 'pending' AND expires_at > :now RETURNING {COLUMNS}
        """,
        Approval,
        id=approval_id,
        state=state.value,
        by=by,
        reason=reason,
        scope=scope,
        now=now,
    )
    if answered is None:
        return None
    _move_calls(tx, approval_id, "allowed" if allow else "refused")
    claims.wake(tx, "lanes", answered.lane, at=now)
    return answered


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
        f"SELECT {COLUMNS} FROM approvals WHERE turn_id = :id AND state = 'pending' AND expires_at <= :now",
        Approval,
        id=turn_id,
        now=now,
    )
    for approval in late:
        _end(tx, approval.id, ApprovalState.EXPIRED, "nobody answered in time", now)
    return late


def cancel(tx: Tx, turn_id: str, *, reason: str, now: float) -> list[Approval]:
    """Withdraw this turn's questions. Returns those that were waiting, as they are now."""
    waiting = [approval for approval in of_turn(tx, turn_id) if approval.is_pending]
    for approval in waiting:
        _end(tx, approval.id, ApprovalState.CANCELLED, reason, now)
    return [replace(pending, state=ApprovalState.CANCELLED, reason=reason, answered_at=now) for pending in waiting]


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
    return tx.one(f"SELECT {COLUMNS} FROM approvals WHERE id = :id", Approval, id=approval_id)


def by_code(tx: Tx, code: str) -> Approval | None:
    """The newest question with this code."""
    return tx.one(
        f"SELECT {COLUMNS} FROM approvals WHERE code = :code ORDER BY created_at DESC LIMIT 1",
        Approval,
        code=code,
    )


def by_proof(tx: Tx, proof: str) -> Approval | None:
    """Return the newest question whose text ends with this code."""
    return tx.one(
        f"SELECT {COLUMNS} FROM approvals WHERE proof = :proof AND proof <> '' ORDER BY created_at DESC LIMIT 1",
        Approval,
        proof=proof,
    )


def pending(tx: Tx, lane: str = "", *, asked_of: str = "") -> list[Approval]:
    """What waits, the oldest first: everything, or that of one lane or person."""
    chosen = {name: value for name, value in (("lane", lane), ("asked_of", asked_of)) if value}
    where = "".join(f" AND {name} = :{name}" for name in chosen)
    return tx.all(
        f"SELECT {COLUMNS} FROM approvals WHERE state = 'pending'{where} ORDER BY created_at LIMIT {MAX_LISTED}",
        Approval,
        **chosen,
    )


def waiting_in(tx: Tx, *, target: str, lane: str) -> list[Approval]:
    """What waits in a chat: put there, or asked in this very conversation. The oldest first."""
    put = tx.all(
        f"SELECT {COLUMNS} FROM approvals WHERE state = 'pending' AND target = :target AND target <> ''",
        Approval,
        target=target,
    )
    asked = tx.all(
        f"SELECT {COLUMNS} FROM approvals WHERE state = 'pending' AND lane = :lane",
        Approval,
        lane=lane,
    )
    found = {approval.id: approval for approval in (*put, *asked)}
    return sorted(found.values(), key=lambda approval: (approval.created_at, approval.id))


def timeouts(tx: Tx, turn_id: str, *, name: str, arguments: str, subject: str) -> int:
    """In how many steps of a turn the same thing was asked and nobody answered in time.

    The same is the very same call, or one of the same kind of danger: a model that changes a letter asks the same.
    """
    return int(
        tx.value(
            """
            SELECT COUNT(DISTINCT calls.step) FROM approvals
            JOIN tool_calls calls ON calls.id = approvals.tool_call_id
            WHERE approvals.turn_id = :id AND approvals.state = 'expired' AND calls.name = :name
                AND (calls.arguments = :arguments OR (approvals.subject = :subject AND approvals.subject <> ''))
            """,
            id=turn_id,
            name=name,
            arguments=arguments,
            subject=subject,
        )
    )


def of_turn(tx: Tx, turn_id: str) -> list[Approval]:
    return tx.all(f"SELECT {COLUMNS} FROM approvals WHERE turn_id = :id ORDER BY created_at", Approval, id=turn_id)


def pending_count(tx: Tx) -> int:
    return int(tx.value("SELECT COUNT(*) FROM approvals WHERE state = 'pending'"))
