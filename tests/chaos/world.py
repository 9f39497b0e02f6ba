"""A real gateway process, started by its CLI, between fakes that remember enough to be asked about a crash."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, Protocol, TextIO, TypeVar

from aiohttp import web

from hermes.core.messages import Capabilities
from hermes.hosting import heartbeat, paths, processes
from hermes.hosting.control import client as control
from tests.chaos.network import Wire
from tests.fakes.model import Answer, FakeModel, Json, Reply, calls_tools, last_user_text
from tests.fakes.server import Hold, Sent
from tests.fakes.site import Site
from tests.fakes.telegram import UNPACED, FakeTelegram

ROOT = Path(__file__).parents[2]
MARK = "↻ "
CURSOR = " ▌"
PAUSE_SECONDS = 30  # longer than any test waits; the trigger file ends it


@dataclass(slots=True)
class Flight:
    """One send as the fake saw it. ``answered_at`` None: its answer has not left the fake."""

    sent: Sent
    taken_at: float
    answered_at: float | None = None

    @property
    def text(self) -> str:
        return plain(self.sent.text)

    @property
    def is_marked(self) -> bool:
        return self.sent.text.startswith(MARK)

    @property
    def is_preview(self) -> bool:
        """Whether it still looks as if more were to come."""
        return self.sent.text.endswith(CURSOR)


def plain(text: str) -> str:
    """The answer without the marks that a repeat or a growing preview carries."""
    return text.removeprefix(MARK).removesuffix(CURSOR)


class Watchful(Protocol):
    """A fake platform that knows of each send whether its answer had left, and lets a test act on what happens."""

    capabilities: Capabilities
    flights: list[Flight]
    batches: int
    on_send: Callable[[], None]

    def user_says(self, text: str, *, chat: int) -> object: ...
    def has_answered(self, chat: int, text: str) -> bool: ...
    def hold_sends(self) -> Hold: ...
    def release_all(self) -> None: ...


W = TypeVar("W", bound=Watchful)
W_co = TypeVar("W_co", bound=Watchful, covariant=True)


class Watching(Site):
    """What a watchful fake knows of its sends; stands before the fake among the bases, to see each answer leave."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.flights: list[Flight] = []
        self.answered: set[tuple[str, str]] = set()
        self.batches = 0
        self._flying: dict[asyncio.Task[Any] | None, list[Flight]] = {}

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        response = await super()._answer(request)
        flights = self._flying.pop(asyncio.current_task(), [])
        if flights and request.transport is not None and not request.transport.is_closing():
            await response.prepare(request)
            await response.write_eof()
            for flight in flights:
                flight.answered_at = time.monotonic()
        return response

    def _flies(self, *sent: Sent) -> None:
        """Shown now, in the request that is being answered."""
        flights = [Flight(each, time.monotonic()) for each in sent]
        self.flights += flights
        self._flying[asyncio.current_task()] = flights
        self.answered.update((flight.sent.chat, flight.text) for flight in flights)

    def has_answered(self, chat: int, text: str) -> bool:
        return (str(chat), text) in self.answered


class WatchfulTelegram(Watching, FakeTelegram):
    """Knows of each send whether its answer had left, and lets a test act on a batch or a send as it happens."""

    def __init__(self) -> None:
        super().__init__()
        self.on_send: Callable[[], None] = lambda: None

    async def _get_updates(self, params: Json) -> bytes:
        batch = await super()._get_updates(params)
        self.batches += batch != b"[]"
        return batch

    def _post(self, params: Json, method: str, text: str, file_name: str = "", file: bytes = b"") -> Json:
        self.on_send()
        message = super()._post(params, method, text, file_name, file)
        self._flies(self.sent[-1])
        return message

    def _edit(self, params: Json) -> Json:
        message = super()._edit(params)
        self.answered.add((str(params["chat_id"]), plain(str(message["text"]))))
        return message


class ToolUsingModel(FakeModel):
    """Echoes; a message with "read" in it, or one it knows a command for, first makes a tool call."""

    def __init__(self) -> None:
        super().__init__()
        self.tool_calls = 0
        self.on_tool_call: Callable[[], None] = lambda: None
        self.commands: dict[str, str] = {}  # what a message makes it type into the terminal

    def _answer_to(self, body: Json) -> Answer:
        said = last_user_text(body)
        if "read" in said and body["messages"][-1]["role"] != "tool":
            self.tool_calls += 1
            self.on_tool_call()
            return calls_tools(("read_file", {"path": "notes.txt"}))
        if said in self.commands and body["messages"][-1]["role"] != "tool":
            return calls_tools(("terminal", {"command": self.commands[said]}))
        return Reply(text=f"echo: {said}")


class Victim(StrEnum):
    WORKER = "worker"
    PARENT = "parent"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Deaths:
    """When the signal was sent, and when the last process that had to end was gone."""

    killed_at: float
    gone_at: float


