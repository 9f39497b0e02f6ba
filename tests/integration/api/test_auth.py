"""Who may ask: keys, their roles, and what is told to nobody in particular."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.integration.api.serving import Served, default_key, served
from tests.integration.conftest import Start

PROTECTED = [
    ("GET", "/v1/models"),
    ("GET", "/v1/models/hermes"),
    ("GET", "/v1/capabilities"),
    ("GET", "/v1/skills"),
    ("GET", "/v1/toolsets"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("POST", "/v1/chat/completions"),
    ("GET", "/nowhere"),
]


async def test_without_a_key_nothing_but_health_is_answered(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(10):
        for method, path in PROTECTED:
            async with api.stranger.request(method, path) as answer:
                assert answer.status == 401, path
                assert answer.headers["WWW-Authenticate"] == "Bearer"
                error = (await answer.json())["error"]
                assert (error["type"], error["code"], error["param"]) == (
                    "authentication_error",
                    "missing_api_key",
                    None,
                )
        async with api.stranger.get("/health") as answer:
            assert (answer.status, await answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    "shown",
    ["Bearer wrong", "Bearer  ", "Bearer", "Basic abc", "bearer wrong-too", "Bearer hk_\u00e9", "Bearer " + "x" * 4000],
)
async def test_a_wrong_key_is_refused(start: Start, shown: str) -> None:
    headers = {"Authorization": shown}
    async with asyncio.timeout(10), served(start) as api, api.stranger.get("/v1/models", headers=headers) as answer:
        assert answer.status == 401
        assert (await answer.json())["error"]["code"] in ("invalid_api_key", "missing_api_key")


async def test_the_default_key_is_made_once_and_readable_by_its_owner_alone(start: Start) -> None:
    async with served(start) as api:
        first = default_key(api.gateway).reveal()
        path = api.gateway.home / "api_server.key"
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_text().strip() == first
        assert len(first) > 40
    async with served(start) as api:
        assert default_key(api.gateway).reveal() == first
        assert (await api.get("/v1/models")).status == 200


async def test_a_configured_key_wins(start: Start) -> None:
    async with served(start, API_SERVER_KEY="a-key-of-my-own") as api, asyncio.timeout(10):
        assert (await api.get("/v1/models", Authorization="Bearer a-key-of-my-own")).status == 200
        kept = (api.gateway.home / "api_server.key").exists()
        assert not kept


async def test_a_key_in_the_url_is_not_looked_at(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(10):
        token = default_key(api.gateway).reveal()
        for name in ("api_key", "key", "token", "access_token"):
            async with api.stranger.get(f"/v1/models?{name}={token}") as answer:
                assert answer.status == 401


async def test_a_named_key_works_at_once_and_ends_at_once(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(10):
        async with api.stranger.get("/v1/models", headers={"Authorization": "Bearer early"}) as answer:
            assert answer.status == 401  # and the ring has looked into the store by now
        phone = await api.new_key("phone", "user")
        assert (await asked(api, phone)) == 200
        await api.revoke("phone")
        assert (await asked(api, phone)) == 401
        again = await api.new_key("phone", "guest")
        assert (await asked(api, phone), await asked(api, again)) == (401, 200)


async def asked(api: Served, headers: dict[str, str]) -> int:
    async with api.stranger.get("/v1/models", headers=headers) as answer:
        return answer.status


async def test_a_named_key_is_stored_nowhere(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(10):
        token = (await api.new_key("phone", "user"))["Authorization"].removeprefix("Bearer ")
        assert await asked(api, {"Authorization": f"Bearer {token}"}) == 200
        home = api.gateway.home
    found = [path for path in home.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
    assert found == []


async def test_health_tells_strangers_how_it_is_and_the_owner_why(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(10):
        user = await api.new_key("phone", "user")
        for headers in ({}, user):
            async with api.stranger.get("/health/detailed", headers=headers) as answer:
                short = await answer.json()
            assert set(short) == {"status", "gateway_state", "platform_states", "active_agents", "waiting"}
            assert sum(short["platform_states"].values()) == 1
            assert "telegram" not in str(short)
            assert short["waiting"] == {"messages": 0, "approvals": 0, "answers": 0}
            assert str(Path.home()) not in str(short)
        full = (await api.get("/health/detailed")).json
        assert full["pid"] == 4242
        assert full["home"] == str(api.gateway.home)
        assert full["troubles"] == []
        async with api.stranger.get("/health/detailed", headers={"Authorization": "Bearer no"}) as answer:
            assert answer.status == 401
