"""The API as it is really served: every family of routes behind the gate, on a port of 127.0.0.1."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from hermes.core.secret import Secret
from hermes.hosting.control.handlers.api_keys import KeyVerbs
from hermes.hosting.tool_processes import ToolProcesses
from hermes.servers.api.api import make_api
from hermes.servers.api.auth import ApiKeys
from hermes.servers.api.context import ApiParts
from hermes.servers.app import HttpServer
from hermes.services.gateway import Gateway
from hermes.store.api.api_keys import own_key
from tests.integration.api.conftest import Api
from tests.integration.conftest import Start

NO_TOOLS = ToolProcesses(roots=())
"""Clients that a test starts are children of the gateway's process here, and people's all the same."""


class Quiet:
    async def event(self, told: Any) -> None:
        """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Served(Api):
    """``http`` shows the default key; ``stranger`` shows none."""

    stranger: aiohttp.ClientSession
    keys: KeyVerbs
    server: HttpServer

    async def new_key(self, name: str, role: str) -> dict[str, str]:
        """Make a named key; the headers that show it."""
        made = await self.keys.create({"name": name, "role": role}, Quiet())
        return {"Authorization": f"Bearer {made['key']}"}

    async def revoke(self, name: str) -> None:
        await self.keys.revoke({"name": name}, Quiet())


def default_key(gateway: Gateway) -> Secret:
    return gateway.config.api.key or own_key(gateway.home)


@asynccontextmanager
async def served(start: Start, *, idle_seconds: float = 20.0, **setting: Any) -> AsyncIterator[Served]:
    async with start(**setting) as gateway:
        ring = ApiKeys(gateway.db, gateway.clock, lambda: default_key(gateway))
        verbs = KeyVerbs(gateway.db, gateway.clock, ring.forget)
        process = {"pid": 4242, "state": "running"}
        server = HttpServer(
            make_api(ApiParts(gateway, lambda: process, NO_TOOLS), ring), "127.0.0.1", 0, idle_seconds=idle_seconds
        )
        shown = {"Authorization": f"Bearer {default_key(gateway).reveal()}"}
        async with (
            server.listening(),
            aiohttp.ClientSession(server.url, headers=shown) as http,
            aiohttp.ClientSession(server.url) as stranger,
        ):
            yield Served(gateway, http, server.url, stranger, verbs, server)
