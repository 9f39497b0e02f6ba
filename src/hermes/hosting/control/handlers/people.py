"""List people, change roles, decide pairings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.core.errors import GatewayError
from hermes.core.roles import OwnerBy, PersonRole
from hermes.hosting.control.server import Handler, Reply
from hermes.services.people.pairing import Pairings
from hermes.store import people
from hermes.store.db import Database, Tx
from hermes.store.pairings import Pairing
from hermes.store.people import Person

AT_THE_MACHINE = "the command line"


class PairingVerbs:
    """Pairing on the control socket. Callers are at the machine: tools were refused before."""

    def __init__(self, pairings: Pairings) -> None:
        self._pairings = pairings

    def mapping(self) -> Mapping[str, Handler]:
        return {
            "pairing.list": self.listed,
            "pairing.approve": self.approve,
            "pairing.revoke": self.revoke,
            "pairing.clear": self.clear,
        }

    async def listed(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        platform = str(args.get("platform") or "")
        waiting = await self._pairings.waiting(platform)
        decided = await self._pairings.decided(platform)
        return {
            "waiting": [{**_to_dict(pairing.pairing), "code": pairing.code} for pairing in waiting],
            "decided": [_to_dict(pairing) for pairing in decided],
        }

    async def approve(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """Approve the request with this code (``{platform, code}``) or this id (``{platform, user}``)."""
        platform = _word(args, "platform")
        if args.get("user"):
            approval = await self._pairings.approve_user(platform, _word(args, "user"), by=AT_THE_MACHINE)
        else:
            approval = await self._pairings.approve(
                platform, _word(args, "code"), by=AT_THE_MACHINE, is_at_machine=True
            )
        return {
            **_to_dict(approval.pairing),
            "state": "approved",
            "role": approval.role.value,
            "is_first_owner": approval.is_first_owner,
        }

    async def revoke(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{platform, user}``: whoever was let in is a stranger again."""
        return _to_dict(await self._pairings.revoke(_word(args, "platform"), _word(args, "user"), by=AT_THE_MACHINE))

    async def clear(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        return {"cleared": await self._pairings.clear_waiting(str(args.get("platform") or ""))}


class PeopleVerbs:
    def __init__(self, db: Database) -> None:
        self._db = db

    def mapping(self) -> Mapping[str, Handler]:
        return {"people.list": self.listed, "people.role": self.role, "people.link": self.link}

    async def listed(self, _args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        return await self._db.read(_everybody)

    async def role(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{person, role}``: ``person`` is an id or ``platform:user``. More counts from their next message on,
        less at once."""
        role = _role(args)
        return await self._db.write(set_role, _word(args, "person"), role)

    async def link(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{account, person}``: from now on this account is that person's."""
        return await self._db.write(link_account, _word(args, "account"), _word(args, "person"))


def _everybody(tx: Tx) -> list[dict[str, Any]]:
    accounts = people.accounts(tx)
    return [
        {
            "id": person.id,
            "name": person.name,
            "role": person.role,
            "accounts": [
                f"{account.platform}:{account.user_id}" for account in accounts if account.person_id == person.id
            ],
        }
        for person in people.listed(tx)
    ]


def set_role(tx: Tx, name: str, role: PersonRole) -> dict[str, Any]:
    person = find_person(tx, name)
    if person.id == "local" or person.id.startswith("p_local_"):
        raise GatewayError("The person at this machine is always the owner; that role cannot be changed.")
    if role is not PersonRole.OWNER and people.owner_by(tx, person.id) == OwnerBy.CONFIG:
        raise GatewayError(
            f"The settings name {person.name or person.id} as an owner. Take the id out of `owners` (GATEWAY_OWNERS) "
            "first: hermes config explain owners"
        )
    people.set_role(tx, person.id, role.value)
    return {"id": person.id, "name": person.name, "role": role.value}


def link_account(tx: Tx, account: str, name: str) -> dict[str, Any]:
    owner_of_account, person = find_person(tx, account), find_person(tx, name)
    platform, _, user_id = account.partition(":")
    if owner_of_account.id == person.id:
        raise GatewayError(f"{account} is {person.name or person.id} already.")
    if not people.link(tx, platform, user_id, person.id):
        raise GatewayError(f"Name the account as platform:user, for example telegram:42, not {account!r}.")
    return {"id": person.id, "name": person.name, "role": person.role, "account": account}


def find_person(tx: Tx, name: str) -> Person:
    platform, _, user_id = name.partition(":")
    found = people.find(tx, platform, user_id) if user_id else people.get(tx, name)
    if found is None:
        raise GatewayError(f"There is nobody called {name[:80]!r}. Look: hermes people list")
    return found


def _role(args: Mapping[str, Any]) -> PersonRole:
    given = str(args.get("role") or "")
    try:
        return PersonRole(given)
    except ValueError:
        raise GatewayError(f"There is no role {given[:40]!r}. Roles: {', '.join(PersonRole)}.") from None


def _word(args: Mapping[str, Any], name: str) -> str:
    word = str(args.get(name) or "").strip()
    if not word:
        raise GatewayError(f"The {name} is missing.")
    return word


def _to_dict(pairing: Pairing) -> dict[str, Any]:
    return {
        "platform": pairing.platform,
        "account": pairing.account,
        "user": pairing.user_id,
        "name": pairing.name,
        "state": pairing.state,
        "asked_at": pairing.asked_at,
        "decided_at": pairing.decided_at,
        "decided_by": pairing.decided_by,
    }
