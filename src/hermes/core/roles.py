"""Define roles and what each may do: one table for chats, API and command line."""

from __future__ import annotations

from enum import StrEnum


class PersonRole(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    USER = "user"
    GUEST = "guest"


class OwnerBy(StrEnum):
    """How somebody came to be the owner, or was asked to be. The words are stored."""

    NEVER_ASKED = ""
    CONFIG = "config"
    ASKED = "asked"
    YES = "yes"
    NO = "no"


_RANK = {PersonRole.OWNER: 3, PersonRole.ADMIN: 2, PersonRole.USER: 1, PersonRole.GUEST: 0}


def at_least(role: PersonRole, needed: PersonRole) -> bool:
    return _RANK[role] >= _RANK[needed]


def capped(role: str, *limits: str) -> str:
    """Return the lowest of a role and its limits; '' among the limits is none.

    An empty role stays empty. A word that is no role counts as a guest.
    """
    lowest = role if role in _VALUES or not role else PersonRole.GUEST.value
    for limit in limits:
        if limit and limit != lowest and lowest:  # mostly they are the same
            lowest = min(lowest, _known(limit).value, key=lambda each: _RANK[_known(each)])
    return lowest


def is_outranked(heard: str, role: PersonRole) -> bool:
    """Tell whether a turn has more rights than somebody who wrote before it.

    Admins count as trusted: they may allow everything that touches the machine.
    """
    if not heard:
        return False
    other = _known(heard)
    return _RANK[other] < _RANK[role] and not at_least(other, PersonRole.ADMIN)


def _known(role: str) -> PersonRole:
    return PersonRole(role) if role in _VALUES else PersonRole.GUEST


_VALUES = frozenset(role.value for role in PersonRole)


class Action(StrEnum):
    TALK = "talk"  # ask the agent, and follow or stop what one asked oneself
    READ_OWN = "read_own"  # one's own sessions, runs and answers
    SEE_COUNTS = "see_counts"  # how much is going on: numbers, and no names
    CHANGE_OWN = "change_own"  # rename, fork and delete one's own
    APPROVE_OWN = "approve_own"  # what stays inside one's own sandbox and workspace
    READ_ALL = "read_all"  # everybody's sessions and approvals
    CHANGE_ALL = "change_all"
    APPROVE_HOST = "approve_host"  # what touches the machine
    SEE_DETAILS = "see_details"  # process, paths and the words of errors
    MANAGE_PEOPLE = "manage_people"  # pairings and roles
    MANAGE_KEYS = "manage_keys"
    CHANGE_CONFIG = "change_config"


_NEEDED = {
    Action.TALK: PersonRole.GUEST,
    Action.READ_OWN: PersonRole.GUEST,
    Action.SEE_COUNTS: PersonRole.GUEST,
    Action.CHANGE_OWN: PersonRole.USER,
    Action.APPROVE_OWN: PersonRole.USER,
    Action.READ_ALL: PersonRole.ADMIN,
    Action.CHANGE_ALL: PersonRole.ADMIN,
    Action.APPROVE_HOST: PersonRole.ADMIN,
    Action.SEE_DETAILS: PersonRole.ADMIN,
    Action.MANAGE_PEOPLE: PersonRole.ADMIN,
    Action.MANAGE_KEYS: PersonRole.OWNER,
    Action.CHANGE_CONFIG: PersonRole.OWNER,
}


def may(role: PersonRole, action: Action) -> bool:
    """Tell whether this role is enough. A higher role includes the lower ones."""
    return at_least(role, _NEEDED[action])
