"""What came before a request, where that is not as simple as one answer after another."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from tests.fakes.model import FakeModel, calls_tools
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
            assert "It was deleted" in refused.error["message"]
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
            assert body.count(b"event: response.mcp_call_arguments.done") == 2
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


async def test_an_admin_and_a_key_of_another_role_go_on_from_what_was_said_before(
    start: Start, model: FakeModel
) -> None:
    async with served(start) as api, asyncio.timeout(20):
        bob = await api.new_key("bob", "user")
        first = (await api.post("/v1/responses", {"input": "I am Bob."}, **bob)).json["id"]
        assert (await respond(api, "Who is he?", previous_response_id=first)).status == 200
        assert talk(model.last_request) == ["I am Bob.", "echo: I am Bob.", "Who is he?"]
        run = (await api.post("/v1/runs", {"input": "And?", "previous_response_id": first})).json["run_id"]
        await run_is(api, run, "completed")
        assert talk(model.last_request)[:3] == ["I am Bob.", "echo: I am Bob.", "Who is he?"]
        ann = await api.new_key("ann", "user")
        hidden = await api.post("/v1/responses", {"input": "Who?", "previous_response_id": first}, **ann)
        assert (hidden.status, hidden.error["code"]) == (400, "previous_response_not_found")


async def test_a_run_does_not_go_on_in_a_session_that_was_deleted(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        first = (await respond(api, "I am Ana.")).json
        await api.call("DELETE", f"/api/sessions/{first['hermes']['session_id']}")
        refused = await api.post("/v1/runs", {"input": "Who am I?", "previous_response_id": first["id"]})
        assert (refused.status, refused.error["code"]) == (404, "previous_response_not_found")


async def test_a_result_of_a_call_that_nobody_made_is_refused_by_every_door(start: Start, model: FakeModel) -> None:
    result = [{"role": "tool", "tool_call_id": "call_1", "content": "9 °C"}]
    async with served(start) as api, asyncio.timeout(20):
        await api.post("/v1/chat/completions", {"messages": BEFORE[:1]}, X_Hermes_Session_Id="ours")
        for path, body in (
            ("/v1/chat/completions", {"messages": result}),
            ("/v1/runs", {"input": result}),
            ("/api/sessions/ours/chat", {"input": result}),
            ("/v1/responses", {"input": [{"type": "function_call_output", "call_id": "call_1", "output": "9 °C"}]}),
        ):
            refused = await api.post(path, body, X_Hermes_Session_Id="ours")
            assert (refused.status, refused.error["code"]) == (400, "invalid_tool_result"), path
    assert len(model.requests) == 1


async def test_a_result_goes_on_with_the_call_its_session_waits_for(start: Start, model: FakeModel) -> None:
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {}}}]
    async with served(start) as api, asyncio.timeout(20):
        model.calls_tools([("get_weather", {})])
        asked = {"messages": [{"role": "user", "content": "weather?"}], "tools": tools}
        called = await api.post("/v1/chat/completions", asked, X_Hermes_Session_Id="ours")
        call = called.json["choices"][0]["message"]["tool_calls"][0]["id"]
        result = {"role": "tool", "tool_call_id": call, "content": "9 °C"}
        answer = await api.post("/v1/chat/completions", {"messages": [result]}, X_Hermes_Session_Id="ours")
        assert answer.status == 200
        assert talk(model.last_request)[-1] == "9 °C"
        late = {**result, "content": "10 °C"}  # an output for an answered call is no error, and changes nothing
        more = {"messages": [late, {"role": "user", "content": "sure?"}]}
        assert (await api.post("/v1/chat/completions", more, X_Hermes_Session_Id="ours")).status == 200
    assert "10 °C" not in str(model.last_request)


async def test_items_may_be_named_by_their_ids_instead_of_being_sent_again(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        model.script([calls_tools(("read_file", {"path": "none"}), text="Let me look."), "There is none."])
        output = (await respond(api, "look")).json["output"]
        names = [{"type": "item_reference", "id": item["id"]} for item in output]
        items = [{"role": "user", "content": "look"}, *names, {"role": "user", "content": "and now?"}]
        assert (await api.post("/v1/responses", {"input": items})).status == 200
        told = [message for message in model.last_request["messages"] if message["role"] != "system"]
        assert [message["role"] for message in told] == ["user", "assistant", "tool", "assistant", "user"]
        assert (told[1]["content"], told[3]["content"]) == ("Let me look.", "There is none.")

        bob = await api.new_key("bob", "user")
        for headers, name in ((bob, names[0]["id"]), ({}, "msg_none_0"), ({}, "rs_1"), ({}, None), ({}, [])):
            unknown = [{"type": "item_reference", "id": name}, items[-1]]
            refused = await api.post("/v1/responses", {"input": unknown}, **headers)
            assert (refused.status, refused.error["code"]) == (400, "item_not_found")
            assert refused.error["param"] == "input[0].id"
