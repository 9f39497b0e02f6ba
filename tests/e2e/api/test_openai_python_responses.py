"""The official `openai` package for Python on /v1/responses: create, stream, read again, delete, go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import openai
import pytest
from openai.types.responses import (
    FunctionToolParam,
    Response,
    ResponseCompletedEvent,
    ResponseFormatTextJSONSchemaConfig,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
)

from tests.e2e.api.conftest import Sdk
from tests.e2e.api.test_openai_python_chat import MODEL, PIXEL, Weather
from tests.fakes.model import FakeModel, Json, Refusal, calls_tools

WEATHER: FunctionToolParam = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a town.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    "strict": False,
}


def heard(model: FakeModel) -> list[str]:
    """What the model was told last, without the system's words."""
    messages: list[Json] = model.last_request["messages"]
    return [str(message["content"]) for message in messages if message["role"] != "system"]


async def test_create(sdk: Sdk, model: FakeModel) -> None:
    model.says("Hello, Ana.", usage=(21, 4))
    answer = await sdk.client.responses.create(model=MODEL, input="hi", instructions="Be kind.")
    assert (answer.object, answer.status, answer.model) == ("response", "completed", MODEL)
    assert answer.output_text == "Hello, Ana."
    (item,) = answer.output
    assert isinstance(item, ResponseOutputMessage)
    assert (item.role, item.status) == ("assistant", "completed")
    assert (answer.error, answer.incomplete_details, answer.instructions) == (None, None, "Be kind.")
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (21, 4, 25)
    assert "Be kind." in str(model.last_request["messages"][0])


async def test_stream(sdk: Sdk, model: FakeModel) -> None:
    model.streams(["Hel", "lo", "."])
    stream = await sdk.client.responses.create(model=MODEL, input="hi", stream=True)
    events = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = list(dict.fromkeys(event.type for event in events))
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Hello."
    last = events[-1]
    assert isinstance(last, ResponseCompletedEvent)
    assert last.response.output_text == "Hello."


async def test_stream_by_the_helper_that_gathers_it(sdk: Sdk, model: FakeModel) -> None:
    model.streams(["Hel", "lo."])
    async with sdk.client.responses.stream(model=MODEL, input="hi") as stream:
        text = "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])
        whole = await stream.get_final_response()
    assert (text, whole.output_text, whole.status) == ("Hello.", "Hello.", "completed")


async def test_our_tools_are_items_of_the_output(sdk: Sdk, model: FakeModel, tmp_path: Path) -> None:
    (tmp_path / "work" / "notes.txt").write_text("Bread, milk.\n", encoding="utf-8")
    for streams in (False, True):
        model.script([calls_tools(("read_file", {"path": "notes.txt"})), "Bread and milk."])
        if streams:
            async with sdk.client.responses.stream(model=MODEL, input="what to buy?") as stream:
                answer: Response = await stream.get_final_response()
        else:
            answer = await sdk.client.responses.create(model=MODEL, input="what to buy?")
        assert [item.type for item in answer.output] == ["mcp_call", "message"]
        assert answer.output_text == "Bread and milk."


async def test_an_answer_is_parsed_into_the_clients_own_type(sdk: Sdk, model: FakeModel, tmp_path: Path) -> None:
    (tmp_path / "work" / "weather.txt").write_text("rain, 9 °C\n", encoding="utf-8")
    look = calls_tools(("read_file", {"path": "weather.txt"}), text="I look it up.")
    model.script([look, '{"town":"Bern","degrees":9}'] * 2)
    answer = await sdk.client.responses.parse(model=MODEL, input="weather?", text_format=Weather)
    assert answer.output_parsed == Weather(town="Bern", degrees=9)
    assert answer.text is not None
    assert isinstance(answer.text.format, ResponseFormatTextJSONSchemaConfig)
    assert (answer.text.format.name, answer.text.format.strict) == ("Weather", True)
    async with sdk.client.responses.stream(model=MODEL, input="weather?", text_format=Weather) as stream:
        whole = await stream.get_final_response()
    assert whole.output_parsed == Weather(town="Bern", degrees=9)
    assert {request["response_format"]["json_schema"]["name"] for request in model.requests} == {"Weather"}


async def test_a_tool_of_the_client_is_called_by_it(sdk: Sdk, model: FakeModel) -> None:
    model.script([calls_tools(("get_weather", {"town": "Bern"})), "Rain in Bern."])
    first = await sdk.client.responses.create(model=MODEL, input="weather in Bern?", tools=[WEATHER])
    (call,) = first.output
    assert isinstance(call, ResponseFunctionToolCall)
    assert (call.name, call.arguments) == ("get_weather", '{"town":"Bern"}')
    last = await sdk.client.responses.create(
        model=MODEL,
        previous_response_id=first.id,
        input=[{"type": "function_call_output", "call_id": call.call_id, "output": "rain, 9 °C"}],
        tools=[WEATHER],
    )
    assert last.output_text == "Rain in Bern."
    assert heard(model)[-1] == "rain, 9 °C"


