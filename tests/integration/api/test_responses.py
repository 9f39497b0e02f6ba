"""`/v1/responses` over real HTTP: its shapes, its events, its chains, and its states that always end."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from hermes.core.roles import PersonRole
from hermes.servers.api.context import Caller
from hermes.servers.api.responses import routes
from hermes.servers.api.responses.finalizer import ResponseLimits
from hermes.store import people
from hermes.store.api import responses as store
from hermes.store.db import Tx
from hermes.store.open import open_database
from hermes.store.sessions import sessions
from tests.fakes.model import FakeModel, Refusal, Reply, calls_tools
from tests.fakes.tools import GO_ON
from tests.integration.api.conftest import Api, Families, StartApi
from tests.integration.conftest import crash

Json = dict[str, Any]

PATH = "/v1/responses"
OLDER = {"X_Hermes_Tool_Items": "function_call"}
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather somewhere",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


@pytest.fixture
def kept() -> dict[str, int]:
    """How much is kept; a test that changes it changes what is started after that."""
    return {}


@pytest.fixture
def families(kept: dict[str, int]) -> Families:
    return (lambda parts: routes.routes(parts, kept=ResponseLimits(**kept)),)


async def streamed(api: Api, body: Json, **headers: str) -> list[Json]:
    """All events of a stream, after a look at what holds for every stream."""
    async with api.streaming(PATH, {**body, "stream": True}, **headers) as (answer, events):
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        found = [event async for event in events if event.name != ":"]
    assert [event.data["type"] for event in found] == [event.name for event in found]
    assert [event.data["sequence_number"] for event in found] == list(range(len(found)))
    return [event.data for event in found]


def types(events: list[Json]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


async def until(api: Api, response_id: str, *statuses: str) -> Json:
    for _ in range(500):
        body: Json = (await api.get(f"{PATH}/{response_id}")).json
        if body["status"] in statuses:
            return body
        await asyncio.sleep(0.01)
    raise AssertionError(f"{response_id} never became {statuses}: {body}")


async def both_at_the_model(model: FakeModel) -> None:
    while model.open_now < 2:  # noqa: ASYNC110 - the fake tells only of the first
        await asyncio.sleep(0.01)


def text_of(body: Json) -> str:
    return "".join(part["text"] for item in body["output"] if item["type"] == "message" for part in item["content"])


# One answer


async def test_a_response_has_every_field_of_the_shape_and_is_read_again(api: Api, model: FakeModel) -> None:
    answer = await api.post(PATH, {"model": "hermes", "input": "hello", "metadata": {"who": "me"}})
    body = answer.json
    name = body["id"].removeprefix("resp_")
    assert answer.status == 200
    assert body == {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": body["created_at"],
        "status": "completed",
        "background": False,
        "completed_at": body["completed_at"],
        "conversation": None,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {"who": "me"},
        "model": "hermes",
        "output": [
            {
                "id": f"msg_{name}_0",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "echo: hello", "annotations": [], "logprobs": []}],
            }
        ],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "truncation": "auto",
        "usage": {
            "input_tokens": 12,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 19,
        },
        "user": None,
        "hermes": {"session_id": answer.headers["X-Hermes-Session-Id"]},
    }
    assert 0 <= body["completed_at"] - body["created_at"] <= 5
    assert answer.headers["X-Hermes-Completed"] == "true"
    again = await api.get(f"{PATH}/{body['id']}")
    assert (again.status, again.json) == (200, body)
    assert again.headers["X-Hermes-Session-Id"] == answer.headers["X-Hermes-Session-Id"]


async def test_input_may_be_items_with_instructions_and_a_history_of_the_clients_own(
    api: Api, model: FakeModel
) -> None:
    body = {
        "instructions": "Be brief.",
        "conversation_history": [
            {"role": "user", "content": "I am Ana."},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Hello, Ana."}]},
        ],
        "input": [
            {"role": "developer", "content": [{"type": "input_text", "text": "Speak French."}]},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "what is this?"},
                    {"type": "input_image", "image_url": "https://example.test/cat.png", "detail": "low"},
                ],
            },
        ],
        "temperature": 0.5,
        "max_output_tokens": 99,
    }
    answer = await api.post(PATH, body)
    assert answer.status == 200
    assert (answer.json["instructions"], answer.json["temperature"], answer.json["max_output_tokens"]) == (
        "Be brief.",
        0.5,
        99,
    )
    system, *talk = model.last_request["messages"]
    assert system["content"].endswith("\n\nBe brief.\n\nSpeak French.")
    assert talk == [
        {"role": "user", "content": "I am Ana."},
        {"role": "assistant", "content": "Hello, Ana."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is this?"},
                {"type": "image_url", "image_url": {"url": "https://example.test/cat.png", "detail": "low"}},
            ],
        },
    ]


async def test_the_input_is_listed_as_items(api: Api) -> None:
    said = [
        {"role": "user", "content": "one"},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
    ]
    made = (await api.post(PATH, {"input": said, "tools": [WEATHER]})).json
    name = made["id"].removeprefix("resp_")
    items: list[Json] = [
        {
            "id": f"in_{name}_0",
            "type": "message",
            "status": "completed",
            "role": "user",
            "content": [{"type": "input_text", "text": "one"}],
        },
        {
            "id": f"in_{name}_1",
            "type": "function_call",
            "status": "completed",
            "call_id": "c1",
            "name": "weather",
            "arguments": "{}",
        },
        {
            "id": f"in_{name}_2",
            "type": "function_call_output",
            "status": "completed",
            "call_id": "c1",
            "output": "rain",
        },
    ]
    page = (await api.get(f"{PATH}/{made['id']}/input_items?order=asc")).json
    assert page == {
        "object": "list",
        "data": items,
        "first_id": items[0]["id"],
        "last_id": items[2]["id"],
        "has_more": False,
    }
    page = (await api.get(f"{PATH}/{made['id']}/input_items?limit=1&after={items[2]['id']}")).json
    assert (page["data"], page["has_more"]) == ([items[1]], True)


async def test_a_response_that_is_not_stored_works_and_is_gone(api: Api) -> None:
    answer = await api.post(PATH, {"input": "hello", "store": False})
    assert (answer.status, answer.json["store"], text_of(answer.json)) == (200, False, "echo: hello")
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/input_items"), ("POST", "/cancel")):
        gone = await api.call(method, f"{PATH}/{answer.json['id']}{path}")
        assert (gone.status, gone.error["code"]) == (404, "response_not_found")
    onward = await api.post(PATH, {"input": "and?", "previous_response_id": answer.json["id"]})
    assert (onward.status, onward.error["code"], onward.error["param"]) == (
        400,
        "previous_response_not_found",
        "previous_response_id",
    )


async def test_a_deleted_response_is_gone_and_so_is_its_conversation(api: Api, model: FakeModel) -> None:
    made = (await api.post(PATH, {"input": "one", "conversation": "trip"})).json
    answer = await api.call("DELETE", f"{PATH}/{made['id']}")
    assert (answer.status, answer.json) == (200, {"id": made["id"], "object": "response", "deleted": True})
    again = await api.call("DELETE", f"{PATH}/{made['id']}")
    assert (again.status, again.error["type"], again.error["code"]) == (
        404,
        "invalid_request_error",
        "response_not_found",
    )
    await api.post(PATH, {"input": "two", "conversation": "trip"})
    assert [message["content"] for message in model.last_request["messages"][1:]] == ["two"]


async def test_a_damaged_row_is_not_found_and_its_conversation_starts_afresh(
    api: Api, model: FakeModel, tmp_path: Path
) -> None:
    made = (await api.post(PATH, {"input": "one", "conversation": "trip"})).json

    def spoil(tx: Tx) -> None:
        tx.run("UPDATE responses SET body = '{broken'")

    other = await open_database(tmp_path / "home" / store.FILE, migrations=store.MIGRATIONS)
    await other.write(spoil)
    await other.close()
    assert (await api.get(f"{PATH}/{made['id']}")).status == 404
    answer = await api.post(PATH, {"input": "two", "conversation": "trip"})
    assert answer.status == 200
    assert [message["content"] for message in model.last_request["messages"][1:]] == ["two"]


# Streams


async def test_a_stream_tells_every_step_of_a_message_by_typed_events(api: Api, model: FakeModel) -> None:
    model.says("", tokens=("Hel", "lo"))
    events = await streamed(api, {"input": "hi"})
    done = events[-1]["response"]
    item_id = f"msg_{done['id'].removeprefix('resp_')}_0"
    where = {"item_id": item_id, "output_index": 0, "content_index": 0}
    item = {"id": item_id, "type": "message", "role": "assistant"}
    part = {"type": "output_text", "annotations": [], "logprobs": []}
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == "Hello"
    told = [
        {key: value for key, value in event.items() if key != "sequence_number"}
        for event in events
        if event["type"] != "response.output_text.delta"
    ]
    running = {**done, "status": "in_progress", "output": [], "usage": None, "completed_at": None}
    assert told == [
        {"type": "response.created", "response": running},
        {"type": "response.in_progress", "response": running},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **where, "part": {**part, "text": ""}},
        {"type": "response.output_text.done", **where, "text": "Hello", "logprobs": []},
        {"type": "response.content_part.done", **where, "part": {**part, "text": "Hello"}},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {**item, "status": "completed", "content": [{**part, "text": "Hello"}]},
        },
        {"type": "response.completed", "response": done},
    ]
    assert (done["status"], text_of(done), done["usage"]["total_tokens"]) == ("completed", "Hello", 19)
    assert (await api.get(f"{PATH}/{done['id']}")).json == done


async def test_our_own_tools_are_calls_that_the_server_ran(api: Api, model: FakeModel) -> None:
    script = [calls_tools(("search_files", {"pattern": "x"}), text="Let me look."), Reply("Nothing there.")]
    model.script(script)
    whole = (await api.post(PATH, {"input": "look"})).json
    kinds = ["message", "mcp_call", "message"]
    assert [item["type"] for item in whole["output"]] == kinds
    said, call, last = whole["output"]
    assert (said["content"][0]["text"], last["content"][0]["text"]) == ("Let me look.", "Nothing there.")
    assert (call["name"], call["arguments"], call["status"]) == ("search_files", '{"pattern":"x"}', "completed")
    assert (call["server_label"], call["error"], call["approval_request_id"]) == ("hermes", None, None)
    assert isinstance(call["output"], str)
    assert whole["usage"]["total_tokens"] == 38

    model.script(script)
    events = await streamed(api, {"input": "look"})
    message = ["output_item.added", "content_part.added", "output_text.delta", "output_text.done"]
    message += ["content_part.done", "output_item.done"]
    calling = ["output_item.added", "mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done"]
    calling += ["mcp_call.completed", "output_item.done"]
    assert types(events) == ["created", "in_progress", *message, *calling, *message, "completed"]
    added = [event for event in events if event["type"] == "response.output_item.added"]
    assert [(event["output_index"], event["item"]["type"]) for event in added] == list(enumerate(kinds))
    done = events[-1]["response"]
    assert done["output"][1] == {**call, "id": done["output"][1]["id"], "call_id": done["output"][1]["call_id"]}
    assert (await api.get(f"{PATH}/{done['id']}")).json["output"] == done["output"]


async def test_a_client_that_shows_them_gets_our_calls_as_functions(api: Api, model: FakeModel) -> None:
    script = [calls_tools(("search_files", {"text": "x"}), text="Let me look."), Reply("Nothing there.")]
    model.script(script)
    whole = (await api.post(PATH, {"input": "look"}, **OLDER)).json
    kinds = ["message", "function_call", "function_call_output", "message"]
    assert [item["type"] for item in whole["output"]] == kinds
    said, call, result, last = whole["output"]
    assert (said["content"][0]["text"], last["content"][0]["text"]) == ("Let me look.", "Nothing there.")
    assert (call["name"], call["arguments"], call["status"]) == ("search_files", '{"text":"x"}', "completed")
    assert result == {
        "id": result["id"],
        "type": "function_call_output",
        "status": "completed",
        "call_id": call["call_id"],
        "output": result["output"],
    }
    assert isinstance(result["output"], str)
    assert whole["usage"]["total_tokens"] == 38

    model.script(script)
    events = await streamed(api, {"input": "look"}, **OLDER)
    message = ["output_item.added", "content_part.added", "output_text.delta", "output_text.done"]
    message += ["content_part.done", "output_item.done"]
    calling = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
    assert types(events) == [
        *("created", "in_progress"),
        *message,
        *calling,
        *("output_item.added", "output_item.done"),
        *message,
        "completed",
    ]
    added = [event for event in events if event["type"] == "response.output_item.added"]
    assert [(event["output_index"], event["item"]["type"]) for event in added] == list(enumerate(kinds))
    done = events[-1]["response"]
    parts = [{"type": "input_text", "text": result["output"]}]
    assert added[2]["item"]["output"] == parts
    assert done["output"][2]["output"] == parts
    stored = (await api.get(f"{PATH}/{done['id']}")).json
    assert stored["output"][2]["output"] == result["output"]
    assert [item["id"] for item in stored["output"]] == [item["id"] for item in done["output"]]


async def test_a_clients_own_call_ends_the_response_and_its_result_goes_on(api: Api, model: FakeModel) -> None:
    model.calls_tools([("weather", {"city": "Oslo"})])
    first = (await api.post(PATH, {"input": "how is Oslo?", "tools": [WEATHER]})).json
    [call] = first["output"]
    assert (first["status"], call["type"], call["status"]) == ("completed", "function_call", "completed")
    assert (call["name"], call["arguments"]) == ("weather", '{"city":"Oslo"}')
    assert first["tools"] == [{**WEATHER, "strict": None}]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}
    model.says("It rains.")
    second = await api.post(
        PATH, {"input": [result], "previous_response_id": first["id"], "tools": [WEATHER], "store": True}
    )
    assert (second.status, text_of(second.json)) == (200, "It rains.")
    assert second.json["previous_response_id"] == first["id"]
    roles = [message["role"] for message in model.last_request["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]


async def test_a_clients_call_is_streamed_with_its_arguments(api: Api, model: FakeModel) -> None:
    model.calls_tools([("weather", {"city": "Oslo"})])
    events = await streamed(api, {"input": "how is Oslo?", "tools": [WEATHER]})
    assert types(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    added, delta, done, item_done, last = events[2:]
    assert (added["item"]["arguments"], added["item"]["status"]) == ("", "in_progress")
    assert (delta["delta"], done["arguments"], done["name"]) == ('{"city":"Oslo"}', '{"city":"Oslo"}', "weather")
    assert delta["item_id"] == done["item_id"] == added["item"]["id"]
    assert last["response"]["output"] == [item_done["item"]]


async def test_in_a_mixed_batch_ours_have_results_and_theirs_are_handed_back(api: Api, model: FakeModel) -> None:
    model.script([calls_tools(("search_files", {"text": "x"}), ("weather", {"city": "Oslo"}))])
    events = await streamed(api, {"input": "both", "tools": [WEATHER]})
    output = events[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["mcp_call", "function_call"]
    assert [item.get("name") for item in output] == ["search_files", "weather"]


async def test_long_arguments_of_our_own_calls_are_trimmed_in_the_last_event_only(api: Api, model: FakeModel) -> None:
    long = "ä" * 60_000
    model.script([calls_tools(("search_files", {"text": long})), Reply("No.")])
    events = await streamed(api, {"input": "look"})
    [whole] = [event for event in events if event["type"] == "response.mcp_call_arguments.done"]
    assert len(whole["arguments"].encode()) > 102_400
    trimmed = events[-1]["response"]["output"][0]
    assert trimmed["arguments_trimmed"] is True
    assert 102_300 < len(trimmed["arguments"].encode()) <= 102_400
    assert whole["arguments"].startswith(trimmed["arguments"])

    model.script([calls_tools(("weather", {"city": long}))])
    events = await streamed(api, {"input": "look", "tools": [WEATHER]})
    assert len(events[-1]["response"]["output"][0]["arguments"].encode()) > 102_400


async def test_five_hundred_tokens_a_second_are_few_events(api: Api, model: FakeModel) -> None:
    model.streams(250, tokens_per_second=500.0)
    events = await streamed(api, {"input": "go"})
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    assert len(deltas) <= 14
    assert "".join(event["delta"] for event in deltas) == "".join(f"w{number} " for number in range(250))


# Chains


async def test_a_chain_goes_on_in_one_session_and_each_request_adds_only_its_own_input(
    api: Api, model: FakeModel
) -> None:
    answer = await api.post(
        PATH, {"input": [{"role": "system", "content": "Rhyme."}, {"role": "user", "content": "a"}]}
    )
    session_id = answer.headers["X-Hermes-Session-Id"]
    for text in ("b", "c"):
        answer = await api.post(
            PATH, {"input": text, "previous_response_id": answer.json["id"]}, X_Hermes_Session_Key="me"
        )
        assert answer.status == 200
        assert answer.headers["X-Hermes-Session-Id"] == session_id
        assert answer.headers["X-Hermes-Session-Key"] == "me"
        assert answer.json["hermes"] == {"session_id": session_id, "session_key": "me"}
    system, *talk = model.last_request["messages"]
    assert [message["content"] for message in talk] == ["a", "echo: a", "b", "echo: b", "c"]
    assert system["content"].endswith("Rhyme.")
    [session] = await api.gateway.db.read(sessions.newest)
    assert session.seq == 6


async def test_instructions_are_those_of_the_request_and_do_not_carry_over(api: Api, model: FakeModel) -> None:
    first = await api.post(PATH, {"input": "a", "instructions": "Be brief."})
    await api.post(PATH, {"input": "b", "previous_response_id": first.json["id"], "instructions": "Be long."})
    system = model.last_request["messages"][0]["content"]
    assert "Be long." in system
    assert "Be brief." not in system


async def test_going_on_from_an_earlier_response_makes_a_branch(api: Api, model: FakeModel) -> None:
    first = await api.post(PATH, {"input": "a"})
    second = await api.post(PATH, {"input": "b", "previous_response_id": first.json["id"]})
    branch = await api.post(PATH, {"input": "c", "previous_response_id": first.json["id"]})
    assert [message["content"] for message in model.last_request["messages"][1:]] == ["a", "echo: a", "c"]
    assert second.headers["X-Hermes-Session-Id"] == first.headers["X-Hermes-Session-Id"]
    assert branch.headers["X-Hermes-Session-Id"] != first.headers["X-Hermes-Session-Id"]
    onward = await api.post(PATH, {"input": "d", "previous_response_id": branch.json["id"]})
    assert onward.headers["X-Hermes-Session-Id"] == branch.headers["X-Hermes-Session-Id"]
    talk = [message["content"] for message in model.last_request["messages"][1:]]
    assert talk == ["a", "echo: a", "c", "echo: c", "d"]


async def test_two_at_once_from_one_response_are_both_answered_and_neither_hears_the_other(
    api: Api, model: FakeModel
) -> None:
    first = await api.post(PATH, {"input": "a"})
    model.hold()
    body = {"previous_response_id": first.json["id"]}
    both = [asyncio.create_task(api.post(PATH, {**body, "input": text})) for text in ("b", "b")]
    await model.is_holding()
    await both_at_the_model(model)
    model.release()
    answers = await asyncio.gather(*both)
    assert [text_of(answer.json) for answer in answers] == ["echo: b", "echo: b"]
    for request in model.requests[-2:]:
        assert [message["content"] for message in request["messages"][1:]] == ["a", "echo: a", "b"]


async def test_a_conversation_goes_on_by_its_name_in_either_form(api: Api, model: FakeModel) -> None:
    first = await api.post(PATH, {"input": "a", "conversation": {"id": "trip"}})
    second = await api.post(PATH, {"input": "b", "conversation": "trip"})
    assert (first.json["conversation"], second.json["conversation"]) == ({"id": "trip"}, {"id": "trip"})
    assert first.headers["X-Hermes-Session-Id"] == second.headers["X-Hermes-Session-Id"]
    assert [message["content"] for message in model.last_request["messages"][1:]] == ["a", "echo: a", "b"]


async def test_two_first_requests_of_one_conversation_are_one_conversation(api: Api) -> None:
    body = {"conversation": "trip"}
    both = await asyncio.gather(*(api.post(PATH, {**body, "input": text}) for text in ("a", "b")))
    assert len({answer.headers["X-Hermes-Session-Id"] for answer in both}) == 1


async def test_a_session_that_is_named_goes_on_and_another_one_than_the_chains_is_refused(
    api: Api, model: FakeModel
) -> None:
    first = await api.post(PATH, {"input": "a"}, X_Hermes_Session_Id="mine")
    await api.post(PATH, {"input": "b"}, X_Hermes_Session_Id="mine")
    assert [message["content"] for message in model.last_request["messages"][1:]] == ["a", "echo: a", "b"]
    body = {"input": "c", "previous_response_id": first.json["id"]}
    other = await api.post(PATH, body, X_Hermes_Session_Id="other")
    assert (other.status, other.error["code"]) == (400, "session_mismatch")
    same = await api.post(PATH, body, X_Hermes_Session_Id="mine")
    assert same.headers["X-Hermes-Session-Id"] == "mine"


# Refusals


REFUSED: list[tuple[Json, str, str]] = [
    ({}, "missing_input", "input"),
    ({"input": ""}, "empty_message", "input[-1]"),
    ({"input": []}, "empty_messages", "input"),
    ({"input": 7}, "invalid_input", "input"),
    ({"input": ["hello"]}, "invalid_input", "input[0]"),
    ({"input": [{"role": "bird", "content": "x"}]}, "invalid_role", "input[0].role"),
    ({"input": [{"type": "computer_call", "id": "x"}]}, "unsupported_item_type", "input[0].type"),
    ({"input": [{"type": ["odd"], "id": "x"}]}, "unsupported_item_type", "input[0].type"),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "invalid_tool_call_id", "input[0].call_id"),
    ({"input": [{"type": "function_call_output", "call_id": "c"}]}, "invalid_input", "input[0].output"),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "invalid_tool_result", "input"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
        "unsupported_content_type",
        "input[0].content[0]",
    ),
    ({"input": "x", "conversation_history": "y"}, "invalid_input", "conversation_history"),
    ({"input": "x", "conversation": "a", "previous_response_id": "b"}, "mutually_exclusive", "conversation"),
    (
        {"input": "x", "conversation": "a", "conversation_history": [{"role": "user", "content": "y"}]},
        "mutually_exclusive",
        "conversation_history",
    ),
    ({"input": "x", "conversation": 7}, "invalid_value", "conversation"),
    ({"input": "x", "conversation": {}}, "invalid_value", "conversation"),
    ({"input": "x", "conversation": "a", "store": False}, "store_required", "store"),
    ({"input": "x", "background": True, "store": False}, "store_required", "store"),
    ({"input": "x", "store": "yes"}, "invalid_value", "store"),
    ({"input": "x", "stream": 1}, "invalid_value", "stream"),
    ({"input": "x", "model": 7}, "invalid_value", "model"),
    ({"input": "x", "temperature": 9}, "invalid_value", "temperature"),
    ({"input": "x", "max_output_tokens": 0}, "invalid_value", "max_output_tokens"),
    ({"input": "x", "metadata": {"a": 1}}, "invalid_value", "metadata"),
    ({"input": "x", "tool_choice": "required"}, "invalid_tool_choice", "tool_choice"),
    ({"input": "x", "prompt": {"id": "p"}}, "unsupported_parameter", "prompt"),
    ({"input": "x", "instructions": "y" * (10 * 1024 * 1024 + 1)}, "content_too_long", "instructions"),
]


async def test_what_cannot_be_done_is_refused_before_anything_is_stored(api: Api, model: FakeModel) -> None:
    """One gateway for them all: what is stored for any of them would show at the end."""
    for body, code, param in REFUSED:
        answer = await api.post(PATH, body)
        assert (answer.status, answer.error["code"], answer.error["param"]) == (400, code, param), body
        assert answer.error["type"] == "invalid_request_error"
    assert model.requests == []
    assert await api.gateway.db.read(sessions.newest) == []


async def test_a_body_that_is_no_object_is_refused(api: Api) -> None:
    for body in (b"{", b"[]", b"[" * 100_000, b'"x"', b""):
        answer = await api.post(PATH, body)
        assert (answer.status, answer.error["code"]) == (400, "invalid_json"), body[:10]


async def test_a_page_that_makes_no_sense_is_refused(api: Api) -> None:
    made = (await api.post(PATH, {"input": "x"})).json
    for query in ("limit=0", "limit=101", "limit=x", "limit=²", "order=up"):
        answer = await api.get(f"{PATH}/{made['id']}/input_items?{query}")
        assert (answer.status, answer.error["code"]) == (400, "invalid_value"), query


async def test_a_response_does_not_exist_for_others_than_who_asked_and_an_admin(start_api: StartApi) -> None:
    ana, bob = Caller("ana", PersonRole.USER), Caller("bob", PersonRole.USER)
    async with start_api(caller=ana) as api:
        made = (await api.post(PATH, {"input": "secret", "conversation": "trip"})).json
    async with start_api(caller=bob) as api:
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/input_items"), ("POST", "/cancel")):
            assert (await api.call(method, f"{PATH}/{made['id']}{path}")).status == 404
        body = {"input": "and?", "previous_response_id": made["id"]}
        assert (await api.post(PATH, body)).error["code"] == "previous_response_not_found"
        other = await api.post(PATH, {"input": "mine", "conversation": "trip"})
        assert other.headers["X-Hermes-Session-Id"] != made["hermes"]["session_id"]
    async with start_api(caller=Caller("boss", PersonRole.ADMIN)) as api:
        assert (await api.get(f"{PATH}/{made['id']}")).json == made


# Endings


async def test_a_failure_of_the_model_is_a_502_and_the_stored_response_has_failed(api: Api, model: FakeModel) -> None:
    model.script([Refusal(401, "bad key")] * 4)
    answer = await api.post(PATH, {"input": "hello"})
    assert (answer.status, answer.error["type"], answer.error["code"]) == (502, "server_error", "auth")
    assert answer.headers["X-Hermes-Completed"] == "false"
    assert answer.headers["X-Hermes-Error"]
    stored = (await api.get(f"{PATH}/{answer.error['response_id']}")).json
    assert (stored["status"], stored["output"]) == ("failed", [])
    assert stored["error"] == {"code": "server_error", "message": answer.error["message"]}


async def test_a_stream_that_fails_says_response_failed(api: Api, model: FakeModel) -> None:
    model.script([Refusal(401, "bad key")] * 4)
    events = await streamed(api, {"input": "hello"})
    assert types(events) == ["created", "in_progress", "failed"]
    response = events[-1]["response"]
    assert (response["status"], response["error"]["code"]) == ("failed", "server_error")
    assert (await api.get(f"{PATH}/{response['id']}")).json == response


async def test_an_answer_cut_at_its_length_is_incomplete(api: Api, model: FakeModel) -> None:
    model.says("once upon", finish="length")
    whole = await api.post(PATH, {"input": "tell"})
    assert (whole.status, whole.json["status"]) == (200, "incomplete")
    assert whole.json["incomplete_details"] == {"reason": "max_output_tokens"}
    assert whole.json["output"][0]["status"] == "incomplete"
    assert whole.headers["X-Hermes-Partial"] == "true"
    model.says("once upon", finish="length")
    events = await streamed(api, {"input": "tell"})
    assert types(events)[-2:] == ["output_item.done", "incomplete"]
    assert events[-2]["item"]["status"] == "incomplete"


async def test_a_client_that_leaves_a_stream_leaves_a_response_that_ends(api: Api, model: FakeModel) -> None:
    model.says("", tokens=("Hel", "lo"))
    model.hold()
    async with api.streaming(PATH, {"input": "hi", "stream": True}) as (_, events):
        first = await anext(events)
        while (await anext(events)).name != "response.output_text.delta":
            pass
    assert (await api.get(f"{PATH}/{first.data['response']['id']}")).json["status"] == "in_progress"
    model.release()
    body = await until(api, first.data["response"]["id"], "completed")
    assert text_of(body) == "Hello"


async def test_a_client_that_vanishes_at_any_event_leaves_a_response_that_ends(api: Api, model: FakeModel) -> None:
    for count in range(1, 22, 4):
        model.script([calls_tools(("search_files", {"text": "x"}), text="Let me look."), "Found it."])
        async with api.streaming(PATH, {"input": "hi", "stream": True}) as (_, events):
            response_id = (await anext(events)).data["response"]["id"]
            for _ in range(count):
                if (await anext(events)).name == "response.completed":
                    break
        assert text_of(await until(api, response_id, "completed")) == "Let me look.Found it."


async def test_a_response_in_the_background_is_queued_then_read(api: Api, model: FakeModel) -> None:
    model.hold(silently=True)
    answer = await api.post(PATH, {"input": "long work", "background": True})
    assert (answer.status, answer.json["status"], answer.json["background"]) == (200, "queued", True)
    await model.is_holding()
    assert (await api.get(f"{PATH}/{answer.json['id']}")).json["status"] == "in_progress"
    model.release()
    body = await until(api, answer.json["id"], "completed")
    assert (text_of(body), body["background"]) == ("echo: long work", True)


async def test_a_response_can_be_cancelled_and_stays_so(api: Api, model: FakeModel) -> None:
    model.hold(silently=True)
    made = (await api.post(PATH, {"input": "long work", "background": True})).json
    await model.is_holding()
    cancelled = await api.post(f"{PATH}/{made['id']}/cancel", b"")
    assert (cancelled.status, cancelled.json["status"], cancelled.json["output"]) == (200, "cancelled", [])
    assert (await api.post(f"{PATH}/{made['id']}/cancel", b"")).json == cancelled.json
    assert (await api.get(f"{PATH}/{made['id']}")).json == cancelled.json


async def test_a_waiting_client_is_told_that_its_response_was_cancelled(api: Api, model: FakeModel) -> None:
    model.hold()
    async with api.streaming(PATH, {"input": "hi", "stream": True}) as (_, events):
        first = await anext(events)
        await model.is_holding()
        await api.post(f"{PATH}/{first.data['response']['id']}/cancel", b"")
        last = [event async for event in events][-1]
    assert last.name == "response.incomplete"
    assert last.data["response"]["status"] == "cancelled"
    assert (await api.get(f"{PATH}/{first.data['response']['id']}")).json["status"] == "cancelled"


async def allow(api: Api, approval_id: str) -> None:
    """The owner says yes."""

    def become_known(tx: Tx) -> None:
        people.ensure(tx, "p_owner", platform="local", user_id="local", name="Owner", role="owner", now=1.0)

    await api.gateway.db.write(become_known)
    await api.gateway.approvals.answer(approval_id, allow=True, platform="local", sender_id="local")


async def test_a_question_ends_the_response_which_gets_the_rest_when_it_is_answered_elsewhere(
    api: Api, model: FakeModel
) -> None:
    model.script([calls_tools(("danger", {"text": "boo"}), text="I begin."), Reply("Done it.")])
    answer = await api.post(PATH, {"input": "do it"})
    asked = answer.json
    assert (answer.status, asked["status"], answer.headers["x-should-retry"]) == (200, "completed", "false")
    assert [item["type"] for item in asked["output"]] == ["message", "mcp_approval_request", "message"]
    request = asked["output"][1]
    assert (request["name"], request["arguments"], request["server_label"]) == ("danger", '{"text":"boo"}', "hermes")
    assert f"/approve {request['approval_code']}" in asked["output"][2]["content"][0]["text"]
    waiting = (await api.get(f"{PATH}/{asked['id']}")).json
    assert waiting == asked
    await allow(api, asked["hermes"]["approvals"][0]["approval_id"])
    async with asyncio.timeout(10):
        while "mcp_call" not in str(body := (await api.get(f"{PATH}/{asked['id']}")).json):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert [item["type"] for item in body["output"]] == ["message", "mcp_call", "message"]
    assert body["output"][1]["approval_request_id"] == request["id"]
    assert text_of(body) == "I begin.Done it."


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("is_stored", [True, False])
async def test_an_approval_response_goes_on_with_the_turn(
    api: Api, model: FakeModel, streams: bool, is_stored: bool
) -> None:
    model.script([calls_tools(("danger", {"text": "boo"})), Reply("Done it.")])
    more = {"store": is_stored, "stream": streams}

    async def ask(body: Json) -> Json:
        if not streams:
            answer = await api.post(PATH, {**body, **more})
            assert answer.status == 200, answer.body
            return dict(answer.json)
        last: Json = (await streamed(api, {**body, **more}))[-1]["response"]
        return last

    question = {"role": "user", "content": "do it"}
    asked = await ask({"input": [question]})
    [request] = [item for item in asked["output"] if item["type"] == "mcp_approval_request"]
    response = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
    before = {"previous_response_id": asked["id"]} if is_stored else {}
    items = [response] if is_stored else [question, *asked["output"], response]
    for _ in range(2):  # sent again, it is the same answer
        done = await ask({"input": items, **before})
        assert [item["type"] for item in done["output"]] == ["mcp_call", "message"]
        assert done["output"][0]["approval_request_id"] == request["id"]
        assert (text_of(done), done["status"]) == ("Done it.", "completed")
    assert len(model.requests) == 2
    if is_stored:
        assert (await api.get(f"{PATH}/{done['id']}")).json["output"] == done["output"]
        assert (await api.get(f"{PATH}/{asked['id']}")).json["output"] == asked["output"]


async def test_a_denied_call_is_told_to_the_model_and_its_words_are_the_response(api: Api, model: FakeModel) -> None:
    model.script([calls_tools(("danger", {"text": "boo"})), Reply("Then not.")])
    asked = (await api.post(PATH, {"input": "do it"})).json
    code = asked["hermes"]["approvals"][0]["approval_code"]
    done = (await api.post(PATH, {"input": f"/deny {code} too risky", "previous_response_id": asked["id"]})).json
    assert [(item["type"], item["status"]) for item in done["output"]] == [
        ("mcp_call", "failed"),
        ("message", "completed"),
    ]
    assert "too risky" in done["output"][0]["error"]["content"][0]["text"]
    assert text_of(done) == "Then not."


async def test_what_is_sent_back_of_our_calls_is_read_and_not_doubled(api: Api, model: FakeModel) -> None:
    model.script([calls_tools(("search_files", {"text": "x"})), Reply("Nothing."), Reply("Still nothing.")])
    first = (await api.post(PATH, {"input": "look"})).json
    items = [{"role": "user", "content": "look"}, *first["output"], {"role": "user", "content": "and now?"}]
    assert (await api.post(PATH, {"input": items, "store": False})).status == 200
    roles = [message["role"] for message in model.last_request["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    model.says("No.")
    again = await api.post(PATH, {"input": items[1:2] + items[-1:], "previous_response_id": first["id"]})
    assert again.status == 200
    assert [message["role"] for message in model.last_request["messages"]] == roles
    late = {"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "mine"}
    body = {"input": [late, items[-1]], "previous_response_id": again.json["id"]}
    assert (await api.post(PATH, body)).status == 200
    assert "mine" not in str(model.last_request["messages"])


async def test_a_lost_stream_is_read_on_from_the_last_number(api: Api, model: FakeModel) -> None:
    model.script([calls_tools(("search_files", {"text": "x"}), text="Let me look."), Reply("Nothing there.")])
    events = await streamed(api, {"input": "look"})
    path = f"{PATH}/{events[-1]['response']['id']}?stream=true"
    for seen in (3, 0, len(events) - 2):
        rest = events_in((await api.get(f"{path}&starting_after={seen}")).body)
        assert rest == events[seen + 1 :]
    assert events_in((await api.get(path)).body) == events
    assert (await api.get(f"{path}&starting_after=x")).error["param"] == "starting_after"


async def test_a_stream_is_read_on_after_a_restart_and_while_the_turn_runs(
    start_api: StartApi, model: FakeModel
) -> None:
    async with start_api() as api, asyncio.timeout(20):
        events = await streamed(api, {"input": "hello"})
        response_id = events[-1]["response"]["id"]
    async with start_api() as api, asyncio.timeout(20):
        rest = events_in((await api.get(f"{PATH}/{response_id}?stream=true&starting_after=2")).body)
        assert [event["sequence_number"] for event in rest] == list(range(3, 3 + len(rest)))
        assert rest[-1]["response"] == events[-1]["response"]
        model.hold()
        made = (await api.post(PATH, {"input": "slow", "background": True})).json
        await model.is_holding()
        reading = asyncio.create_task(api.get(f"{PATH}/{made['id']}?stream=true"))
        await asyncio.sleep(0.1)
        model.release()
        told = events_in((await reading).body)
    assert (told[0]["type"], told[-1]["type"]) == ("response.created", "response.completed")
    assert text_of(told[-1]["response"]) == "echo: slow"


def events_in(body: bytes) -> list[Json]:
    return [orjson.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: ")]


# Restarts


async def test_a_stored_response_goes_on_after_a_restart_and_one_not_stored_does_not(
    start_api: StartApi, model: FakeModel
) -> None:
    model.hold(silently=True)
    async with start_api() as api, asyncio.timeout(20):
        made = (await api.post(PATH, {"input": "long work", "background": True})).json
        waiting = asyncio.create_task(api.post(PATH, {"input": "quick", "store": False}))
        await both_at_the_model(model)
        await crash(api.gateway)
    await asyncio.gather(waiting, return_exceptions=True)
    model.release()
    async with start_api() as api, asyncio.timeout(10):
        body = await until(api, made["id"], "completed")
        assert text_of(body) == "echo: long work"
        assert len(model.requests) == 3


async def test_a_server_that_stops_ends_its_calls_in_words_and_their_responses_go_on(
    start_api: StartApi, model: FakeModel
) -> None:
    model.hold(silently=True)

    async def read(url: str, body: Json) -> bytes:
        async with aiohttp.ClientSession() as client, client.post(url, json=body) as answer:
            return await answer.read()

    async def read_both(url: str) -> list[bytes]:
        answers = await asyncio.gather(*(read(url, {"input": "hi", "stream": streams}) for streams in (True, False)))
        model.release()
        return answers

    async with start_api() as api, asyncio.timeout(20):
        reading = asyncio.create_task(read_both(f"{api.url}{PATH}"))
        await both_at_the_model(model)
    streaming, whole = await reading
    error = orjson.loads(whole)["error"]
    if streaming.startswith(
        b"{"
    ):  # it had not begun: a stream opens with the first event of its turn, or after a second
        told = orjson.loads(streaming)["error"]
    else:
        told = orjson.loads(streaming.decode().split("\n\n")[-2].partition("data: ")[2])
        assert told["type"] == "error"
    assert (told["code"], error["code"]) == ("gateway_stopping", "gateway_stopping")
    async with start_api() as api, asyncio.timeout(10):
        for response_id in (told["response_id"], error["response_id"]):
            assert text_of(await until(api, response_id, "completed")) == "echo: hi"


async def test_one_that_was_never_begun_has_failed_after_a_restart(start_api: StartApi, tmp_path: Path) -> None:
    async with start_api() as api:
        made = (await api.post(PATH, {"input": "hello"})).json
    body = {**made, "id": "resp_orphan", "status": "in_progress", "output": []}
    other = await open_database(tmp_path / "home" / store.FILE, migrations=store.MIGRATIONS)
    orphan = store.NewResponse("resp_orphan", "ev_resp_orphan", "s_x", "key:desk", body, 1)
    await other.write(store.put, orphan, now=time.time())  # an old one would be gone with the first tidying
    await other.close()
    async with start_api() as api:
        found = await until(api, "resp_orphan", "failed")
        assert "before it was begun" in found["error"]["message"]


def put_in_the_way(file: Path) -> Path:
    """A folder where the file was: nothing can be opened there."""
    for path in file.parent.glob(f"{file.name}*"):
        path.unlink()
    file.mkdir()
    return file


async def test_a_broken_response_store_stops_nothing_else_and_says_so(start_api: StartApi, tmp_path: Path) -> None:
    async with start_api():
        pass
    in_the_way = put_in_the_way(tmp_path / "home" / store.FILE)
    async with start_api() as api:
        answer = await api.post(PATH, {"input": "hello"})
        assert (answer.status, answer.error["code"]) == (503, "response_store_unavailable")
        unstored = await api.post(PATH, {"input": "hello", "store": False})
        assert (unstored.status, text_of(unstored.json)) == (200, "echo: hello")
        assert "response" in str((await api.gateway.status())["troubles"])
        in_the_way.rmdir()
        assert (await api.post(PATH, {"input": "hello"})).status == 200
        assert (await api.gateway.status())["troubles"] == []


async def test_a_damaged_response_store_is_told_in_status(start_api: StartApi, tmp_path: Path) -> None:
    async with start_api() as api:
        assert (await api.post(PATH, {"input": "hello"})).status == 200
    file = tmp_path / "home" / store.FILE
    with file.open("r+b") as opened:
        opened.write(bytes(4096))
    async with start_api() as api:
        assert (await api.post(PATH, {"input": "hello"})).status == 200
        [trouble] = (await api.gateway.status())["troubles"]
        assert trouble.startswith(f"{store.FILE} was damaged")


async def test_after_a_crash_the_response_is_settled_from_what_the_turn_left(
    start_api: StartApi, model: FakeModel
) -> None:
    model.script([calls_tools(("linger", {}), text="One moment."), Reply("Here it is.")])
    async with start_api() as api, asyncio.timeout(20):
        made = (await api.post(PATH, {"input": "work", "background": True})).json
        while "One moment." not in str(await api.gateway.db.read(lines)):  # noqa: ASYNC110 - it is stored, not told
            await asyncio.sleep(0.01)
        await crash(api.gateway)
        (api.gateway.home.parent / "work" / GO_ON).touch()
    async with start_api() as api, asyncio.timeout(10):
        body = await until(api, made["id"], "completed")
    assert [item["type"] for item in body["output"]] == ["message", "mcp_call", "message"]
    assert text_of(body) == "One moment.Here it is."
    assert body["output"][1]["output"] == "Done lingering."
    assert body["usage"]["total_tokens"] == 38


def lines(tx: Tx) -> list[str]:
    return tx.all("SELECT body FROM transcript", str)


async def test_the_oldest_responses_are_let_go_while_it_runs(start_api: StartApi, kept: dict[str, int]) -> None:
    async with start_api() as api:
        made = [(await api.post(PATH, {"input": text, "conversation": text})).json["id"] for text in ("a", "b", "c")]
    kept["most"] = 2
    async with start_api() as api, asyncio.timeout(10):
        while (await api.get(f"{PATH}/{made[0]}")).status == 200:  # noqa: ASYNC110 - nobody is told of it
            await asyncio.sleep(0.01)
        assert [(await api.get(f"{PATH}/{response_id}")).status for response_id in made] == [404, 200, 200]


async def test_the_store_is_closed_with_the_server(start_api: StartApi, tmp_path: Path) -> None:
    file = tmp_path / "home" / store.FILE
    async with start_api() as api:
        await api.post(PATH, {"input": "hello"})
        assert beside(file) >= {"", "-wal", "-shm"}
    assert beside(file) == {"", ".head", ".pages"}  # SQLite removes its log with the last connection


def beside(file: Path) -> set[str]:
    return {path.name.removeprefix(file.name) for path in file.parent.glob(f"{file.name}*")}
