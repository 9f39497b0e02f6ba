"""Two people with keys of their own, on the API as it is served: neither reads what is the other's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from tests.fakes.model import FakeModel
from tests.integration.api.others import run_is
from tests.integration.api.serving import Served, served
from tests.integration.conftest import Start

SECRET = "the tulips are blue"
NAME = {"X-Hermes-Session-Id": "work"}


@pytest.fixture
async def api(start: Start) -> AsyncIterator[Served]:
    async with served(start) as running:
        yield running


async def ask(api: Served, who: dict[str, str], path: str, body: dict[str, Any]) -> Any:
    async with api.stranger.post(path, data=orjson.dumps(body), headers={**who, **NAME}) as answer:
        assert answer.status in (200, 202), await answer.text()
        return orjson.loads(await answer.read())


async def say(api: Served, who: dict[str, str], requests: str, text: str) -> None:
    """The same words through each door, always in the session `work`."""
    if requests == "chat":
        await ask(api, who, "/v1/chat/completions", {"messages": [{"role": "user", "content": text}]})
    elif requests == "responses":
        await ask(api, who, "/v1/responses", {"input": text})
    else:
        run = await ask(api, who, "/v1/runs", {"input": text})
        await run_is(api, run["run_id"], "completed")


@pytest.mark.parametrize("mine", ["user", "owner"])
@pytest.mark.parametrize("requests", ["chat", "responses", "runs"])
async def test_the_session_of_another_key_is_another_session_whatever_its_name(
    api: Served, model: FakeModel, requests: str, mine: str
) -> None:
    ana = await api.new_key("ana", mine)
    bob = await api.new_key("bob", "user")
    await say(api, ana, requests, SECRET)
    for other in ("chat", "responses", "runs"):
        await say(api, bob, other, "what do you know?")
        assert SECRET not in str(model.last_request["messages"])
    await say(api, ana, requests, "what do you know?")
    assert SECRET in str(model.last_request["messages"])


async def test_no_route_shows_a_user_what_is_not_its_own(api: Served) -> None:
    bob = await api.new_key("bob", "user")
    run = (await api.post("/v1/runs", {"input": SECRET, "session_id": "work"})).json
    await run_is(api, run["run_id"], "completed")
    response = (await api.post("/v1/responses", {"input": SECRET})).json
    session = (await api.get("/api/sessions/work")).json
    for path in (
        "/api/sessions",
        f"/api/sessions/{session['id']}",
        f"/api/sessions/{session['id']}/messages",
        "/api/sessions/work",
        "/api/approvals",
        f"/v1/runs/{run['run_id']}",
        f"/v1/runs/{run['run_id']}/events",
        f"/v1/responses/{response['id']}",
        f"/v1/responses/{response['id']}/input_items",
        "/health/detailed",
        "/metrics",
        "/v1/capabilities",
    ):
        async with api.stranger.get(path, headers=bob) as answer:
            assert SECRET not in await answer.text(), path
            assert answer.status in (200, 403, 404), path
    for body in (
        {"input": "go on", "previous_response_id": response["id"]},
        {"input": "go on", "session_id": session["id"]},
    ):
        async with api.stranger.post("/v1/runs", data=orjson.dumps(body), headers=bob) as answer:
            assert SECRET not in await answer.text()
