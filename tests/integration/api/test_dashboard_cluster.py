"""The dashboard on two nodes over one PostgreSQL: either shows both, and a page may change from one to the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.contract.store.servers import PostgresForTests
from tests.fakes.telegram import FakeTelegram
from tests.integration.api.serving import Served, served
from tests.integration.api.test_dashboard import Browser, new_browser, sign_in
from tests.integration.api.test_dashboard_watch import chat, listening
from tests.integration.conftest import Start
from tests.integration.test_cluster import freeze
from tests.integration.watching import answered

SECONDS = 90


@pytest.fixture
def database_url(postgres: PostgresForTests) -> Iterator[str]:
    with postgres.schema() as url:
        yield url


@asynccontextmanager
async def two_nodes(start: Start, url: str) -> AsyncIterator[tuple[Served, Served]]:
    async with (
        asyncio.timeout(SECONDS),
        served(start, HERMES_DATABASE_URL=url, folder="a") as first,
        served(start, HERMES_DATABASE_URL=url, folder="b") as second,
    ):
        yield first, second


def name_of(api: Served) -> str:
    assert api.gateway.node is not None
    return api.gateway.node.name


async def nodes_at(api: Served) -> dict[str, str]:
    told = (await api.get("/api/overview")).json["nodes"]
    return {node["name"]: node["state"] for node in told}


async def test_what_changes_at_one_node_is_told_at_the_other_and_a_page_that_moves_misses_nothing(
    start: Start, database_url: str
) -> None:
    async with two_nodes(start, database_url) as (first, second):
        async with listening(second) as events:
            assert await events.next("hello") == ("hello", {"node": name_of(second)})
            await chat(first, "said at the first node")
            told: dict[str, Any] = {}
            while not {"message", "session"} <= set(told) or told.get("turn") != "done":
                kind, data = await events.next("message", "turn", "session")
                told[kind] = data.get("state")
            for api in (first, second):
                made = await api.post("/api/kanban/tasks", {"title": f"made at {name_of(api)}"})
                assert made.status == 201, made.body
            tasks = {(await events.next("task"))[1]["id"] for _ in range(2)}
            assert len(tasks) == 2
            last_id = events.last_id
        await chat(second, "said while the page was away")
        async with listening(first, last_id) as events:  # the proxy chose the other node this time
            assert await events.next("hello") == ("hello", {"node": name_of(first)})
            assert await events.next() == ("reload", {})
            lines = (await first.get("/api/sessions/talk/messages")).json["data"]
            assert [line["content"] for line in lines if line["role"] == "user"][-1] == "said while the page was away"
            await chat(second, "and one more")
            assert (await events.next("turn"))[1]["session_key"].endswith(":talk")
        await _is_known_at_both(first, second)


async def _is_known_at_both(first: Served, second: Served) -> None:
    """A browser that signed in at one node reads every page at the other, until it signs out."""
    browser = new_browser(first)
    try:
        assert (await sign_in(first, browser)).status == 200
        token = next(iter(browser.http.cookie_jar)).value
        port = second.url.rstrip("/").rpartition(":")[2]
        shown = {"Cookie": f"hermes_dashboard_{port}={token}"}
        for path in pages(await _session(second, shown)):
            async with second.stranger.get(path, headers=shown) as answer:
                assert answer.status == 200, (path, await answer.text())
        await browser.ask("POST", "/api/dashboard/sign-out")
        async with second.stranger.get("/api/overview", headers=shown) as answer:
            assert answer.status == 401
    finally:
        await browser.http.close()


async def _session(api: Served, shown: dict[str, str]) -> dict[str, Any]:
    async with api.stranger.get("/api/dashboard/session", headers=shown) as answer:
        assert answer.status == 200
        session: dict[str, Any] = await answer.json()
        assert session["node"] == name_of(api)
        return session


def pages(session: dict[str, Any]) -> list[str]:
    addresses = {"chat": "/api/sessions", "board": "/api/kanban/tasks", "skills": "/v1/skills"}
    return [addresses.get(page, f"/api/{page}") for page in session["pages"]]


async def test_a_chat_is_written_to_at_either_node_and_a_node_that_died_is_shown_as_gone(
    start: Start, telegram: FakeTelegram, database_url: str
) -> None:
    async with two_nodes(start, database_url) as (first, second):
        await _write_at_both(first, second, telegram)
        names = {name_of(first), name_of(second)}
        for api in (first, second):
            assert set(await nodes_at(api)) == names
        async with listening(second) as events:
            await freeze(first.gateway)
            while True:
                _, told = await events.next("node")
                if told["name"] == name_of(first):
                    break
            assert told["state"] != "living"
        shown = await nodes_at(second)
        assert (shown[name_of(second)], shown.get(name_of(first), "gone")) == ("living", told["state"])
        telegram.user_says("still there?")
        await answered(telegram, "echo: still there?")


async def _write_at_both(first: Served, second: Served, telegram: FakeTelegram) -> None:
    """One of the nodes has the account of the chat; the other one writes in it all the same."""
    telegram.user_says("hello")
    await answered(telegram, "echo: hello")
    for api, text in ((first, "from the first"), (second, "from the second")):
        browser: Browser = new_browser(api)
        try:
            assert (await sign_in(api, browser)).status == 200
            [session] = (await browser.ask("GET", "/api/sessions?platform=telegram")).json["data"]
            answer = await browser.ask("POST", f"/api/sessions/{session['id']}/chat", {"message": text})
            assert answer.status == 200, answer.body
        finally:
            await browser.http.close()
        await answered(telegram, f"echo: {text}")
    assert telegram.texts()[1:] == [
        "💻 Dashboard: from the first",
        "echo: from the first",
        "💻 Dashboard: from the second",
        "echo: from the second",
    ]
