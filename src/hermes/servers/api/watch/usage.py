"""`GET /api/usage`: tokens by day, by model and by person."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from aiohttp import web

from hermes.core.keys import quote
from hermes.servers.api.context import CALLER, ApiParts, Caller
from hermes.servers.api.watch.paging import whole_number
from hermes.servers.app import json_response
from hermes.services.commands.usage import midnight
from hermes.services.time_zone import zone_of
from hermes.store import people
from hermes.store.dashboard import usage
from hermes.store.dashboard.usage import UsageSum
from hermes.store.db import Tx

DAYS = 30
MAX_DAYS = 366


class UsageRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway

    async def show(self, request: web.Request) -> web.Response:
        days = whole_number(request, "days", DAYS, most=MAX_DAYS)
        zone = zone_of(self._gateway.config.timezone)
        now = self._gateway.clock.now()
        first = datetime.fromtimestamp(now, zone).date() - timedelta(days=days - 1)
        since = midnight(datetime(first.year, first.month, first.day, 12, tzinfo=zone).timestamp(), zone)
        shown = await self._gateway.db.read(_usage, request[CALLER], since, days, zone, first.isoformat())
        return json_response(shown)


def _usage(tx: Tx, caller: Caller, since: float, days: int, zone: tzinfo, first: str) -> dict[str, Any]:
    """Sum everybody's for those who see all, else those of the key."""
    person = None if caller.sees_all else people.find(tx, "api", caller.sender_id)
    person_id = "" if caller.sees_all else person.id if person is not None else "-"
    ending = "" if caller.sees_all else f":p={quote(caller.person)}"
    begin = datetime.fromisoformat(first)
    names = [(begin + timedelta(days=number)).date().isoformat() for number in range(days)]
    by_day: dict[str, dict[str, Any]] = {
        name: {"day": name, "tokens_in": 0, "tokens_out": 0, "cost": None, "turns": 0, "messages": 0} for name in names
    }
    for bucket in usage.by_bucket(tx, since=since, person_id=person_id):
        if (day := by_day.get(_day(int(bucket.name), zone))) is not None:
            day["tokens_in"] += bucket.prompt_tokens
            day["tokens_out"] += bucket.completion_tokens
            day["turns"] += bucket.turns
            if bucket.cost:
                day["cost"] = round((day["cost"] or 0.0) + bucket.cost, 6)
    for number, count in usage.messages_by_bucket(tx, since=since, lane_ending=ending):
        if (day := by_day.get(_day(number, zone))) is not None:
            day["messages"] += count
    models = usage.by_model(tx, since=since, person_id=person_id)
    everybody = usage.by_person(tx, since=since) if caller.sees_all else []
    return {
        "object": "usage",
        "days": days,
        "by_day": list(by_day.values()),
        "by_model": [_row("model", row) for row in models],
        "by_person": [_row("person", row) for row in everybody],
    }


def _day(bucket: int, zone: tzinfo) -> str:
    return datetime.fromtimestamp(bucket * usage.BUCKET_SECONDS, UTC).astimezone(zone).date().isoformat()


def _row(kind: str, usage: UsageSum) -> dict[str, Any]:
    tokens = {"tokens_in": usage.prompt_tokens, "tokens_out": usage.completion_tokens}
    return {kind: usage.name, "turns": usage.turns, **tokens, "cost": round(usage.cost, 6) or None}
