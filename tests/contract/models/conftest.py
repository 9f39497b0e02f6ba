"""A scripted provider and a way to it, for every test of a dialect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import pytest

from hermes.agent.models.endpoint import Endpoint
from hermes.agent.models.http_model import HttpModel
from hermes.core.errors import ModelError
from hermes.core.messages import ChatMessage, Image, Role, ToolCall, ToolSpec
from hermes.core.ports import ModelEvent, ModelReply, ModelRequest
from hermes.core.secret import Secret
from tests.fakes.model import FakeModel

KEY = "sk-fake-5up3rS3cr3tValue"
HELLO = [ChatMessage(Role.USER, "hello")]
TOOLS = [ToolSpec("read_file", "Read it.", {"type": "object"}), ToolSpec("now", "The time.")]
TALK = [
    ChatMessage(Role.SYSTEM, "Be kind."),
    ChatMessage(Role.USER, "What is this?", images=(Image("data:image/png;base64,AAAA", "low"),), name="ana_1"),
    ChatMessage(
        Role.ASSISTANT,
        "Let me look.",
        tool_calls=(ToolCall("c1", "read_file", '{"path":"a"}'), ToolCall("c:2", "now", "{")),
    ),
    ChatMessage(Role.TOOL, "no such file", tool_call_id="c1"),
    ChatMessage(Role.TOOL, "a picture", tool_call_id="c:2", images=(Image("https://pictures.example/x.png"),)),
    ChatMessage(Role.USER, "then?", name="Ana with spaces"),
]


@pytest.fixture
async def server() -> AsyncIterator[FakeModel]:
    async with FakeModel() as fake:
        yield fake


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def endpoint(server: FakeModel, **more: Any) -> Endpoint:
    more.setdefault("key", lambda: Secret(KEY))
    return Endpoint("openkey", server.url, more.pop("model", "gpt-4o-mini"), **more)


def ask(messages: Sequence[ChatMessage] = HELLO, **more: Any) -> ModelRequest:
    return ModelRequest(messages, **{"deadline_seconds": 5.0, **more})


async def reply_of(model: HttpModel, request: ModelRequest | None = None) -> ModelReply:
    events: list[ModelEvent] = [event async for event in model.stream(request or ask())]
    assert isinstance(events[-1], ModelReply)
    return events[-1]


async def failure_of(model: HttpModel, request: ModelRequest | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await reply_of(model, request)
    assert KEY not in str(caught.value)
    assert caught.value.provider == "openkey"
    return caught.value


def goes_on(reply: ModelReply, *results: str) -> list[ChatMessage]:
    """What a turn adds to its talk: the model's message, and a result for each of its calls."""
    said = ChatMessage(Role.ASSISTANT, reply.text, tool_calls=reply.tool_calls, thought=reply.thought)
    answers = zip(reply.tool_calls, results, strict=True)
    return [said, *(ChatMessage(Role.TOOL, text, tool_call_id=call.id) for call, text in answers)]