async def test_pictures(sdk: Sdk, model: FakeModel) -> None:
    model.says("A single pixel.")
    answer = await sdk.client.responses.create(
        model=MODEL,
        input=[
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": PIXEL, "detail": "low"},
                ],
            }
        ],
    )
    assert answer.output_text == "A single pixel."
    seen = model.last_request["messages"][-1]["content"]
    assert {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}} in seen


async def test_retrieve_and_delete(sdk: Sdk) -> None:
    made = await sdk.client.responses.create(model=MODEL, input="hi")
    again = await sdk.client.responses.retrieve(made.id)
    assert again == made
    items = [item async for item in sdk.client.responses.input_items.list(made.id)]
    assert [item.type for item in items] == ["message"]
    await sdk.client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        await sdk.client.responses.retrieve(made.id)


async def test_what_is_not_to_be_stored_is_not(sdk: Sdk) -> None:
    made = await sdk.client.responses.create(model=MODEL, input="hi", store=False)
    assert made.output_text == "echo: hi"
    with pytest.raises(openai.NotFoundError):
        await sdk.client.responses.retrieve(made.id)


async def test_a_chain_by_the_previous_response(sdk: Sdk, model: FakeModel) -> None:
    model.script(["One.", "Two.", "Three."])
    previous: str | None = None
    for number in range(3):
        made = await sdk.client.responses.create(model=MODEL, input=f"q{number}", previous_response_id=previous)
        assert made.previous_response_id == previous
        previous = made.id
    assert heard(model) == ["q0", "One.", "q1", "Two.", "q2"]


async def test_a_chain_by_a_conversation(sdk: Sdk, model: FakeModel) -> None:
    model.script(["One.", "Two."])
    for number in range(2):
        made = await sdk.client.responses.create(model=MODEL, input=f"q{number}", conversation="shopping")
        assert made.conversation is not None
        assert made.conversation.id == "shopping"
    assert heard(model) == ["q0", "One.", "q1"]


async def test_two_equal_requests_at_once_are_answered_side_by_side(sdk: Sdk, model: FakeModel) -> None:
    model.hold()
    asked = [asyncio.create_task(sdk.client.responses.create(model=MODEL, input="same")) for _ in range(2)]
    async with asyncio.timeout(10):
        while model.open_now < 2:  # noqa: ASYNC110 - the fake counts, and tells nobody
            await asyncio.sleep(0.005)
    model.release()
    assert {(answer.output_text, answer.status) for answer in await asyncio.gather(*asked)} == {
        ("echo: same", "completed")
    }


async def test_in_the_background_it_is_asked_for_until_it_is_done(sdk: Sdk, model: FakeModel) -> None:
    model.hold()
    made = await sdk.client.responses.create(model=MODEL, input="hi", background=True)
    assert made.status in ("queued", "in_progress")
    model.release()
    async with asyncio.timeout(10):
        while made.status in ("queued", "in_progress"):
            made = await sdk.client.responses.retrieve(made.id)
    assert (made.status, made.output_text) == ("completed", "echo: hi")


async def test_a_response_in_the_background_can_be_cancelled(sdk: Sdk, model: FakeModel) -> None:
    model.hold()
    made = await sdk.client.responses.create(model=MODEL, input="hi", background=True)
    gone = await sdk.client.responses.cancel(made.id)
    model.release()
    assert gone.status == "cancelled"


# Errors


async def test_a_previous_response_that_is_not_there_is_a_bad_request(sdk: Sdk) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await sdk.client.responses.create(model=MODEL, input="hi", previous_response_id="resp_gone")
    assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")


async def test_a_failure_of_the_model_has_status_502(sdk: Sdk, model: FakeModel) -> None:
    model.script([Refusal(401, "wrong key")] * 9)
    with pytest.raises(openai.InternalServerError) as caught:
        await sdk.client.responses.create(model=MODEL, input="hi")
    assert (caught.value.status_code, caught.value.code) == (502, "auth")


async def test_a_failure_in_mid_stream_is_its_last_event(sdk: Sdk, model: FakeModel) -> None:
    model.script([Refusal(401, "wrong key")] * 9)
    stream = await sdk.client.responses.create(model=MODEL, input="hi", stream=True)
    events = [event async for event in stream]
    last = events[-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert last.response.status == "failed"
