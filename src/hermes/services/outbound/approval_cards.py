"""Render the message of an approval, and its edit once it is answered.

A question that has ended is edited where the platform edits: its buttons go, and it says who answered what. Its rows
are written in the transaction that ends the question, so they cannot be forgotten and are not written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hermes.core.approval import SHARED, ApprovalState, Scope, button_data
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import pick
from hermes.core.keys import Target
from hermes.core.messages import Button, Capabilities, OutboundMessage
from hermes.core.text import length, one_line, storable, trim
from hermes.services.outbound.rows import UNKNOWN_PLATFORM
from hermes.store import codec, outbox, people
from hermes.store.approvals import Approval, Question
from hermes.store.db import Tx
from hermes.store.outbox import OutboxKind, OutboxRow, OutboxState, Outgoing
from hermes.store.turns import tool_calls

EDIT_SECONDS = 6 * 3600.0
MAX_COPIES = 4
"""A question that takes an admin is also put into the home channels: so many of them."""


def how_to_answer(
    words: Texts, question: Question | Approval, *, seconds: float, has_buttons: bool, is_for_admins: bool
) -> str:
    form = words.APPROVAL_ANSWER_SCOPED if question.subject else words.APPROVAL_ANSWER
    if question.subject.startswith(SHARED):
        form = words.APPROVAL_ANSWER_SHARED
    if question.proof:
        form = words.APPROVAL_DENY
    text = form.format(code=question.code, span=words.span(seconds))
    lines = [words.APPROVAL_TAKES_ADMIN] if is_for_admins else []
    return "\n".join([*lines, words.APPROVAL_BUTTONS.format(typed=text) if has_buttons else text])


def how_at_end(words: Texts, *, proof: str, subject: str) -> str:
    """Tell how to approve what was too long for a message. Nobody sees this line before the text above it."""
    form = words.APPROVAL_AT_END_SCOPED if subject else words.APPROVAL_AT_END
    if subject.startswith(SHARED):
        form = words.APPROVAL_AT_END_SHARED
    return form.format(proof=proof)


def buttons(words: Texts, question: Question) -> tuple[tuple[Button, ...], ...]:
    once = Button(words.APPROVE_BUTTON, button_data(question.id, allow=True))
    deny = Button(words.DENY_BUTTON, button_data(question.id, allow=False))
    if question.proof:
        return ((deny,),)
    if not question.subject:
        return ((once, deny),)
    session = Button(words.APPROVE_SESSION_BUTTON, button_data(question.id, allow=True, scope=Scope.SESSION))
    if question.subject.startswith(SHARED):
        return ((once, session), (deny,))
    always = Button(words.APPROVE_ALWAYS_BUTTON, button_data(question.id, allow=True, scope=Scope.ALWAYS))
    return ((once, session), (always, deny))


def name_of_question(approval_id: str, copy: int | None = None) -> str:
    """The outbox name of a question, or of one of its copies: known from the approval alone."""
    return f"ob_{approval_id}" if copy is None else f"ob_{approval_id}_h{copy}"


def name_of_whole(name: str) -> str:
    """The outbox name of the text that did not fit into the question of this name."""
    return f"{name}_whole"


class ApprovalCards:
    """The rows that edit a question which has ended, and tell it where it cannot be edited."""

    def __init__(
        self, capabilities: Callable[[Target], Capabilities | None], language: Callable[[], str] = lambda: ""
    ) -> None:
        """``language`` is the owner's choice for everybody, '' where there is none."""
        self._capabilities = capabilities
        self._language = language

    def __call__(self, tx: Tx, approval: Approval, /, *, now: float) -> Sequence[Outgoing]:
        call = tool_calls.get(tx, approval.tool_call_id)
        person = people.get(tx, approval.asked_of) if approval.asked_of else None
        words = words_of(pick(self._language(), person.language if person is not None else ""))
        from hermes.core.markdown.call_card import Card  # no start needs it

        tool, arguments = (call.name, call.arguments) if call is not None else ("?", "")
        card = Card(words, tool, arguments, approval.question, approval.where_run)
        about = card.excerpt() if approval.proof else card.whole()
        cards = [self._card(tx, row, approval, about, verdict(words, approval), now) for row in _put(tx, approval)]
        return [card for card in cards if card is not None]

    def _card(self, tx: Tx, row: OutboxRow, approval: Approval, about: str, end: str, now: float) -> Outgoing | None:
        target = Target.parse(row.target)
        can = self._capabilities(target)
        if row.state in (OutboxState.READY, OutboxState.PARKED):
            outbox.withdraw(tx, row.group_id, reason="answered before it was delivered", now=now)
        if approval.proof:
            outbox.withdraw(tx, name_of_whole(row.group_id), reason="answered before it was delivered", now=now)
        has_expired = approval.state == ApprovalState.EXPIRED
        if not has_expired and (can is None or not can.edits):
            return None  # whoever answered is told in their own chat
        # The whole card where it fits into one message, else its last line alone.
        limits, text = can or UNKNOWN_PLATFORM, f"{about}\n\n{end}"
        if length(text, limits.text_unit) > limits.text_limit:
            text = trim(end, limits.text_limit, limits.text_unit)
        # An end that nobody chose must be told, so it is sent anew where there is nothing to edit.
        kind = OutboxKind.REPLY if has_expired else OutboxKind.EDIT
        edit = in_place_of(row, text, now=now, kind=kind, turn_id=approval.turn_id)
        return edit if can is not None and can.edits else replace(edit, replaces="")


def in_place_of(
    row: OutboxRow, text: str, *, now: float, kind: OutboxKind = OutboxKind.EDIT, turn_id: str = ""
) -> Outgoing:
    """What stands, without buttons, where this row stood. Writing it twice stores it once."""
    name = f"{row.group_id}_end"
    body = OutboundMessage(Target.parse(row.target), storable(text), idempotency_key=name)
    return Outgoing(
        id=name,
        target=row.target,
        group_id=name,
        idx=0,
        kind=kind,
        body=codec.dump(body),
        expires_at=now + EDIT_SECONDS,
        turn_id=turn_id,
        replaces=row.id,
    )


def _put(tx: Tx, approval: Approval) -> list[OutboxRow]:
    """The messages that ask this question: the one with the buttons of each chat it was put into."""
    if not approval.question_id:
        return []
    found = [outbox.get(tx, approval.question_id)]
    if approval.touches_host:
        for copy in range(MAX_COPIES):
            rows = outbox.of_group(tx, name_of_question(approval.id, copy))
            found.append(rows[-1] if rows else None)
    return [row for row in found if row is not None]


def verdict(words: Texts, approval: Approval) -> str:
    """How a question ended, in a line."""
    answered_by = words.reason(one_line(approval.answered_by, 60)) or words.SOMEBODY_ANSWERED
    match approval.state:
        case ApprovalState.ALLOWED:
            reach = {
                Scope.SESSION: words.CARD_ALLOWED_SESSION,
                Scope.ALWAYS: words.CARD_ALLOWED_ALWAYS,
            }
            return reach.get(Scope(approval.scope or Scope.ONCE), words.CARD_ALLOWED).format(who=answered_by)
        case ApprovalState.DENIED:
            reason = one_line(approval.reason, 200)
            form = words.CARD_DENIED_BECAUSE if reason else words.CARD_DENIED
            return form.format(who=answered_by, reason=reason)
        case ApprovalState.EXPIRED:
            return words.CARD_EXPIRED.format(span=words.span(approval.expires_at - approval.created_at))
        case _:
            return words.CARD_WITHDRAWN.format(reason=words.reason(one_line(approval.reason, 200)))
