"""List, create and revoke named API keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from hermes.core.errors import GatewayError
from hermes.core.ports import Clock
from hermes.core.roles import PersonRole
from hermes.core.secret import Secret
from hermes.hosting.control.server import Handler, Reply
from hermes.store.api import api_keys
from hermes.store.api.api_keys import DEFAULT_NAME, ApiKey, hash_of, new_token
from hermes.store.db import Database
from hermes.store.ids import new_id

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_TOOLS = re.compile(r"([\w-]+(\s*,\s*[\w-]+)*)?", re.ASCII)


class KeyVerbs:
    """``changed`` is called when a key was made or revoked, so that it counts at once."""

    def __init__(self, db: Database, clock: Clock, changed: Callable[[], None] = lambda: None) -> None:
        self._db = db
        self._clock = clock
        self._changed = changed

    def mapping(self) -> Mapping[str, Handler]:
        return {"api_keys.create": self.create, "api_keys.list": self.listed, "api_keys.revoke": self.revoke}

    async def create(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{name, role?, tools?}``: make a key. The answer is the only place where it ever stands."""
        name, role = _name(args), _role(args)
        token = new_token()
        hint, tools = Secret(token).hint(), _tools(args)
        key = ApiKey(name, hash_of(token), role.value, hint, self._clock.now(), id=new_id("key"), tools=tools)
        if not await self._db.write(api_keys.add, key):
            raise GatewayError(f"There is a key {name!r} already. Take another name, or: hermes api-key revoke {name}")
        self._changed()
        return {**_to_dict(key), "key": token}

    async def listed(self, _args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        return [_to_dict(key) for key in await self._db.read(api_keys.listed)]

    async def revoke(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{name}``: end a key. Requests that show it are refused from now on."""
        name = _name(args)
        if not await self._db.write(api_keys.revoke, name, now=self._clock.now()):
            raise GatewayError(f"No key {name!r} is in use. Look: hermes api-key list")
        self._changed()
        return {"name": name}


def _name(args: Mapping[str, Any]) -> str:
    name = str(args.get("name") or "").strip()
    if name == DEFAULT_NAME:
        raise GatewayError(
            "The default key is not kept with the others. To change it, set API_SERVER_KEY, or delete "
            "api_server.key in the home and restart."
        )
    if _NAME.fullmatch(name) is None:
        raise GatewayError(
            f"{name[:80]!r} is not a valid key name: use letters, digits, '.', '_' and '-', at most 64 characters."
        )
    return name


def _role(args: Mapping[str, Any]) -> PersonRole:
    given = str(args.get("role") or PersonRole.USER)
    try:
        return PersonRole(given)
    except ValueError:
        raise GatewayError(f"There is no role {given[:40]!r}. Roles: {', '.join(PersonRole)}.") from None


def _tools(args: Mapping[str, Any]) -> str:
    """Names of tools or toolsets with commas, as a request's header writes them; '' for all."""
    given = str(args.get("tools") or "").strip()
    if _TOOLS.fullmatch(given) is None:
        raise GatewayError(
            f"{given[:80]!r} names no tools: write none, or names of tools or toolsets with commas, e.g. web,read_file."
        )
    return given


def _to_dict(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "hint": key.hint,
        "tools": key.tools,
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    }
