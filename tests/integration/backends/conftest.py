"""Terminals on a real store, with a home of the gateway beside the workspaces of several people."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hermes.agent.backends import bubblewrap, landlock
from hermes.agent.backends.terminals import Terminals
from hermes.agent.toolkit.context import Parts, ToolContext, ToolOutput
from hermes.agent.toolkit.schema import tools_of
from hermes.agent.toolkit.toolbox import Toolbox
from hermes.agent.tools import execute_code, process, terminal
from hermes.config import Config, load
from hermes.config.agent_settings import OthersTerminal, TerminalConfig
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.roles import PersonRole
from hermes.services.clock import SystemClock
from hermes.store.db import Database
from hermes.store.open import open_database
from tests.fakes.started_home import copy_store

SECRET = "the gateway's own secret"
SANDBOXES = ("bubblewrap", "landlock")
WHY_NOT: dict[str, Callable[[], str]] = {"bubblewrap": bubblewrap.why_not, "landlock": landlock.why_not}


@dataclass
class House:
    """A home with a secret in it, and people who have their workspaces there."""

    home: Path
    db: Database
    config: Config
    environ: dict[str, str]
    groups: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.toolbox = Toolbox(tools_of(terminal, process, execute_code))
        self.terminals = Terminals(self.home, self.environ, lambda: self.config, self.db, SystemClock())

    def set(self, **chosen: object) -> None:
        self.config = replace(self.config, terminal=replace(TerminalConfig(), **chosen))  # type: ignore[arg-type]

    def person(self, name: str = "ana", role: PersonRole = PersonRole.USER) -> ToolContext:
        workspace = self.home / "workspaces" / name
        workspace.mkdir(parents=True, exist_ok=True)

        async def started(group: int) -> None:
            self.groups.append(group)

        return ToolContext(
            "t_1:1:0",
            SessionKey("local", ChatKind.DM, name),
            name,
            workspace,
            forbidden=(self.home,),
            started_group=started,
            role=role,
            session_id=f"s_{name}",
            parts=Parts(self.terminals),
        )

    async def call(self, ctx: ToolContext, tool: str, **arguments: object) -> ToolOutput:
        written = json.dumps(arguments)
        output = await self.toolbox.call(tool, written, ctx, agreed=self.toolbox.approval(tool, written, ctx))
        if output.effect is not None:
            await self.db.write(output.effect)
        return output

    async def sh(self, ctx: ToolContext, command: str, **more: object) -> str:
        return (await self.call(ctx, "terminal", command=command, **more)).text


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / ".env").write_text(SECRET)
    db = await open_database(copy_store(home))
    environ = {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": str(tmp_path),
        "HERMES_HOME": str(home),
        "LANG": "C.UTF-8",
    }
    house = House(home, db, load(home, {}, tmp_path, ()).config, environ)
    yield house
    await house.terminals.close()
    await db.close()


@pytest.fixture(params=SANDBOXES)
def sandbox(request: pytest.FixtureRequest, house: House) -> House:
    """A house in which everybody else's commands run in this back end."""
    if why := WHY_NOT[request.param]():
        pytest.skip(why)
    house.set(others=OthersTerminal(request.param))
    return house


def processes_of(group: int) -> list[int]:
    """Every process of a group or session that is not dead."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in "ZX" and str(group) in (fields[2], fields[3]):
                found.append(int(entry))
    return found


def running(mark: str) -> list[int]:
    """Every process whose command line holds this, in whatever namespace: the machine sees them all."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                if mark in Path(f"/proc/{entry}/cmdline").read_text(errors="replace"):
                    found.append(int(entry))
            except OSError:
                continue
    return found


@pytest.fixture
def mark() -> Iterator[str]:
    """A number of seconds to sleep that no other process has; nothing of it is left when the test is over."""
    seconds = f"{1000 + os.getpid() % 1000}.{time.monotonic_ns() % 10**9:09d}"
    yield seconds
    deadline = time.monotonic() + 1.5  # a shell that stands over the dead takes a second to go
    while running(seconds):
        assert time.monotonic() < deadline, running(seconds)
        time.sleep(0.02)


def patience(command: str) -> float:
    """How soon an interrupted command must be gone; one that ignores SIGTERM has a second before that counts.

    Ten times as long as it takes: machines stand still at times.
    """
    return 25 if "trap" in command else 15


async def until_running(mark: str) -> None:
    async with asyncio.timeout(10):
        while not running(mark):  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.01)
