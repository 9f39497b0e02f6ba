"""Make one-time links to the dashboard, list its sign-ins and end them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from hermes.config import Config
from hermes.core.errors import GatewayError
from hermes.core.ports import Clock
from hermes.hosting.control.server import Handler, Reply
from hermes.store.api import api_keys, sign_ins
from hermes.store.api.api_keys import hash_of
from hermes.store.db import Database, Tx

CODE_SECONDS = 300.0


class DashboardVerbs:
    """``url`` is where the HTTP port answers; '' while it is closed."""

    def __init__(
        self, db: Database, clock: Clock, config: Callable[[], Config], url: Callable[[], str] = lambda: ""
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._url = url

    def mapping(self) -> Mapping[str, Handler]:
        return {"dashboard.link": self.link, "dashboard.list": self.listed, "dashboard.revoke": self.revoke}

    async def link(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{uid?}``: make a code that signs the owner in, once, within five minutes; with ``uid`` for this user alone.

        The answer is the only place where the code stands.
        """
        from hermes.servers.dashboard.peers import bound_to
        from hermes.servers.dashboard.sign_in import base_path_of  # the page that is opened next needs it anyway

        config = self._config()
        if not config.dashboard.enabled:
            raise GatewayError("The dashboard is switched off. Switch it on: hermes config set dashboard.enabled true")
        if not (url := self._url()):
            raise GatewayError("The HTTP port is closed, so the dashboard is closed too. See: hermes status")
        code = secrets.token_urlsafe(24)
        if isinstance(uid := args.get("uid"), int) and not isinstance(uid, bool) and uid >= 0:
            code = bound_to(uid, code)
        await self._db.write(sign_ins.add_code, hash_of(code), now=self._clock.now(), seconds=CODE_SECONDS)
        host, port = url.removeprefix("http://").rsplit(":", 1)
        base = base_path_of(config.dashboard.base_path)
        return {
            "url": f"http://{_reachable(host)}:{port}{base}/dashboard/#sign-in={code}",
            "host": host,
            "port": int(port),
            "seconds": CODE_SECONDS,
        }

    async def listed(self, _args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        return await self._db.read(_listed, self._clock.now())

    async def revoke(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{id}``: end a sign-in; ``all``: every sign-in, and every link that was not used."""
        name = str(args.get("id") or "").strip()
        if name == "all":
            return {"id": name, "count": await self._db.write(sign_ins.revoke_all)}
        if not await self._db.write(sign_ins.revoke, name):
            raise GatewayError(f"There is no sign-in {name[:80]!r}. The list: hermes dashboard list")
        return {"id": name, "count": 1}


def _reachable(host: str) -> str:
    """A host to type into a browser on this machine: one that stands for all addresses is none."""
    return "127.0.0.1" if host in ("0.0.0.0", "[::]", "") else host  # noqa: S104 - compared, not bound


def _listed(tx: Tx, now: float) -> list[dict[str, Any]]:
    keys = {key.hash: (key.name, key.role) for key in api_keys.working(tx)}
    found = []
    for each in sign_ins.listed(tx, now=now):
        name, role = keys.get(each.key_hash, ("default key" if each.key_hash else "link", "owner"))
        found.append(
            {
                "id": each.id,
                "name": name,
                "role": role,
                "created_at": each.created_at,
                "seen_at": each.seen_at,
                "expires_at": each.expires_at,
                "address": each.address,
                "agent": each.agent,
            }
        )
    return found
