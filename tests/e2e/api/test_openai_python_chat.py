"""The official `openai` package for Python, as it comes: chat, models, and the errors it raises."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import openai
import pytest
from openai.types.chat import (
    ChatCompletionAssistantMessageParam,
    ChatCompletionFunctionToolParam,
    ChatCompletionMessage,
    ChatCompletionMessageFunctionToolCall,
    ChatCompletionMessageParam,
)
from pydantic import BaseModel

from tests.e2e.api.conftest import Sdk, StartSdk
from tests.fakes.model import FakeModel, Refusal, calls_tools

MODEL = "hermes"
PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WEATHER: ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a town.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}


def the_call_of(message: ChatCompletionMessage) -> ChatCompletionMessageFunctionToolCall:
    (call,) = message.tool_calls or []
    assert isinstance(call, ChatCompletionMessageFunctionToolCall)
    return call


def says(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


async def test_chat(sdk: Sdk, model: FakeModel) -> None:
    model.says("Hello, Ana.", usage=(21, 4))
    answer = await sdk.client.chat.completions.create(model=MODEL, messages=says("hi"))
    assert answer.object == "chat.completion"
    assert answer.model == MODEL
    (choice,) = answer.choices
    assert (choice.message.role, choice.message.content, choice.message.refusal) == ("assistant", "Hello, Ana.", None)
    assert (choice.finish_reason, choice.logprobs) == ("stop", None)
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (21, 4, 25)


async def test_chat_names_its_session_in_the_headers_of_the_answer(sdk: Sdk, model: FakeModel) -> None:
    model.script(["One.", "Two."])
    for number in range(2):
        raw = await sdk.client.chat.completions.with_raw_response.create(
            model=MODEL, messages=says(f"question {number}"), extra_headers={"X-Hermes-Session-Id": "notes"}
        )
        assert raw.headers["x-hermes-session-id"] == "notes"
        assert raw.headers["x-hermes-completed"] == "true"
    assert [message["content"] for message in model.last_request["messages"] if message["role"] != "system"] == [
        "question 0",
        "One.",
        "question 1",
    ]


async def test_streamed_chat(sdk: Sdk, model: FakeModel) -> None:
    model.streams(["Hel", "lo", ", ", "Ana", "."])
    stream = await sdk.client.chat.completions.create(
        model=MODEL, messages=says("hi"), stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello, Ana."
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 17


async def test_streamed_chat_by_the_helper_that_gathers_it(sdk: Sdk, model: FakeModel) -> None:
    model.streams(["Hel", "lo."])
    async with sdk.client.chat.completions.stream(model=MODEL, messages=says("hi")) as stream:
        kinds = [event.type async for event in stream]
        whole = await stream.get_final_completion()
    assert kinds.count("content.done") == 1
    assert whole.choices[0].message.content == "Hello."


async def test_our_tools_run_inside_and_their_progress_does_not_disturb_the_client(
    sdk: Sdk, model: FakeModel, tmp_path: Path
) -> None:
    (tmp_path / "work" / "notes.txt").write_text("Bread, milk.\n", encoding="utf-8")
    model.script([calls_tools(("read_file", {"path": "notes.txt"})), "Bread and milk."])
    stream = await sdk.client.chat.completions.create(model=MODEL, messages=says("what to buy?"), stream=True)
    chunks = [chunk async for chunk in stream]
    assert {len(chunk.choices) for chunk in chunks} == {1}  # also those that tell of the tool
    assert len({chunk.id for chunk in chunks}) == 1
    content = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(content) == "Bread and milk."
    assert "Bread, milk." in str(model.last_request["messages"][-1])


async def test_a_tool_of_the_client_is_called_by_it(sdk: Sdk, model: FakeModel) -> None:
    model.script([calls_tools(("get_weather", {"town": "Bern"})), "Rain in Bern."])
    talk = says("weather in Bern?")
    answer = await sdk.client.chat.completions.create(model=MODEL, messages=talk, tools=[WEATHER], tool_choice="auto")
    assert answer.choices[0].finish_reason == "tool_calls"
    call = the_call_of(answer.choices[0].message)
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"town":"Bern"}')

    said: ChatCompletionAssistantMessageParam = {
        "role": "assistant",
        "tool_calls": [
            {"id": call.id, "type": "function", "function": {"name": "get_weather", "arguments": '{"town":"Bern"}'}}
        ],
    }
    told: ChatCompletionMessageParam = {"role": "tool", "tool_call_id": call.id, "content": "rain, 9 °C"}
    last = await sdk.client.chat.completions.create(model=MODEL, messages=[*talk, said, told], tools=[WEATHER])
    assert last.choices[0].message.content == "Rain in Bern."
    assert "rain, 9 °C" in str(model.last_request["messages"][-1])


class Weather(BaseModel):
    """What the client makes of an answer."""

    town: str
    degrees: int


async def test_an_answer_is_parsed_into_the_clients_own_type(sdk: Sdk, model: FakeModel, tmp_path: Path) -> None:
    (tmp_path / "work" / "weather.txt").write_text("rain, 9 °C\n", encoding="utf-8")
    look = calls_tools(("read_file", {"path": "weather.txt"}), text="I look it up.")
    model.script([look, '{"town":"Bern","degrees":9}'] * 2)
    answer = await sdk.client.chat.completions.parse(model=MODEL, messages=says("weather?"), response_format=Weather)
    assert answer.choices[0].message.parsed == Weather(town="Bern", degrees=9)
    async with sdk.client.chat.completions.stream(
        model=MODEL, messages=says("weather?"), response_format=Weather
    ) as stream:
        whole = await stream.get_final_completion()
    assert whole.choices[0].message.parsed == Weather(town="Bern", degrees=9)
    for request in model.requests:
        form = request["response_format"]["json_schema"]
        assert (form["name"], form["strict"]) == ("Weather", True)
        assert form["schema"]["required"] == ["town", "degrees"]


async def test_an_answer_that_is_cut_off_is_not_parsed(sdk: Sdk, model: FakeModel) -> None:
    model.says('{"town":"Be', finish="length")
    with pytest.raises(openai.LengthFinishReasonError):
        await sdk.client.chat.completions.parse(model=MODEL, messages=says("weather?"), response_format=Weather)


async def test_any_json_can_be_asked_for(sdk: Sdk, model: FakeModel) -> None:
    model.says('{"any": "thing"}')
    answer = await sdk.client.chat.completions.create(
        model=MODEL, messages=says("as JSON, please"), response_format={"type": "json_object"}
    )
    assert answer.choices[0].message.content == '{"any": "thing"}'
    assert model.last_request["response_format"] == {"type": "json_object"}


async def test_calls_of_a_tool_of_the_client_can_be_streamed(sdk: Sdk, model: FakeModel) -> None:
    model.script([calls_tools(("get_weather", {"town": "Bern"}))])
    async with sdk.client.chat.completions.stream(model=MODEL, messages=says("weather?"), tools=[WEATHER]) as stream:
        whole = await stream.get_final_completion()
    assert whole.choices[0].finish_reason == "tool_calls"
    call = the_call_of(whole.choices[0].message)
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"town":"Bern"}')


async def test_pictures(sdk: Sdk, model: FakeModel) -> None:
    model.says("A single pixel.")
    answer = await sdk.client.chat.completions.create(
        model=MODEL,
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
                ],
            }
        ],
    )
    assert answer.choices[0].message.content == "A single pixel."
    seen = model.last_request["messages"][-1]["content"]
    assert {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}} in seen


async def test_models(sdk: Sdk) -> None:
    listed = [found.id async for found in sdk.client.models.list()]
    assert MODEL in listed
    one = await sdk.client.models.retrieve(MODEL)
    assert (one.id, one.object) == (MODEL, "model")


async def test_two_equal_requests_at_once_are_answered_side_by_side(sdk: Sdk, model: FakeModel) -> None:
    model.hold()
    asked = [
        asyncio.create_task(sdk.client.chat.completions.create(model=MODEL, messages=says("same"))) for _ in range(2)
    ]
    async with asyncio.timeout(10):
        while model.open_now < 2:  # noqa: ASYNC110 - the fake counts, and tells nobody
            await asyncio.sleep(0.005)
    model.release()
    answers = await asyncio.gather(*asked)
    assert [answer.choices[0].message.content for answer in answers] == ["echo: same"] * 2
    assert answers[0].id != answers[1].id


# Errors, as the client's own classes


async def test_a_wrong_key_is_an_authentication_error(sdk: Sdk) -> None:
    async with sdk.client_with("hk_wrong") as stranger:
        with pytest.raises(openai.AuthenticationError) as caught:
            await stranger.chat.completions.create(model=MODEL, messages=says("hi"))
    assert (caught.value.code, caught.value.type) == ("invalid_api_key", "authentication_error")


async def test_nonsense_is_a_bad_request_error(sdk: Sdk) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await sdk.client.chat.completions.create(model=MODEL, messages=[])
    assert caught.value.param == "messages"
    assert caught.value.type == "invalid_request_error"
    assert isinstance(caught.value.code, str)


async def test_what_is_not_there_is_a_not_found_error(sdk: Sdk) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        await sdk.client.models.retrieve("no-such-model")
    assert caught.value.code == "model_not_found"


async def test_too_many_requests_are_a_rate_limit_error_that_says_when_to_come_again(start_sdk: StartSdk) -> None:
    async with start_sdk(API_SERVER_REQUESTS_PER_MINUTE="1") as sdk:
        await sdk.client.models.list()
        with pytest.raises(openai.RateLimitError) as caught:
            await sdk.client.models.list()
    assert caught.value.code == "rate_limit_exceeded"
    assert int(caught.value.response.headers["retry-after"]) > 0


async def test_a_failure_of_the_model_is_an_internal_server_error_with_status_502(sdk: Sdk, model: FakeModel) -> None:
    model.script([Refusal(401, "wrong key")] * 9)
    with pytest.raises(openai.InternalServerError) as caught:
        await sdk.client.chat.completions.create(model=MODEL, messages=says("hi"))
    assert isinstance(caught.value, openai.APIStatusError)
    assert (caught.value.status_code, caught.value.code) == (502, "auth")
    assert caught.value.response.headers["x-hermes-completed"] == "false"
    assert caught.value.response.headers["x-hermes-error"]


async def test_a_failure_in_mid_stream_is_an_api_error(sdk: Sdk, model: FakeModel) -> None:
    model.script([Refusal(401, "wrong key")] * 9)
    stream = await sdk.client.chat.completions.create(model=MODEL, messages=says("hi"), stream=True)
    with pytest.raises(openai.APIError) as caught:
        async for _ in stream:
            pass
    assert caught.value.code == "auth"


async def test_an_approval_is_an_answer_with_its_code(sdk: Sdk, model: FakeModel) -> None:
    model.script([calls_tools(("danger", {"text": "x"})), "never said"])
    answer = await sdk.client.chat.completions.create(model=MODEL, messages=says("do it"))
    assert answer.choices[0].finish_reason == "stop"
    assert "/approve " in (answer.choices[0].message.content or "")


async def test_nobody_there_is_a_connection_error() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="any", max_retries=0) as client:
        with pytest.raises(openai.APIConnectionError):
            await client.models.list()
