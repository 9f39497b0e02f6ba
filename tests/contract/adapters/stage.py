"""What shows a turn in a chat, put together around one real adapter: the promises of "while it works"."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from hermes.config import load
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import Capabilities, OutboundMessage, Rates
from hermes.core.ports import Adapter
from hermes.services.clock import SystemClock
from hermes.services.events import EventBus, TextArrived, ToolEnded, ToolStarted, TurnStarted
from hermes.services.outbound.delivery import Delivery
from hermes.services.outbound.presenter import Presenter, PresenterTiming
from hermes.services.outbound.rate_limits import RateLimiter
from hermes.services.outbound.rows import OutboxWriter
from hermes.store import outbox
from hermes.store.db import Database
from hermes.store.open import open_database
from hermes.store.outbox import OutboxKind
from tests.fakes.server import FakeServer
from tests.fakes.started_home import copy_store

QUICK = PresenterTiming(first_sign_seconds=0.01, preview_after_seconds=0.02, typing_every_seconds=0.1)
EDIT_PAUSE = 0.05


@dataclass(slots=True)
class Stage:
    """A turn in the chat of the fake, played by hand."""

    server: FakeServer
    key: SessionKey
    db: Database
    bus: EventBus
    outbox_writer: OutboxWriter
    presenter: Presenter
    turns: int = 0
    calls: int = 0
    texts: list[str] = field(default_factory=list)

    @property
    def turn_id(self) -> str:
        return f"t_{self.turns}"

    async def begins(self, tool_progress: str = "") -> None:
        self.turns += 1
        self.texts.clear()
        self.bus.publish(TurnStarted(str(self.key), self.turn_id, tool_progress=tool_progress))

    def writes(self, text: str) -> None:
        self.texts.append(text)
        self.bus.publish(TextArrived(str(self.key), self.turn_id, text))

    def uses(self, name: str, arguments: str, result: str = "done") -> None:
        self.calls += 1
        lane, call_id = str(self.key), f"c_{self.calls}"
        self.bus.publish(ToolStarted(lane, self.turn_id, call_id, name, arguments))
        self.bus.publish(ToolEnded(lane, self.turn_id, call_id, name, "ok", result))

    async def answers(self, text: str = "") -> str:
        """The end, as turns do it: the preview is closed, and the answer takes its place."""
        preview = await self.presenter.close(self.turn_id)
        answer = (text or "".join(self.texts)).strip()
        message = OutboundMessage(self.key.target, answer)
        rows = self.outbox_writer.rows(message, OutboxKind.REPLY, turn_id=self.turn_id, replaces=preview)
        await self.db.write(outbox.enqueue, rows, now=self.outbox_writer.now())
        self.outbox_writer.due(rows)
        return answer

    async def shows(self, predicate: Callable[[str], bool]) -> None:
        await self.server.wait_for(lambda: any(predicate(sent.text) for sent in self.server.sent))

    async def is_answered(self, answer: str) -> None:
        await self.server.wait_for(lambda: bool(self.server.sent) and self.server.sent[-1].text == answer)


@asynccontextmanager
async def set_up(
    server: FakeServer, folder: Path, *, edits: bool | None = None, rates: Rates | None = None
) -> AsyncIterator[Stage]:
    """``edits`` False: the same platform as if nothing could be edited there."""
    config, clock = load(folder, {}, folder, ()).config, SystemClock()
    db = await open_database(copy_store(folder))
    async with server.adapter() as adapter:
        limits = _limits(adapter, edits, rates)
        rate_limiter = RateLimiter(lambda _: limits)
        delivery = Delivery(db, lambda _: adapter, lambda: config, clock, "inc_test", rate_limiter)
        outbox_writer = OutboxWriter(lambda _: limits, lambda: config, clock, delivery)
        bus = EventBus()
        presenter = Presenter(db, bus, outbox_writer, lambda _: adapter, lambda: config, rate_limiter, QUICK)
        running = asyncio.create_task(presenter.run())
        await asyncio.sleep(0)  # it watches from now on
        target = server.target()
        key = SessionKey(target.platform, ChatKind.DM, target.chat, target.thread)
        try:
            yield Stage(server, key, db, bus, outbox_writer, presenter)
        finally:
            running.cancel()
            await asyncio.wait([running])
            await delivery.drain(5)
            await db.close()


def _limits(adapter: Adapter, edits: bool | None, rates: Rates | None) -> Capabilities:
    can_edit = adapter.capabilities.edits if edits is None else edits
    adapter.capabilities = replace(
        adapter.capabilities, edits=can_edit, rates=rates, edit_pause_seconds=EDIT_PAUSE, progress_notices=2
    )
    return adapter.capabilities
