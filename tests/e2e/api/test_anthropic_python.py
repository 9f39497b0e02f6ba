"""The official `anthropic` package as people write it: messages, streams, a loop of tools, thinking, errors."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import Message, RawMessageStreamEvent
from pydantic import TypeAdapter

from hermes.store.db import Tx
from tests.e2e.api.conftest import Sdk
from tests.fakes.model import FakeModel, Refusal, Reply, calls_tools

Json = dict[str, Any]
PATIENCE_SECONDS = 20.0
WEATHER: Any = {
    "name": "get_weather",
    "description": "The weather somewhere.",
    "input_schema": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
}
HELLO: Any = {"role": "user", "content": "hello"}
ANY_EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)


@pytest.fixture
async def client(sdk: Sdk) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(base_url=sdk.api.url, api_key=sdk.key, max_retries=0, timeout=PATIENCE_SECONDS) as made:
        yield made


def ask(*messages: Any, **fields: Any) -> Json:
    return {"model": "hermes", "max_tokens": 1000, "messages": list(messages) or [HELLO], **fields}


def text_of(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


async def test_message_and_stream_say_the_same(client: AsyncAnthropic, model: FakeModel) -> None:
    whole = await client.messages.create(
        **ask(system="Be brief.", stop_sequences=["END"], extra_body={"temperature": 0.5})
    )
    assert (text_of(whole), whole.stop_reason, whole.role) == ("echo: hello", "end_turn", "assistant")
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (12, 7)
    assert whole._request_id == whole.id.removeprefix("msg_")
    sent = model.last_request
    assert (sent["temperature"], sent["stop"], sent["max_tokens"]) == (0.5, ["END"], 1000)
    assert sent["messages"][0]["content"].endswith("Be brief.")

    async with client.messages.stream(**ask()) as stream:
        words = [text async for text in stream.text_stream]
        last = await stream.get_final_message()
    assert "".join(words) == text_of(last) == text_of(whole)
    assert (last.stop_reason, last.usage.input_tokens, last.usage.output_tokens) == ("end_turn", 12, 7)


async def test_tools_of_the_client_run_in_a_loop_and_ours_beside_them(
    client: AsyncAnthropic, model: FakeModel, tmp_path: Path
) -> None:
    (tmp_path / "work" / "town.txt").write_text("Bern", encoding="utf-8")
    model.script(
        [
            calls_tools(("read_file", {"path": "town.txt"}), text="I look it up."),
            calls_tools(("get_weather", {"town": "Bern"}), text="And the weather."),
            "It rains in Bern.",
        ]
    )
    talk: list[Any] = [{"role": "user", "content": "How is the weather in my town?"}]
    first = await client.messages.create(**ask(*talk, tools=[WEATHER]))
    assert first.stop_reason == "tool_use"
    assert text_of(first) == "I look it up.\n\nAnd the weather."
    [call] = [block for block in first.content if block.type == "tool_use"]
    assert (call.name, call.input) == ("get_weather", {"town": "Bern"})
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "rain"}]}
    talk += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    second = await client.messages.create(**ask(*talk, tools=[WEATHER]))
    assert (text_of(second), second.stop_reason) == ("It rains in Bern.", "end_turn")
    assert model.last_request["messages"][-1] == {"role": "tool", "tool_call_id": call.id, "content": "rain"}


async def test_streamed_tool_call_is_gathered_by_the_sdk(client: AsyncAnthropic, model: FakeModel) -> None:
    model.script([calls_tools(("get_weather", {"town": "Bern"}), ("get_weather", {"town": "Basel"}), text="Both.")])
    async with client.messages.stream(**ask(tools=[WEATHER], tool_choice={"type": "any"})) as stream:
        last = await stream.get_final_message()
    assert [block.type for block in last.content] == ["text", "tool_use", "tool_use"]
    assert [block.input for block in last.content if block.type == "tool_use"] == [{"town": "Bern"}, {"town": "Basel"}]
    assert last.stop_reason == "tool_use"
    assert model.last_request["tool_choice"] == "required"


async def test_thinking_is_shown_when_it_is_asked_for(client: AsyncAnthropic, model: FakeModel) -> None:
    model.default = Reply("42", reasoning="Six by seven.")
    thinking: Any = {"type": "enabled", "budget_tokens": 2000}
    whole = await client.messages.create(**ask(thinking=thinking))
    assert [block.type for block in whole.content] == ["thinking", "text"]
    assert model.last_request["reasoning_effort"] == "low"
    async with client.messages.stream(**ask(thinking=thinking)) as stream:
        last = await stream.get_final_message()
    assert last.content[0].to_dict() == whole.content[0].to_dict()
    again = await client.messages.create(**ask(HELLO, {"role": "assistant", "content": whole.content}, HELLO))
    assert [block.type for block in again.content] == ["text"]


async def test_every_event_has_the_shape_that_the_sdk_declares(sdk: Sdk, model: FakeModel) -> None:
    model.script(
        [Reply("One.", (("search_files", {"pattern": "x"}),), reasoning="Hm."), Reply("Two.", reasoning="So.")]
    )
    body = ask(thinking={"type": "adaptive"}, stream=True)
    async with sdk.api.streaming("/v1/messages", body) as (answer, events):
        assert answer.status == 200
        told = [event async for event in events]
    assert [event.name for event in told] == [event.data["type"] for event in told]
    for event in told:
        if event.name != "ping":
            ANY_EVENT.validate_python(event.data)
    kinds = [event.data["content_block"]["type"] for event in told if event.name == "content_block_start"]
    assert kinds == ["thinking", "text", "thinking", "text"]
    assert (told[0].name, told[-1].name) == ("message_start", "message_stop")
    model.script(
        [Reply("One.", (("search_files", {"pattern": "x"}),), reasoning="Hm."), Reply("Two.", reasoning="So.")]
    )
    whole = Message.model_validate((await sdk.api.post("/v1/messages", ask(thinking={"type": "adaptive"}))).json)
    assert [block.type for block in whole.content] == kinds
    assert text_of(whole) == "One.Two."


async def test_pictures_documents_and_the_count_of_tokens(client: AsyncAnthropic, model: FakeModel) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(b"\x89PNG\r\n").decode()}
    document = {"type": "text", "media_type": "text/plain", "data": "Buy bread."}
    content = [
        {"type": "image", "source": source},
        {"type": "document", "title": "list", "source": document},
        {"type": "text", "text": "What to buy?"},
    ]
    await client.messages.create(**ask({"role": "user", "content": content}))
    text, picture = model.last_request["messages"][-1]["content"]
    assert text["text"] == "[document: list]\nBuy bread.\nWhat to buy?"
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    asked = len(model.requests)
    counted = await client.messages.count_tokens(model="hermes", messages=[HELLO], system="x" * 400, tools=[WEATHER])
    assert 100 < counted.input_tokens < 200
    assert len(model.requests) == asked
    assert "hermes" in [found.id async for found in client.models.list()]


async def test_errors_are_those_of_the_sdk(sdk: Sdk, client: AsyncAnthropic, model: FakeModel) -> None:
    async with AsyncAnthropic(base_url=sdk.api.url, api_key="wrong", max_retries=0) as stranger:
        with pytest.raises(anthropic.AuthenticationError) as wrong_key:
            await stranger.messages.create(**ask())
    assert wrong_key.value.body["error"]["type"] == "authentication_error"  # type: ignore[index]
    with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
        await client.messages.create(**{**ask(), "max_tokens": 0})
    model.default = Refusal(429, "slow down", {"Retry-After": "60"})
    with pytest.raises(anthropic.RateLimitError) as limited:
        await client.messages.create(**ask())
    assert limited.value.response.headers["retry-after"] == "60"
    model.default = Refusal(401, "bad key")
    with pytest.raises(anthropic.InternalServerError) as failed:
        await client.messages.create(**ask())
    assert failed.value.body["error"]["type"] == "api_error"  # type: ignore[index]
    with pytest.raises(anthropic.APIStatusError):
        async with client.messages.stream(**ask()) as stream:
            await stream.get_final_message()
    with pytest.raises(anthropic.NotFoundError):
        await client.messages.batches.list()


def count_turns(tx: Tx) -> int:
    return int(tx.value("SELECT count(*) FROM turns") or 0)


async def test_session_goes_on_and_a_dropped_stream_leaves_one_turn(
    sdk: Sdk, client: AsyncAnthropic, model: FakeModel
) -> None:
    named = {"X-Hermes-Session-Id": "talk"}
    async with asyncio.timeout(PATIENCE_SECONDS):
        await client.messages.create(**ask(), extra_headers=named)
        await client.messages.create(**ask({"role": "user", "content": "and?"}), extra_headers=named)
    assert [message["content"] for message in model.last_request["messages"][1:]] == ["hello", "echo: hello", "and?"]
    assert await sdk.api.gateway.db.read(count_turns) == 2
