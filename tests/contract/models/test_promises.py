"""What every dialect promises, against a real socket: keys, refusals, deadlines, and nothing left open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import aiohttp
import pytest

from hermes.agent.models.anthropic_messages import AnthropicMessages
from hermes.agent.models.chat_completions import ChatCompletions
from hermes.agent.models.endpoint import Timeouts
from hermes.agent.models.http_model import HttpModel
from hermes.agent.models.responses import Responses
from hermes.core.errors import ModelErrorKind
from hermes.core.messages import ChatMessage, Role, ToolSpec, Usage
from hermes.core.ports import ModelReply, TextDelta
from hermes.core.secret import Secret
from tests.contract.models.conftest import KEY, ask, endpoint, failure_of, reply_of
from tests.fakes.model import FakeModel, Recorded, Reply

Make = Callable[..., HttpModel]


@pytest.fixture(params=[ChatCompletions, Responses, AnthropicMessages], ids=lambda dialect: dialect.__name__)
def make(request: pytest.FixtureRequest) -> Make:
    def model_at(server: FakeModel, http: aiohttp.ClientSession, **more: Any) -> HttpModel:
        model: HttpModel = request.param(endpoint(server, **more), http)
        return model

    return model_at


@pytest.mark.parametrize("stream", [True, False])
async def test_answer_is_the_same_streamed_and_at_once(
    server: FakeModel, http: aiohttp.ClientSession, make: Make, stream: bool
) -> None:
    server.calls_tools([("read_file", {"path": "a"}), ("read_file", {"path": "b"})], text="One moment.")
    reply = await reply_of(make(server, http), ask(stream=stream))
    assert reply.text == "One moment."
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("read_file", '{"path":"a"}'),
        ("read_file", '{"path":"b"}'),
    ]
    assert (reply.usage, reply.finish_reason, reply.model) == (Usage(12, 7), "tool_calls", "fake-1")


async def test_model_without_tools_is_offered_none(server: FakeModel, http: aiohttp.ClientSession, make: Make) -> None:
    model = make(server, http, has_tools=False)
    assert not model.has_tools
    await reply_of(model, ask(tools=[ToolSpec("now", "The time.")], tool_choice="auto"))
    assert not {"tools", "tool_choice"} & server.last_request.keys()


async def test_request_may_name_another_model(server: FakeModel, http: aiohttp.ClientSession, make: Make) -> None:
    model = make(server, http)
    assert model.label == "openkey / gpt-4o-mini"
    await reply_of(model, ask(model="gpt-4o"))
    assert server.last_request["model"] == "gpt-4o"


async def test_key_is_asked_anew_before_every_call(server: FakeModel, http: aiohttp.ClientSession, make: Make) -> None:
    keys = iter([None, Secret(""), Secret("first"), Secret(" second\n")])
    model = make(server, http, key=lambda: next(keys))
    for _ in range(4):
        await reply_of(model, ask())
    assert server.keys == ["", "", "first", "second"]


async def test_key_that_no_header_can_carry_is_told_without_showing_it(
    server: FakeModel, http: aiohttp.ClientSession, make: Make
) -> None:
    error = await failure_of(make(server, http, key=lambda: Secret(f"{KEY}\n{KEY}")))
    assert error.kind is ModelErrorKind.AUTH
    assert server.requests == []


async def test_half_characters_do_not_stop_a_request(
    server: FakeModel, http: aiohttp.ClientSession, make: Make
) -> None:
    reply = await reply_of(make(server, http), ask(messages=[ChatMessage(Role.USER, "file \udcff.txt")]))
    assert reply.text == "echo: file ?.txt"


async def test_text_arrives_while_the_rest_is_still_being_made(
    server: FakeModel, http: aiohttp.ClientSession, make: Make
) -> None:
    server.streams(["Hel", "lo"])
    server.hold()
    async with aclosing(make(server, http).stream(ask())) as events:
        assert await anext(events) == TextDelta("Hel")
        server.release()
        assert await anext(events) == TextDelta("lo")
        assert isinstance(await anext(events), ModelReply)


async def test_paced_stream_arrives_whole(server: FakeModel, http: aiohttp.ClientSession, make: Make) -> None:
    server.streams(20, tokens_per_second=500)
    replies = await asyncio.gather(*(reply_of(make(server, http), ask()) for _ in range(5)))
    assert {reply.text for reply in replies} == {"".join(f"w{number} " for number in range(20))}


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
    server: FakeModel, http: aiohttp.ClientSession, make: Make, status: int, body: Any, kind: str, words: str
) -> None:
    server.fails_next(status, body)
    error = await failure_of(make(server, http))
    assert error.kind == kind
    assert str(error).startswith("My model (openkey) ")
    assert words in str(error)
    assert "<" not in str(error)


async def test_missing_key_is_told_as_such(http: aiohttp.ClientSession, make: Make) -> None:
    async with FakeModel(key=KEY) as server:
        error = await failure_of(make(server, http, key=lambda: None))
        assert error.kind is ModelErrorKind.AUTH
        assert "none is set" in str(error)
        assert (await reply_of(make(server, http), ask())).text == "echo: hello"


async def test_provider_says_how_long_to_wait(server: FakeModel, http: aiohttp.ClientSession, make: Make) -> None:
    server.fails_next(429, "slow down", {"Retry-After": "17"})
    error = await failure_of(make(server, http))
    assert error.retry_after == 17
    assert "asks to wait 17 s" in str(error)


async def test_reasoning_alone_is_no_answer(server: FakeModel, http: aiohttp.ClientSession, make: Make) -> None:
    server.says("", reasoning="Hm, hm.")
    assert (await failure_of(make(server, http))).kind is ModelErrorKind.EMPTY


async def test_thinking_that_uses_up_the_limit_would_do_so_again(
    server: FakeModel, http: aiohttp.ClientSession, make: Make
) -> None:
    server.script([Reply("", reasoning="Hm, hm.", finish="length")])
    error = await failure_of(make(server, http))
    assert (error.kind, error.is_settled) == (ModelErrorKind.EMPTY, True)
    assert "used up its token limit" in str(error)


async def test_silence_before_the_headers_ends(server: FakeModel, http: aiohttp.ClientSession, make: Make) -> None:
    server.hold(silently=True)
    error = await failure_of(make(server, http, timeouts=Timeouts(first_byte=0.05)))
    assert error.kind is ModelErrorKind.TRANSIENT
    assert "said nothing for 0.05 s" in str(error)
    await server.is_hung_up_on()


async def test_silence_between_headers_and_first_byte_ends(
    server: FakeModel, http: aiohttp.ClientSession, make: Make
) -> None:
    server.script([Recorded((), stays_open=True)])
    error = await failure_of(make(server, http, timeouts=Timeouts(first_byte=0.05)))
    assert "said nothing for 0.05 s" in str(error)


@pytest.mark.parametrize("silently", [True, False])
async def test_whole_answer_that_does_not_come_ends_at_the_deadline(
    server: FakeModel, http: aiohttp.ClientSession, make: Make, silently: bool
) -> None:
    server.hold(silently=silently)
    error = await failure_of(make(server, http), ask(stream=False, deadline_seconds=0.05))
    assert "did not finish within 0.05 s" in str(error)


async def test_silence_in_the_middle_ends_and_keeps_what_was_shown(
    server: FakeModel, http: aiohttp.ClientSession, make: Make
) -> None:
    server.streams(["Once", " more"])
    server.hold()
    error = await failure_of(make(server, http, timeouts=Timeouts(idle=0.05)))
    assert (error.kind, error.partial) == (ModelErrorKind.TRANSIENT, "Once")
    assert "said nothing for 0.05 s" in str(error)
    await server.is_hung_up_on()


async def test_reader_that_is_slow_itself_is_not_the_providers_fault(
    server: FakeModel, http: aiohttp.ClientSession, make: Make
) -> None:
    server.streams(["a", "b"])
    server.hold()
    async with aclosing(make(server, http, timeouts=Timeouts(idle=0.15)).stream(ask())) as events:
        assert await anext(events) == TextDelta("a")
        server.release()
        await asyncio.sleep(0.2)
        assert isinstance([event async for event in events][-1], ModelReply)


async def test_stream_that_never_ends_is_cut_at_the_deadline(
    server: FakeModel, http: aiohttp.ClientSession, make: Make
) -> None:
    server.streams(10_000, tokens_per_second=200)
    error = await failure_of(make(server, http), ask(deadline_seconds=0.5))
    assert "did not finish within 0.5 s" in str(error)
    assert error.partial.startswith("w0 ")
    await server.is_hung_up_on()


async def test_provider_that_is_not_there_is_unreachable(http: aiohttp.ClientSession, make: Make) -> None:
    async with FakeModel() as server:
        model = make(server, http)
    error = await failure_of(model)
    assert error.kind is ModelErrorKind.TRANSIENT
    assert "could not be reached (connection refused)" in str(error)


async def test_closing_the_iterator_ends_the_connection(
    server: FakeModel, http: aiohttp.ClientSession, make: Make
) -> None:
    server.streams(["a", "b"])
    server.hold()
    events = make(server, http).stream(ask())
    assert await anext(events) == TextDelta("a")
    await events.aclose()
    await server.is_hung_up_on()


@pytest.mark.parametrize("stream", [True, False])
async def test_cancelling_the_caller_ends_the_connection(
    server: FakeModel, http: aiohttp.ClientSession, make: Make, stream: bool
) -> None:
    server.streams(["a", "b"])
    server.hold()
    task = asyncio.create_task(reply_of(make(server, http), ask(stream=stream)))
    await server.is_holding()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.is_hung_up_on()


@pytest.mark.parametrize("stream", [True, False])
async def test_connection_is_used_again(server: FakeModel, make: Make, stream: bool) -> None:
    opened = 0

    async def count(*_: object) -> None:
        nonlocal opened
        opened += 1

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(count)
    async with aiohttp.ClientSession(trace_configs=[trace]) as http:
        model = make(server, http)
        for _ in range(3):
            await reply_of(model, ask(stream=stream))
        server.fails_next(500)
        await failure_of(model)
        await reply_of(model, ask(stream=stream))
    assert opened == 1
