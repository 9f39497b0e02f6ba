"""Approval rules: who may answer, how far an answer reaches, how it is parsed."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.core.roles import Action, PersonRole, may

ALLOW, DENY = "allow", "deny"
ALL = "all"


class ApprovalState(StrEnum):
    PENDING = "pending"
    ALLOWED = "allowed"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Scope(StrEnum):
    """The reach of an approval: one call, its kind in this session, or its kind for ever."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"


SHARED = "shared conversation: "
"""How the subject of a question begins that is asked because people of lower roles write in the conversation."""


def reach_of(scope: Scope, subject: str) -> Scope:
    """Limit the scope of an answer: in a shared conversation it ends with the session."""
    if not subject:
        return Scope.ONCE
    return Scope.SESSION if scope is Scope.ALWAYS and subject.startswith(SHARED) else scope


_SCOPE_WORDS = {
    "once": Scope.ONCE,
    "session": Scope.SESSION,
    "always": Scope.ALWAYS,
}


def may_answer(*, asked_of: str, touches_host: bool, person_id: str, role: PersonRole) -> bool:
    """Tell whether a person may answer, or grant for longer: the one asked, or an admin; host access needs an admin."""
    if may(role, Action.APPROVE_HOST):
        return True
    return may(role, Action.APPROVE_OWN) and bool(person_id) and person_id == asked_of and not touches_host


def was_written_after(*, sent_at: float, received_at: float, delivered_at: float | None) -> bool:
    """Tell whether an answer without a code came after its question; the second of the delivery itself counts."""
    return delivered_at is not None and received_at >= delivered_at and sent_at + 1.0 > delivered_at


def effect_sha256(tool: str, arguments: str) -> str:
    """Return the name of exactly this call: who sends it back has been given the whole of it."""
    return hashlib.sha256(f"{tool}\n{arguments}".encode("utf-8", "surrogatepass")).hexdigest()


# Buttons


@dataclass(frozen=True, slots=True)
class PressedAnswer:
    approval_id: str
    allow: bool
    scope: Scope = Scope.ONCE


def button_data(approval_id: str, *, allow: bool, scope: Scope = Scope.ONCE) -> str:
    word = DENY if not allow else ALLOW if scope is Scope.ONCE else scope.value
    return f"ap:{word}:{approval_id}"


def read_button(data: str) -> PressedAnswer | None:
    """Parse a pressed button; None when it is not an approval's."""
    parts = data.split(":", 2)
    if len(parts) != 3 or parts[0] != "ap" or not parts[2]:
        return None
    match parts[1]:
        case "allow":
            return PressedAnswer(parts[2], allow=True)
        case "session" | "always":
            return PressedAnswer(parts[2], allow=True, scope=Scope(parts[1]))
        case "deny":
            return PressedAnswer(parts[2], allow=False)
        case _:
            return None


# What is typed


@dataclass(frozen=True, slots=True)
class TypedApproval:
    """``/approve [CODE|all] [session|always]``. ``word`` is a code, ``all`` or ''; ``unread`` is what nobody knows."""

    word: str = ""
    scope: Scope = Scope.ONCE
    unread: str = ""

    @property
    def is_all(self) -> bool:
        return self.word == ALL


def read_approve(rest: str) -> TypedApproval:
    """Parse the arguments of /approve. A word that is not a scope is a code."""
    words = rest.split()
    scopes = [_SCOPE_WORDS[word.casefold()] for word in words if word.casefold() in _SCOPE_WORDS]
    others = [word for word in words if word.casefold() not in _SCOPE_WORDS]
    first = others[0] if others else ""
    word = ALL if first.casefold() == ALL else first.upper()
    unread = " ".join(others[1:])
    if len(scopes) > 1:
        unread = unread or rest.strip()
    return TypedApproval(word, scopes[0] if scopes else Scope.ONCE, unread)


@dataclass(frozen=True, slots=True)
class TypedDenial:
    """``/deny [CODE|all] [reason]``: the first word may be a code, which only whoever knows the codes can say."""

    first: str = ""
    rest: str = ""

    @property
    def is_all(self) -> bool:
        return self.first == ALL

    @property
    def whole(self) -> str:
        """Return the whole reason, for when the first word is not a code."""
        return f"{self.first} {self.rest}".strip()


def read_deny(rest: str) -> TypedDenial:
    first, _, others = rest.strip().partition(" ")
    return TypedDenial(ALL if first.casefold() == ALL else first, others.strip())
