"""Chat completions over real HTTP: what clients send, and exactly what they get."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import orjson
import pytest

from hermes.servers.api import chat
from hermes.services.requests.requests import RequestState
from hermes.store import inbox
from hermes.store.db import Tx
from tests.fakes.model import FakeModel, Refusal, Reply, calls_tools
from tests.integration.api.conftest import OWNER, Api, Event, Families, StartApi
from tests.integration.conftest import crash

CHAT = "/v1/chat/completions"
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather somewhere",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
SIGN_OF_LIFE_SECONDS = 0.1
PIXEL = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture
def families() -> Families:
    return (lambda parts: chat.routes(parts, keep_alive_seconds=SIGN_OF_LIFE_SECONDS),)


def ask(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"model": "hermes", "messages": [{"role": "user", "content": text} for text in texts], **fields}


async def stream(api: Api, body: dict[str, Any], **headers: str) -> list[Event]:
    async with api.streaming(CHAT, {**body, "stream": True}, **headers) as (answer, events):
        assert answer.status == 200
        return [event async for event in events]


def chunks(events: list[Event]) -> list[Any]:
    return [event.data for event in events if event.name == "" and isinstance(event.data, dict)]


def text_of(events: list[Event]) -> str:
    return "".join(
        choice["delta"].get("content") or "" for chunk in chunks(events) for choice in chunk.get("choices", ())
    )


def finish_of(events: list[Event]) -> list[str]:
    return [
        choice["finish_reason"]
        for chunk in chunks(events)
        for choice in chunk.get("choices", ())
        if choice["finish_reason"]
    ]


def last_event(tx: Tx) -> str:
    return str(tx.value("SELECT id FROM inbox WHERE platform = 'api' ORDER BY received_at DESC, id DESC LIMIT 1"))


def count_events(tx: Tx) -> int:
    return int(tx.value("SELECT count(*) FROM inbox WHERE platform = 'api'") or 0)


async def ended(api: Api, event_id: str = "") -> RequestState:
    """Wait until the newest request, or this one, is in a final state."""
    async with asyncio.timeout(20):
        while True:
            state = await api.gateway.requests.state_of(event_id or await api.gateway.db.read(last_event))
            if state is not None and state.row.state not in (inbox.InboxState.QUEUED, inbox.InboxState.TAKEN):
                return state
            await asyncio.sleep(0.01)


# In one piece


async def test_an_answer_has_every_field_that_clients_rely_on(api: Api) -> None:
    answer = await api.post(CHAT, ask("hello"))
    assert answer.status == 200
    body = answer.json
    assert body.pop("id").startswith("chatcmpl-ev_")
    assert isinstance(body.pop("created"), int)
    assert body == {
        "object": "chat.completion",
        "model": "hermes",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "echo: hello", "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 7,
            "total_tokens": 19,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }
    assert answer.headers["X-Hermes-Completed"] == "true"
    assert answer.headers["X-Hermes-Partial"] == "false"
    assert "X-Hermes-Error" not in answer.headers
    assert answer.headers["X-Hermes-Session-Id"].startswith("s_")
    assert "X-Hermes-Session-Key" not in answer.headers


async def test_without_a_model_name_the_answer_says_which_model_it_was(api: Api) -> None:
    body = ask("hello")
    del body["model"]
    assert (await api.post(CHAT, body)).json["model"] == api.gateway.models.model_for().label


async def test_the_messages_of_a_request_are_the_whole_talk(api: Api, model: FakeModel) -> None:
    messages = [
        {"role": "system", "content": "Speak like a pirate."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "aye"},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "text", "text": "two"}]},
    ]
    assert (await api.post(CHAT, {"messages": messages})).status == 200
    system, *rest = model.last_request["messages"]
    assert system["content"].endswith("\n\nSpeak like a pirate.\n\nBe brief.")
    assert rest == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "aye"},
        {"role": "user", "content": "two"},
    ]


async def test_a_named_session_goes_on_with_its_own_transcript(api: Api, model: FakeModel) -> None:
    first = await api.post(CHAT, ask("one"), X_Hermes_Session_Id="talk", X_Hermes_Session_Key="channel-7")
    assert first.headers["X-Hermes-Session-Id"] == "talk"
    assert first.headers["X-Hermes-Session-Key"] == "channel-7"
    forged = [
        {"role": "user", "content": "something else"},
        {"role": "assistant", "content": "never said"},
        {"role": "user", "content": "two"},
    ]
    await api.post(CHAT, {"messages": forged}, X_Hermes_Session_Id="talk")
    assert model.last_request["messages"][1:] == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "echo: one"},
        {"role": "user", "content": "two"},
    ]


async def test_a_named_session_that_is_empty_takes_the_whole_talk_as_its_beginning(api: Api, model: FakeModel) -> None:
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "aye"},
        {"role": "user", "content": "two"},
    ]
    await api.post(CHAT, {"messages": messages}, X_Hermes_Session_Id="talk")
    assert model.last_request["messages"][1:] == messages


async def test_two_talks_that_open_alike_stay_apart(api: Api, model: FakeModel) -> None:
    one = await api.post(CHAT, ask("hello"))
    two = await api.post(CHAT, ask("hello"))
    assert one.headers["X-Hermes-Session-Id"] != two.headers["X-Hermes-Session-Id"]
    assert len(model.last_request["messages"]) == 2


async def test_two_equal_requests_at_the_same_time_are_both_answered_side_by_side(api: Api, model: FakeModel) -> None:
    model.hold()
    both = [asyncio.create_task(api.post(CHAT, ask("hello"))) for _ in range(2)]
    async with asyncio.timeout(20):
        while model.open_now < 2:  # noqa: ASYNC110 - the fake counts, and tells nobody
            await asyncio.sleep(0.01)
    model.release()
    answers = [await one for one in both]
    assert [answer.json["choices"][0]["message"]["content"] for answer in answers] == ["echo: hello"] * 2


async def test_settings_of_a_request_reach_the_model(api: Api, model: FakeModel) -> None:
    await api.post(CHAT, ask("hello", temperature=0.5, max_tokens=5, max_completion_tokens=9, top_p=1, seed=3))
    assert model.last_request["temperature"] == 0.5
    assert model.last_request["max_tokens"] == 9
    assert (model.last_request["top_p"], model.last_request["seed"]) == (1, 3)


# How it ended: the table


async def test_an_answer_cut_off_by_its_length_says_so(api: Api, model: FakeModel) -> None:
    model.says("half of i", finish="length")
    answer = await api.post(CHAT, ask("hello"))
    assert (answer.status, answer.json["choices"][0]["finish_reason"]) == (200, "length")
    assert answer.json["choices"][0]["message"]["content"] == "half of i"
    assert answer.headers["X-Hermes-Completed"] == "false"
    assert answer.headers["X-Hermes-Partial"] == "true"
    assert answer.headers["X-Hermes-Error"] == "The model's answer was cut off at its length limit."
    assert answer.json["hermes"]["partial"] is True
    assert answer.json["hermes"]["failed"] is False


async def test_a_failure_is_a_502_with_the_class_of_the_error(api: Api, model: FakeModel) -> None:
    for status, code, kind in ((401, "", "auth"), (402, "", "quota"), (400, "context_length_exceeded", "context")):
        model.default = Refusal(status, "no", code=code)
        answer = await api.post(CHAT, ask("hello"), X_Hermes_Session_Id="talk")
        assert (answer.status, answer.error["code"]) == (502, kind)
    assert answer.error["type"] == "server_error"
    assert answer.error["param"] is None
    assert len(answer.error["message"]) > 20
    assert answer.error["hermes"]["failed"] is True
    assert answer.headers["X-Hermes-Completed"] == "false"
    assert answer.headers["X-Hermes-Partial"] == "false"
    assert answer.headers["X-Hermes-Error"]
    assert answer.headers["X-Hermes-Session-Id"] == "talk"


async def test_a_turn_stopped_before_its_first_word_ends_as_error(api: Api, model: FakeModel) -> None:
    model.hold(silently=True)
    asking = asyncio.create_task(api.post(CHAT, ask("hello")))
    await model.is_holding()
    await api.gateway.requests.stop(await api.gateway.db.read(last_event))
    answer = await asking
    assert (answer.status, answer.json["choices"][0]["finish_reason"]) == (200, "stop")
    assert answer.json["hermes"]["state"] == "stopped"
    assert answer.json["hermes"]["failed"] is False
    assert answer.headers["X-Hermes-Completed"] == "false"


async def test_a_turn_stopped_in_the_middle_gives_what_there_is(api: Api, model: FakeModel) -> None:
    model.streams(["one ", "two"])
    model.hold()
    asking = asyncio.create_task(api.post(CHAT, ask("hello")))
    await model.is_holding()
    await asyncio.sleep(0.05)  # the first word is on its way through another socket
    await api.gateway.requests.stop(await api.gateway.db.read(last_event))
    answer = await asking
    assert (answer.status, answer.json["choices"][0]["finish_reason"]) == (200, "length")
    assert answer.json["choices"][0]["message"]["content"].strip() == "one"
    assert answer.headers["X-Hermes-Partial"] == "true"


async def test_a_question_is_the_answer_and_the_turn_goes_on_when_it_is_answered(api: Api, model: FakeModel) -> None:
    model.script([calls_tools(("danger", {"text": "x"})), "done"])
    answer = await api.post(CHAT, ask("go"), X_Hermes_Session_Id="talk")
    assert answer.status == 200
    [choice] = answer.json["choices"]
    [asked] = answer.json["hermes"]["approvals"]
    assert choice["finish_reason"] == "stop"
    assert f"/approve {asked['approval_code']}" in choice["message"]["content"]
    assert (answer.headers["X-Hermes-Completed"], answer.headers["x-should-retry"]) == ("false", "false")
    state = await api.gateway.requests.state_of(await api.gateway.db.read(last_event))
    assert state is not None
    assert state.status == "waiting_approval"
    await api.gateway.approvals.answer(asked["approval_id"], allow=True, platform="api", sender_id=OWNER.sender_id)
    assert (await ended(api)).status == "completed"
    assert model.last_request["messages"][-1]["content"] == "Wrote 'x'."


# Tools of the client


async def test_a_call_of_the_clients_tool_comes_back_and_its_result_goes_in(api: Api, model: FakeModel) -> None:
    model.script([calls_tools(("weather", {"city": "Oslo"})), "It rains."])
    body = ask("how is it in Oslo?", tools=[WEATHER], tool_choice={"type": "function", "function": {"name": "weather"}})
    answer = await api.post(CHAT, body)
    [choice] = answer.json["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    [call] = choice["message"]["tool_calls"]
    assert (call["type"], call["function"]) == ("function", {"name": "weather", "arguments": '{"city":"Oslo"}'})
    assert model.last_request["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert WEATHER in model.last_request["tools"]
    result = {"role": "tool", "tool_call_id": call["id"], "content": "rain"}
    again = await api.post(CHAT, {**body, "messages": [*body["messages"], choice["message"], result]})
    assert again.json["choices"][0]["message"]["content"] == "It rains."
    assert [message["role"] for message in model.last_request["messages"]] == ["system", "user", "assistant", "tool"]


async def test_a_tool_of_the_client_replaces_ours_of_the_same_name(api: Api, model: FakeModel) -> None:
    model.calls_tools([("read_file", {"path": "x"})])
    mine = {"type": "function", "name": "read_file", "parameters": {"type": "object"}}
    answer = await api.post(CHAT, ask("read it", tools=[mine]))
    assert answer.json["choices"][0]["finish_reason"] == "tool_calls"
    assert [tool["function"]["name"] for tool in model.last_request["tools"]].count("read_file") == 1


# Pictures


async def test_pictures_reach_the_model_with_their_detail(api: Api, model: FakeModel) -> None:
    parts = [
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]
    assert (await api.post(CHAT, {"messages": [{"role": "user", "content": parts}]})).status == 200
    assert model.last_request["messages"][-1]["content"] == [
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "auto"}},
    ]


async def test_a_picture_alone_is_a_turn(api: Api, model: FakeModel) -> None:
    parts = [{"type": "input_image", "image_url": PIXEL, "detail": "high"}]
    assert (await api.post(CHAT, {"messages": [{"role": "user", "content": parts}]})).status == 200
    assert model.last_request["messages"][-1]["content"] == [
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "high"}}
    ]


# What is refused, before anything is stored


REFUSED: list[tuple[Any, int, str, Any]] = [
    (b"", 400, "invalid_json", None),
    (b"{", 400, "invalid_json", None),
    (b"[]", 400, "invalid_json", None),
    (b"\xff\xfe{}", 400, "invalid_json", None),
    (b"[" * 100_000 + b"]" * 100_000, 400, "invalid_json", None),
    (b'{"messages":' + b"[" * 900 + b"]" * 900 + b"}", 400, "invalid_messages", "messages[0]"),
    ({}, 400, "invalid_messages", "messages"),
    ({"messages": []}, 400, "empty_messages", "messages"),
    (ask(""), 400, "empty_message", "messages[-1]"),
    (ask("hi", n=2), 400, "unsupported_parameter", "n"),
    (ask("hi", stream="yes"), 400, "invalid_value", "stream"),
    (ask("hi", stream_options=1), 400, "invalid_value", "stream_options"),
    (ask("hi", temperature=3), 400, "invalid_value", "temperature"),
    (ask("hi", max_tokens=0), 400, "invalid_value", "max_tokens"),
    (ask("hi", model=7), 400, "invalid_value", "model"),
    (ask("hi", tool_choice="required"), 400, "invalid_tool_choice", "tool_choice"),
    ({"messages": [{"role": "robot", "content": "x"}]}, 400, "invalid_role", "messages[0].role"),
    (
        {"messages": [{"role": "tool", "tool_call_id": "c1", "content": "x"}]},
        400,
        "invalid_tool_result",
        "messages",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}] * 1001}]},
        400,
        "too_many_parts",
        ...,
    ),
    (ask("x" * (10 * 1024 * 1024 + 1)), 400, "content_too_long", "messages[0].content"),
    (b" " * (50 * 1024 * 1024 + 1), 413, "request_too_large", None),
]
MEDIA: list[dict[str, Any]] = [
    {"type": "file", "file": {"file_id": "file-1"}},
    {"type": "input_file", "file_id": "file-1"},
    {"type": "input_image", "file_id": "file-1"},
    {"type": "image_url", "image_url": {"url": "data:application/pdf;base64,AA"}},
    {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}},
]


async def test_what_cannot_be_understood_is_refused_with_its_reason_and_leaves_nothing_behind(api: Api) -> None:
    for body, status, code, param in REFUSED:
        answer = await api.post(CHAT, body)
        assert (answer.status, answer.error["code"]) == (status, code), answer.body
        assert answer.error["type"] == "invalid_request_error"
        assert param is ... or answer.error["param"] == param
    assert await api.gateway.db.read(count_events) == 0


async def test_files_and_other_media_are_refused(api: Api) -> None:
    for part in MEDIA:
        answer = await api.post(CHAT, {"messages": [{"role": "user", "content": [part]}]})
        assert (answer.status, answer.error["code"]) == (400, "unsupported_content_type"), part
    assert await api.gateway.db.read(count_events) == 0


async def test_a_large_body_in_unknown_length_is_refused_too(api: Api) -> None:
    async def pieces() -> Any:
        for _ in range(53):
            yield b" " * 1_000_000

    async with api.http.post(CHAT, data=pieces()) as answer:
        assert answer.status == 413
        assert (await answer.json())["error"]["code"] == "request_too_large"


async def test_a_body_of_nine_megabytes_is_taken(api: Api, model: FakeModel) -> None:
    url = "data:image/png;base64," + "A" * 9_000_000
    body = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}
    assert (await api.post(CHAT, body)).status == 200
    assert model.last_request["messages"][-1]["content"][0]["image_url"]["url"] == url


async def test_half_an_emoji_is_no_reason_to_refuse_a_message(api: Api) -> None:
    answer = await api.post(CHAT, b'{"messages":[{"role":"user","content":"hi \\ud83d"}]}')
    assert (answer.status, answer.json["choices"][0]["message"]["content"]) == (200, "echo: hi ?")


# Streams


async def test_a_stream_is_role_words_finish_usage_and_done(api: Api, model: FakeModel) -> None:
    model.says("Hello you", tokens=("Hello", " you"))
    body = ask("hi", stream_options={"include_usage": True})
    events = await stream(api, body, X_Hermes_Session_Id="talk")
    assert events[-1].data == "[DONE]"
    first, *middle, finish, usage = chunks(events)
    assert first["object"] == "chat.completion.chunk"
    assert first["model"] == "hermes"
    assert first["choices"] == [
        {
            "index": 0,
            "delta": {"role": "assistant", "content": "", "refusal": None},
            "logprobs": None,
            "finish_reason": None,
        }
    ]
    assert "".join(chunk["choices"][0]["delta"]["content"] for chunk in middle) == "Hello you"
    assert finish["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] == 19
    assert all(chunk["usage"] is None for chunk in (first, *middle, finish))
    assert len({chunk["id"] for chunk in chunks(events)}) == 1


async def test_a_stream_carries_the_session_in_its_headers(api: Api) -> None:
    headers = {"X_Hermes_Session_Id": "talk", "X_Hermes_Session_Key": "memory"}
    async with api.streaming(CHAT, ask("hi", stream=True), **headers) as (answer, events):
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert answer.headers["X-Hermes-Session-Id"] == "talk"
        assert answer.headers["X-Hermes-Session-Key"] == "memory"
        assert [event.data async for event in events][-1] == "[DONE]"


async def test_without_being_asked_for_no_usage_is_sent(api: Api) -> None:
    events = await stream(api, ask("hi"))
    assert all("usage" not in chunk for chunk in chunks(events))


async def test_five_hundred_tokens_are_few_events_and_the_first_is_there_at_once(api: Api, model: FakeModel) -> None:
    model.streams(500, tokens_per_second=500)
    events = await stream(api, ask("hi"))
    words = [chunk for chunk in chunks(events) if chunk["choices"][0]["delta"].get("content")]
    assert words[0]["choices"][0]["delta"]["content"].count("w") < 20
    assert len(words) <= 25
    assert text_of(events).split() == [f"w{number}" for number in range(500)]


async def test_tool_progress_is_an_event_of_its_own_twice_for_each_call(api: Api, model: FakeModel) -> None:
    model.script([calls_tools(("search_files", {"text": "needle"}), ("boom", {}), text="Let me look."), "Found it."])
    events = await stream(api, ask("search"))
    shown = [event.data for event in events if event.name == "hermes.tool.progress"]
    assert [(item["tool"], item["status"]) for item in shown] == [
        ("search_files", "running"),
        ("search_files", "completed"),
        ("boom", "running"),
        ("boom", "completed"),
    ]
    assert shown[0]["emoji"] == "🔎"
    assert shown[0]["label"] == "needle"
    frame = {"id", "object", "created", "model", "choices"}  # of a chunk: clients take every event for one
    assert shown[0].keys() - frame == {"tool", "emoji", "label", "toolCallId", "status", "event"}
    assert shown[0].keys() >= frame
    assert [choice["delta"] for choice in shown[0]["choices"]] == [{}]
    assert shown[0]["toolCallId"] == shown[1]["toolCallId"] != shown[2]["toolCallId"]
    assert text_of(events) == "Let me look.\n\nFound it."
    assert finish_of(events) == ["stop"]


async def test_calls_of_the_client_are_streamed_as_deltas(api: Api, model: FakeModel) -> None:
    model.calls_tools([("weather", {"city": "Oslo"})])
    events = await stream(api, ask("how is it?", tools=[WEATHER]))
    [delta] = [c["choices"][0]["delta"] for c in chunks(events) if "tool_calls" in c["choices"][0]["delta"]]
    [call] = delta["tool_calls"]
    assert (call["index"], call["type"], call["function"]["name"]) == (0, "function", "weather")
    assert call["function"]["arguments"] == '{"city":"Oslo"}'
    assert finish_of(events) == ["tool_calls"]
    assert not [event for event in events if event.name == "hermes.tool.progress"]


async def test_an_error_in_the_middle_of_a_stream_is_told_and_the_stream_ends_properly(
    api: Api, model: FakeModel
) -> None:
    model.default = Refusal(401, "no such key")
    events = await stream(api, ask("hi"))
    assert events[-1].data == "[DONE]"
    assert chunks(events)[-1]["error"]["code"] == "auth"
    assert finish_of(events) == []


async def test_an_answer_without_words_is_told_in_words(api: Api, model: FakeModel) -> None:
    model.default = Reply(text="")
    events = await stream(api, ask("hi"))
    last = chunks(events)[-1]
    assert last.get("error") or text_of(events)


async def test_a_refusal_of_a_stream_is_a_plain_answer(api: Api) -> None:
    answer = await api.post(CHAT, ask("hi", stream=True, n=3))
    assert (answer.status, answer.error["code"]) == (400, "unsupported_parameter")


# Clients that go away


@pytest.mark.parametrize("headers", [{"X_Hermes_On_Disconnect": "continue"}, {"Idempotency_Key": "one"}])
async def test_a_stream_that_asks_for_it_goes_on_without_its_client(
    api: Api, model: FakeModel, headers: dict[str, str]
) -> None:
    model.streams(["one ", "two"])
    model.hold()
    async with api.streaming(CHAT, ask("hi", stream=True), **headers) as (_, events):
        assert (await anext(events)).data["choices"][0]["delta"]["role"] == "assistant"
    await model.is_holding()
    await asyncio.sleep(0.5)  # longer than the server takes to see who left
    model.release()
    assert (await ended(api)).status == "completed"


async def test_leaving_a_stream_stops_its_turn(api: Api, model: FakeModel) -> None:
    model.streams(["one ", "two"])
    model.hold()
    async with api.streaming(CHAT, ask("hi", stream=True)) as (_, events):
        assert (await anext(events)).data["choices"][0]["delta"]["role"] == "assistant"
        await model.is_holding()
    state = await ended(api)
    assert (state.status, state.row.reason) == ("cancelled", "stopped")


async def test_a_client_that_leaves_before_a_whole_answer_does_not_stop_the_turn(api: Api, model: FakeModel) -> None:
    model.hold(silently=True)
    asking = asyncio.create_task(api.post(CHAT, ask("hi")))
    await model.is_holding()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await asyncio.sleep(0.5)  # longer than the server takes to see who left
    model.release()
    assert (await ended(api)).status == "completed"


@pytest.mark.parametrize("streams", [True, False])
async def test_a_client_that_asked_for_it_stops_the_turn_by_leaving(api: Api, model: FakeModel, streams: bool) -> None:
    model.hold(silently=True)
    asking = asyncio.create_task(api.post(CHAT, ask("hi", stream=streams), X_Hermes_On_Disconnect="stop"))
    await model.is_holding()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    state = await ended(api)
    assert (state.status, state.row.reason) == ("cancelled", "stopped")


async def test_an_unknown_wish_for_disconnects_is_refused(api: Api) -> None:
    answer = await api.post(CHAT, ask("hi"), X_Hermes_On_Disconnect="explode")
    assert (answer.status, answer.error["param"]) == (400, "X-Hermes-On-Disconnect")


async def test_a_client_that_vanishes_at_any_event_leaves_a_final_state(api: Api, model: FakeModel) -> None:
    for count in range(6):  # role, words, tool running, tool completed, words, finish
        model.script([calls_tools(("search_files", {"text": "x"}), text="Let me look."), "Found it."])
        # The same words again would be the same request, taken up where it was left.
        async with api.streaming(CHAT, ask(f"hi {count}", stream=True)) as (_, events):
            for _ in range(count):
                await anext(events)
        assert (await ended(api)).status in ("completed", "cancelled")


async def test_a_silent_stream_shows_that_it_lives(api: Api, model: FakeModel) -> None:
    model.hold(silently=True)
    async with api.streaming(CHAT, ask("hi", stream=True)) as (_, events):
        seen = [await anext(events) for _ in range(3)]
        assert [event.name for event in seen[1:]] == [":", ":"]
        model.release()
        assert text_of([event async for event in events]) == "echo: hi"


@pytest.mark.parametrize("streams", [True, False])
async def test_a_request_stopped_while_it_waits_in_line_is_answered(api: Api, model: FakeModel, streams: bool) -> None:
    model.hold(silently=True)
    first = asyncio.create_task(api.post(CHAT, ask("one"), X_Hermes_Session_Id="talk"))
    await model.is_holding()
    second = asyncio.create_task(api.post(CHAT, ask("two", stream=streams), X_Hermes_Session_Id="talk"))
    async with asyncio.timeout(20):
        while await api.gateway.db.read(count_events) < 2:  # noqa: ASYNC110 - a row tells nobody
            await asyncio.sleep(0.01)
    await api.gateway.requests.stop(await api.gateway.db.read(last_event))
    answer = await second
    assert answer.status == 200
    assert b'"state":"stopped"' in answer.body
    assert b'"state":"stopped"' in answer.body
    model.release()
    assert (await first).json["choices"][0]["message"]["content"] == "echo: one"


async def test_a_stream_that_breaks_inside_is_ended_properly(start_api: StartApi, model: FakeModel) -> None:
    model.hold(silently=True)
    async with start_api() as api, api.streaming(CHAT, ask("hi", stream=True)) as (_, events):
        await anext(events)
        await model.is_holding()
        await crash(api.gateway)
        *_, error, done = [event async for event in events]
    assert error.data["error"]["code"] == "internal_error"
    assert done.data == "[DONE]"


async def test_a_gateway_that_stops_ends_its_calls_in_words(start_api: StartApi, model: FakeModel) -> None:
    model.hold(silently=True)
    is_open = asyncio.Event()

    async def read(url: str, body: dict[str, Any]) -> bytes:
        async with aiohttp.ClientSession() as client, client.post(url, json=body) as answer:
            is_open.set()  # the stream, since the other has no head before its end
            return await answer.read()

    async def read_both(url: str) -> list[bytes]:
        answers = await asyncio.gather(*(read(url, ask("hi", stream=streams)) for streams in (True, False)))
        model.release()
        return answers

    async with start_api() as api:
        reading = asyncio.create_task(read_both(f"{api.url}{CHAT}"))
        async with asyncio.timeout(20):
            while model.open_now < 2:  # noqa: ASYNC110 - the fake counts, and tells nobody
                await asyncio.sleep(0.01)
            await is_open.wait()
    streamed, whole = await reading
    *_, error, done, _ = streamed.decode().split("\n\n")
    assert '"code":"gateway_stopping"' in error
    assert done == "data: [DONE]"
    assert orjson.loads(whole)["error"]["code"] == "gateway_stopping"


# A real client's body


OPEN_WEBUI = b"""{
  "stream": true, "model": "hermes-agent",
  "messages": [{"role": "system", "content": "User Context:\\n\\nname: Ana"},
    {"role": "user", "content": [{"type": "text", "text": "What time is it?"}]}],
  "stream_options": {"include_usage": true},
  "tools": [{"type": "function", "function": {"type": "function", "name": "get_current_timestamp",
    "description": "Get the current Unix timestamp in seconds.",
    "parameters": {"type": "object", "properties": {}, "required": []}}}],
  "params": {}, "features": {"web_search": false}, "variables": {"{{USER_NAME}}": "Ana"},
  "session_id": "uXq3", "chat_id": "0b2a", "id": "77", "background_tasks": {"title_generation": true}
}"""


async def test_a_request_as_open_webui_sends_it(api: Api, model: FakeModel) -> None:
    model.calls_tools([("get_current_timestamp", {})])
    async with api.http.post(CHAT, data=OPEN_WEBUI, headers={"Content-Type": "application/json"}) as answer:
        assert answer.status == 200
        lines = (await answer.read()).decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    bodies = [orjson.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    assert [body["choices"][0]["finish_reason"] for body in bodies if body["choices"]][-1] == "tool_calls"
    assert bodies[-1]["usage"]["total_tokens"] == 19
    assert model.last_request["messages"][-1] == {"role": "user", "content": "What time is it?"}


async def test_a_tool_that_is_cut_off_by_a_stop_is_still_told_twice(api: Api, model: FakeModel) -> None:
    model.calls_tools([("linger", {})])
    async with api.streaming(CHAT, ask("wait", stream=True)) as (_, events):
        seen = [await anext(events)]
        while seen[-1].name != "hermes.tool.progress":
            seen.append(await anext(events))
        await api.gateway.requests.stop(await api.gateway.db.read(last_event))
        rest = [event async for event in events]
    assert seen[-1].data["status"] == "running"
    assert [event.data["status"] for event in rest if event.name == "hermes.tool.progress"] == ["completed"]
    assert finish_of(rest) == ["stop"]
