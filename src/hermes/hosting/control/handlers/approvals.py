"""List and answer approvals, list and revoke grants, as the local owner.

The same in a running gateway and in a command that works alone; what is answered alone goes on with the next start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hermes.core.approval import Scope, effect_sha256
from hermes.core.errors import GatewayError
from hermes.core.i18n.catalogue import ENGLISH
from hermes.core.keys import LOCAL
from hermes.hosting.control.server import Handler, Reply
from hermes.services.approvals import AnswerOutcome, Approvals
from hermes.store import approvals, grants, people
from hermes.store.approvals import Approval
from hermes.store.db import Database, Tx
from hermes.store.grants import Grant
from hermes.store.turns import tool_calls

OWNER = {"platform": LOCAL, "sender_id": LOCAL}


class ApprovalVerbs:
    def __init__(self, db: Database, service: Approvals) -> None:
        self._db = db
        self._approvals = service

    def mapping(self) -> Mapping[str, Handler]:
        return {
            "approvals.list": self.listed,
            "approvals.show": self.show,
            "approvals.answer": self.answer,
            "grants.list": self.grants,
            "grants.revoke": self.revoke,
        }

    async def listed(self, _args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        """List pending approvals, the oldest first, with the command of each."""
        waiting = await self._approvals.pending()
        return await self._db.read(_to_dicts, waiting)

    async def show(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{id}``: return all of one question as text; its last line tells how to approve it."""
        name = _word(args)
        shown = await self._db.read(_whole, name)
        if shown is None:
            raise GatewayError(f"No request has the code {name[:40]!r}. Look: hermes approvals list")
        return shown

    async def answer(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{id, allow, scope?, reason?}``: answer a question by its code or id, or ``all`` that wait."""
        name, allow, reason = _word(args), bool(args.get("allow")), str(args.get("reason") or "")
        scope = _scope(args)
        await self._db.write(people.ensure_local_owner, now=0.0)
        if name.casefold() == "all":
            return await self._answer_all(allow=allow, scope=scope, reason=reason)
        approval = await self._db.read(_find, name)
        if approval is None:
            raise GatewayError(f"No request has the code {name[:40]!r}. Look: hermes approvals list")
        answered = await self._approvals.answer(
            approval.id, allow=allow, reason=reason, scope=scope, proof=name, **OWNER
        )
        if answered.answer is not AnswerOutcome.TAKEN:
            raise GatewayError(answered.sentence(ENGLISH, allow=allow))
        return {"answered": [approval.code], "text": answered.sentence(ENGLISH, allow=allow)}

    async def _answer_all(self, *, allow: bool, scope: Scope, reason: str) -> dict[str, Any]:
        done: list[str] = []
        unseen: list[str] = []
        while waiting := [pending for pending in await self._approvals.pending() if pending.code not in unseen]:
            for approval in waiting:
                answered = await self._approvals.answer(approval.id, allow=allow, reason=reason, scope=scope, **OWNER)
                if answered.answer is AnswerOutcome.TAKEN:
                    done.append(approval.code)
                elif answered.answer is AnswerOutcome.UNSEEN:
                    unseen.append(approval.code)
            if len(waiting) + len(unseen) < approvals.MAX_LISTED:
                break
        verb = "Approved" if allow else "Denied"
        text = f"{verb} {len(done)}." if done or unseen else "Nothing waits for an answer."
        if unseen:
            text += f" Too long for a bare yes; read each: hermes approvals show {' '.join(unseen[:5])}"
        return {"answered": done, "text": text}

    async def grants(self, _args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        return await self._db.read(_granted)

    async def revoke(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{id}``: end a grant; what it covered is asked about again."""
        grant_id = _word(args)
        await self._db.write(people.ensure_local_owner, now=0.0)
        revoked = await self._approvals.revoke(grant_id, **OWNER)
        if revoked is None:
            raise GatewayError(f"There is no grant {grant_id[:40]!r}. Look: hermes approvals grants")
        return asdict(revoked)


def _word(args: Mapping[str, Any]) -> str:
    name = str(args.get("id") or "").strip()
    if not name:
        raise GatewayError("Say which one, by its code or id. Look: hermes approvals list")
    return name


def _scope(args: Mapping[str, Any]) -> Scope:
    given = str(args.get("scope") or Scope.ONCE)
    try:
        return Scope(given)
    except ValueError:
        raise GatewayError(f"There is no scope {given[:40]!r}. Scopes: {', '.join(Scope)}.") from None


# In the store


def _find(tx: Tx, name: str) -> Approval | None:
    code = name.upper()
    return approvals.get(tx, name) or approvals.by_code(tx, code) or approvals.by_proof(tx, code)


def _whole(tx: Tx, name: str) -> dict[str, Any] | None:
    from hermes.core.markdown.call_card import Card

    approval = _find(tx, name)
    if approval is None:
        return None
    call = tool_calls.get(tx, approval.tool_call_id)
    tool, arguments = (call.name, call.arguments) if call is not None else ("", "")
    card = Card(ENGLISH, tool, arguments, approval.question, approval.where_run)
    end = f"Answered: {approval.state}."
    if approval.is_pending:
        end = f"To approve: hermes approvals approve {approval.proof or approval.code}"
    return {
        "id": approval.id,
        "code": approval.code,
        "state": approval.state,
        "tool": tool,
        "arguments": arguments,
        "effect_sha256": effect_sha256(tool, arguments),
        "text": card.file_text(end),
    }


def _to_dicts(tx: Tx, waiting: list[Approval]) -> list[dict[str, Any]]:
    found = []
    for approval in waiting:
        call = tool_calls.get(tx, approval.tool_call_id)
        asked_of = people.get(tx, approval.asked_of) if approval.asked_of else None
        found.append(
            {
                **{name: value for name, value in asdict(approval).items() if name != "proof"},
                "is_long": bool(approval.proof),
                "tool": call.name if call else "",
                "arguments": call.arguments if call else "",
                "person": (asked_of.name or asked_of.id) if asked_of else "",
            }
        )
    return found


def _granted(tx: Tx) -> list[dict[str, Any]]:
    return [grant_to_dict(tx, grant) for grant in grants.standing(tx)]


def grant_to_dict(tx: Tx, grant: Grant) -> dict[str, Any]:
    whose, by = people.get(tx, grant.person_id), people.get(tx, grant.granted_by)
    return {
        **asdict(grant),
        "person": (whose.name or whose.id) if whose else grant.person_id,
        "by": (by.name or by.id) if by else grant.granted_by,
    }
