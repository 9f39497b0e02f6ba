"""The questions the agent waits for, and their answers, with the role of the key that answers.

`/api/approvals` lists and answers them. A chat client reads them as text and types `/approve CODE` or `/deny CODE`.

A user's key sees and answers its own questions; what touches the host needs a named key of an admin or the owner. The
default key is stored in a file and may only deny it.
"""

from __future__ import annotations

from aiohttp import web
from msgspec import UNSET

from hermes.core.approval import ApprovalState, Scope, effect_sha256, may_answer, read_approve, read_deny
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.catalogue import ENGLISH, words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import pick
from hermes.core.keys import SessionKey
from hermes.core.messages import Json
from hermes.core.roles import Action, may
from hermes.core.text import storable
from hermes.servers.api import parse
from hermes.servers.api.bodies import DecisionBody, decode
from hermes.servers.api.context import CALLER, ApiParts, Caller
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.api.streams.run_events import run_id_of
from hermes.servers.api.transcripts import trimmed
from hermes.servers.app import RouteAdder, json_response
from hermes.services.approvals import Answered, AnswerOutcome
from hermes.services.gateway import Gateway
from hermes.services.outbound import approval_cards
from hermes.services.requests.requests import PLATFORM
from hermes.store import approvals, inbox, people
from hermes.store.approvals import Approval
from hermes.store.db import Tx
from hermes.store.turns import tool_calls
from hermes.store.turns.tool_calls import StoredCall

NO_SECOND_FACTOR = (
    "The default key cannot approve what touches the machine: it stands in a file that the agent's own commands can "
    "read. Answer in a chat, in a terminal (hermes approvals approve {code}), or with a named key, which is shown "
    "once and stored as a hash (hermes api-key create NAME --role admin)."
)

NOT_SHOWN = (
    "This call is too long to be approved unread. GET /api/approvals/{id} returns all of it in arguments; send the "
    "effect_sha256 that comes with it along with the decision."
)


def routes(parts: ApiParts) -> RouteAdder:
    def add(app: web.Application) -> None:
        family = ApprovalRoutes(parts)
        app.router.add_get("/api/approvals", family.listed)
        app.router.add_get("/api/approvals/{approval_id}", family.read)
        app.router.add_post("/api/approvals/{approval_id}", family.answer)

    return add


@dataclass(frozen=True, slots=True)
class Decision:
    """``effect_sha256``: the call that the caller has read, '' where it does not say."""

    allow: bool
    reason: str = ""
    scope: Scope = Scope.ONCE
    effect_sha256: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """An approval with what it is about. ``person_id`` is that of whoever looks."""

    approval: Approval
    tool: str
    arguments: str
    event_id: str
    person_id: str


class ApprovalRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway

    async def listed(self, request: web.Request) -> web.Response:
        """Those still waiting, the oldest first."""
        caller = request[CALLER]
        session_id = request.query.get("session_id", "")
        seen = await self._gateway.db.read(_pending, caller, now=self._gateway.clock.now())
        chosen = [approval_to_dict(approval, caller) for approval in seen]
        return json_response(
            {"object": "list", "data": [approval for approval in chosen if session_id in ("", approval["session_id"])]}
        )

    async def read(self, request: web.Request) -> web.Response:
        return json_response(approval_to_dict(await self._seen(request), request[CALLER], is_whole=True))

    async def answer(self, request: web.Request) -> web.Response:
        decision = read_decision(decode(await parse.read_body(request), DecisionBody))
        seen = await self._seen(request)
        answered = await answer(self._gateway, request[CALLER], seen.approval, decision)
        return json_response({**approval_to_dict(seen, request[CALLER]), **answered})

    async def _seen(self, request: web.Request) -> Seen:
        approval_id = storable(request.match_info["approval_id"])
        seen = await self._gateway.db.read(look, approval_id, request[CALLER])
        if seen is None:
            raise no_such_approval(approval_id)
        return seen


# Answering, for this family and for runs


def read_decision(body: DecisionBody) -> Decision:
    """``{"approve": true}`` or ``{"decision": "approve" | "deny"}``, a reason that the agent is told, and a scope."""
    word = None if body.decision is UNSET else body.decision == "approve"
    allow = word if body.approve is None else body.approve
    if not isinstance(allow, bool) or word not in (None, allow):
        message = 'Send {"decision": "approve"} or {"decision": "deny"}; {"approve": true} or false says the same.'
        raise bad_request(message, code="invalid_decision", param="decision")
    scope = Scope(body.scope or Scope.ONCE)
    if scope is not Scope.ONCE and not allow:
        message = "scope is once, session or always, and goes with an approval."
        raise bad_request(message, code="invalid_scope", param="scope")
    return Decision(allow, storable(body.reason or ""), scope, (body.effect_sha256 or "").strip().lower())


