"""What a role may do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.roles import Action, PersonRole, at_least, may

ROLES = st.sampled_from(list(PersonRole))
ACTIONS = st.sampled_from(list(Action))

TABLE = {
    PersonRole.GUEST: {Action.TALK, Action.READ_OWN, Action.SEE_COUNTS},
    PersonRole.USER: {Action.CHANGE_OWN, Action.APPROVE_OWN},
    PersonRole.ADMIN: {
        Action.READ_ALL,
        Action.CHANGE_ALL,
        Action.APPROVE_HOST,
        Action.SEE_DETAILS,
        Action.MANAGE_PEOPLE,
    },
    PersonRole.OWNER: {Action.MANAGE_KEYS, Action.CHANGE_CONFIG},
}


def test_every_action_is_given_to_a_role_once() -> None:
    given_out = [action for actions in TABLE.values() for action in actions]
    assert sorted(given_out) == sorted(Action)


@pytest.mark.parametrize("role", PersonRole)
def test_a_role_may_do_its_own_and_what_lower_ones_may(role: PersonRole) -> None:
    allowed = {action for lower, actions in TABLE.items() if at_least(role, lower) for action in actions}
    assert {action for action in Action if may(role, action)} == allowed


@given(ROLES, ROLES, ACTIONS)
def test_more_trust_never_takes_anything_away(one: PersonRole, other: PersonRole, action: Action) -> None:
    higher, lower = (one, other) if at_least(one, other) else (other, one)
    assert may(higher, action) or not may(lower, action)


@given(ACTIONS)
def test_the_owner_may_do_everything(action: Action) -> None:
    assert may(PersonRole.OWNER, action)
