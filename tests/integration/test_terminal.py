"""Commands in the whole gateway: an interrupt or /stop ends them, a drain leaves none, and danger is asked about."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from hermes.agent.backends import bubblewrap, landlock
from hermes.core.roles import PersonRole
from hermes.store import approvals
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.watching import a_model_accepts, answered, calls, make, question, results, transcript, turn_is


def running(mark: str) -> list[str]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", mark.encode()]:
                found.append(entry)
    return found


async def until(mark: str, *, is_there: bool, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while bool(running(mark)) is not is_there:  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.01)


@pytest.fixture
def mark() -> str:
    return f"{2000 + os.getpid() % 1000}.{time.monotonic_ns() % 10**9:09d}"


@pytest.fixture(params=["owner", "user"])
def role(request: pytest.FixtureRequest) -> PersonRole:
    if request.param == "user" and (why := bubblewrap.why_not()) and landlock.why_not():
        pytest.skip(why)
    return PersonRole(request.param)


async def test_a_newer_message_ends_the_command_and_its_group(
    start: Start, telegram: FakeTelegram, model: FakeModel, role: PersonRole, mark: str
) -> None:
    command = f"trap '' TERM; (sleep {mark} | cat) & sleep {mark}; sleep {mark}"
    model.script(
        [calls_tools(("terminal", {"command": command}), ("terminal", {"command": "echo later"})), "Never mind."]
    )
    async with start() as gateway:
        await make(gateway, USER, role)
        telegram.user_says("sleep well")
        await until(mark, is_there=True)
        began = time.monotonic()
        telegram.user_says("stop that")
        await until(mark, is_there=False)
        assert time.monotonic() - began < 20.0  # ten times the promise; a second of it is for who ignores SIGTERM
        await answered(telegram, "Never mind.")
        assert not running(mark)
        first, second = await calls(gateway)
        assert (first.outcome, second.outcome) == ("interrupted", "skipped")
        assert a_model_accepts(await transcript(gateway))


async def test_stop_returns_when_the_command_is_gone(
    start: Start, telegram: FakeTelegram, model: FakeModel, role: PersonRole, mark: str
) -> None:
    model.script([calls_tools(("terminal", {"command": f"sleep {mark}"}))])
    async with start() as gateway:
        await make(gateway, USER, role)
        telegram.user_says("sleep well")
        await until(mark, is_there=True)
        telegram.user_says("/stop")
        await telegram.wait_for(lambda: len(telegram.sent) > 0)
        assert not running(mark)
        await turn_is(gateway, "stopped")


async def test_a_stop_of_the_gateway_leaves_nothing_running(
    start: Start, telegram: FakeTelegram, model: FakeModel, mark: str
) -> None:
    wanted = ("terminal", {"command": f"sleep {mark}", "background": True})
    model.script([calls_tools(wanted), "It runs."])
    async with start() as gateway:
        await make(gateway, USER, PersonRole.OWNER)
        telegram.user_says("go")
        await answered(telegram, "It runs.")
        assert running(mark)
    assert not running(mark)
    model.script([calls_tools(("process", {"action": "list"})), "I see."])
    async with start():
        telegram.user_says("what became of it?")
        await answered(telegram, "I see.")
    assert "SIGTERM" in results(model)[-1]


async def test_the_owner_is_asked_before_a_command_that_names_the_gateways_own_folder(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.script([calls_tools(("terminal", {"command": f"cat {tmp_path}/home/.env"})), "As you like."])
    async with start() as gateway:
        await make(gateway, USER, PersonRole.OWNER)
        telegram.user_says("show me the keys")
        await turn_is(gateway, "waiting")
        [asked] = await gateway.db.read(approvals.pending, "")
        assert asked.touches_host
        assert "Hermes keeps its settings and secrets" in asked.question


async def test_what_is_on_the_hard_list_is_refused_even_to_the_owner(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([calls_tools(("terminal", {"command": "rm -rf / --no-preserve-root"})), "Right."])
    async with start() as gateway:
        await make(gateway, USER, PersonRole.OWNER)
        telegram.user_says("clean up")
        await answered(telegram, "Right.")
    assert "refused to everybody" in results(model)[0]


async def test_a_user_without_a_sandbox_is_told_why(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    model.script([calls_tools(("terminal", {"command": "true"})), "Sorry."])
    home = "terminal:\n  others: none\n"
    async with start() as gateway:
        (gateway.home / "config.yaml").write_text(home)
        gateway.watch.reload()
        telegram.user_says("run it")
        await answered(telegram, "Sorry.")
    assert "The terminal is for the owner alone here" in results(model)[0]


async def test_a_command_does_not_run_in_another_folder_than_was_allowed(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    for name in ("safe", "other"):
        (tmp_path / "work" / name).mkdir(parents=True)
    link = tmp_path / "work" / "link"
    link.symlink_to("safe")
    ask = {"command": "rm -rf gone; touch was-here", "folder": "link"}
    model.script([calls_tools(("terminal", ask)), "As you say."])
    async with start() as gateway:
        await make(gateway, USER, PersonRole.OWNER)
        telegram.user_says("clean up")
        await turn_is(gateway, "waiting")
        [asked] = await gateway.db.read(approvals.pending, "")
        assert asked.where_run.endswith("work/safe")
        link.unlink()
        link.symlink_to("other")
        telegram.user_says(f"/approve {asked.code}")
        await answered(telegram, "As you say.")
    assert "effect changed after it was checked or approved" in results(model)[0]
    assert list((tmp_path / "work").rglob("was-here")) == []


async def test_a_key_is_not_read_through_a_link_made_by_the_call_before(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    (tmp_path / "work" / ".ssh").mkdir(parents=True)
    (tmp_path / "work" / ".ssh" / "config").write_text("CANARY")
    # Code of a file is looked through, not understood: this one hides what it links to.
    (tmp_path / "work" / "make.py").write_text("import pathlib\npathlib.Path('door').symlink_to('.' + 'ssh')\n")
    made = ("terminal", {"command": "python3 make.py"})
    model.script([calls_tools(made, ("read_file", {"path": "door/config"})), "So be it."])
    async with start() as gateway:
        await make(gateway, USER, PersonRole.OWNER)
        telegram.user_says("go on")
        await answered(telegram, "So be it.")
    assert (tmp_path / "work" / "door").is_symlink()
    assert "CANARY" not in "".join(results(model))
    assert "effect changed after it was checked or approved" in results(model)[1]


@pytest.mark.parametrize("is_shared", [True, False], ids=["a folder for all", "a folder of one's own"])
async def test_deleting_folders_of_a_shared_workspace_is_asked_about_in_a_sandbox_too(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, is_shared: bool
) -> None:
    if (why := bubblewrap.why_not()) and landlock.why_not():
        pytest.skip(why)
    model.script([calls_tools(("terminal", {"command": "mkdir -p a/b && rm -rf a; ls"})), "Gone."])
    async with start(MESSAGING_CWD=str(tmp_path / "work") if is_shared else "") as gateway:
        await make(gateway, USER, PersonRole.USER)
        telegram.user_says("tidy up")
        if is_shared:
            card = await question(telegram)
            assert "mkdir -p a/b && rm -rf a; ls" in card.text
            assert "It deletes folders" in card.text
            telegram.user_presses(card, "Approve")  # it stays in the sandbox, so whoever was asked may answer
        await answered(telegram, "Gone.")
    assert "Exit code 0" in results(model)[0]
