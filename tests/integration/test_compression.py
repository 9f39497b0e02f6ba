"""A long talk is made shorter beside the turns, shows its lines all the same, and can be as it was."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hermes.agent.compression import OPENING
from hermes.core.messages import Role
from hermes.hosting.control.handlers.store import StoreVerbs
from hermes.services.gateway import Gateway
from hermes.services.turns.compression import REST_TURNS
from hermes.store.db import Tx
from hermes.store.sessions import rebuild, revisions, transcripts
from hermes.store.sqlite.transcript_files import Journal
from tests.fakes.model import FakeModel, Reply, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start, crash
from tests.integration.watching import SECONDS, a_model_accepts, answered, until

SMALL = {"HERMES_CONTEXT_WINDOW": "1000"}  # tokens: 2,800 bytes are 70 % of it
MINUTES = "You keep the minutes"
SUMMARY = "Ana plans a garden with 12 roses."
LONG = ("roses and tulips " * 43).strip()


async def revision(gateway: Gateway) -> revisions.Revision | None:
    def read(tx: Tx) -> revisions.Revision | None:
        return revisions.active(tx, str(tx.value("SELECT id FROM sessions")))

    return await gateway.db.read(read)


async def is_compressed(gateway: Gateway) -> revisions.Revision:
    async def look() -> bool:
        return await revision(gateway) is not None

    await until(look)
    found = await revision(gateway)
    assert found is not None
    return found


async def session_id(gateway: Gateway) -> str:
    return str(await gateway.db.read(lambda tx: tx.value("SELECT id FROM sessions")))


def writes_minutes(model: FakeModel, text: str = SUMMARY, *, is_held: bool = False) -> None:
    """Requests for a summary are answered with this one, whatever else is scripted."""
    model.when_instructed(MINUTES, text, is_held=is_held)


async def talk(telegram: FakeTelegram, *texts: str) -> None:
    for text in texts:
        telegram.user_says(text)
        await answered(telegram, f"echo: {text}")


def asked(model: FakeModel) -> list[str]:
    """What the newest request of a turn said besides the system prompt."""
    turns = [request["messages"] for request in model.requests if MINUTES not in request["messages"][0]["content"]]
    return [message["content"] for message in turns[-1][1:]]


async def test_a_compressed_session_shows_its_lines_and_is_undone(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    writes_minutes(model)
    async with start(**SMALL) as gateway:
        before = f"one {LONG}", f"two {LONG}"
        await talk(telegram, *before)
        made = await is_compressed(gateway)
        await talk(telegram, "three")
        assert asked(model)[0] == f"{OPENING}\n{SUMMARY}"
        assert asked(model)[-1] == "three"
        assert not any(text.startswith("one ") for text in asked(model))
        name = await session_id(gateway)
        shown: list[str] = []

        class Page:
            async def event(self, event: dict[str, object]) -> None:
                shown.append(json.dumps(event))

        await StoreVerbs(gateway.home, gateway.db, gateway.clock).show({"id": name}, Page())
        assert any("one roses" in line for line in shown), "the originals are there"
        assert any('"revision"' in line and SUMMARY in line for line in shown)
        telegram.user_says("/undo")
        await telegram.wait_for(lambda: any("Taken back: “three”" in text for text in telegram.texts()), SECONDS)
        telegram.user_says("/undo")
        await telegram.wait_for(lambda: any("compression is taken back" in text for text in telegram.texts()), SECONDS)
        assert await revision(gateway) is None
        await talk(telegram, "four")
        assert asked(model)[0] == before[0]
        assert "three" not in asked(model)
        assert await session_id(gateway) == name
        assert made.up_to == 2
    [*_, last] = [request for request in model.requests if MINUTES in str(request["messages"][0])]
    assert "tools" not in last
    assert f"user: {before[0]}" in last["messages"][1]["content"]


async def test_a_message_that_comes_meanwhile_goes_on_with_the_talk_as_it_is(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    writes_minutes(model, is_held=True)
    async with start(**SMALL) as gateway:
        await talk(telegram, f"one {LONG}", f"two {LONG}")
        await model.is_holding(SECONDS)
        await talk(telegram, "three")
        assert asked(model)[0] == f"one {LONG}"
        model.release()
        made = await is_compressed(gateway)
        assert made.up_to == 2
        await talk(telegram, "four")
        assert asked(model) == [
            f"{OPENING}\n{SUMMARY}",
            f"two {LONG}",
            f"echo: two {LONG}",
            "three",
            "echo: three",
            "four",
        ]


async def test_a_crash_in_the_middle_leaves_all_as_it_is(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    writes_minutes(model, is_held=True)
    async with start(**SMALL) as gateway:
        await talk(telegram, f"one {LONG}", f"two {LONG}")
        await model.is_holding(SECONDS)
        await crash(gateway)
    model.release()
    async with start(**SMALL) as gateway:
        assert await revision(gateway) is None
        await talk(telegram, "three")
        assert asked(model)[0] == f"one {LONG}"
        await is_compressed(gateway)


async def test_a_summary_that_fails_or_is_no_shorter_changes_nothing(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    writes_minutes(model, "x" * 20_000)
    async with start(**SMALL) as gateway:
        await talk(telegram, f"one {LONG}", f"two {LONG}")
        telegram.user_says("/compress")
        await telegram.wait_for(lambda: any("no shorter" in text for text in telegram.texts()), SECONDS)
        await talk(telegram, "three")
        assert asked(model)[0] == f"one {LONG}"
        assert await revision(gateway) is None


async def test_what_was_tried_in_vain_is_not_tried_again_with_every_turn(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    def attempts() -> int:
        return sum(MINUTES in str(request["messages"][0]) for request in model.requests)

    async def tried() -> bool:
        return attempts() == 1

    writes_minutes(model, "x" * 20_000)
    async with start(**SMALL) as gateway:
        await talk(telegram, f"one {LONG}", f"two {LONG}")
        await until(tried)
        for number in range(REST_TURNS - 1):
            await talk(telegram, str(number))
        assert attempts() == 1
        writes_minutes(model)
        await talk(telegram, "and now", "and then", "at last")
        await is_compressed(gateway)
        assert attempts() == 2


async def test_compress_by_hand_says_how_long_and_a_preview_changes_nothing(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    writes_minutes(model)
    async with start() as gateway:
        telegram.user_says("/compress")
        await answered(telegram, "There is nothing here to make shorter yet.")
        await talk(telegram, f"one {LONG}", "two", "three")
        telegram.user_says("/compress --preview")
        await telegram.wait_for(lambda: any(SUMMARY in text for text in telegram.texts()), SECONDS)
        assert await revision(gateway) is None
        telegram.user_says("/compress")
        await telegram.wait_for(lambda: "→" in telegram.texts()[-1], SECONDS)
        assert telegram.texts()[-1].startswith("2 lines (")
        assert f"→ {len(SUMMARY)} characters" in telegram.texts()[-1]
        await talk(telegram, "four")
        assert asked(model)[0] == f"{OPENING}\n{SUMMARY}"


async def test_a_slow_summary_is_told_of_later_and_holds_nobody_up(
    start: Start, telegram: FakeTelegram, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.services.commands.sessions.compress.PATIENCE_SECONDS", 0.05)
    writes_minutes(model, is_held=True)
    async with start():
        await talk(telegram, f"one {LONG}", "two", "three")
        telegram.user_says("/compress")
        await telegram.wait_for(lambda: any("I'm at it" in text for text in telegram.texts()), SECONDS)
        await talk(telegram, "four")
        model.release()
        await telegram.wait_for(lambda: any("→" in text for text in telegram.texts()), SECONDS)
        assert "echo: four" in telegram.texts()


async def test_what_was_undone_is_not_done_again_before_it_is_urgent(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    writes_minutes(model)
    async with start(**SMALL) as gateway:
        await talk(telegram, f"one {LONG}", f"two {LONG}")
        await is_compressed(gateway)
        telegram.user_says("/undo")
        await telegram.wait_for(lambda: any("compression is taken back" in text for text in telegram.texts()), SECONDS)
        await talk(telegram, "three")
        await asyncio.sleep(0.05)
        assert await revision(gateway) is None
        await talk(telegram, f"four {LONG}")
        await is_compressed(gateway)


async def test_found_tools_and_whole_calls_outlive_a_compression(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    writes_minutes(model)
    model.when("^one", calls_tools(("find_tools", {"need": "danger"})))
    model.when_told("danger", Reply(f"Found. {LONG}"))
    async with start(**SMALL) as gateway:
        telegram.user_says(f"one {LONG}")
        await answered(telegram, f"Found. {LONG}")
        await talk(telegram, f"two {LONG}")
        await is_compressed(gateway)
        await talk(telegram, "three")
        turn = next(request for request in reversed(model.requests) if "tools" in request)
        names = [tool["function"]["name"] for tool in turn["tools"]]
        assert names[-1] == "danger"
        assert asked(model)[0].endswith("Tools found so far: danger")
        history = await gateway.db.read(transcripts.history, await session_id(gateway))
        assert a_model_accepts(history)
        assert history[0].role is Role.USER


async def test_revisions_and_undo_come_back_from_the_transcripts_file(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    writes_minutes(model)
    async with start(**SMALL) as gateway:
        await talk(telegram, f"one {LONG}", f"two {LONG}")
        await is_compressed(gateway)
        await talk(telegram, "three", "four")
        telegram.user_says("/undo")
        await telegram.wait_for(lambda: any("Taken back" in text for text in telegram.texts()), SECONDS)
        name = await session_id(gateway)
        wanted = await gateway.db.read(transcripts.context, name)
    async with start(**SMALL) as gateway:
        rebuilt = Journal(tmp_path / "home" / "sessions").rebuild(name)

        def lose(tx: Tx) -> None:
            for table in ("transcript", "revisions", "sessions"):
                tx.run(f"DELETE FROM {table}")

        await gateway.db.write(lose)
        await gateway.db.write(rebuild.put_back, name, rebuilt.session, rebuilt.lines)
        again = await gateway.db.read(transcripts.context, name)
    assert again.summary == wanted.summary == SUMMARY
    assert again.messages == wanted.messages
    assert [message.text for message in again.messages if message.role is Role.USER] == [f"two {LONG}", "three"]


async def test_a_talk_that_a_model_finds_too_long_is_made_shorter_whatever_was_estimated(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    writes_minutes(model)
    async with start() as gateway:
        await talk(telegram, f"one {LONG}", f"two {LONG}")
        model.fails_next(400, "too long", code="context_length_exceeded")
        await talk(telegram, "three")
        await is_compressed(gateway)
        assert "echo: three" in telegram.texts()


async def test_tools_tells_what_a_chat_has(start: Start, telegram: FakeTelegram) -> None:
    async with start():
        telegram.user_says("/tools")
        await telegram.wait_for(lambda: bool(telegram.sent), SECONDS)
    assert telegram.texts()[0].startswith("Toolset hermes-telegram, as user:\n")
    assert "files (read, write, change and search files): " in telegram.texts()[0]
