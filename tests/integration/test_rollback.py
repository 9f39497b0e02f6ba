"""What the agent changed in files can be seen and taken back in the chat, by whoever asked for it."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start, crash
from tests.integration.watching import SECONDS, a_model_accepts, answered, calls, results, transcript, until

WRITE = ("write_file", {"path": "plan.txt", "content": "one\ntwo\n"})
PATCH = ("patch", {"path": "plan.txt", "edits": [{"old": "two", "new": "three"}]})


async def says(telegram: FakeTelegram, text: str, *, chat: int = USER) -> str:
    """Write to the bot and wait for its next words in that chat."""
    before = len(in_chat(telegram, chat))
    telegram.user_says(text, chat=chat)
    await telegram.wait_for(lambda: len(in_chat(telegram, chat)) > before, SECONDS)
    return in_chat(telegram, chat)[before]


def in_chat(telegram: FakeTelegram, chat: int) -> list[str]:
    return [sent.text for sent in telegram.sent if sent.chat == str(chat)]


async def test_written_changed_and_taken_back(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    file = tmp_path / "work" / "plan.txt"
    model.script([calls_tools(WRITE), calls_tools(PATCH), "Done."])
    async with start() as gateway:
        telegram.user_says("write a plan")
        await answered(telegram, "Done.")
        assert file.read_text() == "one\nthree\n"
        assert a_model_accepts(await transcript(gateway))
        listed = await says(telegram, "/rollback")
        assert "2 · " in listed
        assert "· patch · plan.txt" in listed
        assert "· write_file · plan.txt (new)" in listed
        assert await says(telegram, "/rollback last") == (
            "Change 2 is taken back: plan.txt is as it was before. /rollback shows all; this one can be taken back too."
        )
        assert file.read_text() == "one\ntwo\n"
        assert "plan.txt is removed again" in await says(telegram, "/rollback 1")
        assert not file.exists()
        assert "(taken back)" in await says(telegram, "/rollback")
        await says(telegram, "/rollback 4")
        assert file.read_text() == "one\ntwo\n"


async def test_what_somebody_else_changed_since_needs_force(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    file = tmp_path / "work" / "plan.txt"
    model.script([calls_tools(WRITE), "Done."])
    async with start():
        telegram.user_says("write a plan")
        await answered(telegram, "Done.")
        file.write_text("by hand\n")
        refused = await says(telegram, "/rollback last")
        assert "changed by somebody else since change 1. /rollback 1 force" in refused
        assert file.read_text() == "by hand\n"
        assert "taken back" in await says(telegram, "/rollback 1 force")
        assert not file.exists()


@pytest.mark.parametrize(
    "rest,told",
    [
        ("", "I have changed no files of yours"),
        ("last", "There is nothing to take back"),
        ("9", "There is no such change"),
        ("x", "/rollback [last | N] [force]"),
        ("1 2", "/rollback [last | N] [force]"),
        ("-1", "/rollback [last | N] [force]"),
        ("99999999999999999999999", "There is no such change"),
    ],
)
async def test_whatever_is_typed_is_answered(start: Start, telegram: FakeTelegram, rest: str, told: str) -> None:
    async with start():
        assert told in await says(telegram, f"/rollback {rest}".strip())


async def test_nobody_sees_or_takes_back_what_another_asked_for(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    file = tmp_path / "work" / "plan.txt"
    model.script([calls_tools(WRITE), "Done."])
    async with start(TELEGRAM_ALLOWED_USERS=f"{USER},8"):
        telegram.user_says("write a plan")
        await answered(telegram, "Done.")
        assert "changed no files of yours" in await says(telegram, "/rollback", chat=8)
        assert "nothing to take back" in await says(telegram, "/rollback last", chat=8)
        assert "no such change" in await says(telegram, "/rollback 1 force", chat=8)
        assert file.read_text() == "one\ntwo\n"


async def test_people_in_one_thread_have_their_own_changes(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.script([calls_tools(WRITE), "Done."])
    settings = {
        "TELEGRAM_ALLOWED_USERS": f"{USER},8",
        "TELEGRAM_GROUP_POLICY": "open",
        "TELEGRAM_REQUIRE_MENTION": "false",
    }
    async with start(**settings):
        telegram.user_says("write a plan", chat=-100, user=USER, thread=5)
        await answered(telegram, "Done.")
        telegram.user_says("/rollback 1 force", chat=-100, user=8, thread=5)
        await telegram.wait_for(lambda: any("no such change" in text for text in in_chat(telegram, -100)), SECONDS)
        telegram.user_says("/rollback 1", chat=-100, user=USER, thread=5)
        await telegram.wait_for(lambda: any("removed again" in text for text in in_chat(telegram, -100)), SECONDS)
    assert not (tmp_path / "work" / "plan.txt").exists()


@pytest.mark.parametrize("when", ["before the write", "after the write"])
async def test_a_kill_around_the_write_loses_neither_the_change_nor_the_original(
    start: Start,
    telegram: FakeTelegram,
    model: FakeModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    file = tmp_path / "work" / "plan.txt"
    model.script([calls_tools(PATCH), "Done."])
    reached, is_dead = threading.Event(), threading.Event()
    real = os.rename

    def killed(*args: Any, **named: Any) -> None:
        if when == "after the write" or "plan.txt" not in args:
            real(*args, **named)
        if "plan.txt" not in args:
            return
        reached.set()
        is_dead.wait(SECONDS)
        raise OSError(errno.EIO, "dead")  # nobody is left to hear of it

    async with start() as gateway:
        file.write_text("two\n")
        with monkeypatch.context() as patched:
            patched.setattr(os, "rename", killed)
            telegram.user_says("change it")
            await asyncio.to_thread(reached.wait, SECONDS)
            await gateway.db.close()
            is_dead.set()
            await crash(gateway)
    assert file.read_text() == ("three\n" if when == "after the write" else "two\n")
    async with start() as gateway:
        await answered(telegram, "Done.")
        assert file.read_text() == "three\n"
        [call] = await calls(gateway)
        assert (call.state, call.outcome) == ("done", "ok")
        assert "Changed 'plan.txt'" in results(model)[0]
        assert "taken back" in await says(telegram, "/rollback last")
        assert file.read_text() == "two\n"
        assert "nothing to take back" in await says(telegram, "/rollback last")


async def test_a_sensitive_file_is_asked_about_first(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.script([calls_tools(("write_file", {"path": ".bashrc", "content": "evil\n"})), "Done."])
    async with start() as gateway:
        telegram.user_says("go")
        await telegram.wait_for(lambda: any(sent.buttons for sent in telegram.sent), SECONDS)
        asked = next(sent.text for sent in telegram.sent if sent.buttons)
        assert ".bashrc" in asked
        assert "runs by itself" in asked

        async def waits() -> bool:
            return [call.state for call in await calls(gateway)] == ["waiting"]

        await until(waits)
    assert not (tmp_path / "work" / ".bashrc").exists()


async def test_a_question_ends_the_turn_and_the_next_message_answers_it(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("clarify", {"question": "Which colour?", "choices": ["red", "green"]})), "Green it is."])
    async with start() as gateway:
        asked = await says(telegram, "paint it")
        assert asked == "Which colour?\n1. red\n2. green\n\nA number, or your own words."
        assert await says(telegram, "2") == "Green it is."
        assert a_model_accepts(await transcript(gateway))
    told = [message["content"] for message in model.last_request["messages"] if message["role"] == "user"]
    assert told[-1].endswith("2")


async def test_a_list_lives_as_long_as_its_session(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    items = [{"id": "1", "text": "look", "state": "done"}, {"id": "2", "text": "leap"}]
    model.script([calls_tools(("todo", {"items": items})), "Noted.", calls_tools(("todo", {})), "Shown."])
    async with start():
        telegram.user_says("plan")
        await answered(telegram, "Noted.")
    async with start():
        telegram.user_says("what is left?")
        await answered(telegram, "Shown.")
        assert results(model)[-1] == "[x] 1: look\n[ ] 2: leap\n1 of 2 done."
        await says(telegram, "/new")
        model.script([calls_tools(("todo", {})), "Nothing."])
        telegram.user_says("and now?")
        await answered(telegram, "Nothing.")
        assert results(model) == ["The list is empty."]
