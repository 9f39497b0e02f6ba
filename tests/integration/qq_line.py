"""One QQ account under a real supervisor, on a clock that jumps: for whatever can happen to its connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes.config import load
from hermes.core.keys import AccountKey
from hermes.core.messages import Cursor, InboundEvent, InboundMessage
from hermes.core.ports import Adapter, Emit
from hermes.platforms.qq import MANIFEST
from hermes.services.adapters.account import Link
from hermes.services.adapters.supervisor import Supervisor
from hermes.store import people
from hermes.store.db import Database
from hermes.store.open import open_database
from tests.contract.adapters.conftest import Inbox
from tests.fakes.jumping import JumpingLoop, LoopClock, run_in_jumps
from tests.fakes.qq import FakeQQ
from tests.fakes.started_home import copy_store


@dataclass(slots=True)
class Line:
    """One account that a supervisor keeps up, and what reached its inbox."""

    qq: FakeQQ
    loop: JumpingLoop
    supervisor: Supervisor
    inbox: Inbox

    @property
    def status(self) -> dict[str, Any]:
        [status] = self.supervisor.status()
        return status

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.inbox.events if isinstance(event, InboundMessage)]

    async def listens(self) -> None:
        await self.qq.wait_for(lambda: self.qq.is_listening and self.status["state"] == Link.CONNECTED, 300)

    async def hears(self, text: str) -> None:
        self.qq.user_says(text)
        await self.qq.wait_for(lambda: text in self.texts, 300)

    async def is_away(self) -> None:
        await self.qq.wait_for(lambda: self.status["state"] != Link.CONNECTED, 300)


@asynccontextmanager
async def line(folder: Path, loop: JumpingLoop, clock: LoopClock, qq: FakeQQ) -> AsyncIterator[Line]:
    db = await open_database(copy_store(folder))
    loop.watch(db)
    config = load(folder, qq.environ, folder, (MANIFEST,)).config
    inbox = Inbox()
    supervisor = Supervisor({"qq": MANIFEST}, db, lambda: config, clock, {})
    supervisor.connect(storing(db, inbox), nobody)
    supervisor.reconcile()
    try:
        yield Line(qq, loop, supervisor, inbox)
    finally:
        await supervisor.stop_intake()
        await supervisor.close()
        await db.close()


def storing(db: Database, inbox: Inbox) -> Callable[[AccountKey, Adapter], Emit]:
    def emit_for(key: AccountKey, _: Adapter) -> Emit:
        async def emit(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
            await inbox(events, cursor)
            if cursor:
                await db.write(people.move_marks, key.platform, key.account, cursor)

        return emit

    return emit_for


async def nobody(_: str) -> None:
    return


def play(folder: Path, story: Callable[[Line], Coroutine[Any, Any, None]], qq: type[FakeQQ] = FakeQQ) -> FakeQQ:
    """Tell a story that begins with a connection."""

    async def main(loop: JumpingLoop, clock: LoopClock) -> FakeQQ:
        async with qq(now=clock.now) as fake, line(folder, loop, clock, fake) as held:
            await story(held)
            return fake

    return run_in_jumps(main)
