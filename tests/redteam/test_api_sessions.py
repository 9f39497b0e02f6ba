"""Attack sessions and answers over the API: names that are used again, guessed names, smuggled parts of keys.

One gateway serves all of these: every attack brings keys of its own, and what earlier ones left is there to be found.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import pytest_asyncio

from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.api.others import run_is
from tests.integration.api.serving import Quiet, Served, served
from tests.integration.conftest import start_on
from tests.redteam.api_calls import SECRET, ask, chat, filled, finished, heard

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model() -> AsyncIterator[FakeModel]:
    async with FakeModel() as fake:
        yield fake


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(model: FakeModel, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with FakeTelegram() as telegram, served(start_on(telegram, model, tmp_path_factory.mktemp("api"))) as api:
        yield api


@pytest_asyncio.fixture(loop_scope="module")
async def api(running: Served) -> AsyncIterator[Served]:
    """The gateway, without keys; those that a test makes are revoked after it."""
    yield running
    for key in await keys_in_use(running):
        await running.revoke(key["name"])


async def keys_in_use(api: Served) -> list[dict[str, Any]]:
    return [key for key in await api.keys.listed({}, Quiet()) if not key["revoked_at"]]


# A name that is used again

INHERITED = [
    ("GET", "/api/sessions", None),
    ("GET", "/api/sessions/{session}", None),
    ("GET", "/api/sessions/{session}/messages", None),
    ("GET", "/api/sessions/work", None),
    ("GET", "/api/sessions/work/messages", None),
    ("POST", "/api/sessions/{session}/fork", {}),
    ("POST", "/api/sessions/work/chat", {"message": "what did I say?"}),
    ("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "what did I say?"}]}),
    ("GET", "/v1/responses/{response}", None),
    ("GET", "/v1/responses/{response}/input_items", None),
    ("POST", "/v1/responses", {"input": "what did I say?", "previous_response_id": "{response}"}),
    ("POST", "/v1/responses", {"input": "what did I say?", "conversation": "trip"}),
    ("POST", "/v1/responses", {"input": [{"type": "item_reference", "id": "{item}"}]}),
    ("GET", "/v1/runs/{run}", None),
    ("GET", "/v1/runs/{run}/events", None),
    ("POST", "/v1/runs", {"input": "what did I say?", "previous_response_id": "{response}"}),
    ("POST", "/v1/runs", {"input": "what did I say?", "session_id": "work"}),
    ("GET", "/api/approvals", None),
]


@pytest.mark.parametrize("role", ["user", "admin"])
@pytest.mark.parametrize("method, path, body", INHERITED, ids=lambda value: str(value)[:60])
async def test_a_key_with_the_name_of_a_revoked_key_inherits_nothing(
    api: Served, model: FakeModel, role: str, method: str, path: str, body: Any
) -> None:
    victim = await api.new_key("phone", role)
    await chat(api, victim, SECRET, X_Hermes_Session_Id="work")
    response = (await ask(api, victim, "POST", "/v1/responses", {"input": SECRET, "conversation": "trip"})).json
    known = {
        "session": (await ask(api, victim, "GET", "/api/sessions/work")).json["id"],
        "response": response["id"],
        "item": response["output"][0]["id"],
        "run": await finished(api, victim, {"input": SECRET, "session_id": "work"}),
    }
    await api.revoke("phone")
    attacker = await api.new_key("phone", "user")
    since = len(model.requests)
    sent = orjson.loads(filled(orjson.dumps(body).decode(), known)) if body is not None else None
    answer = await ask(api, attacker, method, filled(path, known), sent, X_Hermes_Session_Id="work")
    assert SECRET not in answer.body.decode()
    assert SECRET not in heard(model, since)


# Guessed names of sessions

ROLES = ["default", "owner", "admin", "user", "guest"]


@pytest.mark.parametrize("attacker", ["owner", "admin", "user", "guest"])
@pytest.mark.parametrize("victim", ROLES)
async def test_a_guessed_session_name_of_another_key_is_another_session(
    api: Served, model: FakeModel, victim: str, attacker: str
) -> None:
    theirs = {} if victim == "default" else await api.new_key("victim", victim)
    if theirs:
        await chat(api, theirs, SECRET, X_Hermes_Session_Id="work")
    else:
        await api.post("/v1/chat/completions", {"messages": [{"role": "user", "content": SECRET}]}, **SESSION)
    mine = await api.new_key("attacker", attacker)
    since = len(model.requests)
    assert (await chat(api, mine, "what did I say?", **SESSION)).status == 200
    assert (await ask(api, mine, "POST", "/v1/responses", {"input": "and here?"}, **SESSION)).status == 200
    await finished(api, mine, {"input": "and here?", "session_id": "work"})
    await api.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}, X_Hermes_Session_Id="y")
    assert SECRET not in heard(model, since)


SESSION = {"X_Hermes_Session_Id": "work"}
SMUGGLED = [
    "work:p=",
    "work:p=key:{id}",
    "work:p=key%3A{id}",
    "work%3Ap=key%3A{id}",
    "work%3ap=key%253A{id}",
    "work:t=:p=key:{id}",
    "agent:main:api:dm:work:p=key:{id}",
    "agent:main:api:dm:work",
    "{session}",
    "work\u200b",
    "work\u00a0",
    " work ",
    "work%00",
    "../work",
]


@pytest.mark.parametrize("name", SMUGGLED)
@pytest.mark.parametrize("where", ["header", "run", "path"])
async def test_a_session_name_that_holds_parts_of_a_key_reaches_no_other_session(
    api: Served, model: FakeModel, name: str, where: str
) -> None:
    victim = await api.new_key("victim", "user")
    await chat(api, victim, SECRET, **SESSION)
    await api.post("/v1/chat/completions", {"messages": [{"role": "user", "content": SECRET}]}, **SESSION)
    session = (await ask(api, victim, "GET", "/api/sessions/work")).json["id"]
    [listed] = await keys_in_use(api)
    attacker = await api.new_key("attacker", "user")
    name = name.replace("{id}", listed["id"]).replace("{session}", session)
    since = len(model.requests)
    if where == "header":
        header = {b"X-Hermes-Session-Id".decode(): name.encode("utf-8").decode("latin-1")}
        answer = await ask(
            api,
            {**attacker, **header},
            "POST",
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "?"}]},
        )
    elif where == "run":
        answer = await ask(api, attacker, "POST", "/v1/runs", {"input": "?", "session_id": name})
        if answer.status == 202:
            await run_is(api, answer.json["run_id"], "completed")
    else:
        answer = await ask(api, attacker, "POST", f"/api/sessions/{name}/chat", {"message": "?"})
        assert answer.status == 404
    assert SECRET not in answer.body.decode()
    assert SECRET not in heard(model, since)


# What other keys asked for


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "/v1/responses/{response}"),
        ("DELETE", "/v1/responses/{response}"),
        ("POST", "/v1/responses/{response}/cancel"),
        ("GET", "/v1/responses/{response}/input_items"),
        ("GET", "/v1/runs/{run}"),
        ("GET", "/v1/runs/{run}/events"),
        ("POST", "/v1/runs/{run}/stop"),
        ("POST", "/v1/runs/{run}/approval"),
        ("GET", "/v1/runs/run_{event}"),
        ("PATCH", "/api/sessions/{session}"),
        ("DELETE", "/api/sessions/{session}"),
    ],
)
@pytest.mark.parametrize("role", ["user", "guest"])
async def test_what_the_owner_asked_for_does_not_exist_for_other_keys(
    api: Served, role: str, method: str, path: str
) -> None:
    response = (await api.post("/v1/responses", {"input": SECRET})).json["id"]
    run = await finished(api, {"Authorization": api.http.headers["Authorization"]}, {"input": SECRET})
    known = {
        "response": response,
        "run": run,
        "event": response.replace("resp_", "ev_resp_"),
        "session": (await api.get("/api/sessions")).json["data"][0]["id"],
    }
    bob = await api.new_key("bob", role)
    body = {"title": "mine"} if method == "PATCH" else {"approve": True} if "approval" in path else None
    answer = await ask(api, bob, method, filled(path, known), body)
    assert answer.status == 404
    assert SECRET not in answer.body.decode()
