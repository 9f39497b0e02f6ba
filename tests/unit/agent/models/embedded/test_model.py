"""The built-in model: a child process that comes when called and leaves when nobody talks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import cast

import pytest

from hermes.agent.models.embedded.download import Fetcher, FetchState
from hermes.agent.models.embedded.model import EmbeddedModel
from hermes.agent.models.embedded.prompts import SYSTEM_PROMPT, hint
from hermes.core.errors import ModelError, ModelErrorKind
from hermes.core.messages import ChatMessage, OutputFormat, Role
from hermes.core.ports import Model, ModelEvent, ModelReply, ModelRequest, TextDelta
from tests.fakes.embedded import notes, until, write_child, write_pip


@pytest.fixture
async def fetcher(tmp_path: Path) -> AsyncIterator[Fetcher]:
    async with Fetcher(tmp_path / "gateway", pip=write_pip(tmp_path), use_own_packages=False) as fetcher:
        yield fetcher


@pytest.fixture
async def model(tmp_path: Path, fetcher: Fetcher) -> AsyncIterator[EmbeddedModel]:
    async with EmbeddedModel(tmp_path / "gateway", fetcher, child_script=write_child(tmp_path)) as model:
        yield model


def asking(*texts: str) -> ModelRequest:
    """A request whose texts alternate between the user and the model, the user first."""
    roles = (Role.USER, Role.ASSISTANT)
    return ModelRequest([ChatMessage(roles[place % 2], text) for place, text in enumerate(texts)])


async def events_of(model: Model, request: ModelRequest) -> list[ModelEvent]:
    async with asyncio.timeout(10):
        return [event async for event in model.stream(request)]


async def reply_of(model: Model, request: ModelRequest) -> ModelReply:
    return cast(ModelReply, (await events_of(model, request))[-1])


async def test_answer_is_streamed_and_then_given_whole(model: EmbeddedModel) -> None:
    events = await events_of(model, asking("hi", "Hello.", "how are you?"))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hello", " there", "!"]
    assert isinstance(events[-1], ModelReply)
    assert events[-1].text == "Hello there!"
    assert events[-1].usage.completion_tokens == 3
    assert not model.has_tools


async def test_first_reply_of_a_conversation_says_what_this_model_is(model: EmbeddedModel, tmp_path: Path) -> None:
    events = await events_of(model, asking("hello"))
    reply = events[-1]
    assert isinstance(reply, ModelReply)
    assert reply.text == f"Hello there!\n\n{hint(tmp_path / 'gateway')}"
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == reply.text


async def test_chinese_is_answered_in_chinese_without_fetching_or_starting_anything(
    model: EmbeddedModel, tmp_path: Path
) -> None:
    reply = await reply_of(model, asking("你好"))
    assert reply.text.startswith("我是内置的小模型，只会一点英文。接入一个模型就能用中文和工具：")
    assert notes(tmp_path, "calls") == notes(tmp_path, "starts") == []


async def test_child_starts_at_the_first_message_and_serves_the_next_ones(model: EmbeddedModel, tmp_path: Path) -> None:
    assert model.child_pid is None
    for _ in range(3):
        await reply_of(model, asking("hello"))
    assert len(notes(tmp_path, "starts")) == 1
    assert json.loads(notes(tmp_path, "prompts")[0]) == [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": "hello"},
    ]


async def test_child_leaves_when_idle_and_comes_back_when_called(fetcher: Fetcher, tmp_path: Path) -> None:
    script = write_child(tmp_path)
    async with EmbeddedModel(tmp_path / "gateway", fetcher, idle_seconds=0.01, child_script=script) as model:
        await reply_of(model, asking("hello"))
        await until(lambda: notes(tmp_path, "ends"))
        assert model.child_pid is None
        assert (await reply_of(model, asking("hello"))).text.startswith("Hello")
    assert len(notes(tmp_path, "starts")) == len(notes(tmp_path, "ends")) == 2


async def test_closing_ends_the_child(fetcher: Fetcher, tmp_path: Path) -> None:
    async with EmbeddedModel(tmp_path / "gateway", fetcher, child_script=write_child(tmp_path)) as model:
        await reply_of(model, asking("hello"))
    assert notes(tmp_path, "ends") == notes(tmp_path, "starts")


async def test_child_that_dies_before_a_word_is_replaced_once(model: EmbeddedModel, tmp_path: Path) -> None:
    assert (await reply_of(model, asking("die once"))).text.startswith("Hello there!")
    assert len(notes(tmp_path, "starts")) == 2


async def test_child_that_dies_again_is_told_with_the_way_it_ended(model: EmbeddedModel, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="exit code 3") as caught:
        await reply_of(model, asking("die"))
    assert caught.value.kind is ModelErrorKind.TRANSIENT
    assert len(notes(tmp_path, "starts")) == 2
    assert (await reply_of(model, asking("hello"))).text.startswith("Hello")


async def test_text_that_was_out_when_the_child_died_is_kept_and_not_said_twice(model: EmbeddedModel) -> None:
    with pytest.raises(ModelError) as caught:
        await reply_of(model, asking("die after a word"))
    assert caught.value.partial.strip() == "Hello"


async def test_engine_that_cannot_load_is_told_with_its_reason(model: EmbeddedModel, tmp_path: Path) -> None:
    (tmp_path / "refuse-to-load").touch()
    with pytest.raises(ModelError, match="bad weights"):
        await reply_of(model, asking("hello"))


async def test_library_that_is_gone_since_the_fetch_is_brought_back_by_the_question_that_needs_it(
    model: EmbeddedModel, fetcher: Fetcher, tmp_path: Path
) -> None:
    await fetcher.wait(10)
    (tmp_path / "needs-library").touch()  # somebody removed the system's own
    assert (await reply_of(model, asking("hello"))).text.startswith("Hello there!")
    assert notes(tmp_path, "calls")[-1].endswith("pykdtree==1.4.3")


async def test_library_that_cannot_be_had_is_told_with_the_command_to_type(
    model: EmbeddedModel, fetcher: Fetcher, tmp_path: Path
) -> None:
    await fetcher.wait(10)
    (tmp_path / "needs-library").touch()
    (tmp_path / "mood").write_text("library: ERROR: No matching distribution found for pykdtree==1.4.3")
    with pytest.raises(ModelError, match=r"libgomp\.so\.1 is missing here.* then ask again"):
        await reply_of(model, asking("hello"))
    assert fetcher.progress.state is FetchState.FAILED


async def test_refusal_of_the_engine_and_an_empty_answer_are_errors(model: EmbeddedModel) -> None:
    with pytest.raises(ModelError, match="too long"):
        await reply_of(model, asking("refuse"))
    with pytest.raises(ModelError) as caught:
        await reply_of(model, asking("be silent"))
    assert caught.value.kind is ModelErrorKind.EMPTY


async def test_answer_that_was_cut_off_shows_it(model: EmbeddedModel) -> None:
    assert (await reply_of(model, asking("a", "b", "talk"))).text == "Hello there!…"


async def test_answer_given_up_midway_is_stopped_and_the_next_one_is_not_mixed_with_it(
    model: EmbeddedModel, tmp_path: Path
) -> None:
    async with asyncio.timeout(10), aclosing(model.stream(asking("a", "b", "never end"))) as events:  # type: ignore[type-var]
        async for _ in events:
            break
    assert (await reply_of(model, asking("a", "b", "hello"))).text == "Hello there!"
    assert notes(tmp_path, "stops") == ["1"]
    assert len(notes(tmp_path, "starts")) == 1


async def test_cancelled_turn_frees_the_model_for_the_next_one(model: EmbeddedModel) -> None:
    waiting = asyncio.create_task(events_of(model, asking("a", "b", "never end")))
    await until(lambda: model.child_pid)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await reply_of(model, asking("a", "b", "hello"))).text == "Hello there!"


async def test_messages_at_once_are_answered_one_after_the_other(model: EmbeddedModel, tmp_path: Path) -> None:
    replies = await asyncio.gather(*(reply_of(model, asking("a", "b", "hello")) for _ in range(5)))
    assert {reply.text for reply in replies} == {"Hello there!"}
    assert len(notes(tmp_path, "starts")) == 1


async def test_too_many_waiting_is_told_instead_of_waiting_for_ever(model: EmbeddedModel) -> None:
    first = asyncio.create_task(events_of(model, asking("a", "b", "never end")))
    await until(lambda: model.child_pid)
    with pytest.raises(ModelError, match="one message at a time"):
        await reply_of(model, ModelRequest([ChatMessage(Role.USER, "hello")], deadline_seconds=0.01))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_model_that_is_still_being_fetched_says_how_far_it_is(fetcher: Fetcher, tmp_path: Path) -> None:
    (tmp_path / "mood").write_text("hang")
    async with EmbeddedModel(tmp_path / "gateway", fetcher, wait_seconds=0.05) as model:
        with pytest.raises(ModelError, match=r"still being fetched: \d of 127 MB. Ask again in a minute.") as caught:
            await reply_of(model, asking("hello"))
    assert caught.value.kind is ModelErrorKind.TRANSIENT


async def test_model_that_cannot_be_fetched_says_why(fetcher: Fetcher, tmp_path: Path) -> None:
    (tmp_path / "mood").write_text("ERROR: NewConnectionError: Network is unreachable")
    async with EmbeddedModel(tmp_path / "gateway", fetcher) as model:
        with pytest.raises(ModelError, match="cannot be reached: check the network"):
            await reply_of(model, asking("hello"))


async def test_form_of_an_answer_is_refused_in_words_before_anything_is_started(model: EmbeddedModel) -> None:
    asked = ModelRequest([ChatMessage(Role.USER, "hi")], format=OutputFormat())
    with pytest.raises(ModelError, match="built-in model cannot answer in the requested format") as caught:
        await events_of(model, asked)
    assert caught.value.kind is ModelErrorKind.REQUEST
    assert model.child_pid is None
