"""`/api/people` and `/api/grants`: who is known, with which role and accounts, and what is allowed without asking."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hermes.core.errors import GatewayError
from hermes.core.roles import Action, PersonRole, at_least
from hermes.core.text import storable
from hermes.hosting.control.handlers.approvals import grant_to_dict
from hermes.hosting.control.handlers.people import find_person, link_account, set_role
from hermes.servers.api.bodies import decode
from hermes.servers.api.context import CALLER, ApiParts, Caller
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.api.manage.bodies import LinkBody, PersonChangeBody
from hermes.servers.api.manage.demand import KEY_IN_A_FILE, demand
from hermes.servers.api.parse import read_body
from hermes.servers.api.watch.paging import LARGEST_PAGE, PAGE, page_of, place_of, whole_number
from hermes.servers.app import json_response
from hermes.store import grants, people
from hermes.store.api import api_keys
from hermes.store.dashboard import people as pages
from hermes.store.db import Tx
from hermes.store.people import Account, Person


class PeopleRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway
        self._db = parts.gateway.db

    async def listed(self, request: web.Request) -> web.Response:
        """``?query=&limit=&before=``: everybody, the newest first."""
        caller = request[CALLER]
        demand(caller, Action.MANAGE_PEOPLE)
        words = storable(request.query.get("query", "")).casefold()
        limit = whole_number(request, "limit", PAGE, most=LARGEST_PAGE)
        found = await self._db.read(_page, caller, words, place_of(request), limit + 1)
        return json_response(page_of(found, limit, lambda person: (person["created_at"], person["id"])))

    async def change(self, request: web.Request) -> web.Response:
        """``{role}``. Nobody gives or takes a role above their own."""
        caller = request[CALLER]
        demand(caller, Action.MANAGE_PEOPLE)
        body = decode(await read_body(request), PersonChangeBody)
        name, role = storable(request.match_info["person_id"]), PersonRole(body.role)
        person = await self._person(name)
        _check_rank(caller, person, role)
        try:
            await self._db.write(set_role, person.id, role)
        except GatewayError as error:
            raise ApiError(409, str(error), code="role_is_fixed", kind="conflict_error") from None
        return json_response(await self._db.read(_one, person.id, caller))

    async def link(self, request: web.Request) -> web.Response:
        """``{account}``: from now on this account is that person's."""
        caller = request[CALLER]
        demand(caller, Action.MANAGE_PEOPLE)
        body = decode(await read_body(request), LinkBody)
        person = await self._person(storable(request.match_info["person_id"]))
        account = storable(body.account).strip()
        try:
            other = await self._db.read(find_person, account)
        except GatewayError as error:
            raise bad_request(str(error), code="unknown_account", param="account") from None
        _check_rank(caller, person, PersonRole(person.role))
        _check_rank(caller, other, PersonRole(person.role))  # the account gets the rights of that person
        if account.startswith("api:"):
            raise bad_request(
                "A key belongs to itself; it is linked to nobody.", code="unknown_account", param="account"
            )
        try:
            await self._db.write(link_account, account, person.id)
        except GatewayError as error:
            raise ApiError(409, str(error), code="account_not_linked", kind="conflict_error") from None
        return json_response(await self._db.read(_one, person.id, caller))

    async def grants(self, request: web.Request) -> web.Response:
        """What is allowed without asking: all for those who see all, else one's own."""
        found = await self._db.read(_grants, request[CALLER])
        return json_response({"object": "list", "data": found})

    async def revoke(self, request: web.Request) -> web.Response:
        caller = request[CALLER]
        demand(caller, Action.APPROVE_OWN)
        name = storable(request.match_info["grant_id"])
        visible = {each["id"] for each in await self._db.read(_grants, caller)}
        if name not in visible or not await self._db.write(grants.revoke, name, now=self._gateway.clock.now()):
            raise not_found(f"There is no grant {name[:80]!r} for this key.", code="grant_not_found")
        return json_response({"id": name, "object": "grant", "deleted": True})

    async def _person(self, name: str) -> Person:
        person = await self._db.read(people.get, name)
        if person is None:
            raise not_found(f"There is nobody with the id {name[:80]!r}. GET /api/people lists them.", code="no_person")
        return person


def _check_rank(caller: Caller, person: Person, role: PersonRole) -> None:
    """Raise ApiError unless the caller stands above: only the owner touches admins and owners, or makes them.

    The default key may take a role away; it gives none, since it stands in a file.
    """
    now = PersonRole(person.role) if person.role in list(PersonRole) else PersonRole.GUEST
    is_high = at_least(now, PersonRole.ADMIN) or at_least(role, PersonRole.ADMIN)
    if is_high and caller.role is not PersonRole.OWNER:
        words = "Only the owner makes admins and owners, or changes what they are."
        raise ApiError(403, words, code="role_not_enough", kind="permission_error")
    if caller.stands_in_file and not at_least(now, role):
        raise ApiError(403, KEY_IN_A_FILE, code="key_in_a_file", kind="permission_error")


def _page(tx: Tx, caller: Caller, words: str, before: tuple[float, str], limit: int) -> list[dict[str, Any]]:
    names = {key.id: key.name for key in api_keys.listed(tx)}
    return [
        {
            **_person_to_dict(each.person, people.accounts(tx, each.person.id), names, caller),
            "created_at": each.created_at,
        }
        for each in pages.page(tx, words, before=before, limit=limit)
    ]


def _one(tx: Tx, person_id: str, caller: Caller) -> dict[str, Any]:
    person = people.get(tx, person_id)
    assert person is not None  # noqa: S101 - it was just changed
    names = {key.id: key.name for key in api_keys.listed(tx)}
    return _person_to_dict(person, people.accounts(tx, person_id), names, caller)


def _person_to_dict(
    person: Person, accounts: list[Account], key_names: dict[str, str], caller: Caller
) -> dict[str, Any]:
    is_fixed = person.id == "local" or person.id.startswith("p_local_")
    is_high = person.role in (PersonRole.OWNER, PersonRole.ADMIN)
    return {
        "id": person.id,
        "object": "person",
        "name": person.name,
        "role": person.role,
        "language": person.language,
        "accounts": [
            {
                "platform": each.platform,
                "user_id": each.user_id,
                "name": key_names.get(each.user_id.removeprefix("key:"), each.name)
                if each.platform == api_keys.PLATFORM
                else each.name,
            }
            for each in accounts
        ],
        "may_change": not is_fixed and (caller.role is PersonRole.OWNER or not is_high),
    }


def _grants(tx: Tx, caller: Caller) -> list[dict[str, Any]]:
    person = people.find(tx, api_keys.PLATFORM, caller.sender_id)
    if caller.sees_all:
        found = grants.standing(tx)
    else:
        found = grants.standing(tx, person_id=person.id) if person is not None else []
    return [{"object": "grant", **grant_to_dict(tx, each)} for each in found]
