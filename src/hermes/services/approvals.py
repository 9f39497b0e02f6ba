"""Answering approvals: by button or by typed code, by whoever may, on any surface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from hermes.core.approval import may_answer
from hermes.core.people import PersonRole
from hermes.core.ports import Clock
from hermes.store import approvals, people
from hermes.store.approvals import Approval, ApprovalState
from hermes.store.db import Database, Tx


class Answer(StrEnum):
    TAKEN = "taken"
    UNKNOWN = "unknown"  # there is no such approval
    NOT_YOURS = "not yours"
    TOO_LATE = "too late"


@dataclass(frozen=True, slots=True)
class Answered:
    answer: Answer
    approval: Approval | None = None

    def sentence(self, *, allow: bool) -> str:
        """What the person who answered is told."""
        if self.answer is Answer.TAKEN:
            return "Approved, going on." if allow else "Denied. I'll find another way."
        if self.answer is Answer.NOT_YOURS:
            return "This one is not yours to answer: it takes an admin or the owner."
        if self.approval is None:
            return "There is no such question."
        match self.approval.state:
            case ApprovalState.ALLOWED | ApprovalState.DENIED:
                return f"It was already {self.approval.state} by {self.approval.answered_by}."
            case ApprovalState.CANCELLED:
                return f"That question was withdrawn ({self.approval.reason})."
            case _:
                return "Too late: nobody answered in time, so it did not run."


class Approvals:
    def __init__(self, db: Database, clock: Clock, wake: Callable[[str], None]) -> None:
        self._db = db
        self._clock = clock
        self._wake = wake

    async def answer(
        self, approval_id: str, *, allow: bool, platform: str, sender_id: str, reason: str = ""
    ) -> Answered:
        """Answer one. Its lane goes on in the same transaction; the loser of a race is told who won."""
        answered = await self._db.write(
            _answer,
            approval_id,
            allow=allow,
            platform=platform,
            sender_id=sender_id,
            reason=reason,
            now=self._clock.now(),
        )
        if answered.answer is Answer.TAKEN and answered.approval is not None:
            self._wake(answered.approval.lane)
        return answered

    async def find(self, code: str) -> Approval | None:
        return await self._db.read(approvals.by_code, code.upper())

    async def pending(self, lane: str = "") -> list[Approval]:
        return await self._db.read(approvals.pending, lane)


def _answer(
    tx: Tx, approval_id: str, *, allow: bool, platform: str, sender_id: str, reason: str, now: float
) -> Answered:
    approval = approvals.get(tx, approval_id)
    person = people.find(tx, platform, sender_id)
    if approval is None or person is None:
        return Answered(Answer.UNKNOWN if approval is None else Answer.NOT_YOURS, approval)
    allowed = may_answer(
        asked_of=approval.asked_of,
        touches_host=bool(approval.touches_host),
        person_id=person.id,
        role=PersonRole(person.role),
    )
    if not allowed:
        return Answered(Answer.NOT_YOURS, approval)
    who = person.name or person.id
    if not approvals.answer(tx, approval_id, allow=allow, by=who, reason=reason, now=now):
        return Answered(Answer.TOO_LATE, approvals.get(tx, approval_id))
    return Answered(Answer.TAKEN, approval)
