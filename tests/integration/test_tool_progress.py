"""/verbose: each chat chooses what it sees of tools, and keeps its choice."""

from __future__ import annotations

from pathlib import Path

from hermes.core.i18n.catalogue import ENGLISH
from hermes.services.outbound.presenter import PresenterTiming
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start

AT_ONCE = PresenterTiming(first_sign_seconds=0.01, preview_after_seconds=0.0)
TWO_READS = calls_tools(("read_file", {"path": "notes.txt"}), ("read_file", {"path": "notes.txt", "first_line": 2}))


async def read_twice(telegram: FakeTelegram, model: FakeModel, tmp_path: Path) -> str:
    """What the chat is shown while two files are read and the model then thinks."""
    (tmp_path / "work" / "notes.txt").write_text("Bread.\nMilk.\n", encoding="utf-8")
    model.script([TWO_READS])
    model.when_told("", "Bread and milk.")
    telegram.user_says("read my notes")
    await telegram.wait_for(lambda: len(model.requests) % 2 == 0 and telegram.texts(7)[-1] == "Bread and milk.", 10)
    return "\n".join([*telegram.sent[-1].edits])


async def test_a_chat_keeps_its_choice_over_a_restart(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start(pace=AT_ONCE):
        telegram.user_says("/verbose")
        telegram.user_says("/verbose loud")
        telegram.user_says("/verbose off")
        await telegram.wait_for(lambda: len(telegram.sent) >= 3)
    async with start(pace=AT_ONCE):
        telegram.user_says("/verbose")
        await telegram.wait_for(lambda: len(telegram.sent) >= 4)
        assert "read_file" not in await read_twice(telegram, model, tmp_path)
        telegram.user_says("/verbose default")
        await telegram.wait_for(lambda: telegram.texts(7)[-1] == ENGLISH.TOOL_PROGRESS_NEW)
    assert telegram.texts(7)[0].startswith(ENGLISH.TOOL_PROGRESS_NEW)
    assert "loud" in telegram.texts(7)[1]
    assert telegram.texts(7)[2] == ENGLISH.TOOL_PROGRESS_OFF
    assert telegram.texts(7)[3].startswith(ENGLISH.TOOL_PROGRESS_OFF)