class GatewayProcess:
    """``./scripts/hermes-gateway run``, its worker, and the signals that end them."""

    def __init__(self, home: Path, environ: Mapping[str, str], output: TextIO) -> None:
        self.home = home
        self.environ = {**environ, "HERMES_HOME": str(home)}
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start it by its CLI; returns the time of the start."""
        started = time.monotonic()
        command = [str(ROOT / "scripts" / "hermes-gateway"), "run"]
        self._process = subprocess.Popen(
            command, env=self.environ, cwd=self.home.parent, stdout=self._output, stderr=self._output
        )
        return started

    @property
    def parent(self) -> int:
        assert self._process is not None
        return self._process.pid

    def worker(self) -> int:
        """The pid of the worker that this parent keeps, or 0 while there is none."""
        seen = heartbeat.read(paths.heartbeat(str(self.home)))
        is_ours = seen is not None and processes.parent_of(seen.pid) == self.parent
        return seen.pid if seen is not None and is_ours and processes.is_alive(seen.pid, "") else 0

    async def ready(self, seconds: float = 20.0) -> int:
        """Wait until a worker serves; its pid."""

        def is_ready() -> bool:
            seen = heartbeat.read(paths.heartbeat(str(self.home)))
            return seen is not None and seen.ready_at > 0 and seen.pid == self.worker()

        await until(is_ready, seconds)
        return self.worker()

    def status(self) -> Json:
        return dict(control.call(self.home, "status"))

    async def look(self) -> tuple[int, str]:
        """`hermes gateway status`, as people type it: its exit code and its words."""
        command = [str(ROOT / "scripts" / "hermes"), "gateway", "status"]
        asked = await asyncio.create_subprocess_exec(*command, env=self.environ, stdout=asyncio.subprocess.PIPE)
        words, _ = await asked.communicate()
        return asked.returncode or 0, words.decode()

    def signal_worker(self, number: signal.Signals) -> None:
        os.kill(self.worker(), number)

    async def kill(self, victim: Victim) -> Deaths:
        """SIGKILL, and wait until whoever had to end is gone. A killed parent's worker ends by itself."""
        worker = self.worker()
        mark = processes.start_mark(worker)
        killed_at = time.monotonic()
        if victim is not Victim.WORKER:
            os.kill(self.parent, signal.SIGKILL)
        if victim is not Victim.PARENT and worker:
            processes.send_signal(worker, mark, signal.SIGKILL)
        if victim is not Victim.WORKER and self._process is not None:
            self._process.wait(5)
        return Deaths(killed_at, await self._gone(worker, mark))

    async def _gone(self, worker: int, mark: str) -> float:
        await until(lambda: not worker or not processes.is_alive(worker, mark), 10.0)
        return time.monotonic()

    async def stop(self) -> None:
        """SIGTERM, patience, SIGKILL."""
        if self._process is None or self._process.poll() is not None:
            return
        worker = self.worker()
        mark = processes.start_mark(worker)
        self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, 12)
        except subprocess.TimeoutExpired:
            self._process.kill()
            processes.send_signal(worker, mark, signal.SIGKILL)
            await asyncio.to_thread(self._process.wait, 5)


async def until(ask: Callable[[], bool], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while not ask():  # noqa: ASYNC110 - another process does not set our events
            await asyncio.sleep(0.005)


@dataclass(frozen=True)
class AnyWorld(Generic[W_co]):
    """The gateway, the fakes around it and the two trigger files that make its store stand still."""

    platform: W_co
    model: ToolUsingModel
    gateway: GatewayProcess
    before_commit: Path
    after_commit: Path
    chance: random.Random
    wire: Wire | None = None

    def calm(self) -> None:
        """Undo whatever was set up to reach a point."""
        self.before_commit.unlink(missing_ok=True)
        self.after_commit.unlink(missing_ok=True)
        self.platform.on_send = self.model.on_tool_call = lambda: None
        self.platform.release_all()
        self.model.release()


class World(AnyWorld[WatchfulTelegram]):
    """The one around Telegram."""

    @property
    def telegram(self) -> WatchfulTelegram:
        return self.platform


@asynccontextmanager
async def opened(folder: Path, seed: int, *, is_wired: bool = False, **environ: str) -> AsyncIterator[World]:
    """A world in an empty folder, with its gateway serving; ``is_wired`` puts a wire between it and Telegram."""
    async with WatchfulTelegram() as telegram, AsyncExitStack() as stack:
        wire = await stack.enter_async_context(Wire(telegram.port)) if is_wired else None
        settings = {
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "TELEGRAM_BASE_URL": wire.url if wire else telegram.url,
            **UNPACED,
            "TELEGRAM_ALLOW_ALL_USERS": "true",
            **environ,
        }
        async with opened_on(telegram, folder, seed, settings) as any_world:
            yield World(**{**vars(any_world), "wire": wire})


@asynccontextmanager
async def opened_on(platform: W, folder: Path, seed: int, environ: Mapping[str, str]) -> AsyncIterator[AnyWorld[W]]:
    """The same around any platform that is up; ``environ`` connects the gateway to it and lets everybody in."""
    before, after = folder / "pause_before", folder / "pause_after"
    workspace = folder / "work"
    workspace.mkdir(parents=True)
    (workspace / "notes.txt").write_text("Bread, milk.\n", encoding="utf-8")
    async with ToolUsingModel() as model:
        settings = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),  # these very sources, also from a copy of the project
            "HOME": str(folder),
            "OPENAI_API_KEY": "sk-test-0123456789",
            "OPENAI_BASE_URL": model.url,
            "API_SERVER_PORT": "0",
            "MESSAGING_CWD": str(workspace),
            "HERMES_BUSY_MODE": "queue",
            "HERMES_TEST_PAUSE": f"before_commit:{PAUSE_SECONDS}:{before},after_commit:{PAUSE_SECONDS}:{after}",
            **environ,
        }
        with (folder / "gateway.out").open("w", encoding="utf-8") as output:
            gateway = GatewayProcess(folder / "home", settings, output)
            world = AnyWorld(platform, model, gateway, before, after, random.Random(seed))
            gateway.start()
            try:
                await gateway.ready()
                yield world
            finally:
                world.calm()
                await gateway.stop()
