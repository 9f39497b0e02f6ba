"""The dialect chat_completions against a real socket: requests, refusals, deadlines, and nothing left open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import aiohttp
import orjson
import pytest

from hermes.agent.models.chat_completions import ChatCompletions, Endpoint, Timeouts
from hermes.core.errors import ModelError, ModelErrorKind
from hermes.core.messages import ChatMessage, Image, Role, ToolCall, ToolSpec, Usage
from hermes.core.ports import ModelEvent, ModelReply, ModelRequest, TextDelta
from hermes.core.secret import Secret
from tests.fakes.model import FakeModel, Recorded

KEY = "sk-fake-5up3rS3cr3tValue"
HELLO = [ChatMessage(Role.USER, "hello")]


@pytest.fixture
async def server() -> AsyncIterator[FakeModel]:
    async with FakeModel() as fake:
        yield fake


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def model_at(server: FakeModel, http: aiohttp.ClientSession, **more: Any) -> ChatCompletions:
    more.setdefault("key", lambda: Secret(KEY))
    return ChatCompletions(Endpoint("openkey", server.url, "gpt-4o-mini", **more), http)


def ask(**more: Any) -> ModelRequest:
    return ModelRequest(more.pop("messages", HELLO), **{"deadline_seconds": 5.0, **more})


async def reply_of(model: ChatCompletions, request: ModelRequest) -> ModelReply:
    events: list[ModelEvent] = [event async for event in model.stream(request)]
    assert isinstance(events[-1], ModelReply)
    return events[-1]


async def failure_of(model: ChatCompletions, request: ModelRequest | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await reply_of(model, request or ask())
    assert KEY not in str(caught.value)
    assert caught.value.provider == "openkey"
    return caught.value


@pytest.mark.parametrize("stream", [True, False])
async def test_answer_is_the_same_streamed_and_at_once(
    server: FakeModel, http: aiohttp.ClientSession, stream: bool
) -> None:
    server.calls_tools([("read_file", {"path": "a"}), ("read_file", {"path": "b"})], text="One moment.")
    reply = await reply_of(model_at(server, http), ask(stream=stream))
    assert reply.text == "One moment."
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("read_file", '{"path":"a"}'),
        ("read_file", '{"path":"b"}'),
    ]
    assert (reply.usage, reply.finish_reason, reply.model) == (Usage(12, 7), "tool_calls", "fake-1")


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


async def test_model_without_tools_is_offered_none(server: FakeModel, http: aiohttp.ClientSession) -> None:
    model = model_at(server, http, has_tools=False)
    assert not model.has_tools
    await reply_of(model, ask(tools=[ToolSpec("now", "The time.")], tool_choice="auto"))
    assert not {"tools", "tool_choice"} & server.last_request.keys()


async def test_request_may_name_another_model(server: FakeModel, http: aiohttp.ClientSession) -> None:
    model = model_at(server, http)
    assert model.label == "openkey / gpt-4o-mini"
    await reply_of(model, ask(model="gpt-4o"))
    assert server.last_request["model"] == "gpt-4o"


async def test_key_is_asked_anew_before_every_call(server: FakeModel, http: aiohttp.ClientSession) -> None:
    keys = iter([None, Secret(""), Secret("first"), Secret(" second\n")])
    model = model_at(server, http, key=lambda: next(keys))
    for _ in range(4):
        await reply_of(model, ask())
    assert server.keys == ["", "", "first", "second"]


async def test_key_that_no_header_can_carry_is_told_without_showing_it(
    server: FakeModel, http: aiohttp.ClientSession
) -> None:
    error = await failure_of(model_at(server, http, key=lambda: Secret(f"{KEY}\n{KEY}")))
    assert error.kind is ModelErrorKind.AUTH
    assert server.requests == []


async def test_half_characters_do_not_stop_a_request(server: FakeModel, http: aiohttp.ClientSession) -> None:
    reply = await reply_of(model_at(server, http), ask(messages=[ChatMessage(Role.USER, "file \udcff.txt")]))
    assert reply.text == "echo: file ?.txt"


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


async def test_text_arrives_while_the_rest_is_still_being_made(server: FakeModel, http: aiohttp.ClientSession) -> None:
    server.streams(["Hel", "lo"])
    server.hold()
    async with aclosing(model_at(server, http).stream(ask())) as events:
        assert await anext(events) == TextDelta("Hel")
        server.release()
        assert await anext(events) == TextDelta("lo")
        assert isinstance(await anext(events), ModelReply)


async def test_paced_stream_arrives_whole(server: FakeModel, http: aiohttp.ClientSession) -> None:
    server.streams(20, tokens_per_second=500)
    replies = await asyncio.gather(*(reply_of(model_at(server, http), ask()) for _ in range(5)))
    assert {reply.text for reply in replies} == {"".join(f"w{number} " for number in range(20))}


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


@pytest.mark.parametrize(
    "status, body, kind, words",
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}, "auth", "key"),
        (403, {"error": {"message": "user quota is not enough", "code": "insufficient_user_quota"}}, "quota", "credit"),
        (429, {"error": {"message": "check billing", "code": "insufficient_quota"}}, "quota", "out of credit"),
        (429, {"error": {"message": "Rate limit reached"}}, "rate", "too many requests"),
        (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, "context", "/new"),
        (400, {"error": {"message": "openkey/x is not a valid model ID", "code": 400}}, "model", "“gpt-4o-mini”"),
        (404, {"error": {"message": 'model "qwen" not found, try pulling it first'}}, "model", "model.default"),
        (400, {"error": {"message": f"bad image, says {KEY}"}}, "request", "bad image, says [hidden]"),
        (400, {"detail": [{"msg": "field required"}]}, "request", "field required"),
        (404, b"404 page not found", "request", "base_url"),
        (404, b"<html><title>Not Found</title></html>", "request", "web page"),
        (503, b"<!DOCTYPE html><html>Service Unavailable</html>", "transient", "HTTP 503"),
        (500, b"", "transient", "HTTP 500"),
        (302, b"", "request", "moved"),
    ],
)
async def test_refusal_is_told_in_words(
    server: FakeModel, http: aiohttp.ClientSession, status: int, body: Any, kind: str, words: str
) -> None:
    server.fails_next(status, body)
    error = await failure_of(model_at(server, http))
    assert error.kind == kind
    assert str(error).startswith("My model (openkey) ")
    assert words in str(error)
    assert "<" not in str(error)


async def test_missing_key_is_told_as_such(http: aiohttp.ClientSession) -> None:
    async with FakeModel(key=KEY) as server:
        error = await failure_of(model_at(server, http, key=lambda: None))
        assert error.kind is ModelErrorKind.AUTH
        assert "none is set" in str(error)
        assert (await reply_of(model_at(server, http), ask())).text == "echo: hello"


async def test_provider_says_how_long_to_wait(server: FakeModel, http: aiohttp.ClientSession) -> None:
    server.fails_next(429, "slow down", {"Retry-After": "17"})
    error = await failure_of(model_at(server, http))
    assert error.retry_after == 17
    assert "asks to wait 17 s" in str(error)


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


async def test_reasoning_alone_is_no_answer(server: FakeModel, http: aiohttp.ClientSession) -> None:
    server.says("", reasoning="Hm, hm.")
    assert (await failure_of(model_at(server, http))).kind is ModelErrorKind.EMPTY


HALF = b'data: {"choices":[{"delta":{"content":"Half an"}}]}\n\n'


@pytest.mark.parametrize("cut", [True, False])
async def test_stream_that_breaks_off_keeps_what_was_shown(
    server: FakeModel, http: aiohttp.ClientSession, cut: bool
) -> None:
    server.sends_next(HALF, cut=cut)
    error = await failure_of(model_at(server, http))
    assert (error.kind, error.partial) == (ModelErrorKind.TRANSIENT, "Half an")
    assert "broke off" in str(error)


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


async def test_silence_before_the_headers_ends(server: FakeModel, http: aiohttp.ClientSession) -> None:
    server.hold(silently=True)
    error = await failure_of(model_at(server, http, timeouts=Timeouts(first_byte=0.05)))
    assert error.kind is ModelErrorKind.TRANSIENT
    assert "said nothing for 0.05 s" in str(error)
    await server.is_hung_up_on()


async def test_silence_between_headers_and_first_byte_ends(server: FakeModel, http: aiohttp.ClientSession) -> None:
    server.script([Recorded((), stays_open=True)])
    error = await failure_of(model_at(server, http, timeouts=Timeouts(first_byte=0.05)))
    assert "said nothing for 0.05 s" in str(error)


@pytest.mark.parametrize("silently", [True, False])
async def test_whole_answer_that_does_not_come_ends_at_the_deadline(
    server: FakeModel, http: aiohttp.ClientSession, silently: bool
) -> None:
    server.hold(silently=silently)
    error = await failure_of(model_at(server, http), ask(stream=False, deadline_seconds=0.05))
    assert "did not finish within 0.05 s" in str(error)


async def test_silence_in_the_middle_ends_and_keeps_what_was_shown(
    server: FakeModel, http: aiohttp.ClientSession
) -> None:
    server.streams(["Once", " more"])
    server.hold()
    error = await failure_of(model_at(server, http, timeouts=Timeouts(idle=0.05)))
    assert (error.kind, error.partial) == (ModelErrorKind.TRANSIENT, "Once")
    assert "said nothing for 0.05 s" in str(error)
    await server.is_hung_up_on()


async def test_reader_that_is_slow_itself_is_not_the_providers_fault(
    server: FakeModel, http: aiohttp.ClientSession
) -> None:
    server.streams(["a", "b"])
    server.hold()
    async with aclosing(model_at(server, http, timeouts=Timeouts(idle=0.15)).stream(ask())) as events:
        assert await anext(events) == TextDelta("a")
        server.release()
        await asyncio.sleep(0.2)
        assert isinstance([event async for event in events][-1], ModelReply)


async def test_stream_that_never_ends_is_cut_at_the_deadline(server: FakeModel, http: aiohttp.ClientSession) -> None:
    server.streams(10_000, tokens_per_second=200)
    error = await failure_of(model_at(server, http), ask(deadline_seconds=0.5))
    assert "did not finish within 0.5 s" in str(error)
    assert error.partial.startswith("w0 ")
    await server.is_hung_up_on()


async def test_provider_that_is_not_there_is_unreachable(http: aiohttp.ClientSession) -> None:
    async with FakeModel() as server:
        model = model_at(server, http)
    error = await failure_of(model)
    assert error.kind is ModelErrorKind.TRANSIENT
    assert "could not be reached (connection refused)" in str(error)


async def test_closing_the_iterator_ends_the_connection(server: FakeModel, http: aiohttp.ClientSession) -> None:
    server.streams(["a", "b"])
    server.hold()
    events = model_at(server, http).stream(ask())
    assert await anext(events) == TextDelta("a")
    await events.aclose()
    await server.is_hung_up_on()


@pytest.mark.parametrize("stream", [True, False])
async def test_cancelling_the_caller_ends_the_connection(
    server: FakeModel, http: aiohttp.ClientSession, stream: bool
) -> None:
    server.streams(["a", "b"])
    server.hold()
    task = asyncio.create_task(reply_of(model_at(server, http), ask(stream=stream)))
    await server.is_holding()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.is_hung_up_on()


@pytest.mark.parametrize("stream", [True, False])
async def test_connection_is_used_again(server: FakeModel, stream: bool) -> None:
    opened = 0

    async def count(*_: object) -> None:
        nonlocal opened
        opened += 1

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(count)
    async with aiohttp.ClientSession(trace_configs=[trace]) as http:
        model = model_at(server, http)
        for _ in range(3):
            await reply_of(model, ask(stream=stream))
        server.fails_next(500)
        await failure_of(model)
        await reply_of(model, ask(stream=stream))
    assert opened == 1
