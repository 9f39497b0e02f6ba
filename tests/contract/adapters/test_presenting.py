"""While it works, on every platform: typing that ends, previews that grow and become the answer, tools as chosen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from hermes.config.agent_settings import ToolProgressMode
from hermes.core.keys import Target
from hermes.core.markdown.streaming import CURSOR
from hermes.core.messages import Rate, Rates
from hermes.core.ports import Adapter, Alive
from hermes.platforms.local.adapter import LocalAdapter
from tests.contract.adapters.stage import EDIT_PAUSE, QUICK, Stage, set_up
from tests.fakes.local import FakeLocal
from tests.fakes.server import FakeServer

WORDS = [f"word{number} " for number in range(300)]


def needs_edits(server: FakeServer) -> None:
    if not server.capabilities.edits:
        pytest.skip("no edits here")


@pytest.mark.plays("typing")
async def test_typing_is_kept_alive_while_it_works_and_ends_with_the_answer(server: FakeServer, tmp_path: Path) -> None:
    async with set_up(server, tmp_path) as stage:
        await stage.begins()
        await server.wait_for(lambda: server.typings >= 3)
        stage.writes("done")
        await stage.is_answered(await stage.answers())
        shown = server.typings
        await asyncio.sleep(QUICK.typing_every_seconds * 3)
    assert server.typings == shown


async def test_a_quick_answer_is_only_the_answer(server: FakeServer, tmp_path: Path) -> None:
    async with set_up(server, tmp_path) as stage:
        await stage.begins()
        stage.writes("hello")
        await stage.is_answered(await stage.answers())
    assert [(sent.text, sent.edits) for sent in server.sent] == [("hello", [])]
    assert server.typings == 0


async def test_a_preview_grows_by_few_edits_and_becomes_the_answer(server: FakeServer, tmp_path: Path) -> None:
    needs_edits(server)
    loop = asyncio.get_running_loop()
    async with set_up(server, tmp_path) as stage:
        await stage.begins()
        begun = loop.time()
        for number, word in enumerate(WORDS[: server.capabilities.text_limit // 10]):  # one message holds them
            stage.writes(word)
            if number % 20 == 0:
                await asyncio.sleep(0.02)
        await stage.shows(lambda text: text.endswith(CURSOR))
        seconds = loop.time() - begun
        await stage.is_answered(await stage.answers())
    [only] = server.sent
    growing = only.edits
    assert all(text.endswith(CURSOR) for text in growing)
    assert [len(text) for text in growing] == sorted(len(text) for text in growing)
    assert len(growing) <= seconds / EDIT_PAUSE + 2, "edits are made at their pace, not for each word"


async def test_nothing_is_shown_after_the_answer(server: FakeServer, tmp_path: Path) -> None:
    needs_edits(server)
    async with set_up(server, tmp_path) as stage:
        await stage.begins()
        stage.writes("Once upon")
        await stage.shows(lambda text: text == "Once upon" + CURSOR)
        stage.writes(" a time")
        answer = await stage.answers()
        stage.writes(" and this comes too late")
        await stage.is_answered(answer)
        await asyncio.sleep(EDIT_PAUSE * 3)
    assert [sent.text for sent in server.sent] == ["Once upon a time"]


async def test_half_written_markup_is_never_shown_as_such(server: FakeServer, tmp_path: Path) -> None:
    needs_edits(server)
    async with set_up(server, tmp_path) as stage:
        await stage.begins()
        stage.writes("Look at **this wo")
        await stage.shows(lambda text: "this wo" in text)
        stage.writes("rd**:\n\n```python\nprint(1")
        await stage.shows(lambda text: "print(1" in text)
        await stage.presenter.close(stage.turn_id)
    [only] = server.sent
    shown = [*only.edits, only.text]
    if only.parse_mode:  # where markup is the platform's own, people see none of ours
        assert not [text for text in shown if "**" in text or "```" in text]
    assert len([text for text in shown if text.count("```") % 2 or text.count("**") % 2]) == 0


async def test_at_the_pace_of_the_platform_the_newest_text_is_shown_and_the_answer_goes_first(
    server: FakeServer, tmp_path: Path
) -> None:
    needs_edits(server)
    rates = Rates(in_all=Rate(4, 0.2), in_chat=Rate(1, 0.2))
    async with set_up(server, tmp_path, rates=rates) as stage:
        began = asyncio.get_running_loop().time()
        await stage.begins()
        for word in WORDS[:40]:
            stage.writes(word)
            await asyncio.sleep(0.01)
        seconds = asyncio.get_running_loop().time() - began  # 0.4, and more on a busy machine
        await stage.is_answered(await stage.answers())
    [only] = server.sent
    assert 1 <= len(only.edits) <= seconds / 0.2 + 2
    assert all("".join(WORDS).startswith(text.removesuffix(CURSOR)) for text in only.edits)


@pytest.mark.parametrize(
    "mode, expected",
    [
        ("new", ["💻 ls -la...", "📖 read_file..."]),
        ("all", ["💻 ls -la...", "💻 pwd...", "📖 read_file..."]),
    ],
)
async def test_tools_at_work_are_shown_as_the_chat_chose(
    server: FakeServer, tmp_path: Path, mode: str, expected: list[str]
) -> None:
    needs_edits(server)
    async with set_up(server, tmp_path) as stage:
        await use_three_tools(stage, mode)
        await stage.shows(lambda text: "read_file" in text)
        shown = server.sent[0].text.replace("`", "").removesuffix(CURSOR)
        await stage.is_answered(await stage.answers("All done."))
    assert shown.splitlines() == expected
    assert [sent.text for sent in server.sent] == ["All done."]


async def test_told_everything_a_chat_sees_arguments_and_results(server: FakeServer, tmp_path: Path) -> None:
    needs_edits(server)
    async with set_up(server, tmp_path) as stage:
        await use_three_tools(stage, "verbose")
        await stage.shows(lambda text: "read_file" in text and "↳ first line" in text.replace("`", ""))
        shown = server.sent[0].text.replace("`", "")
    assert '"path": "a.txt"' in shown
    assert "second line" not in shown


async def test_where_tools_are_not_to_be_shown_none_is(server: FakeServer, tmp_path: Path) -> None:
    async with set_up(server, tmp_path) as stage:
        await use_three_tools(stage, "off")
        await asyncio.sleep(EDIT_PAUSE * 3)
        await stage.is_answered(await stage.answers("All done."))
    assert [(sent.text, sent.edits) for sent in server.sent] == [("All done.", [])]


async def test_a_chat_that_changes_its_mind_in_mid_turn_is_heard(server: FakeServer, tmp_path: Path) -> None:
    needs_edits(server)
    async with set_up(server, tmp_path) as stage:
        await stage.begins("off")
        stage.uses("terminal", '{"command": "ls"}')
        stage.presenter.set_mode(str(stage.key), ToolProgressMode.ALL)
        stage.uses("terminal", '{"command": "pwd"}')
        await stage.shows(lambda text: "pwd" in text)
    assert "ls" not in server.sent[0].text


async def test_where_nothing_can_be_edited_only_the_answer_comes(server: FakeServer, tmp_path: Path) -> None:
    async with set_up(server, tmp_path, edits=False) as stage:
        await stage.begins()
        for word in WORDS[:20]:
            stage.writes(word)
        await asyncio.sleep(EDIT_PAUSE * 3)
        await stage.is_answered(await stage.answers())
    assert len(server.sent) == 1
    assert server.sent[0].edits == []


async def test_where_nothing_can_be_edited_a_few_messages_tell_of_tools(server: FakeServer, tmp_path: Path) -> None:
    async with set_up(server, tmp_path, edits=False) as stage:
        await stage.begins("all")
        for number in range(5):
            stage.uses("terminal", f'{{"command": "step {number}"}}')
            if number < 2:
                await stage.shows(lambda text, number=number: f"step {number}" in text)  # type: ignore[misc]
        await asyncio.sleep(EDIT_PAUSE * 3)
        await stage.is_answered(await stage.answers("All done."))
    assert len(server.sent) == 3, "two of them, as this platform says, and the answer"


async def use_three_tools(stage: Stage, mode: str) -> None:
    await stage.begins(mode)
    stage.uses("terminal", '{"command": "ls -la"}', "\nfirst line\nsecond line")
    stage.uses("terminal", '{"command": "pwd"}')
    stage.uses("read_file", '{"path": "a.txt"}')


# A platform on which typing goes on until it is told otherwise


class TypingLocal(FakeLocal):
    """A terminal at which it is seen that we type."""

    def __init__(self) -> None:
        super().__init__()
        self.is_typing = False
        self.typed = 0

    @asynccontextmanager
    async def adapter(
        self, *, alive: Alive = lambda: None, http: aiohttp.ClientSession | None = None
    ) -> AsyncIterator[Adapter]:
        yield TypingAdapter(self, alive)


class TypingAdapter(LocalAdapter):
    capabilities = replace(LocalAdapter.capabilities, typing=True)

    def __init__(self, fake: TypingLocal, alive: Alive) -> None:
        super().__init__(fake.hub, "main", alive)
        self._fake = fake

    async def typing(self, _: Target) -> None:
        self._fake.is_typing = True
        self._fake.typed += 1

    async def typing_ended(self, _: Target) -> None:
        self._fake.is_typing = False


async def test_typing_that_does_not_end_by_itself_is_ended(tmp_path: Path) -> None:
    async with TypingLocal() as server, set_up(server, tmp_path) as stage:
        await stage.begins()
        await server.wait_for(lambda: server.is_typing)
        stage.writes("done")
        await stage.is_answered(await stage.answers())
        await server.wait_for(lambda: not server.is_typing)
        shown = server.typed
        await asyncio.sleep(QUICK.typing_every_seconds * 2)
    assert not server.is_typing
    assert server.typed == shown


@pytest.mark.plays("rate")
async def test_a_preview_that_is_told_to_wait_costs_the_answer_nothing(server: FakeServer, tmp_path: Path) -> None:
    async with set_up(server, tmp_path, rates=Rates(in_chat=Rate(20, 0.05))) as stage:
        server.limit_next_send(0)
        await stage.begins()
        stage.writes("Once upon")
        await asyncio.sleep(EDIT_PAUSE * 3)
        stage.writes(" a time")
        await stage.is_answered(await stage.answers())
    assert [sent.text for sent in server.sent] == ["Once upon a time"]