async def answer(gateway: Gateway, caller: Caller, approval: Approval, decision: Decision) -> Json:
    """Answer a question as the person behind a key. Returns what changed; a refusal is raised."""
    if not may(caller.role, Action.APPROVE_OWN):
        raise refusal(Answered(AnswerOutcome.NOT_YOURS, approval), decision)
    if decision.allow and approval.touches_host and caller.stands_in_file:
        raise ApiError(403, NO_SECOND_FACTOR.format(code=approval.code), code="key_in_a_file", kind="permission_error")
    await gateway.requests.meet(caller.sender_id, caller.role)
    answered = await gateway.approvals.answer(
        approval.id,
        allow=decision.allow,
        platform=PLATFORM,
        sender_id=caller.sender_id,
        reason=decision.reason,
        scope=decision.scope,
        proof=decision.effect_sha256,
        at_most=caller.role.value,
    )
    if answered.answer is not AnswerOutcome.TAKEN:
        raise refusal(answered, decision)
    state = ApprovalState.ALLOWED if decision.allow else ApprovalState.DENIED
    return {
        "status": state.value,
        "answered_by": caller.label,
        "reason": decision.reason,
        "scope": (answered.approval.scope if answered.approval else "") or None,
        "may_answer": False,
    }


def refusal(answered: Answered, decision: Decision) -> ApiError:
    sentence = answered.sentence(ENGLISH, allow=decision.allow)
    if answered.answer is AnswerOutcome.NOT_YOURS:
        return ApiError(403, sentence, code="approval_not_yours", kind="permission_error")
    if answered.approval is None:
        return not_found(sentence, code="approval_not_found")
    if answered.answer is AnswerOutcome.UNSEEN:
        message = NOT_SHOWN.format(id=answered.approval.id)
        return ApiError(409, message, code="approval_not_read", kind="conflict_error")
    return too_late(answered.approval, sentence)


def too_late(approval: Approval, sentence: str = "") -> ApiError:
    """Why a question takes no answer any more."""
    match approval.state:
        case ApprovalState.ALLOWED | ApprovalState.DENIED:
            code = "approval_already_answered"
        case ApprovalState.CANCELLED:
            code = "run_already_ended"
        case _:
            code = "approval_expired"
    words = sentence or Answered(AnswerOutcome.TOO_LATE, approval).sentence(ENGLISH, allow=True)
    return ApiError(409, words, code=code, kind="conflict_error", extras={"approval_id": approval.id})


def no_such_approval(approval_id: str) -> ApiError:
    message = f"There is no approval {approval_id[:80]!r} for this key. GET /api/approvals lists those that wait."
    return not_found(message, code="approval_not_found")


