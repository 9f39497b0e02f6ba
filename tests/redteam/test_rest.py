"""Attack what is left: shared folders, floods of checkpoints, set clocks, touched files, locked indexes.

The gateway, its store and its files are real, and the model does whatever the attacker's words say.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.workspace.folders import folder_name
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import ChatMessage, Role
from hermes.core.requests import AgentRequest, RequestKind
from hermes.servers.api.responses.routes import KEEPER
from hermes.services.gateway import Gateway
from hermes.services.janitor import Janitor
from hermes.services.outbound.alerts import MAX_TEXTS, Troubles
from hermes.store import checkpoints, people
from hermes.store.db import Trouble
from hermes.store.sqlite import search_index
from hermes.store.sqlite.losses import Loss, Report
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, ToolUse, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.api.others import run_is
from tests.integration.api.serving import served
from tests.integration.conftest import USER, Start
from tests.integration.watching import answered, results
from tests.unit.store.test_sqlite_faults import watch_checks

SECONDS = 20
DAY = 86400.0
SECRET = "the tulips are blue"


async def turn_of(gateway: Gateway, model: FakeModel, sender_id: str, *uses: ToolUse) -> list[str]:
    """One turn of this sender, in which the model makes these calls; the results of the calls."""
    model.script([calls_tools(*uses), "Done."])
    key = SessionKey("api", ChatKind.DM, f"talk of {sender_id}", person=sender_id)
    request = AgentRequest(RequestKind.CHAT, key, sender_id, (ChatMessage(Role.USER, "do it"),))
    async with asyncio.timeout(SECONDS), gateway.requests.ask(request) as handle:
        await handle.result()
    return results(model)


# Folders of others

PEOPLE = [
    ("a/b", "a_b"),
    ("a//b", "a__b"),
    ("a/b", "a%2Fb"),
    ("a%2Fb", "a%252Fb"),
    ("../b", ".._b"),
    ("a/../b", "a_.._b"),
    ("/", "_"),
    ("a b", "a_b"),
    ("a\nb", "a b"),
    ("a\\b", "a_b"),
    (unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")),
    ("ａ", "a"),
    ("a\u200b", "a"),
    ("x" * 300, "x" * 299 + "y"),
    ("é" * 200, "é" * 199 + "e"),
    ("\ud800", "\ud801"),
]


@pytest.mark.parametrize("one, other", PEOPLE, ids=ascii)
def test_two_ids_never_name_one_folder(one: str, other: str) -> None:
    names = {folder_name(f"p_x_{one}"), folder_name(f"p_x_{other}")}
    assert len(names) == 2
    for name in names:
        assert "/" not in name
        assert "\0" not in name
        assert len(os.fsencode(name)) <= 255


@pytest.mark.parametrize("person_id", [".", "..", ".folders.json", "nobody", "", "/", "\0"], ids=ascii)
def test_no_id_names_a_folder_that_is_not_its_own(person_id: str) -> None:
    name = folder_name(person_id)
    assert name not in (".", "..", ".folders.json")
    assert not name.startswith(".")
    assert (name == "nobody") is (person_id == "")


@pytest.mark.parametrize("one, other", [pair for pair in PEOPLE if pair[0].isprintable()][:9], ids=ascii)
async def test_a_person_with_a_similar_id_reads_no_file_of_another(
    start: Start, model: FakeModel, one: str, other: str
) -> None:
    async with start(MESSAGING_CWD="") as gateway:
        await turn_of(gateway, model, one, ("write_file", {"path": "diary.txt", "content": SECRET}))
        [written] = gateway.home.glob("workspaces/*/diary.txt")
        told = await turn_of(
            gateway,
            model,
            other,
            ("read_file", {"path": "diary.txt"}),
            ("read_file", {"path": f"../{written.parent.name}/diary.txt"}),
            ("read_file", {"path": str(written)}),
            ("search_files", {"pattern": "tulips"}),
        )
        assert len(told) == 4
        assert SECRET not in str(told)


def _absolute(theirs: Path, _own: Path) -> Path:
    return theirs


def _relative(theirs: Path, own: Path) -> Path:
    return Path(os.path.relpath(theirs, own))


def _through_proc(theirs: Path, _own: Path) -> Path:
    return Path("/proc/self/root") / theirs.relative_to("/")


@pytest.mark.parametrize("way", [_absolute, _relative, _through_proc])
@pytest.mark.parametrize("what", ["folder", "file"])
async def test_a_link_in_a_workspace_to_anothers_leads_nowhere(
    start: Start, model: FakeModel, way: Callable[[Path, Path], Path], what: str
) -> None:
    async with start(MESSAGING_CWD="") as gateway:
        await turn_of(gateway, model, "victim", ("write_file", {"path": "diary.txt", "content": SECRET}))
        await turn_of(gateway, model, "mallory", ("write_file", {"path": "own.txt", "content": "x"}))
        theirs, own = (gateway.home / "workspaces" / f"p_api_{name}" for name in ("victim", "mallory"))
        target = theirs if what == "folder" else theirs / "diary.txt"
        (own / "link").symlink_to(way(target, own))
        path = "link/diary.txt" if what == "folder" else "link"
        told = await turn_of(
            gateway,
            model,
            "mallory",
            ("read_file", {"path": path}),
            ("write_file", {"path": path, "content": "overwritten"}),
            ("search_files", {"pattern": "tulips"}),
        )
        assert SECRET not in str(told)
        assert (theirs / "diary.txt").read_text() == SECRET


async def test_two_accounts_whose_first_ids_would_be_the_same_are_two_people(start: Start) -> None:
    async with start() as gateway:
        for platform, user in (("my", "chat_1"), ("my_chat", "1")):
            person = people.first_id(platform, user)
            role = "admin" if platform == "my" else "guest"
            await gateway.db.write(
                people.ensure, person, platform=platform, user_id=user, name=user, role=role, now=gateway.clock.now()
            )
        found = [
            await gateway.db.read(people.find, platform, user)
            for platform, user in (("my", "chat_1"), ("my_chat", "1"))
        ]
        assert [person.role for person in found if person is not None] == ["admin", "guest"]


# Floods of checkpoints


@pytest.mark.parametrize("flood", ["many changes", "large files"])
async def test_a_flood_of_changes_of_one_person_is_bounded_and_costs_others_nothing(
    start: Start, model: FakeModel, tmp_path: Path, flood: str
) -> None:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text("checkpoints:\n  person_max_mb: 1\n  person_max_changes: 5\n")
    size = 10 if flood == "many changes" else 300_000
    async with start(MESSAGING_CWD="") as gateway:
        await turn_of(gateway, model, "victim", ("write_file", {"path": "plan.txt", "content": "one"}))
        await turn_of(gateway, model, "victim", ("write_file", {"path": "plan.txt", "content": "two"}))
        uses: list[ToolUse] = [
            ("write_file", {"path": "big.txt", "content": f"{number}" + "x" * size}) for number in range(20)
        ]
        await turn_of(gateway, model, "mallory", *uses)

        def kept(person: str) -> Callable[[Any], int]:
            return lambda tx: int(
                tx.value("SELECT COUNT(*) FROM checkpoints WHERE person_id = :person", person=f"p_api_{person}")
            )

        assert 1 <= await gateway.db.read(kept("mallory")) <= 5
        assert await gateway.db.read(kept("victim")) == 2
        assert await gateway.db.read(checkpoints.total_bytes) <= 1_000_000 + 10
        blobs = sum(file.stat().st_size for file in (home / "checkpoints").rglob("*") if file.is_file())
        assert blobs <= 1_000_000 + 10


# Clocks

DANGER = calls_tools(("danger", {"text": "bang"}))


@pytest.mark.parametrize("seconds", [60.0, 3600.0, DAY, 365 * DAY, 50 * 365 * DAY, -60.0, -DAY])
@pytest.mark.parametrize("when", ["before the janitor looked", "after"])
async def test_a_clock_that_is_set_expires_no_question(
    start: Start, model: FakeModel, seconds: float, when: str
) -> None:
    clock = FakeClock()
    async with served(start, clock=clock) as api, asyncio.timeout(SECONDS):
        model.script([DANGER, "All done."])
        run = (await api.post("/v1/runs", {"input": "do it"})).json["run_id"]
        await run_is(api, run, "waiting_approval")
        clock.advance(10)
        clock.jump(seconds)
        if when == "after":
            await Janitor(api.gateway.db, api.gateway.clock).mind_the_clock()
            assert api.gateway.clock.now() == clock.now()
        phone = await api.new_key("phone", "admin")  # the default key stands in a file and approves nothing of the host
        assert (await api.post(f"/v1/runs/{run}/approval", {"approve": True}, **phone)).status == 200
        await run_is(api, run, "completed")


@pytest.mark.parametrize("seconds", [3600.0, DAY, 365 * DAY])
async def test_a_question_still_expires_in_its_own_time_after_a_jump(
    start: Start, model: FakeModel, seconds: float
) -> None:
    clock = FakeClock()
    async with served(start, clock=clock) as api, asyncio.timeout(SECONDS):
        model.script([DANGER, "All done."])
        run = (await api.post("/v1/runs", {"input": "do it"})).json["run_id"]
        await run_is(api, run, "waiting_approval")
        clock.jump(seconds)
        await Janitor(api.gateway.db, api.gateway.clock).mind_the_clock()
        clock.advance(301)
        phone = await api.new_key("phone", "admin")
        refused = await api.post(f"/v1/runs/{run}/approval", {"approve": True}, **phone)
        assert refused.status == 409


@pytest.mark.parametrize("seconds", [DAY, 30 * DAY, -DAY])
async def test_a_clock_that_is_set_expires_no_answer(
    start: Start, telegram: FakeTelegram, seconds: float, tmp_path: Path
) -> None:
    clock = FakeClock()
    async with start(clock=clock) as gateway, asyncio.timeout(SECONDS):
        telegram.limit_next_send(5)
        telegram.user_says("hello", chat=USER)
        await telegram.wait_for(lambda: telegram.counts["sendMessage"] == 1, SECONDS)
        clock.jump(seconds)
        await Janitor(gateway.db, gateway.clock).mind_the_clock()
        clock.advance(6)
        await answered(telegram, "echo: hello")
        assert telegram.texts() == ["echo: hello"]


async def test_a_clock_that_is_years_ahead_deletes_no_stored_response(start: Start) -> None:
    clock = FakeClock()
    async with served(start, clock=clock) as api, asyncio.timeout(SECONDS):
        response = (await api.post("/v1/responses", {"input": "hello"})).json["id"]
        clock.jump(3 * 365 * DAY)
        await Janitor(api.gateway.db, api.gateway.clock).mind_the_clock()
        await api.server._app[KEEPER]._look()
        assert (await api.get(f"/v1/responses/{response}")).status == 200


# Files of the store


async def test_touching_the_store_again_and_again_checks_no_whole_file(
    start: Start, telegram: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start() as gateway, asyncio.timeout(SECONDS):
        looked = watch_checks(monkeypatch)
        for number in range(5):
            os.utime(gateway.home / "state.db", (number + 1, number + 1))
            telegram.user_says(f"hello {number}", chat=USER)
            await answered(telegram, f"echo: hello {number}")
        assert "checked" not in looked
        assert len(looked) <= 1


@pytest.mark.parametrize("lock", ["EXCLUSIVE", "IMMEDIATE"])
async def test_a_locked_search_index_is_neither_thrown_away_nor_the_end_of_the_turn(
    start: Start, model: FakeModel, monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    monkeypatch.setattr(search_index, "BUSY_SECONDS", 0.05)
    async with start() as gateway:
        await turn_of(gateway, model, "ana", ("session_search", {"query": "tulips"}))
        path = gateway.home / search_index.FILE
        inode = path.stat().st_ino
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute(f"BEGIN {lock}")
            [told] = await turn_of(gateway, model, "ben", ("session_search", {"query": "tulips"}))
        assert path.stat().st_ino == inode
        assert told


# Troubles without end


async def test_a_store_that_is_in_trouble_for_ever_fills_no_memory() -> None:
    troubles = Troubles()
    for number in range(5000):
        troubles.note(Trouble("down", f"state.db is locked by process {number}"))
        troubles.note(Trouble("journal", "the same again"))
    assert len(troubles.texts) == MAX_TEXTS
    assert troubles.texts.count("the same again") == 1
    assert len(troubles._untold) <= MAX_TEXTS
    assert len(troubles._passing) <= MAX_TEXTS
    for text in list(troubles.texts):
        troubles.note(Trouble("back", f"It works again. (It was: {text})"))
    assert troubles.texts == ["the same again"]


async def test_only_a_repair_that_lost_nothing_is_over_at_once() -> None:
    troubles = Troubles()
    whole = str(Report("state.db", "why", 0.0, "", 90, []))
    lost = str(Report("state.db", "why", 0.0, "", 90, [Loss("inbox", 10)]))
    for _ in range(2):
        troubles.note(Trouble("damage", whole))
        troubles.note(Trouble("damage", lost))
        troubles.note(Trouble("locked", "state.db is locked"))
    assert troubles.texts == [whole, lost, "state.db is locked"]
    assert troubles.repaired == [whole]
