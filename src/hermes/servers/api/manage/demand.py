"""Refuse callers whose role, or whose kind of key, is not enough."""

from __future__ import annotations

from hermes.core.roles import Action, may
from hermes.servers.api.context import Caller
from hermes.servers.api.errors import ApiError

KEY_IN_A_FILE = (
    "The default key cannot do this: it stands in a file that the agent's own commands can read. Sign in with a link "
    "(hermes dashboard), or use a named key, which is shown once and stored as a hash (hermes api-key create NAME "
    "--role owner)."
)


def demand(caller: Caller, action: Action) -> None:
    """Raise ApiError unless the role is enough."""
    if not may(caller.role, action):
        words = f"A key with the role {caller.role.value} may not do this. Ask with a key of a higher role."
        raise ApiError(403, words, code="role_not_enough", kind="permission_error")


def demand_own_hand(caller: Caller, action: Action) -> None:
    """Raise ApiError unless the role is enough, and the key cannot have been read from a file."""
    demand(caller, action)
    if caller.stands_in_file:
        raise ApiError(403, KEY_IN_A_FILE, code="key_in_a_file", kind="permission_error")
