"""Whom a command asks while a gateway starts, ends or is replaced: real locks, sockets and heartbeats."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.cli.support.client import GatewayClient, Standalone
from hermes.cli.support.standalone import InProcessGateway
from hermes.core.errors import GatewayError, HomeInUseError
from hermes.hosting import heartbeat, locks, paths
from hermes.hosting.control.server import ControlServer

WORKER = "gateway worker"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("HERMES_", "OPENAI_", "TELEGRAM_"))]:
        monkeypatch.delenv(name)
    return tmp_path / "hermes-home"


def beat(home: Path, *, doing: str = "", is_ready: bool = True) -> None:
    now = time.time()
    told = heartbeat.Beat(os.getpid(), now, time.monotonic(), ready_at=now if is_ready else 0.0, doing=doing)
    Path(paths.heartbeat(str(home))).write_bytes(heartbeat.encode(told))


def taken(home: Path, what: str) -> locks.Lock:
    path = paths.parent_lock(str(home)) if what == "supervisor" else paths.owner_lock(str(home))
    lock = locks.take(path, what)
    assert lock is not None
    return lock


@contextmanager
def started_after(home: Path, seconds: float, ended: locks.Lock) -> Iterator[None]:
    """After so long ``ended`` is released, and another process of the same supervisor listens at the socket."""
    is_over = threading.Event()

    async def ping(_args: Mapping[str, Any], _reply: Any) -> dict[str, Any]:
        return {"pong": True}

    async def live() -> None:
        await asyncio.sleep(seconds)
        ended.release()
        lock = taken(home, WORKER)
        async with ControlServer(home, {"ping": ping}).listening():
            await asyncio.to_thread(is_over.wait, 30)
        lock.release()

    thread = threading.Thread(target=lambda: asyncio.run(live()))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(30)


def test_a_worker_that_dies_with_its_home_in_hand_has_its_successor_asked_at_the_socket(home: Path) -> None:
    supervisor, dying = taken(home, "supervisor"), taken(home, WORKER)
    beat(home)  # its last one: the socket is closed already, the lock not yet
    with started_after(home, 0.5, dying), GatewayClient(home, Standalone.NEVER) as client:
        assert client.ask("ping") == {"pong": True}  # which no request file is answered
    supervisor.release()


def test_a_worker_that_waited_for_this_very_command_is_given_time_to_take_the_home(home: Path) -> None:
    supervisor, worker = taken(home, "supervisor"), taken(home, WORKER)
    beat(home, doing="another hermes (process 4711: -z) holds the home; end it", is_ready=False)
    with started_after(home, 0.2, worker), GatewayClient(home, Standalone.NEVER) as client:
        assert client.ask("ping") == {"pong": True}
    supervisor.release()


def test_a_worker_that_still_cannot_start_has_its_reason_told(home: Path) -> None:
    supervisor, worker = taken(home, "supervisor"), taken(home, WORKER)
    is_over = threading.Event()

    def keep_beating() -> None:
        while not is_over.wait(0.1):
            beat(home, doing="the database is locked", is_ready=False)

    beating = threading.Thread(target=keep_beating)
    beating.start()
    began = time.monotonic()
    with (
        pytest.raises(GatewayError, match="The gateway cannot start: the database is locked"),
        GatewayClient(home, Standalone.NEVER) as client,
    ):
        client.ask("ping")
    assert time.monotonic() - began < 5
    is_over.set()
    beating.join(10)
    worker.release()
    supervisor.release()


class _Overtaken(GatewayClient):
    """A command whose home is taken by a gateway while it opens it, the first time."""

    taken: locks.Lock | None = None
    tries = 0

    def _open(self) -> InProcessGateway:
        self.tries += 1
        if self.tries == 1:
            self.taken = taken(self.home, WORKER)
            try:
                return super()._open()
            finally:
                self.taken.release()
        return super()._open()


@pytest.mark.parametrize("alone", [Standalone.GATEWAY, Standalone.CHAT, Standalone.STORE])
def test_a_home_that_is_taken_while_a_command_opens_it_is_looked_at_again(home: Path, alone: Standalone) -> None:
    if alone is Standalone.STORE:
        with GatewayClient(home, Standalone.GATEWAY) as first:
            first.connect()
    with _Overtaken(home, alone) as client:
        client.connect()
        assert client.is_alone
        assert client.tries == 2


def test_a_home_that_is_taken_again_and_again_is_told_by_whom(home: Path) -> None:
    class Unlucky(GatewayClient):
        def _open(self) -> InProcessGateway:
            lock = taken(self.home, "hermes sessions")
            try:
                return super()._open()
            finally:
                lock.release()

    with (
        pytest.raises(HomeInUseError, match="is in use by another hermes"),
        Unlucky(home, Standalone.GATEWAY) as it,
    ):
        it.connect()
