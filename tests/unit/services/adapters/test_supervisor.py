"""How often an account is tried: quickly after a connection that held, slowly where none does."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from hermes.config import load
from hermes.core.errors import ConfigError, CredentialsError, RateLimitedError, UnreachableError
from hermes.core.keys import AccountKey
from hermes.core.manifest import AdapterParts, Manifest, Setting
from hermes.core.messages import Capabilities, OutboundMessage, Receipt
from hermes.core.ports import Emit
from hermes.hosting.status import troubles
from hermes.services.adapters.account import Link
from hermes.services.adapters.supervisor import Supervisor
from hermes.services.clock import SystemClock
from hermes.services.cluster.duties import Duties
from hermes.store.open import open_database
from tests.fakes.jumping import JumpingLoop, LoopClock, run_in_jumps


class Brief:
    """Connects at once, and is cut off after so many seconds."""

    capabilities = Capabilities(text_limit=100, silence_seconds=1e6)
    identity = "brief"

    def __init__(self, parts: AdapterParts, lasts: list[float], began: list[float]) -> None:
        self._alive = parts.alive
        self._lasts = lasts
        self._began = began

    async def run(self, emit: Emit) -> None:
        self._began.append(asyncio.get_running_loop().time())
        self._alive()
        await asyncio.sleep(self._lasts.pop(0) if self._lasts else 1e6)
        raise UnreachableError("cut off")

    async def send(self, message: OutboundMessage) -> Receipt:
        raise NotImplementedError


@asynccontextmanager
async def supervised(
    folder: Path, manifest: Manifest, loop: JumpingLoop, clock: LoopClock
) -> AsyncIterator[Supervisor]:
    """One account of this platform, kept connected."""
    db = await open_database(folder / "state.db")
    loop.watch(db)
    config = load(folder, {"BRIEF_TOKEN": "x"}, folder, (manifest,)).config
    supervisor = Supervisor({"brief": manifest}, db, lambda: config, clock, {})
    supervisor.connect(lambda *_: _emit, _nobody)
    supervisor.reconcile()
    try:
        yield supervisor
    finally:
        await supervisor.close()
        await db.close()


def pauses(folder: Path, lasts: list[float], kind: type[Brief] = Brief, *, adds: float = 1.0) -> list[float]:
    """How long it waited after each connection, which took ``adds`` times as long as it says."""
    began: list[float] = []
    ended = list(lasts)
    manifest = Manifest("brief", "Brief", (Setting("token", "BRIEF_TOKEN"),), lambda parts: kind(parts, lasts, began))

    async def main(loop: JumpingLoop, clock: LoopClock) -> None:
        async with supervised(folder, manifest, loop, clock), asyncio.timeout(100_000):
            while len(began) <= len(ended):  # noqa: ASYNC110 - a second costs nothing on this clock
                await asyncio.sleep(1)

    run_in_jumps(main)
    return [later - start - adds * lasted for (start, later), lasted in zip(pairwise(began), ended, strict=True)]


async def _emit(events: object, cursor: object = None) -> None: ...


async def _nobody(_: str) -> None: ...


def test_a_server_that_greets_and_hangs_up_is_tried_ever_more_slowly(tmp_path: Path) -> None:
    waited = pauses(tmp_path, [0.1] * 6)
    assert waited == pytest.approx([0.5, 1, 2, 4, 4, 4], rel=0.3)


def test_after_a_connection_that_held_it_is_quick_again(tmp_path: Path) -> None:
    waited = pauses(tmp_path, [0.1, 0.1, 0.1, 1800, 1800, 0.1, 0.1])
    assert waited == pytest.approx([0.5, 1, 2, 0.5, 0.5, 0.5, 1], rel=0.3)


class SentAway(Brief):
    async def run(self, emit: Emit) -> None:
        self._began.append(asyncio.get_running_loop().time())
        raise RateLimitedError("Come back.", retry_after=self._lasts.pop(0) if self._lasts else 1e6)


def test_who_is_told_to_come_back_at_once_comes_back_ever_more_slowly_and_else_when_it_was_told(tmp_path: Path) -> None:
    waited = pauses(tmp_path, [0.0, 0.0, 0.0, 0.0, 60.0], SentAway, adds=0.0)
    assert waited == pytest.approx([0.5, 1, 2, 4, 60], rel=0.3)


class SelfCancelled(Brief):
    """Waits for something of its own that is cancelled, as a library does that closes itself."""

    async def run(self, emit: Emit) -> None:
        self._began.append(asyncio.get_running_loop().time())
        self._alive()
        await asyncio.sleep(self._lasts.pop(0) if self._lasts else 1e6)
        inner = asyncio.get_running_loop().create_future()
        inner.cancel()
        await inner


def test_an_adapter_that_is_cancelled_by_its_own_library_is_started_again(tmp_path: Path) -> None:
    assert pauses(tmp_path, [0.1, 0.1], SelfCancelled) == pytest.approx([0.5, 1], rel=0.3)


class Patient(Brief):
    """Learns from its platform that nothing will be heard for a while."""

    capabilities = Capabilities(text_limit=100, silence_seconds=10.0)

    async def run(self, emit: Emit) -> None:
        self.capabilities = Capabilities(text_limit=100, silence_seconds=300.0)
        await super().run(emit)


def test_a_silence_that_the_platform_told_of_is_waited_for(tmp_path: Path) -> None:
    began: list[float] = []
    manifest = Manifest("brief", "Brief", (Setting("token", "BRIEF_TOKEN"),), lambda parts: Patient(parts, [], began))

    async def main(loop: JumpingLoop, clock: LoopClock) -> None:
        async with supervised(tmp_path, manifest, loop, clock):
            await asyncio.sleep(1000)

    run_in_jumps(main)
    assert [round(later - earlier, -1) for earlier, later in pairwise(began)] == [300, 300, 300]


class Slow(Brief):
    """Hears its server once in 41 seconds, as Discord's and QQ's are heard when nobody writes."""

    capabilities = Capabilities(text_limit=100, silence_seconds=100.0)

    async def run(self, emit: Emit) -> None:
        while True:
            self._alive()
            await asyncio.sleep(41)


def test_a_platform_that_is_heard_seldom_is_no_trouble_between_two_of_its_beats(tmp_path: Path) -> None:
    manifest = Manifest("brief", "Brief", (Setting("token", "BRIEF_TOKEN"),), lambda parts: Slow(parts, [], []))
    told: list[list[str]] = []

    async def main(loop: JumpingLoop, clock: LoopClock) -> None:
        async with supervised(tmp_path, manifest, loop, clock) as supervisor:
            for _ in range(20):
                await asyncio.sleep(10)
                told.append(troubles({"now": clock.now(), "platforms": supervisor.status()}))

    run_in_jumps(main)
    assert told == [[]] * 20


class Refused(Brief):
    async def run(self, emit: Emit) -> None:
        raise CredentialsError("The switch is off.", cure="switch it on (pager.test, Settings)")


async def test_where_the_login_is_right_the_cure_is_the_platforms_own_and_not_to_mend_the_token(tmp_path: Path) -> None:
    token = Setting("token", "BRIEF_TOKEN", required=True)
    manifest = Manifest("brief", "Brief", (token,), lambda parts: Refused(parts, [], []))
    told: list[str] = []
    config = load(tmp_path, {"BRIEF_TOKEN": "x"}, tmp_path, (manifest,)).config
    db = await open_database(tmp_path / "state.db")
    supervisor = Supervisor(
        {"brief": manifest},
        db,
        lambda: config,
        SystemClock(),
        {},
        on_signed_out=lambda _, reason: told.append(reason),
    )
    supervisor.connect(lambda *_: _emit, _nobody)
    supervisor.reconcile()
    try:
        async with asyncio.timeout(20):
            while not told:  # noqa: ASYNC110 - the supervisor tells no event of it
                await asyncio.sleep(0.01)
    finally:
        await supervisor.close()
        await db.close()
    [status] = supervisor.status()
    cure = "switch it on (pager.test, Settings); then hermes gateway restart"
    assert (status["state"], status["note"], status["cure"]) == ("signed out", "The switch is off.", cure)
    assert told == [f"The switch is off. → {cure}"]


async def test_where_something_is_to_be_installed_the_cure_is_that_command(tmp_path: Path) -> None:
    def build(_: object) -> Brief:
        raise ConfigError("Brief needs a program that is missing.\n  Install it: get brief,\n  or another.")

    manifest = Manifest("brief", "Brief", (Setting("token", "BRIEF_TOKEN", required=True),), build)
    config = load(tmp_path, {"BRIEF_TOKEN": "x"}, tmp_path, (manifest,)).config
    db = await open_database(tmp_path / "state.db")
    supervisor = Supervisor({"brief": manifest}, db, lambda: config, SystemClock(), {})
    supervisor.connect(lambda *_: _emit, _nobody)
    supervisor.reconcile()
    try:
        async with asyncio.timeout(20):
            while supervisor.status()[0]["state"] != Link.INCOMPLETE:  # noqa: ASYNC110 - the same
                await asyncio.sleep(0.01)
    finally:
        await supervisor.close()
        await db.close()
    assert supervisor.status()[0]["cure"] == "get brief, or another."


PAGER = """
from hermes.core.manifest import Manifest, Setting
def build(parts):
    from slow_pager.adapter import Pager
    return Pager(parts, [], [])
