"""Who may answer an approval, and what a typed answer means."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.core.people import PersonRole

ALLOW, DENY = "allow", "deny"


def may_answer(*, asked_of: str, touches_host: bool, person_id: str, role: PersonRole) -> bool:
    """The person it was asked of, an admin or the owner; what touches the host needs an admin or the owner."""
    if role in (PersonRole.OWNER, PersonRole.ADMIN):
        return True
    return bool(person_id) and person_id == asked_of and not touches_host


@dataclass(frozen=True, slots=True)
class PressedAnswer:
    approval_id: str
    allow: bool


def button_data(approval_id: str, *, allow: bool) -> str:
    return f"ap:{ALLOW if allow else DENY}:{approval_id}"


def read_button(data: str) -> PressedAnswer | None:
    """What a pressed button says, or None when it is not one of an approval."""
    parts = data.split(":", 2)
    if len(parts) != 3 or parts[0] != "ap" or parts[1] not in (ALLOW, DENY):
        return None
    return PressedAnswer(parts[2], allow=parts[1] == ALLOW)
