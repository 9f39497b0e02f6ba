"""Who may talk: the table of policies, and the promise that nobody gets in unnamed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.keys import ChatKind
from hermes.core.people.access import (
    AccessPolicy,
    Allowed,
    DmPolicy,
    GroupPolicy,
    RefusalReason,
    Refused,
    Unaddressed,
    Verdict,
    judge,
    only_listed,
)
from hermes.core.roles import PersonRole

ANA, BEN = "5550142", "5550188"
FAMILY = "-100200"


def dm(policy: AccessPolicy, sender: str = ANA) -> Verdict:
    return judge(policy, kind=ChatKind.DM, sender_id=sender, chat=sender, is_addressed=True)


def group(policy: AccessPolicy, sender: str = ANA, *, is_addressed: bool = True) -> Verdict:
    return judge(policy, kind=ChatKind.GROUP, sender_id=sender, chat=FAMILY, is_addressed=is_addressed)


@given(kind=st.sampled_from(ChatKind), sender=st.text(), chat=st.text(), is_addressed=st.booleans())
def test_nobody_is_let_in_by_the_defaults(kind: ChatKind, sender: str, chat: str, is_addressed: bool) -> None:
    verdict = judge(AccessPolicy(), kind=kind, sender_id=sender, chat=chat, is_addressed=is_addressed)
    assert not isinstance(verdict, Allowed)


@pytest.mark.parametrize(
    "policy,reason",
    [
        (DmPolicy.PAIRING, RefusalReason.NOT_PAIRED),
        (DmPolicy.ALLOWLIST, RefusalReason.NOT_LISTED),
        (DmPolicy.DISABLED, RefusalReason.DMS_DISABLED),
    ],
)
def test_a_stranger_is_refused_with_the_reason_of_the_policy(policy: DmPolicy, reason: RefusalReason) -> None:
    assert dm(AccessPolicy(dm_policy=policy, allowed_users=frozenset({BEN}))) == Refused(reason)


@pytest.mark.parametrize("policy", [DmPolicy.PAIRING, DmPolicy.ALLOWLIST, DmPolicy.OPEN])
def test_a_listed_person_is_a_user(policy: DmPolicy) -> None:
    assert dm(AccessPolicy(dm_policy=policy, allowed_users=frozenset({ANA}))) == Allowed(PersonRole.USER)


def test_open_and_allow_all_let_everybody_in() -> None:
    assert dm(AccessPolicy(dm_policy=DmPolicy.OPEN)) == Allowed()
    assert dm(AccessPolicy(allow_all=True)) == Allowed()


def test_disabled_direct_chats_stay_closed_to_listed_people_and_to_allow_all() -> None:
    policy = AccessPolicy(dm_policy=DmPolicy.DISABLED, allowed_users=frozenset({ANA}), allow_all=True)
    assert dm(policy) == Refused(RefusalReason.DMS_DISABLED)


def test_groups_are_closed_until_a_policy_opens_them() -> None:
    assert group(AccessPolicy(allow_all=True)) == Refused(RefusalReason.GROUPS_DISABLED)
    assert group(AccessPolicy(group_policy=GroupPolicy.OPEN)) == Allowed()


def test_a_group_allowlist_takes_the_chat_or_the_person() -> None:
    by_chat = AccessPolicy(group_policy=GroupPolicy.ALLOWLIST, group_allowed_chats=frozenset({FAMILY}))
    by_person = AccessPolicy(group_policy=GroupPolicy.ALLOWLIST, allowed_users=frozenset({ANA}))
    assert group(by_chat, BEN) == Allowed()
    assert group(by_person, ANA) == Allowed()
    assert group(by_person, BEN) == Refused(RefusalReason.NOT_LISTED)


def test_talk_in_a_group_that_is_not_for_us_is_neither_answered_nor_refused_by_name() -> None:
    policy = AccessPolicy(group_policy=GroupPolicy.ALLOWLIST, allowed_users=frozenset({ANA}))
    assert group(policy, ANA, is_addressed=False) == Unaddressed()
    assert group(policy, BEN, is_addressed=False) == Unaddressed()


@pytest.mark.parametrize("policy", [AccessPolicy(), AccessPolicy(require_mention=False)])
def test_the_talk_of_a_group_that_is_switched_off_is_nobodys_attempt_to_get_in(policy: AccessPolicy) -> None:
    assert group(policy, BEN, is_addressed=False) == Unaddressed()
    assert group(policy, BEN) == Refused(RefusalReason.GROUPS_DISABLED)


def test_without_require_mention_all_talk_of_an_allowed_group_is_for_us() -> None:
    policy = AccessPolicy(group_policy=GroupPolicy.OPEN, require_mention=False)
    assert group(policy, is_addressed=False) == Allowed()


def test_a_policy_knows_whether_it_admits_anybody_at_all() -> None:
    assert not AccessPolicy().admits_somebody
    assert not AccessPolicy(group_policy=GroupPolicy.ALLOWLIST).admits_somebody
    assert AccessPolicy(allowed_users=frozenset({ANA})).admits_somebody
    assert AccessPolicy(group_policy=GroupPolicy.ALLOWLIST, group_allowed_chats=frozenset({FAMILY})).admits_somebody


# Who is offered to be the owner

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
