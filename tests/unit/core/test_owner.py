"""Who is offered to be the owner: the only person on the lists, and nobody else."""

from __future__ import annotations

import pytest

from hermes.core.access import AccessPolicy, DmPolicy
from hermes.core.owner import button_data, only_listed, read_button

ONE = AccessPolicy(allowed_users=frozenset({"5550142"}))
TWO = AccessPolicy(allowed_users=frozenset({"5550142", "7"}))


def test_the_only_listed_person_is_offered() -> None:
    assert only_listed((), [("telegram", ONE), ("discord", AccessPolicy())]) == ("telegram", "5550142")


@pytest.mark.parametrize(
    "owners, accounts",
    [
        ((), [("telegram", TWO)]),
        ((), [("telegram", ONE), ("discord", ONE)]),
        ((), [("telegram", AccessPolicy())]),
        ((), [("telegram", AccessPolicy(allowed_users=frozenset({"5550142"}), allow_all=True))]),
        ((), [("telegram", AccessPolicy(allowed_users=frozenset({"5550142"}), dm_policy=DmPolicy.OPEN))]),
        ((), [("telegram", ONE), ("slack", AccessPolicy(dm_policy=DmPolicy.OPEN))]),
        (("local",), [("telegram", ONE)]),
        (("telegram:1",), [("telegram", ONE)]),
        ((), [("local", ONE)]),
    ],
)
def test_with_two_with_everybody_or_with_an_owner_nobody_is(
    owners: tuple[str, ...], accounts: list[tuple[str, AccessPolicy]]
) -> None:
    assert only_listed(owners, accounts) is None


def test_two_accounts_of_one_platform_that_list_one_person_offer_it() -> None:
    assert only_listed((), [("telegram", ONE), ("telegram", ONE)]) == ("telegram", "5550142")


def test_a_button_says_yes_or_no_and_any_other_data_nothing() -> None:
    assert [read_button(button_data(is_owner=said)) for said in (True, False)] == [True, False]
    assert [read_button(data) for data in ("owner", "owner:", "owner:maybe", "owner:yes:x", "ap:allow:x")] == [None] * 5
