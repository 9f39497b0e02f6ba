"""A provider that fails is told in the chat, and another one answers: over real sockets."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import aiohttp
import pytest

from hermes.agent.models.chat_completions import ChatCompletions, Endpoint
from hermes.agent.models.fallback import Chain, Patience
from hermes.core.errors import ModelError, ModelErrorKind
from hermes.core.messages import ChatMessage, Role
from hermes.core.ports import ModelEvent, ModelNotice, ModelReply, ModelRequest, TextDelta
from tests.fakes.model import FakeModel

REQUEST = ModelRequest([ChatMessage(Role.USER, "hello")], deadline_seconds=5)
HALF = b'data: {"choices":[{"delta":{"content":"Half an"}}]}\n\n'


class RealClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@pytest.fixture
async def relay() -> AsyncIterator[FakeModel]:
    async with FakeModel() as server:
        yield server


@pytest.fixture
async def ollama() -> AsyncIterator[FakeModel]:
    async with FakeModel() as server:
        yield server


@pytest.fixture
async def model(relay: FakeModel, ollama: FakeModel) -> AsyncIterator[Chain]:
    async with aiohttp.ClientSession() as http:
        models = [
            ChatCompletions(Endpoint("openkey", relay.url, "gpt-4o-mini"), http),
            ChatCompletions(Endpoint("ollama", ollama.url, "qwen3"), http),
        ]
        yield Chain(models, clock=RealClock(), patience=Patience(retries=1, first_pause_seconds=0.001))


async def heard(model: Chain) -> list[ModelEvent]:
    return [event async for event in model.stream(REQUEST)]


async def test_account_without_credit_is_told_and_the_fallback_answers(
    model: Chain, relay: FakeModel, ollama: FakeModel
) -> None:
    relay.fails_next(403, "user quota is not enough", code="insufficient_user_quota")
    notice, delta, reply = await heard(model)
    assert notice == ModelNotice(
        "My model (openkey) says the account is out of credit. I answered with the fallback, ollama / qwen3."
    )
    assert delta == TextDelta("echo: hello")
    assert isinstance(reply, ModelReply)
    assert (reply.provider, len(relay.requests), len(ollama.requests)) == ("ollama", 1, 1)


async def test_stream_that_breaks_is_started_over_and_superseded(model: Chain, relay: FakeModel) -> None:
    relay.sends_next(HALF, cut=True)
    relay.says("A whole answer")
    first, notice, reply = await heard(model)
    assert first == TextDelta("Half an")
    assert isinstance(notice, ModelNotice)
    assert "broke off in the middle of its answer" in notice.text
    assert isinstance(reply, ModelReply)
    assert (reply.text, reply.provider) == ("A whole answer", "openkey")


async def test_when_nobody_answers_the_chat_is_told_what_the_owner_can_do(
    model: Chain, relay: FakeModel, ollama: FakeModel
) -> None:
    relay.fails_next(401, "bad key", code="invalid_api_key")
    for _ in range(2):
        ollama.fails_next(500)
    with pytest.raises(ModelError) as caught:
        await heard(model)
    assert caught.value.kind is ModelErrorKind.AUTH
    assert str(caught.value) == (
        "My model (openkey) needs a key, and none is set, and the fallback (ollama / qwen3) failed too. "
        "Owner: check the key, then `hermes doctor`."
    )
