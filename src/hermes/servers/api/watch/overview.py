"""`GET /api/overview`: whether all is well, in one sentence, and the numbers of today."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aiohttp import web

from hermes import __version__
from hermes.core.durations import format_duration
from hermes.core.i18n.languages import CHINESE
from hermes.core.keys import AccountKey, quote
from hermes.core.roles import Action, may
from hermes.hosting.status import troubles
from hermes.servers.api.context import CALLER, ApiParts, Caller
from hermes.servers.app import json_response
from hermes.services.commands.usage import midnight
from hermes.services.time_zone import zone_of
from hermes.store import people
from hermes.store.dashboard import overview
from hermes.store.db import Tx

if TYPE_CHECKING:
    from hermes.servers.dashboard.remote import RemoteGateway

log = logging.getLogger(__name__)

REMOTE_SECONDS = 10.0
"""How long the answer of a gateway elsewhere is shown before it is asked again."""
WAIT_SECONDS = 0.5
"""How long an overview waits for such an answer."""

WELL = "All is well."
STATES = {
    "connected": "Connected",
    "connecting": "Connecting",
    "elsewhere": "Connected on another node",
    "off": "Switched off",
    "paused": "Paused",
    "conflict": "Used by another process",
    "broken": "Keeps failing",
    "silent": "Has gone silent",
    "not configured": "Not set up completely",
}


class OverviewRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._gateway = parts.gateway
        self._remote: RemoteGateway | None = None
        self._remote_at = 0.0
        self._asking: asyncio.Task[None] | None = None

    async def end(self, _app: web.Application) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    async def show(self, request: web.Request) -> web.Response:
        gateway, caller = self._gateway, request[CALLER]
        now = gateway.clock.now()
        snapshot = {"now": now, **self._parts.process(), **await gateway.status()}
        since = midnight(now, zone_of(gateway.config.timezone))
        counts = await gateway.db.read(_counts, caller, since, now)
        alerts = troubles(snapshot)
        sees_details = may(caller.role, Action.SEE_DETAILS)
        words = "; ".join(word.rstrip(".") for word in alerts)
        sentence = WELL if not alerts else f"{words}." if sees_details else "Something needs the owner's attention."
        latency = {name: overview.percentile(counts.latencies, share) for name, share in (("p50", 0.5), ("p95", 0.95))}
        model = snapshot["model"]
        shown: dict[str, Any] = {
            "object": "overview",
            "sentence": sentence,
            "is_well": not alerts,
            "state": _state(snapshot, alerts),
            "remote": await self._look_elsewhere() if sees_details else None,
            "version": __version__,
            "started_at": snapshot.get("started_at"),
            "node": snapshot.get("node", ""),
            "platforms": [platform_to_dict(each) for each in snapshot["platforms"]] if sees_details else [],
            "nodes": [_node(each, snapshot.get("node")) for each in snapshot.get("nodes", ())] if sees_details else [],
            "messages": {
                "in_today": counts.arrived,
                "out_today": counts.sent,
                "waiting": counts.waiting,
                "oldest_age": counts.oldest_age,
                "answers_waiting": counts.answers_waiting,
            },
            "latency": {**latency, "count": len(counts.latencies)},
            "tokens_today": {"in": counts.prompt_tokens, "out": counts.completion_tokens},
            "turns_today": counts.turns,
            "cost_today": round(counts.cost, 6) or None,
            "alerts": alerts if sees_details else [],
            "approvals_waiting": counts.approvals_waiting,
            "dead_letters": counts.dead_letters,
            "model": {"label": model["label"], "last_answer_age": model["last_answer_age"], "note": model["note"]},
        }
        if not sees_details:
            shown["model"]["note"] = ""
        return json_response(translated(request, shown, ("sentence", "alerts", "note", "cure")))

    async def _look_elsewhere(self) -> dict[str, str] | None:
        """Return how the gateway of ``dashboard.health_url`` is; a late answer is shown by the next overview."""
        config = self._gateway.config.dashboard
        if not config.health_url:
            return None
        from hermes.servers.dashboard.remote import base_of

        base, now = base_of(config.health_url), self._gateway.clock.monotonic()
        is_fresh = self._remote is not None and self._remote.base == base and now - self._remote_at < REMOTE_SECONDS
        if not is_fresh and (self._asking is None or self._asking.done()):
            asking = self._ask_elsewhere(config.health_url, config.health_timeout)
            self._asking = asyncio.create_task(asking, name="ask a gateway elsewhere")
        if not is_fresh and self._asking is not None:
            await asyncio.wait({self._asking}, timeout=WAIT_SECONDS)
        found = self._remote
        if found is None or found.base != base:
            return {"url": base, "state": "asking", "sentence": f"The gateway at {base} has not answered yet."}
        return {"url": base, "state": found.state, "sentence": found.sentence}

    async def _ask_elsewhere(self, url: str, seconds: float) -> None:
        from hermes.servers.dashboard.remote import look

        self._remote = await asyncio.to_thread(look, url, seconds)
        self._remote_at = self._gateway.clock.monotonic()


def _counts(tx: Tx, caller: Caller, since: float, now: float) -> overview.OverviewCounts:
    """Count everything for those who see all, else what belongs to the key."""
    if caller.sees_all:
        return overview.counts(tx, since=since, now=now)
    person = people.find(tx, "api", caller.sender_id)
    return overview.counts(
        tx,
        since=since,
        now=now,
        lane_ending=f":p={quote(caller.person)}",
        person_id=person.id if person is not None else "-",
    )


def _state(snapshot: Mapping[str, Any], alerts: list[str]) -> str:
    if snapshot.get("state") == "stopping":
        return "stopping"
    return "degraded" if alerts else "running"


def platform_to_dict(platform: Mapping[str, Any]) -> dict[str, Any]:
    """Show one account as the overview and the page of platforms do."""
    state, age = platform["state"], platform.get("last_frame_age")
    heard = f", last heard {format_duration(age)} ago" if state == "connected" and age is not None else ""
    note = f": {platform['note']}" if platform.get("note") else ""
    return {
        "name": platform["account"],
        "platform": AccountKey.parse(platform["account"]).platform,
        "state": state,
        "sentence": f"{STATES.get(state, state.capitalize())}{heard}{note}",
        "since": platform.get("since"),
        "last_frame_age": age,
        "in_today": platform.get("in_today", 0),
        "out_today": platform.get("out_today", 0),
        "cure": platform.get("cure") or "",
    }


def _node(node: Mapping[str, Any], this: str | None) -> dict[str, Any]:
    return {
        "name": node["name"],
        "state": node["state"],
        "host": node["host"],
        "version": node["version"],
        "is_this": node["name"] == this,
        "lanes": node["lanes"],
        "turns": node["turns"],
        "beat_age": node["beat_age"],
        "accounts": [duty.removeprefix("account:") for duty in node["duties"] if duty.startswith("account:")],
    }


def translated(request: web.Request, shown: Any, names: tuple[str, ...]) -> Any:
    """Say the fields of these names in the language that ``?language=`` asks for; the code holds them in English."""
    if request.query.get("language") != CHINESE:
        return shown
    from hermes.core.i18n.cli import to_chinese  # hundreds of sentences, for those who read them
    from hermes.core.i18n.settings_zh import help_in_chinese

    def in_chinese(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: in_chinese(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [in_chinese(each, name) for each in value]
        if not isinstance(value, str) or name not in names:
            return value
        return help_in_chinese(value) if name == "help" else to_chinese(value)

    return in_chinese(shown)
