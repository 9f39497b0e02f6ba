"""`hermes sessions import`: earlier talks go on where they were, come once, and can be taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.core.errors import GatewayError
from hermes.hosting.control.handlers.store import StoreVerbs
from hermes.services.gateway import Gateway
from hermes.store.sessions import revisions, sessions, transcripts
from hermes.store.sqlite.transcript_files import Journal
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.fixtures.homes import snapshot, unpack_hermes_agent_home
from tests.integration.conftest import Start
from tests.integration.test_session_commands import ask, heard, newest
from tests.unit.hosting.importers.test_hermes_agent import ANA, write_home

NEVER = {"SESSION_RESET_MODE": "none"}


class Told:
    def __init__(self) -> None:
        self.events: list[Any] = []

    async def event(self, told: Any) -> None:
        self.events.append(told)


async def bring(gateway: Gateway, path: Path, *, dry_run: bool = False) -> dict[str, Any]:
    told = Told()
    verb = StoreVerbs(gateway.home, gateway.db, gateway.clock).mapping()["sessions.import"]
    result: dict[str, Any] = await verb({"path": str(path), "dry_run": dry_run}, told)
    assert not result["transcripts"] or told.events[-1] == {"done": result["transcripts"], "of": result["transcripts"]}
    return result


async def take_back(gateway: Gateway, batch: str) -> dict[str, Any]:
    verb = StoreVerbs(gateway.home, gateway.db, gateway.clock).mapping()["sessions.delete_import"]
    result: dict[str, Any] = await verb({"batch": batch}, Told())
    return result


async def test_an_imported_talk_goes_on_in_its_chat_and_its_source_stays_as_it_was(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    old = write_home(tmp_path / "old")
    before = snapshot(old)
    async with start(**NEVER) as gateway:
        would = await bring(gateway, old, dry_run=True)
        assert (would["new"], would["lines"], would["empty"], would["batch"]) == (3, 10, 1, "")
        assert await newest(gateway) == []
        told = await bring(gateway, old)
        assert (told["new"], told["lines"], told["empty"]) == (3, 10, 1)
        assert len(told["troubles"]) == 4
        assert await ask(telegram, "going on") == "echo: going on"
        assert heard(model)[0] == "what is here?"
        assert heard(model)[-1] == "going on"
        assert "1. s_" in await ask(telegram, "/sessions")
        assert "what is here?" in await ask(telegram, "/history 40")
        await ask(telegram, "/undo 2")
        await ask(telegram, "after that")
        assert heard(model) == ["what is here?", "after that"]
    assert snapshot(old) == before


async def test_importing_again_adds_only_what_is_new_and_nothing_to_what_went_on_here(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    old = write_home(tmp_path / "old")
    file = old / "sessions" / f"{ANA}.jsonl"
    async with start(**NEVER) as gateway:
        await bring(gateway, old)
        again = await bring(gateway, old)
        assert (again["new"], again["same"], again["lines"], again["batch"]) == (0, 3, 0, "")
        with file.open("a") as more:
            more.write(json.dumps({"role": "user", "content": "one more"}) + "\n")
        grown = await bring(gateway, old)
        assert (grown["longer"], grown["lines"]) == (1, 1)
        await ask(telegram, "going on here")
        with file.open("a") as more:
            for number in range(9):
                more.write(json.dumps({"role": "user", "content": f"there {number}"}) + "\n")
        assert (await bring(gateway, old))["ours"] == 1
        assert "there 1" not in await ask(telegram, "/history 40")


async def test_an_import_is_taken_back_but_for_what_was_gone_on_with(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    old = write_home(tmp_path / "old")
    async with start(**NEVER) as gateway:
        batch = (await bring(gateway, old))["batch"]
        await ask(telegram, "going on here")
        gone = await take_back(gateway, batch)
        assert (len(gone["deleted"]), len(gone["kept"])) == (2, 1)
        assert [session.key for session in await newest(gateway)] == ["agent:main:telegram:dm:7"]
        assert (await bring(gateway, old))["new"] == 2
        with pytest.raises(GatewayError, match="There is no import"):
            await take_back(gateway, "im_nothing")


async def test_a_chat_that_talks_already_stays_in_its_talk_and_can_take_the_old_one_up(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start(**NEVER) as gateway:
        await ask(telegram, "new here")
        await bring(gateway, write_home(tmp_path / "old"))
        await ask(telegram, "still new")
        assert heard(model) == ["new here", "still new"]
        assert (await ask(telegram, "/resume last")).startswith("Continued here:")
        await ask(telegram, "and back")
        assert heard(model)[0] == "what is here?"


async def test_transcripts_of_our_own_keep_their_names_and_what_was_taken_back(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with start(**NEVER) as gateway:
        await ask(telegram, "kept")
        await ask(telegram, "taken back")
        await ask(telegram, "/undo")
        [session] = await newest(gateway)
        await gateway.db.read(Journal(tmp_path / "other").catch_up, session.id)
        await gateway.db.write(sessions.delete, session.id)
        told = await bring(gateway, tmp_path / "other")
        assert (told["new"], told["troubles"]) == (1, [])
        assert [message.text for message in await gateway.db.read(transcripts.history, session.id)] == [
            "kept",
            "echo: kept",
        ]
        assert await gateway.db.read(revisions.active, session.id) is None
        assert (await bring(gateway, tmp_path / "other"))["ours"] == 1  # it has turns of its own here


async def test_a_home_without_transcripts_says_so_and_our_own_is_not_imported_into_itself(
    start: Start, tmp_path: Path
) -> None:
    async with start() as gateway:
        told = await bring(gateway, unpack_hermes_agent_home(tmp_path / "real"))
        assert told["transcripts"] == 0
        assert "holds no transcripts" in told["troubles"][0]
        with pytest.raises(GatewayError, match="this home itself"):
            await bring(gateway, gateway.home)
