"""Answer approvals: by button, code, API key or command line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import StrEnum
from hmac import compare_digest

from hermes.core.approval import ApprovalState, Scope, effect_sha256, may_answer, reach_of, was_written_after
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.en import Texts
from hermes.core.keys import LOCAL
from hermes.core.ports import Clock
from hermes.core.roles import Action, PersonRole, capped, may
from hermes.core.text import one_line, storable
from hermes.store import approvals, grants, outbox, people
from hermes.store.approvals import Approval
from hermes.store.db import Database, Tx
from hermes.store.grants import Grant
from hermes.store.ids import new_id
from hermes.store.outbox import OutboxState
from hermes.store.people import Person
from hermes.store.turns import tool_calls
from hermes.store.turns.end import CardWriter, no_cards

log = logging.getLogger(__name__)

MAX_REASON_CHARS = 1000
MAX_ID_CHARS = 200
THE_OWNER = "the owner"


class AnswerOutcome(StrEnum):
    TAKEN = "taken"
    UNKNOWN = "unknown"  # there is no such approval
    NOT_YOURS = "not yours"
    TOO_LATE = "too late"
    UNSEEN = "unseen"  # it was too long to be shown whole, and the answer does not show that it was read


@dataclass(frozen=True, slots=True)
class Answered:
    """The outcome of an answer. ``wanted`` is the scope asked for; ``was_asked``: the answerer is the one asked."""

    answer: AnswerOutcome
    approval: Approval | None = None
    wanted: Scope = Scope.ONCE
    was_asked: bool = False

    def sentence(self, words: Texts, *, allow: bool) -> str:
        """Describe the outcome for the person who answered."""
        if self.answer is AnswerOutcome.TAKEN:
            return self._allowed(words) if allow else words.ANSWER_DENIED
        if self.answer is AnswerOutcome.NOT_YOURS:
            return words.ANSWER_NOT_YOURS
        if self.approval is None:
            return words.ANSWER_NO_SUCH
        if self.answer is AnswerOutcome.UNSEEN:
            return words.ANSWER_UNSEEN.format(code=self.approval.code)
        match self.approval.state:
            case ApprovalState.ALLOWED:
                return words.ANSWER_WAS_ALLOWED.format(who=words.reason(one_line(self.approval.answered_by, 60)))
            case ApprovalState.DENIED:
                return words.ANSWER_WAS_DENIED.format(who=words.reason(one_line(self.approval.answered_by, 60)))
            case ApprovalState.CANCELLED:
                return words.ANSWER_WITHDRAWN.format(reason=words.reason(self.approval.reason))
            case _:
                return words.ANSWER_TOO_LATE

    def _allowed(self, words: Texts) -> str:
        match self.approval.scope if self.approval is not None else "":
            case Scope.SESSION:
                return words.ANSWER_ALLOWED_SESSION
            case Scope.ALWAYS:
                return words.ANSWER_ALLOWED_ALWAYS
            case _:
                return words.ANSWER_ALLOWED if self.wanted is Scope.ONCE else words.ANSWER_ALLOWED_ONCE


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A pending question of a chat, and when it was shown there (None: it was not yet)."""

    approval: Approval
    delivered_at: float | None

    def is_older_than(self, *, sent_at: float, received_at: float) -> bool:
        """Whether an answer without a code, written then, can be about it. Asked in no chat, it was seen at once."""
        if not self.approval.question_id:
            return received_at >= self.approval.created_at
        return was_written_after(sent_at=sent_at, received_at=received_at, delivered_at=self.delivered_at)


