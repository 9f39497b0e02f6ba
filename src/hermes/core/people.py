"""Roles, from the most to the least trusted."""

from __future__ import annotations

from enum import StrEnum


class PersonRole(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    USER = "user"
    GUEST = "guest"


_RANK = {PersonRole.OWNER: 3, PersonRole.ADMIN: 2, PersonRole.USER: 1, PersonRole.GUEST: 0}


def at_least(role: PersonRole, needed: PersonRole) -> bool:
    return _RANK[role] >= _RANK[needed]
