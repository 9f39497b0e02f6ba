"""A real gateway with fakes around it. Only the gateway's own processes are measured: the model is a process of its
own, and Telegram is played by the process of the bench.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench import machine
from hermes.hosting import heartbeat, paths
from tests.fakes.telegram import FakeTelegram

ROOT = Path(__file__).parents[1]
START_SECONDS = 60.0
STOP_SECONDS = 15.0
LOOK_EVERY_SECONDS = 0.005
ECHO = ("--mode", "echo")


class BenchError(Exception):
    """The rig itself did not work; the text says what and where to look."""


class GatewayProcess:
    """``./scripts/hermes-gateway run`` on a home of its own."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self.home = home
        self.port = _free_port()
        self._environ = {**_plain_environment(), **environ, "HERMES_HOME": str(home)}
        self._environ["API_SERVER_PORT"] = str(self.port)
        self._process: asyncio.subprocess.Process | None = None
        self._started = 0.0
        self.worker = 0

    @property
    def parent(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def processes(self) -> list[int]:
        return machine.tree(self.parent)

    def cpu(self) -> float:
        return machine.cpu_seconds(self.worker)

    async def start(self) -> None:
        folder = self.home.parent
        with (folder / f"{self.home.name}.out").open("ab") as out:
            self._started = time.time()
            self._process = await asyncio.create_subprocess_exec(
                str(ROOT / "scripts" / "hermes-gateway"), "run", env=self._environ, cwd=folder, stdout=out, stderr=out
            )

    async def health(self) -> float:
        """Seconds from the start until /health answered."""
        async with self._in_time("/health"):
            while not await _is_healthy(self.port):
                await self._look_again()
        return time.time() - self._started

    async def ready(self) -> float:
        """Seconds from the start until the worker said that it serves, its platforms connected."""
        path = paths.heartbeat(str(self.home))
        async with self._in_time("ready"):
            while (seen := heartbeat.read(path)) is None or seen.ready_at < self._started:
                await self._look_again()
        self.worker = seen.pid
        return seen.ready_at - self._started

    async def stop(self) -> None:
        """Ask it to end; whatever is left of it afterwards is killed."""
        process = self._process
        if process is None:
            return
        ours = self.processes if process.returncode is None else []
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            for pid in ours:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await process.wait()
        self._process = None

    @asynccontextmanager
    async def _in_time(self, what: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(START_SECONDS):
                yield
        except TimeoutError:
            raise BenchError(f"The gateway was not {what} within {START_SECONDS:.0f} s.\n{self.last_words()}") from None

    async def _look_again(self) -> None:
        if self._process is not None and self._process.returncode is not None:
            raise BenchError(f"The gateway ended with {self._process.returncode}.\n{self.last_words()}")
        await asyncio.sleep(LOOK_EVERY_SECONDS)

    def last_words(self) -> str:
        """The end of what it printed and logged, for whoever asks why."""
        out = self.home.parent / f"{self.home.name}.out"
        return out.read_text("utf-8", "replace")[-2000:] if out.exists() else ""


@dataclass(frozen=True, slots=True)
class ModelProcess:
    url: str
    pid: int


@dataclass(frozen=True, slots=True)
class World:
    """A gateway that is ready, with Telegram connected and a model that answers at once."""

    gateway: GatewayProcess
    telegram: FakeTelegram
    model: ModelProcess


@asynccontextmanager
async def folder() -> AsyncIterator[Path]:
    """A place for homes, gone with the block."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@asynccontextmanager
async def model(*arguments: str) -> AsyncIterator[ModelProcess]:
    """The scripted provider as a process of its own."""
    environ = {**_plain_environment(), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-m", "tests.fakes.model", "--port", "0", *(arguments or ECHO)]
    process = await asyncio.create_subprocess_exec(*command, env=environ, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            url = (await process.stdout.readline()).decode().strip()
        if not url:
            raise BenchError("The model's fake did not start.")
        yield ModelProcess(url, process.pid)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def settings(telegram: FakeTelegram, provider: ModelProcess, workspace: Path) -> dict[str, str]:
    """What the gateway is told by its environment."""
    return {**telegram.environ, "TELEGRAM_ALLOW_ALL_USERS": "true", **provided_by(provider, workspace)}


def provided_by(provider: ModelProcess, workspace: Path) -> dict[str, str]:
    """The same without a platform."""
    return {
        "OPENAI_API_KEY": "sk-bench-0123456789",
        "OPENAI_BASE_URL": provider.url,
        "MESSAGING_CWD": str(workspace),
    }


@asynccontextmanager
async def running(gateway: GatewayProcess) -> AsyncIterator[GatewayProcess]:
    """From the start to the end of the process; not yet ready."""
    try:
        await gateway.start()
        yield gateway
    finally:
        await gateway.stop()


@asynccontextmanager
async def world(
    home: Path, *, model_arguments: tuple[str, ...] = ECHO, environ: Mapping[str, str] | None = None
) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        telegram = await stack.enter_async_context(FakeTelegram())
        provider = await stack.enter_async_context(model(*model_arguments))
        told = {**settings(telegram, provider, home.parent), **(environ or {})}
        gateway = await stack.enter_async_context(running(GatewayProcess(home, told)))
        await gateway.ready()
        await telegram.wait_for(lambda: telegram.polls > 0, START_SECONDS)
        yield World(gateway, telegram, provider)


def _plain_environment() -> dict[str, str]:
    """Nothing of the caller's own gateway: neither its keys nor its home."""
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TZ", "HERMES_PYTHON")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _is_healthy(port: int) -> bool:
    """By hand, since a client library would cost more than the answer."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        return b" 200 " in await reader.readline()
    except OSError:
        return False
    finally:
        writer.close()
