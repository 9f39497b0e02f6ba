"""Doing nothing with every platform connected at once: what each of them adds to memory and CPU."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Protocol

from bench import machine, rig
from bench.measures.idle import CALM_SECONDS
from bench.rig import GatewayProcess
from bench.rows import Plan, Row, Rows
from hermes.store.home import make_home
from tests.fakes.discord import FakeDiscord
from tests.fakes.qq import FakeQQ
from tests.fakes.server import FakeServer
from tests.fakes.slack import FakeSlack
from tests.fakes.telegram import FakeTelegram
from tests.fakes.weixin import FakeWeixin
from tests.fakes.whatsapp_account import FakeWhatsAppAccount, bridges

ANSWER_SECONDS = 60.0
AGAIN_SECONDS = 3.0


class Connectable(FakeServer, Protocol):
    """``environ`` connects a gateway to it."""

    @property
    def environ(self) -> Mapping[str, str]: ...


class LinkedWhatsApp(FakeWhatsAppAccount):
    """Linked before: the files of that lie in the home."""

    owns_its_bridge = True

    @property
    def environ(self) -> Mapping[str, str]:
        own = {"WHATSAPP_ENABLED": "true", "WHATSAPP_MODE": "bot", "WHATSAPP_BRIDGE_FOLDER": str(bridges())}
        return {**own, **self.bridge_environ}

    def put_into(self, home: Path) -> None:
        make_home(home)
        self.link_session(home / "whatsapp" / "session")


ALWAYS: tuple[Callable[[], Connectable], ...] = (FakeTelegram, FakeDiscord, FakeQQ, FakeSlack, FakeWeixin)
FAKES = (*ALWAYS, LinkedWhatsApp) if shutil.which("npm") else ALWAYS  # its bridge is a program of Node


async def measure(plan: Plan) -> Rows:
    alone = await _idle(plan, FAKES[:1])
    together = await _idle(plan, FAKES)
    return [*alone, *together]


async def _idle(plan: Plan, kinds: tuple[Callable[[], Connectable], ...]) -> Rows:
    seconds = 2.0 if plan.short else plan.idle_seconds
    async with rig.folder() as place, AsyncExitStack() as stack:
        fakes = [await stack.enter_async_context(kind()) for kind in kinds]
        gateway = await stack.enter_async_context(rig.running(await _gateway(stack, place, fakes)))
        await gateway.ready()
        for fake in fakes:
            await _answers(fake)
        plan.say(f"{_names(fakes)}: each has answered; watching it do nothing for {seconds:.0f} s")
        await asyncio.sleep(0.5 if plan.short else CALM_SECONDS)
        before = _cpu(gateway)
        await asyncio.sleep(seconds)
        percent = 100 * (_cpu(gateway) - before) / seconds
        return _rows(fakes, gateway, percent, f"over {seconds:.0f} s")


async def _gateway(stack: AsyncExitStack, place: Path, fakes: list[Connectable]) -> GatewayProcess:
    provider = await stack.enter_async_context(rig.model())
    environ = rig.provided_by(provider, place)
    for fake in fakes:
        if isinstance(fake, LinkedWhatsApp):
            fake.put_into(place / "home")
        environ |= {**fake.environ, f"{fake.platform.upper()}_ALLOW_ALL_USERS": "true"}
    return GatewayProcess(place / "home", environ | {"WEIXIN_DM_POLICY": "open"})


async def _answers(fake: Connectable) -> None:
    """A platform counts as connected when a message through it was answered.

    Not every platform keeps what was said before anybody listened, so it is said again until then.
    """
    already, until = len(fake.sent), time.monotonic() + ANSWER_SECONDS
    while len(fake.sent) == already:
        if time.monotonic() > until:
            raise TimeoutError(f"{fake.platform} was not answered within {ANSWER_SECONDS:.0f} s")
        fake.user_says("hello")
        with suppress(TimeoutError):
            await fake.wait_for(lambda: len(fake.sent) > already, AGAIN_SECONDS)


def _rows(fakes: list[Connectable], gateway: GatewayProcess, percent: float, note: str) -> Rows:
    tree = gateway.processes
    names = _names(fakes)
    return [
        Row(f"{names}: RSS of the process tree", machine.resident(tree) / machine.MEGABYTE, "MB", note=_count(tree)),
        Row(f"{names}: PSS", machine.proportional(tree) / machine.MEGABYTE, "MB"),
        Row(f"{names}: idle CPU of the process tree", percent, "% of a core", note=note),
    ]


def _count(tree: list[int]) -> str:
    return f"{len(tree)} processes"


def _names(fakes: list[Connectable]) -> str:
    return f"{len(fakes)} platforms" if len(fakes) > 1 else f"{fakes[0].platform} alone"


def _cpu(gateway: GatewayProcess) -> float:
    return sum(machine.cpu_seconds(pid) for pid in gateway.processes)