class Approvals:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        wake: Callable[[str], None] = lambda _: None,
        cards: CardWriter = no_cards,
        deliver: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._wake = wake
        self._cards = cards
        self._deliver = deliver

    async def answer(
        self,
        approval_id: str,
        *,
        allow: bool,
        platform: str,
        sender_id: str,
        reason: str = "",
        scope: Scope = Scope.ONCE,
        proof: str = "",
        at_most: str = "",
    ) -> Answered:
        """Answer one. Its lane goes on in the same transaction; the loser of a race is told who won.

        A scope beyond this once is kept as a grant, where the thing is of a kind that can be granted. ``proof`` shows
        that the whole of a long one was read: the code at its end, or the SHA-256 of its effect. ``at_most`` is the
        role of an API key: linked to a person of a higher role, the key gains no rights.
        """
        answered, targets = await self._db.write(
            self._answer,
            approval_id,
            allow=allow,
            platform=platform,
            sender_id=sender_id,
            reason=storable(reason[:MAX_REASON_CHARS]),
            scope=scope,
            proof=proof,
            at_most=at_most,
            now=self._clock.now(),
        )
        if answered.answer is AnswerOutcome.NOT_YOURS and answered.was_asked:
            log.warning("Answer needs an admin", extra={"platform": platform, "approval": approval_id})
        elif answered.answer is AnswerOutcome.NOT_YOURS:
            lane = answered.approval.lane if answered.approval is not None else ""
            log_refused(lane, platform, sender_id, approval_id)
        if answered.answer is AnswerOutcome.TAKEN and answered.approval is not None:
            self._wake(answered.approval.lane)
            for target in targets:
                self._deliver(target)
        return answered

    def _answer(
        self,
        tx: Tx,
        approval_id: str,
        *,
        allow: bool,
        platform: str,
        sender_id: str,
        reason: str,
        scope: Scope,
        proof: str,
        at_most: str,
        now: float,
    ) -> tuple[Answered, Sequence[str]]:
        approval = approvals.get(tx, approval_id)
        person = people.find(tx, platform, sender_id)
        if approval is None or person is None:
            return Answered(AnswerOutcome.UNKNOWN if approval is None else AnswerOutcome.NOT_YOURS, approval), ()
        if not may_answer(
            asked_of=approval.asked_of,
            touches_host=bool(approval.touches_host),
            person_id=person.id,
            role=PersonRole(capped(person.role, at_most)),
        ):
            return Answered(AnswerOutcome.NOT_YOURS, approval, was_asked=person.id == approval.asked_of), ()
        if allow and approval.is_pending and not _has_read(tx, approval, proof):
            return Answered(AnswerOutcome.UNSEEN, approval), ()
        reach = reach_of(scope, approval.subject) if allow else Scope.ONCE
        answered_by = person.name or (THE_OWNER if platform == LOCAL else person.id)
        taken = approvals.answer(
            tx, approval_id, allow=allow, by=answered_by, reason=reason, now=now, scope=reach.value if allow else ""
        )
        if taken is None:
            return Answered(AnswerOutcome.TOO_LATE, approvals.get(tx, approval_id)), ()
        if reach is not Scope.ONCE:
            _grant(tx, taken, person, reach, reason, now)
        rows = self._cards(tx, taken, now=now)
        outbox.enqueue(tx, rows, now=now)
        return Answered(AnswerOutcome.TAKEN, taken, scope), [row.target for row in rows]

    # Looking

    async def find(self, code: str) -> Approval | None:
        """Return the question with this code, or with this code at the end of its text."""
        return await self._db.read(_by_either, code.upper())

    async def pending(self, lane: str = "") -> list[Approval]:
        """List pending approvals: all, or those of one lane."""
        now = self._clock.now()
        return [approval for approval in await self._db.read(approvals.pending, lane) if approval.expires_at > now]

    async def waiting_in(self, *, target: str, lane: str) -> list[PendingApproval]:
        """List the pending approvals of one chat, the oldest first."""
        return await self._db.read(_waiting, target, lane, now=self._clock.now())

    # Grants

    async def granted(self, *, platform: str, sender_id: str) -> list[Grant]:
        """List standing grants: all for an admin or the owner, else one's own."""
        return await self._db.read(_granted, platform, sender_id)

    async def revoke(self, grant_id: str, *, platform: str, sender_id: str) -> Grant | None:
        """Revoke a grant. None: no such grant, or not this person's to revoke."""
        return await self._db.write(_revoke, grant_id, platform, sender_id, now=self._clock.now())


def _by_either(tx: Tx, code: str) -> Approval | None:
    return approvals.by_code(tx, code) or approvals.by_proof(tx, code)


def _has_read(tx: Tx, approval: Approval, proof: str) -> bool:
    """Tell whether an answer proves that the whole text was at hand; what one message showed needs no proof."""
    if not approval.proof:
        return True
    call = tool_calls.get(tx, approval.tool_call_id)
    effect = effect_sha256(call.name, call.arguments) if call is not None else approval.proof
    return compare_digest(proof.upper().encode(), approval.proof.encode()) or compare_digest(
        proof.lower().encode(), effect.encode()
    )


def log_refused(session_key: str, platform: str, sender_id: str, approval: str) -> None:
    """Log a refused answer in the words that operators look for."""
    log.warning(
        "Rejected unauthorized approval click for session %s (operator=%s)",
        session_key,
        one_line(sender_id, MAX_ID_CHARS),
        extra={"platform": platform, "approval": approval},
    )


def _grant(tx: Tx, approval: Approval, by: Person, scope: Scope, reason: str, now: float) -> None:
    if not approval.asked_of:
        return
    grant = Grant(
        id=new_id("gr"),
        person_id=approval.asked_of,
        scope=scope.value,
        subject=approval.subject,
        session_id=approval.session_id if scope is Scope.SESSION else "",
        touches_host=approval.touches_host,
        granted_by=by.id,
        granted_at=now,
        reason=reason or f"asked as {approval.code}: {one_line(approval.question, 200)}",
        revoked_at=None,
    )
    grants.give(tx, grant)


def _waiting(tx: Tx, target: str, lane: str, *, now: float) -> list[PendingApproval]:
    found = []
    for approval in approvals.waiting_in(tx, target=target, lane=lane):
        if approval.expires_at <= now:
            continue
        row = outbox.get(tx, approval.question_id) if approval.question_id else None
        is_shown = row is not None and row.state == OutboxState.SENT
        found.append(PendingApproval(approval, row.settled_at if row is not None and is_shown else None))
    return found


def _granted(tx: Tx, platform: str, sender_id: str) -> list[Grant]:
    person = people.find(tx, platform, sender_id)
    if person is None:
        return []
    sees_all = may(PersonRole(person.role), Action.APPROVE_HOST)
    return grants.standing(tx, person_id="" if sees_all else person.id)


def _revoke(tx: Tx, grant_id: str, platform: str, sender_id: str, *, now: float) -> Grant | None:
    person, grant = people.find(tx, platform, sender_id), grants.get(tx, grant_id)
    if person is None or grant is None:
        return None
    if grant.person_id != person.id and not may(PersonRole(person.role), Action.APPROVE_HOST):
        return None
    return grants.revoke(tx, grant_id, now=now)
