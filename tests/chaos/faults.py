"""N-04 on a real process and in real seconds: how soon `status` tells of a fault, how soon traffic is back after it."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hermes.hosting import status
from hermes.services.clock import SystemClock
from hermes.services.gateway import Gateway
from tests.chaos.inside import started
from tests.chaos.network import Names
from tests.chaos.world import World, opened, until
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram

PROMISE_SECONDS = 30.0
PATIENCE_SECONDS = 120.0
HOST = "telegram.test"
LONG_ENOUGH_SECONDS = 70.0  # for the pauses between two tries to have grown to their longest


@dataclass(frozen=True, slots=True)
class Fault:
    """``seen`` and ``back`` in seconds; None: there is nothing to see, or nothing to come back from."""

    name: str
    seen: float | None
    back: float

    @property
    def is_good(self) -> bool:
        return (self.seen or 0.0) < PROMISE_SECONDS and self.back < PROMISE_SECONDS

    @property
    def words(self) -> str:
        return f"{'–' if self.seen is None else f'{self.seen:.1f} s'} / {self.back:.1f} s"


class _Probes:
    """Asks a question of its own each time, and waits for its answer."""

    def __init__(self, telegram: FakeTelegram) -> None:
        self._telegram = telegram
        self._number = 200_000

    async def answered(self) -> float:
        """Seconds until a message that is said now is answered."""
        self._number += 1
        chat, began = self._number, time.monotonic()
        self._telegram.user_says(f"probe{chat}", chat=chat)
        await until(lambda: f"echo: probe{chat}" in self._telegram.texts(chat), PATIENCE_SECONDS)
        return time.monotonic() - began


async def play_all(folder: Path) -> AsyncIterator[Fault]:
    async with opened(folder / "process", seed=1, is_wired=True) as world:
        probes = _Probes(world.telegram)
        await probes.answered()
        yield await stopped_and_continued(world, probes)
        yield await stopped_for_good(world, probes)
        yield await hung_poll(world, probes)
        for seconds in (0.0, LONG_ENOUGH_SECONDS):
            yield await half_open(world, probes, seconds)
            yield await unreachable(world, probes, seconds)
    yield await no_such_name(folder / "names")
    for seconds in (86400.0, -86400.0):
        yield await clock_set(folder / f"clock{seconds:.0f}", seconds)


async def seen(world: World) -> float:
    """Seconds until `hermes gateway status` says that something is wrong."""
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await world.gateway.look())[0] == 0:  # noqa: ASYNC110 - as people ask it
            await asyncio.sleep(0.5)
    return time.monotonic() - began


async def stopped_and_continued(world: World, probes: _Probes) -> Fault:
    world.gateway.signal_worker(signal.SIGSTOP)
    noticed = await seen(world)
    world.gateway.signal_worker(signal.SIGCONT)
    return Fault("SIGSTOP of the worker, then SIGCONT", noticed, await probes.answered())


async def stopped_for_good(world: World, probes: _Probes) -> Fault:
    """The supervisor waits 30 s for a heartbeat; what is counted as back is the time after that."""
    world.gateway.signal_worker(signal.SIGSTOP)
    before, began = world.gateway.worker(), time.monotonic()
    answering = asyncio.create_task(probes.answered())
    noticed = await seen(world)
    await until(lambda: world.gateway.worker() not in (0, before), PATIENCE_SECONDS)
    restarted = time.monotonic() - began
    return Fault(f"SIGSTOP for good, restarted after {restarted:.0f} s", noticed, await answering - restarted)


async def hung_poll(world: World, probes: _Probes) -> Fault:
    world.telegram.hold("getUpdates")
    noticed = await seen(world)
    world.telegram.release("getUpdates")
    return Fault("hung poll", noticed, await probes.answered())


async def half_open(world: World, probes: _Probes, lasting: float) -> Fault:
    assert world.wire is not None
    world.wire.cut()
    noticed = await seen(world)
    await asyncio.sleep(lasting)
    world.wire.mend()
    return Fault(f"half-open TCP, for {noticed + lasting:.0f} s", noticed, await probes.answered())


async def unreachable(world: World, probes: _Probes, lasting: float) -> Fault:
    await world.telegram.stop()
    noticed = await seen(world)
    await asyncio.sleep(lasting)
    await world.telegram.start()
    return Fault(f"connection refused, for {noticed + lasting:.0f} s", noticed, await probes.answered())


# In this process, as a test can neither take away a name nor set the clock of a whole machine.


async def no_such_name(folder: Path) -> Fault:
    names = Names()
    names.known[HOST] = ""
    async with FakeTelegram() as telegram, FakeModel() as model:
        with names.asked():
            began = time.monotonic()
            base_url = f"http://{HOST}:{telegram.port}"
            async with started(folder, telegram, model, TELEGRAM_BASE_URL=base_url) as gateway:
                await _until_status(gateway, lambda troubles: bool(troubles))
                noticed = time.monotonic() - began
                await asyncio.sleep(LONG_ENOUGH_SECONDS)
                names.known[HOST] = "127.0.0.1"
                back = await _Probes(telegram).answered()
    return Fault(f"no such name, for {LONG_ENOUGH_SECONDS:.0f} s", noticed, back)


class SetClock(SystemClock):
    """The system's clock, which somebody sets."""

    def __init__(self) -> None:
        self._by = 0.0

    def now(self) -> float:
        return super().now() + self._by

    def jump(self, seconds: float) -> None:
        self._by += seconds


async def clock_set(folder: Path, seconds: float) -> Fault:
    """With an answer in the outbox that waits for its time."""
    clock = SetClock()
    async with _both() as (telegram, model), started(folder, telegram, model, clock=clock) as gateway:
        probes = _Probes(telegram)
        telegram.limit_next_send(4)
        waiting = asyncio.create_task(probes.answered())
        await until(lambda: telegram.counts["sendMessage"] == 1, PATIENCE_SECONDS)
        clock.jump(seconds)
        await _until_status(gateway, lambda troubles: not troubles)
        back = await probes.answered()
        if seconds < 0:  # set forward by a day, an answer of yesterday is out of date
            back = max(back, await waiting)
        waiting.cancel()
    return Fault(f"clock set {'forward' if seconds > 0 else 'back'} by a day", None, back)


@asynccontextmanager
async def _both() -> AsyncIterator[tuple[FakeTelegram, FakeModel]]:
    async with FakeTelegram() as telegram, FakeModel() as model:
        yield telegram, model


async def _until_status(gateway: Gateway, says: Callable[[list[str]], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not says(status.troubles({**await gateway.status(), "now": gateway.clock.now()})):  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # status is asked, as people ask it
