"""Give people the roles that the setting ``owners`` says, in the transaction that meets them."""

from __future__ import annotations

import logging

from hermes.core.roles import OwnerBy, PersonRole
from hermes.store import people
from hermes.store.db import Tx
from hermes.store.people import Person

log = logging.getLogger(__name__)


def apply_settings(tx: Tx, owners: tuple[str, ...], person: Person) -> None:
    """Give a person the role that ``owners`` says; take it from somebody who was named there and is no longer."""
    named = (
        any(f"{account.platform}:{account.user_id}" in owners for account in people.accounts(tx, person.id))
        if owners
        else False
    )
    by = people.owner_by(tx, person.id)
    if named and (by != OwnerBy.CONFIG or person.role != PersonRole.OWNER):
        people.set_owner(tx, person.id, PersonRole.OWNER, OwnerBy.CONFIG)
        log.info("Owner named", extra={"person": person.id})
    elif not named and by == OwnerBy.CONFIG:
        people.set_owner(tx, person.id, PersonRole.USER, OwnerBy.NEVER_ASKED)
        log.info("Owner no longer named", extra={"person": person.id})
