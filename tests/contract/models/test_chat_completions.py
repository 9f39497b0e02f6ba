"""The dialect chat_completions: what is sent, and how the many servers that speak it are borne with."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import orjson
import pytest

from hermes.agent.models.chat_completions import PICTURES, ChatCompletions, Timeouts
from hermes.core.errors import ModelErrorKind
from hermes.core.messages import ChatMessage, Image, Role, ToolCall, ToolSpec
from hermes.core.ports import TextDelta
from tests.contract.models.conftest import HELLO, TALK, TOOLS, ask, endpoint, failure_of, goes_on, reply_of
from tests.fakes.model import FakeModel, Recorded, Reply


@pytest.fixture
def model(server: FakeModel, http: aiohttp.ClientSession) -> ChatCompletions:
    return ChatCompletions(endpoint(server), http)


def model_at(server: FakeModel, http: aiohttp.ClientSession, **more: Any) -> ChatCompletions:
    return ChatCompletions(endpoint(server, **more), http)


async def test_request_carries_the_whole_conversation(server: FakeModel, http: aiohttp.ClientSession) -> None:
    messages = [
        ChatMessage(Role.SYSTEM, "Be kind."),
        ChatMessage(Role.USER, "What is this?", images=(Image("data:image/png;base64,AAAA", "low"),), name="ana_1"),
        ChatMessage(Role.ASSISTANT, tool_calls=(ToolCall("c1", "read_file", '{"path":"a"}'),)),
        ChatMessage(Role.TOOL, "no such file", tool_call_id="c1"),
        ChatMessage(Role.USER, "then?", name="Ana with spaces"),
    ]
    tools = [ToolSpec("read_file", "Read it.", {"type": "object"}), ToolSpec("now", "The time.")]
    request = ask(messages=messages, tools=tools, tool_choice="read_file", max_tokens=9, temperature=0.0)
    await reply_of(model_at(server, http), request)
    assert server.last_request == {
        "model": "gpt-4o-mini",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 9,
        "temperature": 0.0,
        "tool_choice": {"type": "function", "function": {"name": "read_file"}},
        "tools": [
            {
                "type": "function",
                "function": {"name": "read_file", "description": "Read it.", "parameters": {"type": "object"}},
            },
            {
                "type": "function",
                "function": {
                    "name": "now",
                    "description": "The time.",
                    "parameters": {"type": "object", "properties": {}},
                },
            },
        ],
        "messages": [
            {"role": "system", "content": "Be kind."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
                ],
                "name": "ana_1",
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a"}'}}
                ],
            },
            {"role": "tool", "content": "no such file", "tool_call_id": "c1"},
            {"role": "user", "content": "then?"},
        ],
    }


async def test_arguments_that_are_no_json_do_not_poison_the_conversation(
    server: FakeModel, http: aiohttp.ClientSession
) -> None:
    messages = [
        ChatMessage(Role.ASSISTANT, tool_calls=(ToolCall("c1", "read_file", '{"path": "a'),)),
        ChatMessage(Role.TOOL, "unreadable arguments", tool_call_id="c1"),
    ]
    await reply_of(model_at(server, http), ask(messages=messages))
    sent = server.last_request["messages"][0]["tool_calls"][0]["function"]["arguments"]
    assert orjson.loads(sent) == {"unreadable": '{"path": "a'}


async def test_picture_of_several_megabytes_is_sent_whole(server: FakeModel, http: aiohttp.ClientSession) -> None:
    url = "data:image/png;base64," + "A" * 3_000_000
    await reply_of(model_at(server, http), ask(messages=[ChatMessage(Role.USER, "this", images=(Image(url),))]))
    assert server.last_request["messages"][0]["content"][1]["image_url"]["url"] == url


async def test_crowd_of_streams_is_read_in_fewer_and_larger_pieces(
    server: FakeModel, http: aiohttp.ClientSession
) -> None:
    server.streams(30, tokens_per_second=300)
    model = model_at(server, http)

    async def pieces() -> list[str]:
        return [event.text async for event in model.stream(ask()) if isinstance(event, TextDelta)]

    heard = await asyncio.gather(*(pieces() for _ in range(80)))
    assert {"".join(texts) for texts in heard} == {"".join(f"w{number} " for number in range(30))}
    assert sum(map(len, heard)) < 80 * 30 * 0.7


# What goes wrong, in words


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "body, kind",
    [
        (b'{"error":{"code":429,"message":"Provider returned error"}}', "rate"),
        (b'{"error":{"code":402,"message":"Insufficient credits"}}', "quota"),
        (b'{"error":"upstream timed out"}', "transient"),
        (b'[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]', "auth"),
        (b'{"code":1113,"msg":"balance: \xe4\xbd\x99\xe9\xa2\x9d\xe4\xb8\x8d\xe8\xb6\xb3"}', "quota"),
        (b"<html>captive portal</html>", "request"),
        (b'{"choices":[]}', "empty"),
        (b'{"choices":[{"message":{"role":"assistant","content":"  "},"finish_reason":"stop"}]}', "empty"),
        (b'{"choices":[{"message":{"content":""},"finish_reason":"length"}]}', "empty"),
        (b'{"choices":[{"message":{"content":null},"finish_reason":"content_filter"}]}', "request"),
        (b'{"choices":[{"mess', "transient"),
        (b"", "empty"),
    ],
)
async def test_good_status_with_no_good_answer_is_an_error(
    server: FakeModel, http: aiohttp.ClientSession, body: bytes, kind: str, stream: bool
) -> None:
    server.sends_next(body, content_type="application/json")
    assert (await failure_of(model_at(server, http), ask(stream=stream))).kind == kind


async def test_whole_answer_to_a_streamed_request_is_taken(server: FakeModel, http: aiohttp.ClientSession) -> None:
    server.sends_next(b'\n {"choices":[{"message":{"content":"All at once"}}]}', content_type="application/json")
    assert (await reply_of(model_at(server, http), ask())).text == "All at once"


async def test_stream_to_a_request_for_a_whole_answer_is_taken(server: FakeModel, http: aiohttp.ClientSession) -> None:
    server.sends_next(b'data: {"choices":[{"delta":{"content":"In pieces"},"finish_reason":"stop"}]}\n\n')
    assert (await reply_of(model_at(server, http), ask(stream=False))).text == "In pieces"


HALF = b'data: {"choices":[{"delta":{"content":"Half an"}}]}\n\n'


@pytest.mark.parametrize("cut", [True, False])
async def test_stream_that_breaks_off_keeps_what_was_shown(
    server: FakeModel, http: aiohttp.ClientSession, cut: bool
) -> None:
    server.sends_next(HALF, cut=cut)
    error = await failure_of(model_at(server, http))
    assert (error.kind, error.partial) == (ModelErrorKind.TRANSIENT, "Half an")
    assert "broke off" in str(error)


@pytest.mark.parametrize("is_stream", [True, False])
async def test_a_byte_order_mark_before_an_answer_is_passed_over(
    server: FakeModel, http: aiohttp.ClientSession, is_stream: bool
) -> None:
    part = "delta" if is_stream else "message"
    told = orjson.dumps({"choices": [{"index": 0, part: {"content": "hello"}, "finish_reason": "stop"}]})
    server.sends_next(b"\xef\xbb\xbf" + (b"data: %s\n\ndata: [DONE]\n\n" % told if is_stream else told))
    assert (await reply_of(model_at(server, http), ask())).text == "hello"


async def test_done_without_a_finish_reason_is_an_end(server: FakeModel, http: aiohttp.ClientSession) -> None:
    server.sends_next(HALF, b"data: [DONE]\n\n")
    reply = await reply_of(model_at(server, http), ask())
    assert (reply.text, reply.finish_reason) == ("Half an", "stop")


async def test_answer_that_is_finished_does_not_wait_for_a_usage_that_never_comes(
    server: FakeModel, http: aiohttp.ClientSession
) -> None:
    finish = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    server.script([Recorded((HALF, finish), stays_open=True)])
    model = model_at(server, http, timeouts=Timeouts(after_finish=0.05))
    assert (await reply_of(model, ask())).text == "Half an"


async def test_optional_field_that_a_provider_refuses_is_left_out_from_then_on(
    server: FakeModel, http: aiohttp.ClientSession
) -> None:
    server.fails_next(400, "Unknown field: stream_options")
    server.fails_next(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    model = model_at(server, http)
    for _ in range(2):
        assert (await reply_of(model, ask(max_tokens=5))).text == "echo: hello"
    assert len(server.requests) == 4
    assert "stream_options" not in server.last_request
    assert "max_tokens" not in server.last_request
    assert server.last_request["max_completion_tokens"] == 5


# Deadlines, and nothing left open


async def test_ids_that_another_provider_gave_are_shortened_for_who_refuses_them(
    server: FakeModel, model: ChatCompletions
) -> None:
    talk = [
        ChatMessage(Role.USER, "go"),
        ChatMessage(Role.ASSISTANT, tool_calls=(ToolCall("call_1", "now", "{}"), ToolCall("aB3dE6gH9", "now", "{}"))),
        ChatMessage(Role.TOOL, "noon", tool_call_id="call_1"),
        ChatMessage(Role.TOOL, "noon", tool_call_id="aB3dE6gH9"),
    ]
    server.fails_next(400, "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.")
    assert (await reply_of(model, ask(talk, tools=TOOLS))).text
    _, called, first, second = server.last_request["messages"]
    ids = [call["id"] for call in called["tool_calls"]]
    assert ids == [first["tool_call_id"], second["tool_call_id"]]
    assert ids[1] == "aB3dE6gH9"
    assert len(ids[0]) == 9
    assert ids[0].isalnum()
    await reply_of(model, ask(talk, tools=TOOLS))
    assert len(server.requests) == 3  # from then on at once


@pytest.mark.parametrize(
    "said",
    [
        "Unexpected role 'user' after role 'tool'",
        "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
    ],
)
async def test_who_wants_them_to_speak_in_turn_is_sent_so(server: FakeModel, model: ChatCompletions, said: str) -> None:
    picture = Image("data:image/png;base64,AAAA", "low")
    talk = [
        ChatMessage(Role.SYSTEM, "Be kind."),
        ChatMessage(Role.USER, "[Summary]"),
        ChatMessage(Role.USER, "go"),
        ChatMessage(Role.ASSISTANT, tool_calls=(ToolCall("c1", "now", "{}"),)),
        ChatMessage(Role.TOOL, "noon", tool_call_id="c1"),
        ChatMessage(Role.USER, "stop"),
        ChatMessage(Role.USER, "look", images=(picture,)),
    ]
    server.fails_next(400, said)
    assert (await reply_of(model, ask(talk, tools=TOOLS))).text
    sent = server.last_request["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert sent[1]["content"] == "[Summary]\n\ngo"
    assert sent[4]["content"] == "…"
    assert [part.get("text") for part in sent[5]["content"]] == ["stop", "look", None]


async def test_pictures_of_results_follow_upon_the_results(server: FakeModel, model: ChatCompletions) -> None:
    await reply_of(model, ask(TALK, tools=TOOLS))
    sent = server.last_request["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "tool", "user", "user"]
    assert sent[5]["content"] == [
        {"type": "text", "text": PICTURES},
        {"type": "image_url", "image_url": {"url": "https://pictures.example/x.png", "detail": "auto"}},
    ]


async def test_effort_that_is_refused_is_left_out_and_another_is_tried(
    server: FakeModel, model: ChatCompletions
) -> None:
    refused = {"message": "Unsupported value: 'none' is not supported.", "param": "reasoning_effort", "code": None}
    server.fails_next(400, {"error": refused})
    for effort in ("off", "off", "high"):
        await reply_of(model, ask(reasoning=effort))
    assert [request.get("reasoning_effort") for request in server.requests] == ["none", None, None, "high"]


async def test_reasoning_goes_back_to_those_alone_who_want_it(server: FakeModel, model: ChatCompletions) -> None:
    server.script([Reply("", (("now", {}),), reasoning="Which day?")])
    talk = [*HELLO, *goes_on(await reply_of(model, ask(tools=TOOLS)), "Sun")]
    await reply_of(model, ask(talk, tools=TOOLS))
    assert "reasoning_content" not in server.last_request["messages"][1]
    server.fails_next(400, "Missing `reasoning_content` field in the assistant message at message index 1.")
    for _ in range(2):
        await reply_of(model, ask(talk, tools=TOOLS))
        assert server.last_request["messages"][1]["reasoning_content"] == "Which day?"
    assert len(server.requests) == 5


async def test_signature_of_a_call_goes_back_with_it(server: FakeModel, model: ChatCompletions) -> None:
    signed = b'"extra_content":{"google":{"thought_signature":"Ct"}}'
    server.sends_next(
        b'data: {"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"now","arguments":"{}"}}]}}]}\n\n'
        b'data: {"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"now","arguments":"{}"},%b}]},'
        b'"finish_reason":"stop"}]}\n\n' % signed
    )
    talk = [*HELLO, *goes_on(await reply_of(model, ask(tools=TOOLS)), "Sun", "Sun")]
    await reply_of(model, ask(talk, tools=TOOLS))
    first, second = server.last_request["messages"][1]["tool_calls"]
    assert "extra_content" not in first
    assert second["extra_content"] == {"google": {"thought_signature": "Ct"}}
