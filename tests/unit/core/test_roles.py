"""What a role may do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.roles import Action, PersonRole, at_least, capped, is_outranked, may

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


@given(ROLES, st.lists(ROLES))
def test_a_capped_role_is_the_lowest_of_all(role: PersonRole, limits: list[PersonRole]) -> None:
    lowest = PersonRole(capped(role, *limits))
    assert lowest in (role, *limits)
    assert all(at_least(each, lowest) for each in (role, *limits))


def test_no_limit_limits_nothing_nobody_stays_nobody_and_a_word_that_is_no_role_is_a_guests() -> None:
    assert capped("owner", "", "") == "owner"
    assert capped("", "owner") == ""
    assert capped("owner", "root") == "guest"
    assert capped("emperor") == "guest"


@pytest.mark.parametrize(
    "heard, role, is_so",
    [
        ("", PersonRole.OWNER, False),
        ("owner", PersonRole.OWNER, False),
        ("admin", PersonRole.OWNER, False),
        ("user", PersonRole.OWNER, True),
        ("guest", PersonRole.ADMIN, True),
        ("guest", PersonRole.USER, True),
        ("user", PersonRole.USER, False),
        ("guest", PersonRole.GUEST, False),
        ("damaged", PersonRole.USER, True),
    ],
)
def test_a_turn_outranks_whoever_has_fewer_rights_and_is_no_admin(heard: str, role: PersonRole, is_so: bool) -> None:
    assert is_outranked(heard, role) == is_so
