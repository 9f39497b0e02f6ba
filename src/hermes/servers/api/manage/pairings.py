"""`/api/pairings`: list pairing requests and decide them. For admins and the owner.

A decision takes effect in the running gateway at once. A key does not prove that its holder is at the machine, so wrong
codes are counted here, and nobody becomes the owner. The default key, stored in a file, may only refuse and revoke.
"""

from __future__ import annotations

import math

from aiohttp import web

from hermes.core.messages import Json
from hermes.core.people.pairing import LIVE_SECONDS
from hermes.core.roles import Action, may
from hermes.core.text import storable
from hermes.servers.api import parse
from hermes.servers.api.bodies import PairingDecisionBody, decode
from hermes.servers.api.context import CALLER, ApiParts, Caller
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.app import json_response
from hermes.services.people.pairing import NoSuchPairingError, PairingLockedError
from hermes.store.pairings import Pairing, PairingState

STATES = tuple(PairingState)
NO_SECOND_FACTOR = (
    "The default key cannot approve a pairing: it stands in a file that the agent's own commands can read. Approve in "
    "a chat, in a terminal (hermes pairing approve PLATFORM CODE), or with a named key, which is shown once and stored "
    "as a hash (hermes api-key create NAME --role admin)."
)


class PairingRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._pairings = parts.gateway.pairings

    async def listed(self, request: web.Request) -> web.Response:
        """Who waits, the oldest first, then those decided about."""
        _demand_role(request[CALLER])
        platform, status = (storable(request.query.get(name, "")) for name in ("platform", "status"))
        if status and status not in STATES:
            raise bad_request(f"status is one of {', '.join(STATES)}.", code="invalid_status", param="status")
        waiting = [pairing_to_dict(pairing.pairing, pairing.code) for pairing in await self._pairings.waiting(platform)]
        decided = [pairing_to_dict(pairing) for pairing in await self._pairings.decided(platform)]
        return json_response(
            {
                "object": "list",
                "data": [pairing for pairing in (*waiting, *decided) if status in ("", pairing["status"])],
            }
        )

    async def decide(self, request: web.Request) -> web.Response:
        """``{platform, code, decision: approve | refuse}``, or ``{platform, user_id, decision: revoke}``."""
        caller = request[CALLER]
        _demand_role(caller)
        body = decode(await parse.read_body(request), PairingDecisionBody)
        if body.decision == "approve" and caller.stands_in_file:
            raise ApiError(403, NO_SECOND_FACTOR, code="key_in_a_file", kind="permission_error")
        try:
            return json_response(await self._decided(body, by=caller.label))
        except NoSuchPairingError as error:
            raise not_found(str(error), code="pairing_not_found") from None
        except PairingLockedError as error:
            seconds = {"Retry-After": str(math.ceil(error.retry_after))}
            raise ApiError(429, str(error), code="pairing_locked", kind="rate_limit_error", headers=seconds) from None

    async def _decided(self, body: PairingDecisionBody, *, by: str) -> Json:
        platform, decision = _word("platform", body.platform), body.decision
        if decision == "revoke":
            return pairing_to_dict(await self._pairings.revoke(platform, _word("user_id", body.user_id), by=by))
        code = _word("code", body.code)
        if decision == "refuse":
            return await self._now(await self._pairings.refuse(platform, code, by=by))
        approval = await self._pairings.approve(platform, code, by=by)
        return {**await self._now(approval.pairing), "role": approval.role.value}

    async def _now(self, pairing: Pairing) -> Json:
        """As it stands after the decision."""
        return pairing_to_dict(await self._pairings.find(pairing.platform, pairing.user_id) or pairing)


def _demand_role(caller: Caller) -> None:
    if not may(caller.role, Action.MANAGE_PEOPLE):
        message = f"Who may talk is decided by an admin or the owner; this key is a {caller.role.value}'s."
        raise ApiError(403, message, code="role_not_enough", kind="permission_error")


def _word(name: str, value: str | None) -> str:
    word = storable(value or "").strip()
    if not word:
        raise bad_request(f"{name} is missing.", code="missing_field", param=name)
    return word


def pairing_to_dict(pairing: Pairing, code: str = "") -> Json:
    return {
        "object": "pairing",
        "platform": pairing.platform,
        "account": pairing.account,
        "user_id": pairing.user_id,
        "name": pairing.name,
        "status": pairing.state,
        "code": code or None,
        "asked_at": pairing.asked_at,
        "expires_at": pairing.asked_at + LIVE_SECONDS if code else None,
        "decided_at": pairing.decided_at,
        "decided_by": pairing.decided_by or None,
    }
