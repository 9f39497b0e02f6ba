"""The real bridge as a process, with its packages installed once and kept beside the interpreter."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

import aiohttp
import pytest
from yarl import URL

Json = dict[str, Any]

SOURCES = Path(__file__).parents[2] / "bridge"
TOKEN = "a-token-of-the-bridge"
INSTALL_SECONDS = 240


def installed_packages() -> Path:
    """The node_modules folder that belongs to the lock file. Where it cannot be had, the test is skipped with why."""
    if reason := why_not_installed():
        pytest.skip(reason)
    return _kept() / "node_modules"


@cache
def why_not_installed() -> str:
    """Installs the packages when they are not there yet, which may take minutes; '' when they are there.

    Tried once in each run: npm without a network takes its time to say so.
    """
    if shutil.which("npm") is None or shutil.which("node") is None:
        return "the bridge needs node and npm"
    kept = _kept()
    kept.parent.mkdir(exist_ok=True)
    with (kept.parent / "lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        return "" if kept.exists() else _install(kept)


def _kept() -> Path:
    lock = (SOURCES / "package-lock.json").read_bytes()
    return Path(sys.prefix) / "whatsapp-bridge" / hashlib.sha256(lock).hexdigest()[:16]


def _install(kept: Path) -> str:
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(SOURCES / name, folder)
        command = ["npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"npm did not install the bridge's packages within {INSTALL_SECONDS} s"
        if done.returncode != 0:
            return f"npm could not install the bridge's packages: {done.stderr.strip()[-200:]}"
        Path(folder).rename(kept)
        Path(folder).mkdir()  # for whoever removes it
    return ""


def lay_out(folder: Path) -> Path:
    """The bridge as it would be installed, ready to run."""
    folder.mkdir()
    for source in [*SOURCES.glob("*.mjs"), SOURCES / "package.json", SOURCES / "package-lock.json"]:
        shutil.copy(source, folder)
    (folder / "node_modules").symlink_to(installed_packages())
    return folder


@dataclass(slots=True)
class Answer:
    status: int
    body: Json

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))


@dataclass(slots=True)
class RunningBridge:
    """One bridge and its folders; ``start`` after ``kill`` is the same bridge again."""

    program: Path
    home: Path
    environ: Mapping[str, str]
    port: int = 0
    process: asyncio.subprocess.Process | None = None
    _http: aiohttp.ClientSession | None = None
    _printed: list[asyncio.Task[bytes]] = field(default_factory=list)

    @property
    def session(self) -> Path:
        return self.home / "session"

    @property
    def spool(self) -> Path:
        return self.home / "spool"

    async def start(self) -> Self:
        own = {
            "PATH": os.environ["PATH"],
            "HERMES_BRIDGE_SESSION": str(self.session),
            "HERMES_BRIDGE_SPOOL": str(self.spool),
            "HERMES_BRIDGE_MEDIA": str(self.home / "media"),
            "HERMES_BRIDGE_TOKEN": TOKEN,
            "HERMES_BRIDGE_PORT": "0",
        }
        self.process = await asyncio.create_subprocess_exec(
            "node",
            str(self.program / "main.mjs"),
            env={**own, **self.environ},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        async with asyncio.timeout(20):
            first = await self.process.stdout.readline()
        self._printed += [asyncio.create_task(stream.read()) for stream in (self.process.stdout, self.process.stderr)]
        assert first, (await self.printed()).decode()
        self.port = json.loads(first)["listening"]
        self._http = aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"})
        return self

    def open_files(self) -> int:
        assert self.process is not None
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    async def printed(self) -> bytes:
        """All that was printed by the processes that have ended."""
        return b"".join(await asyncio.gather(*self._printed))

    async def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        await self._ended()

    async def stop(self) -> None:
        """As when the gateway goes away: the bridge's stdin closes."""
        if self.process is None:
            return
        assert self.process.stdin is not None
        self.process.stdin.close()
        await self._ended()

    async def _ended(self) -> None:
        assert self.process is not None
        async with asyncio.timeout(20):  # it gives itself two seconds, of a machine that is not busy
            await self.process.wait()
        self.process = None
        if self._http is not None:
            await self._http.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.stop()
        except TimeoutError:
            if self.process is not None:
                self.process.kill()
            raise

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """For one that was started by hand: it is stopped at the end."""
        try:
            yield self
        finally:
            await self.__aexit__()

    async def ask(self, call: str, body: object = None, **more: Any) -> Answer:
        """``call`` is like "POST /send"."""
        assert self._http is not None
        method, _, path = call.partition(" ")
        content = {"data": more.pop("data")} if "data" in more else {"json": body}
        url = URL(f"http://127.0.0.1:{self.port}{path}", encoded=True)
        async with self._http.request(method, url, **content, **more) as response:
            return Answer(response.status, await response.json())

    async def get(self, path: str) -> Json:
        answer = await self.ask(f"GET {path}")
        assert answer.status == 200, answer
        return answer.body

    async def post(self, path: str, **body: Any) -> Json:
        answer = await self.ask(f"POST {path}", body)
        assert answer.status == 200, answer
        return answer.body

    async def becomes(self, status: str, deadline: float = 20.0) -> Json:
        """Wait for this status; the health that shows it."""
        async with asyncio.timeout(deadline):
            health = await self.get("/health")
            while health["status"] != status:
                health = await self.get(f"/health?not={health['status']}&wait=5")
            return health

    async def items(self, count: int, after: int = 0, deadline: float = 20.0) -> list[Json]:
        """Wait for so many items after the cursor; none is acked."""
        found: list[Json] = []
        async with asyncio.timeout(deadline):
            while len(found) < count:
                found += (await self.get(f"/messages?after={found[-1]['cursor'] if found else after}&wait=5"))["items"]
        return found

    async def has_waiting(self, count: int, deadline: float = 20.0) -> None:
        """Wait until so many items are there, readable or not."""
        async with asyncio.timeout(deadline):
            while (await self.get("/health?not=none&wait=0"))["waiting"] < count:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.01)

    async def nothing_after(self, cursor: int) -> None:
        assert (await self.get(f"/messages?after={cursor}"))["items"] == []