MANIFEST = Manifest("pager", "Pager", (Setting("token", "PAGER_TOKEN"),), build)
"""
ITS_ADAPTER = """
import slow_pager
slow_pager.begun.set()
slow_pager.gate.wait(100)
from tests.unit.services.adapters.test_supervisor import Brief as Pager
"""


@pytest.mark.timeout(60)
async def test_a_second_account_does_not_hold_up_the_loop_while_the_first_is_importing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_pager").mkdir()
    (tmp_path / "slow_pager/__init__.py").write_text(PAGER)
    (tmp_path / "slow_pager/adapter.py").write_text(ITS_ADAPTER)
    (tmp_path / "config.yaml").write_text("platforms: {pager: {token: a}}")
    monkeypatch.syspath_prepend(tmp_path)
    package = importlib.import_module("slow_pager")
    begun, gate = threading.Event(), threading.Event()
    monkeypatch.setattr(package, "begun", begun, raising=False)
    monkeypatch.setattr(package, "gate", gate, raising=False)
    configs = [load(tmp_path, {}, tmp_path, (package.MANIFEST,)).config]
    db = await open_database(tmp_path / "state.db")
    supervisor = Supervisor({"pager": package.MANIFEST}, db, lambda: configs[-1], SystemClock(), {})
    supervisor.connect(lambda *_: _emit, _nobody)
    supervisor.reconcile()
    try:
        await asyncio.to_thread(begun.wait, 5)
        (tmp_path / "config.yaml").write_text("platforms: {pager: {token: a, accounts: {second: {token: b}}}}")
        configs.append(load(tmp_path, {}, tmp_path, (package.MANIFEST,)).config)
        supervisor.reconcile()
        for _ in range(20):
            await db.read(lambda tx: tx.value("SELECT 1"))
        gate.set()
        while {status["state"] for status in supervisor.status()} != {Link.CONNECTED}:  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.01)
    finally:
        gate.set()
        await supervisor.close()
        await db.close()
        sys.modules.pop("slow_pager.adapter", None)
        sys.modules.pop("slow_pager", None)
    assert len(supervisor.status()) == 2


def test_a_platform_that_is_held_back_is_resumed_alone_and_the_last_one_ends_the_pause(tmp_path: Path) -> None:
    manifests = {
        name: Manifest(name, name, (Setting("token", f"{name.upper()}_TOKEN"),), lambda parts: Brief(parts, [], []))
        for name in ("one", "two")
    }

    async def main(loop: JumpingLoop, clock: LoopClock) -> None:
        db = await open_database(tmp_path / "state.db")
        loop.watch(db)
        environ = {"ONE_TOKEN": "x", "TWO_TOKEN": "x"}
        config = load(tmp_path, environ, tmp_path, tuple(manifests.values())).config
        supervisor = Supervisor(manifests, db, lambda: config, clock, {}, "3 starts in a row went wrong")
        supervisor.connect(lambda *_: _emit, _nobody)
        supervisor.reconcile()
        try:
            assert states(supervisor) == {"one": "paused", "two": "paused"}
            supervisor.resume(AccountKey("one"))
            await asyncio.sleep(1)
            assert states(supervisor) == {"one": "connected", "two": "paused"}
            supervisor.reconcile()
            assert supervisor.paused_because == "3 starts in a row went wrong"
            supervisor.resume(AccountKey("two"))
            await asyncio.sleep(1)
            assert states(supervisor) == {"one": "connected", "two": "connected"}
            assert supervisor.paused_because == ""
        finally:
            await supervisor.close()
            await db.close()

    run_in_jumps(main)


def states(supervisor: Supervisor) -> dict[str, str]:
    return {account["account"]: account["state"] for account in supervisor.status()}


def test_counts_of_today_outlive_an_account_that_is_configured_anew_and_end_with_the_day(tmp_path: Path) -> None:
    manifest = Manifest("brief", "Brief", (Setting("token", "BRIEF_TOKEN"),), lambda parts: Brief(parts, [], []))
    key = AccountKey("brief")

    async def main(loop: JumpingLoop, clock: LoopClock) -> None:
        async with supervised(tmp_path, manifest, loop, clock) as supervisor:
            supervisor.arrived(key, 3)
            await supervisor.recall_today()
            supervisor.resume(key)
            [told] = supervisor.status()
            assert (told["in_today"], told["in_total"]) == (3, 3)
            await asyncio.sleep(86_400)
            [told] = supervisor.status()
            assert (told["in_today"], told["in_total"]) == (0, 3)

    run_in_jumps(main)


class Storing(Brief):
    """Is in the middle of a write, which a cancelled caller waits for, while its socket is open."""

    async def run(self, emit: Emit) -> None:
        async with self._http.ws_connect(self._url):
            self._opened.set()
            try:
                await asyncio.Event().wait()
            finally:
                while not self._written.is_set():
                    with suppress(asyncio.CancelledError):
                        await self._written.wait()

    def __init__(self, parts: AdapterParts, url: str, opened: asyncio.Event, written: asyncio.Event) -> None:
        super().__init__(parts, [], [])
        self._http, self._url, self._opened, self._written = parts.http, url, opened, written


async def test_connections_are_cut_with_the_lease_although_a_write_keeps_the_adapter_waiting(tmp_path: Path) -> None:
    opened, closed, written = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        try:
            await socket.receive()
        finally:  # a handler whose client is gone is cancelled
            closed.set()
        return socket

    server = TestServer(web.Application())
    server.app.router.add_get("/", answer)
    await server.start_server()
    manifest = Manifest(
        "brief",
        "Brief",
        (Setting("token", "BRIEF_TOKEN"),),
        lambda parts: Storing(parts, str(server.make_url("/")), opened, written),
    )
    db = await open_database(tmp_path / "state.db")
    config = load(tmp_path, {"BRIEF_TOKEN": "x"}, tmp_path, (manifest,)).config
    duties = Duties(db, "n_1", lambda: True, str)
    supervisor = Supervisor({"brief": manifest}, db, lambda: config, SystemClock(), {}, duties=duties)
    supervisor.connect(lambda *_: _emit, _nobody)
    supervisor.reconcile()
    try:
        async with asyncio.timeout(20):
            await opened.wait()
            supervisor.lapse()
            await closed.wait()
        assert not written.is_set()
    finally:
        written.set()
        await supervisor.close()
        await server.close()
        await db.close()
