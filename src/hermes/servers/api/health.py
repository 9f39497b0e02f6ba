"""`GET /health/detailed`: to everybody how it is, to whoever may see more also why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from hermes import __version__
from hermes.core.roles import Action, may
from hermes.hosting.status import troubles
from hermes.servers.api.context import CALLER, ApiParts
from hermes.servers.app import RouteAdder, json_response


def routes(parts: ApiParts) -> RouteAdder:
    async def detailed(request: web.Request) -> web.Response:
        snapshot = {"now": parts.gateway.clock.now(), **parts.process(), **await parts.gateway.status()}
        caller = request.get(CALLER)
        body = in_short(snapshot)
        if caller is not None and may(caller.role, Action.SEE_DETAILS):
            body |= in_full(snapshot, parts)
        return json_response(body)

    def add(app: web.Application) -> None:
        app.router.add_get("/health/detailed", detailed)

    return add


def in_short(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Return state and counts without names of accounts or platforms: this needs no key."""
    return {
        "status": "degraded" if troubles(snapshot) else "ok",
        "gateway_state": snapshot.get("state", "running"),
        "platform_states": Counter(platform["state"] for platform in snapshot["platforms"]),
        "active_agents": len(snapshot["running"]),
        "waiting": snapshot["waiting"],
    }


def in_full(snapshot: Mapping[str, Any], parts: ApiParts) -> dict[str, Any]:
    """What only the owner and admins are told: process, paths and the words of errors."""
    return {
        "version": __version__,
        "pid": snapshot.get("pid"),
        "started_at": snapshot.get("started_at"),
        "heartbeat_age": snapshot.get("heartbeat_age"),
        "rss": snapshot.get("rss"),
        "home": str(parts.gateway.home),
        "model": snapshot["model"],
        "troubles": troubles(snapshot),
        "platforms": {platform["account"]: dict(platform) for platform in snapshot["platforms"]},
        "running": snapshot["running"],
        **({"node": snapshot["node"], "nodes": snapshot["nodes"]} if "nodes" in snapshot else {}),
    }
