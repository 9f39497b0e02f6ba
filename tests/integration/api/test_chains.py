"""What came before a request, where that is not as simple as one answer after another."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tests.fakes.model import FakeModel
from tests.integration.api.conftest import Answer
from tests.integration.api.others import run_is
from tests.integration.api.serving import Served, served
from tests.integration.conftest import Start

BEFORE = [{"role": "user", "content": "I am Ana."}, {"role": "assistant", "content": "Hello, Ana."}]


def talk(request: dict[str, Any]) -> list[str]:
    """What the model was told, without the system's words."""
    return [message["content"] for message in request["messages"] if message["role"] != "system"]


async def respond(api: Served, text: str, **more: Any) -> Answer:
    return await api.post("/v1/responses", {"input": text, **more})


async def test_all_that_goes_on_from_a_response_still_on_its_way_waits_behind_it(
    start: Start, model: FakeModel
) -> None:
    async with served(start) as api, asyncio.timeout(20):
        model.hold()
        first = (await respond(api, "I am Ana.", background=True)).json["id"]
        await model.is_holding()
        both = [asyncio.create_task(respond(api, text, previous_response_id=first)) for text in ("one", "two")]
        while await queued(api) < 2:  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.01)
        model.release()
        answers = [(await one).json for one in both]
    assert len({answer["hermes"]["session_id"] for answer in answers}) == 1
    for request in model.requests[1:]:
        assert talk(request)[:2] == ["I am Ana.", "echo: I am Ana."]


async def queued(api: Served) -> int:
    def count(tx: Any) -> int:
        return int(tx.value("SELECT COUNT(*) FROM inbox WHERE state = 'queued'"))

    return await api.gateway.db.read(count)


async def test_a_response_whose_session_was_deleted_is_not_gone_on_from_as_if_nothing_had_been_said(
    start: Start, model: FakeModel
) -> None:
    async with served(start) as api, asyncio.timeout(20):
        first = (await respond(api, "I am Ana.")).json
        second = (await respond(api, "And you?", previous_response_id=first["id"])).json
        assert (await api.call("DELETE", f"/api/sessions/{first['hermes']['session_id']}")).status == 200
        for earlier in (first, second):
            refused = await respond(api, "Who am I?", previous_response_id=earlier["id"])
            assert (refused.status, refused.error["code"]) == (400, "previous_response_not_found")
            assert "session was deleted" in refused.error["message"]
        assert len(model.requests) == 2
        assert (await respond(api, "Who am I?")).status == 200


async def test_a_conversation_whose_session_was_deleted_begins_anew(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        first = (await respond(api, "I am Ana.", conversation="ours")).json
        await api.call("DELETE", f"/api/sessions/{first['hermes']['session_id']}")
        assert (await respond(api, "Who am I?", conversation="ours")).status == 200
    assert talk(model.last_request) == ["Who am I?"]


async def test_a_session_that_knows_its_talk_is_not_told_it_again(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        for text in ("one", "two"):
            body = {"input": text, "session_id": "runs", "conversation_history": BEFORE}
            await run_is(api, (await api.post("/v1/runs", body)).json["run_id"], "completed")
        assert talk(model.last_request) == ["I am Ana.", "Hello, Ana.", "one", "echo: one", "two"]

        for text in ("one", "two"):
            body = {"input": text, "conversation_history": BEFORE}
            await api.post("/v1/responses", body, X_Hermes_Session_Id="responses")
        assert talk(model.last_request) == ["I am Ana.", "Hello, Ana.", "one", "echo: one", "two"]

        await api.post("/api/sessions/runs/chat", {"input": "three", "conversation_history": BEFORE})
        assert talk(model.last_request)[2:] == ["one", "echo: one", "two", "echo: two", "three"]


async def test_a_run_with_a_history_that_is_asked_for_again_is_the_same_run(start: Start) -> None:
    body = {"input": "one", "session_id": "runs", "conversation_history": BEFORE}
    async with served(start) as api, asyncio.timeout(20):
        first = await api.post("/v1/runs", body, Idempotency_Key="one")
        await run_is(api, first.json["run_id"], "completed")
        await api.gateway.db.write(lambda tx: tx.run("DELETE FROM idempotency"))  # as if we had died just then
        again = await api.post("/v1/runs", body, Idempotency_Key="one")
        assert (again.status, again.json["run_id"]) == (202, first.json["run_id"])


def same_id(path: str) -> bytes:
    function = {"name": "read_file", "arguments": orjson.dumps({"path": path}).decode()}
    call = {"index": 0, "id": "call_0", "type": "function", "function": function}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    return b"data: %s\n\ndata: [DONE]\n\n" % orjson.dumps({"choices": [choice]})


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/runs"])
async def test_calls_of_a_model_that_counts_them_from_zero_each_time_are_all_told(
    start: Start, model: FakeModel, path: str
) -> None:
    model.sends_next(same_id("one.txt"))
    model.sends_next(same_id("two.txt"))
    async with served(start) as api, asyncio.timeout(20):
        if path == "/v1/runs":
            run = (await api.post(path, {"input": "hello"})).json["run_id"]
            body = (await api.get(f"/v1/runs/{run}/events")).body
            assert (body.count(b"event: tool.started"), body.count(b"event: tool.completed")) == (2, 2)
        elif path == "/v1/responses":
            body = (await api.post(path, {"input": "hello", "stream": True})).body
            assert body.count(b"event: response.function_call_arguments.done") == 2
        else:
            body = (await api.post(path, {"messages": [{"role": "user", "content": "hello"}], "stream": True})).body
            assert body.count(b"event: hermes.tool.progress") == 4
    calls = [call["id"] for message in model.last_request["messages"] for call in message.get("tool_calls") or ()]
    results = [message["tool_call_id"] for message in model.last_request["messages"] if message["role"] == "tool"]
    assert len(set(calls)) == 2
    assert results == calls


async def test_a_stream_in_the_background_says_when_it_begins(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        body = (await respond(api, "hello", background=True, stream=True)).body
    kinds = [line.removeprefix(b"event: ") for line in body.split(b"\n") if line.startswith(b"event: ")]
    assert kinds[:3] == [b"response.created", b"response.queued", b"response.in_progress"]
