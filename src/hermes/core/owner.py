"""Rules for who is the owner: named in the settings, or the only person on the lists who says so."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from hermes.core.access import AccessPolicy, DmPolicy
from hermes.core.keys import LOCAL

YES, NO = "yes", "no"
_BUTTON = "owner"


class OwnerBy(StrEnum):
    """How somebody came to be the owner, or was asked to be. The words are stored."""

    NEVER_ASKED = ""
    CONFIG = "config"
    ASKED = "asked"
    YES = "yes"
    NO = "no"


def only_listed(owners: Iterable[str], accounts: Iterable[tuple[str, AccessPolicy]]) -> tuple[str, str] | None:
    """Return the platform and id of the only person whom the settings let in; None unless there is exactly one.

    Then whoever wrote the id into the settings can only have meant that person. With two ids, with everybody let in
    or with owners named already, nobody is asked in a chat.
    """
    if any(True for _ in owners):
        return None
    listed: set[tuple[str, str]] = set()
    for platform, policy in accounts:
        if platform == LOCAL:
            continue
        if policy.allow_all or policy.dm_policy is DmPolicy.OPEN:
            return None
        listed |= {(platform, user) for user in policy.allowed_users}
    return listed.pop() if len(listed) == 1 else None


def button_data(*, is_owner: bool) -> str:
    return f"{_BUTTON}:{YES if is_owner else NO}"


def read_button(data: str) -> bool | None:
    """Return whether the presser says to be the owner; None when it is not a button of this question."""
    match data.split(":"):
        case [name, ("yes" | "no") as answer] if name == _BUTTON:
            return answer == YES
    return None
