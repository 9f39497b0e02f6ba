"""The dialect responses: what is sent, how sealed reasoning goes back, and what a refusal changes."""

from __future__ import annotations

import aiohttp
import pytest

from hermes.agent.models.responses import Responses
from hermes.core.errors import ModelErrorKind
from hermes.core.messages import ChatMessage, Role, Usage
from tests.contract.models.conftest import HELLO, TALK, TOOLS, ask, endpoint, failure_of, goes_on, reply_of
from tests.fakes.model import FakeModel, Reply
from tests.fakes.model_responses import SEAL


@pytest.fixture
def model(server: FakeModel, http: aiohttp.ClientSession) -> Responses:
    return Responses(endpoint(server), http)


async def test_request_carries_the_whole_conversation(server: FakeModel, model: Responses) -> None:
    request = ask(TALK, tools=TOOLS, tool_choice="read_file", max_tokens=9, temperature=0.0, reasoning="low")
    await reply_of(model, request)
    empty = {"type": "object", "properties": {}}
    assert server.last_request == {
        "model": "gpt-4o-mini",
        "store": False,
        "stream": True,
        "max_output_tokens": 16,
        "temperature": 0.0,
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
        "tool_choice": {"type": "function", "name": "read_file"},
        "tools": [
            {"type": "function", "name": "read_file", "description": "Read it.", "parameters": {"type": "object"}}
            | {"strict": False},
            {"type": "function", "name": "now", "description": "The time.", "parameters": empty, "strict": False},
        ],
        "instructions": "Be kind.",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
                ],
            },
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
            {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": '{"path":"a"}'},
            {"type": "function_call", "call_id": "c:2", "name": "now", "arguments": '{"unreadable":"{"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "no such file"},
            {
                "type": "function_call_output",
                "call_id": "c:2",
                "output": [
                    {"type": "input_text", "text": "a picture"},
                    {"type": "input_image", "image_url": "https://pictures.example/x.png", "detail": "auto"},
                ],
            },
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "then?"}]},
        ],
    }


async def test_reasoning_goes_back_sealed_and_in_its_place(server: FakeModel, model: Responses) -> None:
    server.script([Reply("Wait.", (("now", {}), ("now", {})), reasoning="Which day is it?"), "Sunday."])
    asked = await reply_of(model, ask(tools=TOOLS))
    await reply_of(model, ask([*HELLO, *goes_on(asked, "Sun", "Sun")], tools=TOOLS))
    kinds = [item["type"] for item in server.last_request["input"]]
    call, result = "function_call", "function_call_output"
    assert kinds == ["message", "reasoning", "message", call, call, result, result]
    sealed = server.last_request["input"][1]
    assert sealed.keys() == {"type", "summary", "encrypted_content"}
    assert sealed["encrypted_content"].startswith(SEAL)


async def test_reasoning_that_cannot_be_unsealed_is_left_out_of_that_call(server: FakeModel, model: Responses) -> None:
    server.script([Reply("", (("now", {}),), reasoning="hm"), "Good.", "Good again."])
    asked = await reply_of(model, ask(tools=TOOLS))
    talk = [*HELLO, *goes_on(asked, "Sun")]
    spoiled = [message if not message.thought else _with_thought(message, SEAL, "of-another-") for message in talk]
    assert (await reply_of(model, ask(spoiled, tools=TOOLS))).text == "Good."
    assert "reasoning" not in [item["type"] for item in server.last_request["input"]]
    await reply_of(model, ask(talk, tools=TOOLS))
    assert "reasoning" in [item["type"] for item in server.last_request["input"]]


def _with_thought(message: ChatMessage, old: str, new: str) -> ChatMessage:
    return ChatMessage(
        message.role, message.text, tool_calls=message.tool_calls, thought=message.thought.replace(old, new)
    )


async def test_model_that_does_not_reason_is_asked_without(server: FakeModel, model: Responses) -> None:
    server.fails_next(400, "Encrypted content is not supported with this model.")
    error = {"message": "Unsupported value: 'none' is not supported.", "param": "reasoning.effort", "code": None}
    server.fails_next(400, {"error": error})
    for _ in range(2):
        assert (await reply_of(model, ask(reasoning="off"))).text == "echo: hello"
    assert len(server.requests) == 4
    assert not {"include", "reasoning"} & server.last_request.keys()
    await reply_of(model, ask(reasoning="high"))
    assert server.last_request["reasoning"] == {"effort": "high"}


async def test_later_word_of_the_system_keeps_its_place(server: FakeModel, model: Responses) -> None:
    await reply_of(model, ask([*HELLO, ChatMessage(Role.SYSTEM, "Sum up.")]))
    assert [item["role"] for item in server.last_request["input"]] == ["user", "system"]
    assert "instructions" not in server.last_request


@pytest.mark.parametrize("stream", [True, False])
async def test_answer_that_was_held_back_says_so(server: FakeModel, model: Responses, stream: bool) -> None:
    server.script([Reply("", finish="content_filter")])
    error = await failure_of(model, ask(stream=stream))
    assert error.kind is ModelErrorKind.REQUEST
    assert "content filter" in str(error)


@pytest.mark.parametrize(
    "body, kind",
    [
        (b'{"object":"response","status":"failed","error":{"code":"rate_limit_exceeded","message":"x"}}', "rate"),
        (b'{"object":"response","status":"failed","error":null,"output":[]}', "transient"),
        (b'{"object":"response","status":"completed","output":[]}', "empty"),
        (b'{"error":{"code":429,"message":"Provider returned error"}}', "rate"),
        (b'{"detail":"Not authenticated: invalid api key"}', "auth"),
        (b'{"object":"response","status":"failed","error":{"code":"invalid_prompt","message":"x"}}', "request"),
        (b'{"object":"response","output":{"a":1}}', "transient"),
        (b"<html>captive portal</html>", "request"),
    ],
)
async def test_good_status_with_no_good_answer_is_an_error(
    server: FakeModel, model: Responses, body: bytes, kind: str
) -> None:
    server.sends_next(body, content_type="application/json")
    assert (await failure_of(model)).kind == kind


async def test_items_that_come_whole_only_are_taken(server: FakeModel, model: Responses) -> None:
    server.sends_next(
        b'data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":'
        b'[{"type":"output_text","text":"At"},{"type":"output_text","text":" once"}]}}\n\n'
        b'data: {"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","name":"now"}}\n\n'
        b'data: {"type":"response.completed","response":{"output":[{"type":"message","content":[{"text":"At once"}]},'
        b'{"type":"function_call","call_id":"c9","name":"now","arguments":"{\\"a\\":1}"}],"usage":{"input_tokens":3}}}\n\n'
    )
    reply = await reply_of(model)
    assert (reply.text, reply.usage, reply.finish_reason) == ("At once", Usage(3), "tool_calls")
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("now", '{"a":1}')]


async def test_stream_that_breaks_off_keeps_what_was_shown(server: FakeModel, model: Responses) -> None:
    server.sends_next(b'data: {"type":"response.output_text.delta","output_index":0,"delta":"Half an"}\n\n', cut=True)
    error = await failure_of(model)
    assert (error.kind, error.partial) == (ModelErrorKind.TRANSIENT, "Half an")
