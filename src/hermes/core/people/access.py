"""Decide who may talk to the agent, and who may be its owner, from the configuration alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import assert_never

from hermes.core.dataclasses import dataclass
from hermes.core.keys import LOCAL, ChatKind
from hermes.core.roles import PersonRole

EVERYBODY = "*"


class DmPolicy(StrEnum):
    PAIRING = "pairing"
    OPEN = "open"
    ALLOWLIST = "allowlist"
    DISABLED = "disabled"


class GroupPolicy(StrEnum):
    DISABLED = "disabled"
    ALLOWLIST = "allowlist"
    OPEN = "open"


class RefusalReason(StrEnum):
    NOT_LISTED = "not_listed"
    NOT_PAIRED = "not_paired"
    DMS_DISABLED = "dms_disabled"
    GROUPS_DISABLED = "groups_disabled"


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """The rules of one account; the defaults let nobody in. ``allowed_users`` holds the platform's own user ids."""

    dm_policy: DmPolicy = DmPolicy.PAIRING
    group_policy: GroupPolicy = GroupPolicy.DISABLED
    allowed_users: frozenset[str] = frozenset()
    allow_all: bool = False
    group_allowed_chats: frozenset[str] = frozenset()
    require_mention: bool = True

    @property
    def admits_somebody(self) -> bool:
        """Tell whether the configuration alone lets anyone in; pairing may let in more."""
        dms_open = self.dm_policy is DmPolicy.OPEN
        groups_open = self.group_policy is GroupPolicy.OPEN or (
            self.group_policy is GroupPolicy.ALLOWLIST and bool(self.group_allowed_chats)
        )
        return dms_open or groups_open or self.allow_all or bool(self.allowed_users)

    @property
    def answers_in_groups(self) -> bool:
        return self.group_policy is not GroupPolicy.DISABLED

    def lists(self, sender_id: str) -> bool:
        return self.allow_all or EVERYBODY in self.allowed_users or sender_id in self.allowed_users


@dataclass(frozen=True, slots=True)
class Allowed:
    role: PersonRole = PersonRole.USER


@dataclass(frozen=True, slots=True)
class Refused:
    reason: RefusalReason


@dataclass(frozen=True, slots=True)
class Unaddressed:
    """A group's talk that is not for us: no answer, and no word about who wrote it."""


Verdict = Allowed | Refused | Unaddressed


def judge(
    policy: AccessPolicy,
    *,
    kind: ChatKind,
    sender_id: str,
    chat: str,
    is_addressed: bool,
    is_paired: bool = False,
) -> Verdict:
    """Say whether this person may talk to the agent here: nobody is let in, unless named or paired.

    An unaddressed group message is never refused by name: strangers talking among themselves are no
    attempt to get in.
    """
    match kind:
        case ChatKind.DM:
            return _judge_dm(policy, sender_id, is_paired)
        case ChatKind.GROUP | ChatKind.CHANNEL:
            return _judge_group(policy, sender_id, chat, is_addressed, is_paired)
        case _:
            assert_never(kind)


def _judge_dm(policy: AccessPolicy, sender_id: str, is_paired: bool) -> Verdict:
    match policy.dm_policy:
        case DmPolicy.DISABLED:
            return Refused(RefusalReason.DMS_DISABLED)
        case DmPolicy.OPEN:
            return Allowed()
        case DmPolicy.ALLOWLIST:
            return Allowed() if policy.lists(sender_id) else Refused(RefusalReason.NOT_LISTED)
        case DmPolicy.PAIRING:
            return Allowed() if is_paired or policy.lists(sender_id) else Refused(RefusalReason.NOT_PAIRED)
        case _:
            assert_never(policy.dm_policy)


def _judge_group(policy: AccessPolicy, sender_id: str, chat: str, is_addressed: bool, is_paired: bool) -> Verdict:
    is_off = policy.group_policy is GroupPolicy.DISABLED
    if not is_addressed and (is_off or policy.require_mention):
        return Unaddressed()
    if is_off:
        return Refused(RefusalReason.GROUPS_DISABLED)
    is_known = policy.lists(sender_id) or (is_paired and policy.dm_policy is DmPolicy.PAIRING)
    is_listed = chat in policy.group_allowed_chats or is_known
    if policy.group_policy is GroupPolicy.OPEN or is_listed:
        return Allowed()
    return Refused(RefusalReason.NOT_LISTED)


# Who is the owner

OWNER_YES, OWNER_NO = "owner:yes", "owner:no"
"""Data of the buttons below the question whether somebody is the owner."""


def only_listed(owners: Collection[str], accounts: Iterable[tuple[str, AccessPolicy]]) -> tuple[str, str] | None:
    """Return the platform and id of the only person whom the settings let in; None unless there is exactly one.

    Then whoever wrote the id into the settings can only have meant that person. With two ids, with everybody let in
    or with owners named already, nobody is asked in a chat.
    """
    if owners:
        return None
    listed: set[tuple[str, str]] = set()
    for platform, policy in accounts:
        if platform == LOCAL:
            continue
        if policy.allow_all or policy.dm_policy is DmPolicy.OPEN:
            return None
        listed |= {(platform, user) for user in policy.allowed_users}
    return listed.pop() if len(listed) == 1 else None