# Questions as text, and answers that are typed


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that a turn waits with, and the call it is about."""

    approval: Approval
    call: StoredCall | None

    @property
    def name(self) -> str:
        return self.call.name if self.call is not None else "?"

    @property
    def arguments(self) -> str:
        return self.call.arguments if self.call is not None else "{}"


def open_questions(tx: Tx, turn_id: str) -> list[OpenQuestion]:
    """The questions of a turn that nobody has answered, the oldest first."""
    pending = [approval for approval in approvals.of_turn(tx, turn_id) if approval.is_pending]
    return [OpenQuestion(approval, tool_calls.get(tx, approval.tool_call_id)) for approval in pending]


def texts_for(gateway: Gateway, text: str) -> Texts:
    """The sentences for whoever wrote ``text``."""
    return words_of(pick(gateway.config.language, "", text=text))


def question_text(words: Texts, question: OpenQuestion, caller: Caller, *, now: float) -> str:
    """A question as a chat shows it: what is to run, why it is asked, and what to type."""
    from hermes.core.markdown.call_card import MAX_ARGUMENTS, Card  # no start needs it

    approval = question.approval
    card = Card(words, question.name, question.arguments, approval.question, approval.where_run)
    is_whole = len(question.arguments) <= MAX_ARGUMENTS
    about = card.whole() if is_whole else card.excerpt()
    how = approval_cards.how_to_answer(
        words,
        approval,
        seconds=max(0.0, approval.expires_at - now),
        has_buttons=False,
        is_for_admins=bool(approval.touches_host) and not may(caller.role, Action.APPROVE_HOST),
    )
    if approval.touches_host and caller.stands_in_file:
        how = f"{how}\n{words.APPROVAL_TAKES_NAMED_KEY.format(code=approval.code)}"
    if approval.proof and is_whole:
        how = f"{how}\n{approval_cards.how_at_end(words, proof=approval.proof, subject=approval.subject)}"
    elif approval.proof:
        how = f"{how}\n{NOT_SHOWN.format(id=approval.id)}"
    return f"{about}\n{how}"


@dataclass(frozen=True, slots=True)
class TypedAnswer:
    """`/approve [CODE] [scope]` or `/deny [CODE] [reason]`. ``word`` may be a code; ``unread`` is what nobody knows."""

    word: str
    decision: Decision
    unread: str = ""
    bare: Decision | None = None
    """The decision where ``word`` is no code: of a denial, the whole text is its reason."""


def read_typed(text: str) -> TypedAnswer | None:
    """Read a message that answers a question; None for any other."""
    verb, _, rest = text.strip().partition(" ")
    match verb.casefold():
        case "/approve":
            typed = read_approve(rest)
            return TypedAnswer(typed.word, Decision(True, "", typed.scope, typed.word.lower()), typed.unread)
        case "/deny":
            denied = read_deny(rest)
            return TypedAnswer(denied.first, Decision(False, denied.rest), bare=Decision(False, denied.whole))
        case _:
            return None


def find_typed(tx: Tx, typed: TypedAnswer, caller: Caller, lane: str, *, now: float) -> tuple[Seen, Decision] | None:
    """The question that is meant: by its code, or the only one that waits in the session, or for this key."""
    code = typed.word.upper()
    named = (approvals.by_code(tx, code) or approvals.by_proof(tx, code)) if code else None
    if named is not None:
        seen = _seen(tx, named, caller)
        return (seen, typed.decision) if seen is not None else None
    if typed.word and typed.bare is None:
        return None
    waiting = _pending(tx, caller, now=now)
    here = [seen for seen in waiting if seen.approval.lane == lane]
    own = [seen for seen in waiting if seen.approval.asked_of == seen.person_id]
    chosen = here or own
    return (chosen[0], typed.bare or typed.decision) if len(chosen) == 1 else None


# Looking


def approval_to_dict(seen: Seen, caller: Caller, *, is_whole: bool = False) -> Json:
    """Describe an approval. ``effect_sha256`` is there only together with all of the arguments: ``is_whole``."""
    approval = seen.approval
    arguments = seen.arguments if is_whole else trimmed(seen.arguments)
    key = SessionKey.parse(approval.lane)
    is_pending = approval.state == ApprovalState.PENDING
    return {
        "id": approval.id,
        "object": "approval",
        "code": approval.code,
        "status": approval.state,
        "question": approval.question,
        "tool": seen.tool,
        "arguments": arguments,
        "is_long": bool(approval.proof),
        "effect_sha256": effect_sha256(seen.tool, seen.arguments) if arguments == seen.arguments else None,
        "touches_host": bool(approval.touches_host),
        "platform": key.platform,
        "session_id": key.chat if key.platform == PLATFORM else None,
        "session_key": approval.lane,
        "run_id": run_id_of(seen.event_id) if seen.event_id else None,
        "turn_id": approval.turn_id,
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "answered_by": approval.answered_by or None,
        "answered_at": approval.answered_at,
        "reason": approval.reason,
        "where": approval.where_run or None,
        "scope": approval.scope or None,
        "scopes": [scope.value for scope in Scope] if approval.subject else [Scope.ONCE.value],
        "may_answer": is_pending and _may(seen, caller),
    }


def _may(seen: Seen, caller: Caller) -> bool:
    approval = seen.approval
    if approval.touches_host and caller.stands_in_file:
        return False
    return may(caller.role, Action.APPROVE_OWN) and may_answer(
        asked_of=approval.asked_of,
        touches_host=bool(approval.touches_host),
        person_id=seen.person_id,
        role=caller.role,
    )


def look(tx: Tx, approval_id: str, caller: Caller) -> Seen | None:
    """One approval; None also when it is not for this caller to see."""
    approval = approvals.get(tx, approval_id)
    return None if approval is None else _seen(tx, approval, caller)


def _pending(tx: Tx, caller: Caller, *, now: float) -> list[Seen]:
    person_id = _person_id(tx, caller)
    if not caller.sees_all and not person_id:
        return []  # nothing was ever asked of somebody who never asked
    waiting = approvals.pending(tx, asked_of="" if caller.sees_all else person_id)
    found = (_seen(tx, approval, caller) for approval in waiting if approval.expires_at > now)
    return [seen for seen in found if seen is not None]


def _person_id(tx: Tx, caller: Caller) -> str:
    person = people.find(tx, PLATFORM, caller.sender_id)
    return person.id if person is not None else ""


def _seen(tx: Tx, approval: Approval, caller: Caller) -> Seen | None:
    person_id = _person_id(tx, caller)
    if not caller.sees_all and (not person_id or approval.asked_of != person_id):
        return None
    call = next((call for call in tool_calls.of_turn(tx, approval.turn_id) if call.id == approval.tool_call_id), None)
    rows = [row for row in inbox.of_turn(tx, approval.turn_id) if row.kind == "request"]
    return Seen(
        approval,
        call.name if call else "",
        call.arguments if call else "",
        rows[-1].id if rows else "",
        person_id,
    )
