"""More than one key on one gateway, and clients that follow runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from hermes.servers.api.context import ApiParts, Caller
from hermes.servers.app import HttpServer, make_app
from tests.integration.api.conftest import Api, Event, Families, events_of, stand_in_for_auth


@asynccontextmanager
async def another(api: Api, caller: Caller, families: Families) -> AsyncIterator[Api]:
    """The same gateway, asked with another key."""
    app = make_app([family(ApiParts(api.gateway)) for family in families])
    app.middlewares.append(stand_in_for_auth(caller))
    server = HttpServer(app, "127.0.0.1", 0)
    async with server.listening(), aiohttp.ClientSession(server.url) as http:
        yield Api(api.gateway, http, server.url)


@asynccontextmanager
async def following(api: Api, run_id: str, last_event_id: str = "") -> AsyncIterator[AsyncIterator[Event]]:
    headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
    async with api.http.get(f"/v1/runs/{run_id}/events", headers=headers) as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        yield events_of(answer.content)
        if not answer.content.at_eof():
            answer.close()


async def all_events(api: Api, run_id: str, last_event_id: str = "") -> list[Event]:
    """To the end of the stream, without signs of life."""
    async with asyncio.timeout(10), following(api, run_id, last_event_id) as events:
        return [event async for event in events if event.name != ":"]


async def until_kind(events: AsyncIterator[Event], kind: str) -> list[Event]:
    """Up to the first event of this kind."""
    seen = []
    async with asyncio.timeout(10):
        async for event in events:
            seen.append(event)
            if event.name == kind:
                return seen
    raise AssertionError(f"no {kind} in {kinds(seen)}")


def kinds(events: Sequence[Event]) -> list[str]:
    return [event.name for event in events]


async def run_is(api: Api, run_id: str, status: str) -> Any:
    async with asyncio.timeout(10):
        while (run := (await api.get(f"/v1/runs/{run_id}")).json)["status"] != status:
            assert status in ("completed", "failed", "cancelled") or run["status"] not in ("completed", "failed"), run
            await asyncio.sleep(0.01)
    return run
