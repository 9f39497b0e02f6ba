"""Report why a user is answered or not, by the rules that judge a message."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial

from hermes.config import AccountConfig, Config
from hermes.core.dataclasses import dataclass
from hermes.core.keys import LOCAL, AccountKey, ChatKind
from hermes.core.people.access import Allowed, DmPolicy, RefusalReason, Refused, judge
from hermes.core.people.pairing import LIVE_SECONDS
from hermes.store import inbox, pairings, people
from hermes.store.db import Tx
from hermes.store.pairings import Pairing, PairingState


class Why(StrEnum):
    OPEN = "open"  # everybody may
    LISTED = "listed"
    PAIRED = "paired"
    NOT_LISTED = "not_listed"
    DISABLED = "disabled"
    NEVER_ASKED = "never_asked"
    WAITING = "waiting"
    EXPIRED = "expired"
    REFUSED = "refused"
    REVOKED = "revoked"
    NOT_RELOADED = "not_reloaded"  # the store says yes and the running gateway has not heard of it


@dataclass(frozen=True, slots=True)
class AccessReport:
    """How one account treats one user. Times are None where there is none to tell.

    ``accounts`` are the other accounts of the same person; ``person_here`` is the user who writes from a chat of this
    id, where the id that was asked about is a chat's and not a person's.
    """

    account: str
    user: str
    is_answered: bool
    why: str
    dm_policy: str
    group_policy: str
    is_answered_in_groups: bool
    name: str = ""
    role: str = ""
    code: str = ""
    asked_at: float | None = None
    decided_at: float | None = None
    decided_by: str = ""
    accounts: tuple[str, ...] = ()
    person_here: str = ""
    wrote_at: float | None = None
    wrote_state: str = ""
    wrote_reason: str = ""


def access_reports(
    tx: Tx,
    config: Config,
    user: str,
    platform: str = "",
    *,
    now: float,
    code_of: Callable[[Pairing], str],
    is_paired: Callable[[str, str], bool] | None = None,
) -> list[AccessReport]:
    """Report on each account that is set up. ``is_paired`` asks the running gateway."""
    found = []
    for name, accounts in config.platforms.items():
        if name == LOCAL or platform not in ("", name):
            continue
        for account, settings in accounts.items():
            if settings.is_mentioned and settings.is_ready:
                key = AccountKey(name, account)
                found.append(_standing(tx, key, settings, user, now=now, code_of=code_of, is_paired=is_paired))
    return found


def _standing(
    tx: Tx,
    key: AccountKey,
    settings: AccountConfig,
    user: str,
    *,
    now: float,
    code_of: Callable[[Pairing], str],
    is_paired: Callable[[str, str], bool] | None,
) -> AccessReport:
    pairing = pairings.get(tx, key.platform, user)
    is_approved = pairing is not None and pairing.state == PairingState.APPROVED
    is_heard = is_approved if is_paired is None else is_paired(key.platform, user)
    judged = partial(judge, settings.access, sender_id=user, is_addressed=True, is_paired=is_heard)
    verdict, in_groups = judged(kind=ChatKind.DM, chat=user), judged(kind=ChatKind.GROUP, chat="")
    why = _why(settings, user, pairing, verdict, is_approved=is_approved, now=now)
    person = people.find(tx, key.platform, user)
    wrote = inbox.last_of(tx, key.platform, user)
    by_chat = pairings.in_chat(tx, key.platform, user)
    known = people.accounts(tx, person.id) if person is not None else []
    return AccessReport(
        str(key),
        user,
        isinstance(verdict, Allowed),
        why.value,
        settings.access.dm_policy.value,
        settings.access.group_policy.value,
        isinstance(in_groups, Allowed),
        name=(person.name if person is not None else "") or (pairing.name if pairing is not None else ""),
        role=person.role if person is not None else "",
        code=code_of(pairing) if pairing is not None and why is Why.WAITING else "",
        asked_at=pairing.asked_at if pairing is not None else None,
        decided_at=pairing.decided_at if pairing is not None else None,
        decided_by=pairing.decided_by if pairing is not None else "",
        accounts=tuple(
            f"{account.platform}:{account.user_id}"
            for account in known
            if (account.platform, account.user_id) != (key.platform, user)
        ),
        person_here=by_chat.user_id if by_chat is not None and by_chat.user_id != user else "",
        wrote_at=wrote.received_at if wrote is not None else None,
        wrote_state=wrote.state if wrote is not None else "",
        wrote_reason=wrote.reason if wrote is not None else "",
    )


def _why(
    settings: AccountConfig, user: str, pairing: Pairing | None, verdict: object, *, is_approved: bool, now: float
) -> Why:
    access = settings.access
    if isinstance(verdict, Allowed):
        if access.dm_policy is DmPolicy.OPEN or access.allow_all:
            return Why.OPEN
        return Why.LISTED if access.lists(user) else Why.PAIRED
    if isinstance(verdict, Refused) and verdict.reason is RefusalReason.DMS_DISABLED:
        return Why.DISABLED
    if access.dm_policy is DmPolicy.ALLOWLIST:
        return Why.NOT_LISTED
    if pairing is None:
        return Why.NEVER_ASKED
    if is_approved:
        return Why.NOT_RELOADED
    if pairing.state == PairingState.PENDING:
        return Why.WAITING if now - pairing.asked_at < LIVE_SECONDS else Why.EXPIRED
    return Why.REVOKED if pairing.state == PairingState.REVOKED else Why.REFUSED
