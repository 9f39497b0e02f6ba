"""/approve, /deny and /approvals: answer approvals, list them and the grants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hermes.core.approval import Scope, read_approve, read_deny
from hermes.core.i18n.en import Texts
from hermes.core.text import one_line
from hermes.services.approvals import Answered, AnswerOutcome, PendingApproval
from hermes.services.commands.base import CommandContext, command
from hermes.store.approvals import Approval
from hermes.store.grants import Grant

MAX_LISTED = 10


@command("approve", summary="Allow what I asked for", usage="/approve [CODE|all] [session|always]")
async def approve(ctx: CommandContext) -> str:
    typed = read_approve(ctx.rest)
    if typed.unread:
        return ctx.words.APPROVE_UNREAD.format(word=one_line(typed.unread, 40))
    waiting = await _waiting(ctx)
    if typed.is_all:
        return await _answer_all(
            ctx, [question for question in waiting if _was_seen(ctx, question)], waiting, typed.scope
        )
    if typed.word:
        approval = await _find(ctx, typed.word, waiting)
        if approval is None:
            return _which(ctx, waiting) if waiting else ctx.words.APPROVALS_NOTHING_HERE
        return await _answer(ctx, approval, allow=True, scope=typed.scope, proof=typed.word)
    if not waiting:
        return ctx.words.APPROVALS_NOTHING_HERE
    if len(waiting) > 1 or not _was_seen(ctx, waiting[0]):
        return _which(ctx, waiting)
    return await _answer(ctx, waiting[0].approval, allow=True, scope=typed.scope)


@command("deny", summary="Refuse what I asked for", usage="/deny [CODE|all] [reason]")
async def deny(ctx: CommandContext) -> str:
    typed = read_deny(ctx.rest)
    waiting = await _waiting(ctx)
    if typed.is_all:
        return await _answer_all(ctx, waiting, waiting, None, reason=typed.rest)
    approval = await _find(ctx, typed.first, waiting) if typed.first else None
    if approval is not None:
        return await _answer(ctx, approval, allow=False, reason=typed.rest)
    if not waiting:
        return ctx.words.APPROVALS_NOTHING_HERE
    if len(waiting) > 1:
        return _which(ctx, waiting)
    return await _answer(ctx, waiting[0].approval, allow=False, reason=typed.whole)


@command(
    "approvals",
    summary="Requests that wait for an answer, and your grants",
    usage="/approvals [revoke ID]",
)
async def approvals(ctx: CommandContext) -> str:
    verb, _, rest = ctx.rest.partition(" ")
    words = ctx.words
    sender = {"platform": ctx.session_key.platform, "sender_id": ctx.sender_id}
    if verb.casefold() == "revoke":
        revoked = await ctx.services.approvals.revoke(rest.strip(), **sender)
        if revoked is None:
            return words.APPROVALS_NO_GRANT
        return words.APPROVALS_REVOKED.format(grant=_subject(words, revoked))
    if verb:
        return words.APPROVALS_USAGE
    waiting = await _waiting(ctx)
    granted = await ctx.services.approvals.granted(**sender)
    lines = [
        f"{question.approval.code}: {one_line(question.approval.question, 200)}" for question in waiting[:MAX_LISTED]
    ]
    lines += [f"{grant.id}: {_subject(words, grant)}" for grant in granted[:MAX_LISTED]]
    left_out = max(0, len(waiting) - MAX_LISTED) + max(0, len(granted) - MAX_LISTED)
    if left_out:
        lines.append(words.APPROVALS_MORE.format(count=left_out))
    return "\n".join(lines) or words.APPROVALS_NOTHING


def _subject(words: Texts, grant: Grant) -> str:
    form = words.GRANT_SESSION if grant.scope == Scope.SESSION else words.GRANT_ALWAYS
    return form.format(subject=one_line(grant.subject, 120))


# Answering


async def _waiting(ctx: CommandContext) -> list[PendingApproval]:
    return await ctx.services.approvals.waiting_in(target=str(ctx.session_key.target), lane=ctx.lane)


def _was_seen(ctx: CommandContext, waiting: PendingApproval) -> bool:
    """Whether the answer was written after the question was shown. An old message that was edited proves nothing."""
    return not ctx.is_edit and waiting.is_older_than(sent_at=ctx.sent_at, received_at=ctx.received_at)


async def _find(ctx: CommandContext, word: str, waiting: Sequence[PendingApproval]) -> Approval | None:
    """The question a code names: one that waits here, else any with this code."""
    code = word.upper()
    here = next(
        (question.approval for question in waiting if code in (question.approval.code, question.approval.proof)), None
    )
    return here or await ctx.services.approvals.find(code)


async def _answer(
    ctx: CommandContext,
    approval: Approval,
    *,
    allow: bool,
    reason: str = "",
    scope: Scope = Scope.ONCE,
    proof: str = "",
) -> str:
    answered = await _answered(ctx, approval, allow=allow, reason=reason, scope=scope, proof=proof)
    is_here = approval.lane == ctx.lane or approval.target == str(ctx.session_key.target)
    if answered.answer is AnswerOutcome.NOT_YOURS and not is_here:
        return ctx.words.APPROVALS_NO_SUCH  # a stranger to it learns nothing about it
    return answered.sentence(ctx.words, allow=allow)


async def _answered(
    ctx: CommandContext, approval: Approval, *, allow: bool, reason: str, scope: Scope, proof: str = ""
) -> Answered:
    return await ctx.services.approvals.answer(
        approval.id,
        allow=allow,
        platform=ctx.session_key.platform,
        sender_id=ctx.sender_id,
        reason=reason,
        scope=scope,
        proof=proof,
    )


async def _answer_all(
    ctx: CommandContext,
    chosen: Sequence[PendingApproval],
    waiting: Sequence[PendingApproval],
    scope: Scope | None,
    reason: str = "",
) -> str:
    """Answer each of these; ``scope`` None denies. What could not be answered is said."""
    if not waiting:
        return ctx.words.APPROVALS_NOTHING_HERE
    counted: Counter[AnswerOutcome] = Counter()
    for question in chosen:
        answered = await _answered(
            ctx, question.approval, allow=scope is not None, reason=reason, scope=scope or Scope.ONCE
        )
        counted[answered.answer] += 1
    words = ctx.words
    form = words.DENIED_OF if scope is None else words.APPROVED_OF
    lines = [form.format(count=counted[AnswerOutcome.TAKEN], all=len(waiting))]
    if counted[AnswerOutcome.NOT_YOURS]:
        lines.append(words.OTHERS_ANSWER.format(count=counted[AnswerOutcome.NOT_YOURS]))
    if counted[AnswerOutcome.UNSEEN]:
        lines.append(words.UNSEEN_OF.format(count=counted[AnswerOutcome.UNSEEN]))
    if counted[AnswerOutcome.TOO_LATE]:
        lines.append(words.ANSWERED_MEANWHILE.format(count=counted[AnswerOutcome.TOO_LATE]))
    unseen = [question for question in waiting if question not in chosen]
    if unseen:
        lines.append(words.ASKED_AFTER.format(questions=_list(unseen)))
    return words.GAP.join(lines)


def _which(ctx: CommandContext, waiting: Sequence[PendingApproval]) -> str:
    return ctx.words.WHICH_QUESTION.format(questions=_list(waiting))


def _list(waiting: Sequence[PendingApproval]) -> str:
    return "; ".join(
        f"{question.approval.code}: {one_line(question.approval.question, 200)}" for question in waiting[:MAX_LISTED]
    )
