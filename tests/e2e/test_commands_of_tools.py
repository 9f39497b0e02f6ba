"""Commands of tools in the real gateway: none outlives a worker that is killed, and a takeover survives its starter."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.backends import bubblewrap
from hermes.hosting import heartbeat, locks, paths, processes
from hermes.hosting.control import client as control
from tests.e2e.keeping import ROOT
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram

USER = 7


def running(mark: str) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if mark.encode() in Path(f"/proc/{entry}/cmdline").read_bytes():
                    found.append(int(entry))
            except OSError:
                continue
    return found


async def until(ask: Callable[[], Any], seconds: float) -> Any:
    async with asyncio.timeout(seconds):
        while not (answer := ask()):  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.02)
    return answer


class Gateway:
    """A real gateway that knows what it needs from the .env of its home, so that a successor knows it too."""

    def __init__(self, folder: Path, telegram: FakeTelegram, model: FakeModel) -> None:
        self.home = folder / "hermes"
        self.telegram = telegram
        self.model = model
        self.environ = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "HERMES_HOME": str(self.home),
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        }  # fmt: skip
        self.home.mkdir(mode=0o700)
        # Scripts are read and asked about; these tests look at what stands behind that question.
        (self.home / "config.yaml").write_text("approvals:\n  mode: 'off'\n")
        (self.home / ".env").write_text(
            f"TELEGRAM_BOT_TOKEN={telegram.token}\nTELEGRAM_BASE_URL={telegram.url}\nTELEGRAM_ALLOWED_USERS={USER}\nGATEWAY_OWNERS=local\n"
            f"OPENAI_API_KEY=sk-test-0123456789\nOPENAI_BASE_URL={model.url}\nAPI_SERVER_ENABLED=false\n"
        )

    def hermes(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "hermes", *words]

    async def start(self) -> None:
        quiet = asyncio.subprocess.DEVNULL
        self.process = await asyncio.create_subprocess_exec(
            *self.hermes("gateway", "run"), env=self.environ, stdin=quiet, stdout=quiet, stderr=quiet
        )
        await self.ready()

    def worker(self, other_than: int = 0) -> int:
        seen = heartbeat.read(paths.heartbeat(str(self.home)))
        is_up = seen is not None and seen.ready_at > 0 and processes.is_alive(seen.pid, "")
        return seen.pid if seen is not None and is_up and seen.pid != other_than else 0

    async def ready(self, other_than: int = 0, seconds: float = 30.0) -> int:
        return int(await until(lambda: self.worker(other_than), seconds))

    async def owner_asks(self, text: str, folder: Path | None = None) -> asyncio.subprocess.Process:
        """The owner, on the machine's own command line."""
        pipe, joined = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
        cwd = folder or self.home.parent
        return await asyncio.create_subprocess_exec(
            *self.hermes("-z", text), env=self.environ, cwd=cwd, stdout=pipe, stderr=joined
        )

    async def close(self) -> None:
        holder = locks.holder(paths.parent_lock(str(self.home)))
        if holder is not None:
            processes.send_signal(holder.pid, holder.mark, signal.SIGTERM)
            await until(lambda: not control.is_running(self.home), 12)
        await asyncio.wait_for(self.process.wait(), 10)


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with FakeTelegram() as telegram, FakeModel() as model:
        gateway = Gateway(tmp_path, telegram, model)
        await gateway.start()
        yield gateway
        await gateway.close()


def a_long_sleep() -> str:
    return f"{1000 + os.getpid() % 1000}.{time.monotonic_ns() % 10**9:09d}"


@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
@pytest.mark.parametrize("who", ["owner", "user"])
async def test_no_command_outlives_a_killed_worker(gateway: Gateway, who: str, background: bool) -> None:
    if who == "user" and (why := bubblewrap.why_not()):
        pytest.skip(why)
    mark = a_long_sleep()
    command = f"trap '' TERM; (sleep {mark} | cat) & sleep {mark}; sleep {mark}"
    gateway.model.script(
        [calls_tools(("terminal", {"command": command, "background": background})), "It runs.", "Well."]
    )
    asked = None
    if who == "owner":
        asked = await gateway.owner_asks("start it")
    else:
        gateway.telegram.user_says("start it")
    await until(lambda: len(running(f"sleep\0{mark}")) >= 2, 15)
    worker = gateway.worker()
    os.kill(worker, signal.SIGKILL)
    began = time.monotonic()
    await until(lambda: not running(mark), 25)
    assert time.monotonic() - began < 22, "2.2 seconds are promised; a machine that stands still gets ten times as long"
    await gateway.ready(other_than=worker)
    if asked is not None:
        await asyncio.wait_for(asked.communicate(), 15)


async def test_the_owner_on_the_command_line_works_in_the_folder_they_are_in(gateway: Gateway) -> None:
    folder = gateway.home.parent / "a project"
    folder.mkdir()
    gateway.model.script([calls_tools(("terminal", {"command": "pwd > where"})), "Here."])
    said, _ = await asyncio.wait_for((await gateway.owner_asks("where are we?", folder)).communicate(), 20)
    assert b"Here." in said
    assert (folder / "where").read_text() == f"{folder}\n"
    gateway.model.script([calls_tools(("terminal", {"command": "pwd > where"})), "At home."])
    said, _ = await asyncio.wait_for((await gateway.owner_asks("and in here?", gateway.home)).communicate(), 20)
    assert b"At home." in said
    assert not (gateway.home / "where").exists()  # its own folder is none to work in
    assert (gateway.home.parent / "where").read_text() == f"{gateway.home.parent}\n"


@pytest.mark.parametrize("form", ["plain", "let go"])
async def test_a_takeover_from_the_agents_terminal_survives_whom_it_replaces(gateway: Gateway, form: str) -> None:
    """`hermes gateway run --replace` in terminal(background=true): also when nobody is its ancestor any more."""
    mark = a_long_sleep()
    takeover = f"PYTHONPATH={shlex.quote(gateway.environ['PYTHONPATH'])} {shlex.join(gateway.hermes('gateway', 'run'))}"
    script = f"{takeover} --replace\n" if form == "plain" else f"({takeover} --replace &)\nsleep {mark}\n"
    (gateway.home.parent / "takeover.sh").write_text(script)
    gateway.model.script([calls_tools(("terminal", {"command": "sh takeover.sh", "background": True})), "On its way."])
    old_parent, old_worker = gateway.process.pid, gateway.worker()
    asked = await gateway.owner_asks("take over")
    new_worker = await gateway.ready(other_than=old_worker, seconds=20)
    assert await asyncio.wait_for(gateway.process.wait(), 10) == 0
    assert not running(mark)
    holder = locks.holder(paths.parent_lock(str(gateway.home)))
    assert holder is not None
    assert holder.pid != old_parent
    assert processes.parent_of(new_worker) == holder.pid
    await asyncio.wait_for(asked.communicate(), 20)
    gateway.model.script(["Still here."])
    said, _ = await asyncio.wait_for((await gateway.owner_asks("are you there?")).communicate(), 20)
    assert b"Still here." in said
    assert gateway.worker() == new_worker
