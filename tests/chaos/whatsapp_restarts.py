"""The bridge of WhatsApp killed again and again under a running account: nothing is lost, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hermes.config import load
from hermes.core.keys import AccountKey
from hermes.core.messages import Cursor, InboundEvent
from hermes.core.ports import Adapter, Emit
from hermes.platforms.whatsapp import MANIFEST
from hermes.services.adapters.account import Link
from hermes.services.adapters.supervisor import Supervisor, SupervisorTiming
from hermes.services.clock import SystemClock
from tests.chaos.reconnects import Grown, steady, supervising
from tests.chaos.world import until
from tests.e2e.terminal import patched_environ
from tests.fakes.whatsapp import FakeWhatsApp
from tests.fakes.whatsapp_account import bridges, free_port

QUICK = SupervisorTiming(backoff_seconds=(0.02,), conflict_seconds=0.02, watch_seconds=0.01)
WAIT_SECONDS = 30.0
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)
WARM_UP = 1


@dataclass(slots=True)
class Account:
    """A linked account under a real supervisor, with an inbox in memory."""

    whatsapp: FakeWhatsApp
    folder: Path
    supervisor: Supervisor | None = None
    arrived: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def pid(self) -> int:
        """That of the running bridge; 0 while there is none."""
        try:
            told = json.loads((self.folder / "whatsapp" / "bridge.json").read_text())
        except (FileNotFoundError, ValueError):
            return 0
        return int(told["pid"])

    @property
    def is_connected(self) -> bool:
        return self.supervisor is not None and self.supervisor.status()[0]["state"] == Link.CONNECTED

    def emit_for(self, _key: AccountKey, _adapter: Adapter) -> Emit:
        async def emit(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
            self.arrived += [event.keys[0] for event in events if event.keys]

        return emit

    async def restart(self, how: signal.Signals) -> None:
        """One more death; somebody writes while the bridge is away."""
        before = self.pid
        os.kill(before, how)
        said = self.whatsapp.user_says("are you there?").key
        self.said.append(said)
        await until(lambda: self.pid not in (0, before) and self.is_connected and said in self.arrived, WAIT_SECONDS)

    @property
    def lost(self) -> list[str]:
        return [key for key in self.said if key not in self.arrived]


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[Account]:
    async with FakeWhatsApp(port=free_port()) as whatsapp:
        account = Account(whatsapp, folder)
        whatsapp.link_session(folder / "whatsapp" / "session")
        environ = {"WHATSAPP_ENABLED": "true", "WHATSAPP_MODE": "bot", "WHATSAPP_BRIDGE_FOLDER": str(bridges())}
        config = load(folder, environ, folder, (MANIFEST,)).config
        with patched_environ({**os.environ, **whatsapp.bridge_environ}):
            async with supervising(
                {"whatsapp": MANIFEST}, lambda: config, SystemClock(), folder, emit_for=account.emit_for, pace=QUICK
            ) as account.supervisor:
                await until(lambda: account.is_connected, WAIT_SECONDS)
                yield account


async def restart_again_and_again(folder: Path, restarts: int) -> tuple[Grown, list[str]]:
    """What is held before and after so many deaths of the bridge, and which messages never arrived."""
    async with connected(folder) as account:
        for _ in range(WARM_UP):  # whatever is made once and kept is made now
            await account.restart(signal.SIGKILL)
        before = await steady()
        for number in range(restarts):
            await account.restart(SIGNALS[number % len(SIGNALS)])
        after = await steady()
        return Grown(restarts, before, after), account.lost
