"""Act at once on commands and presses, beside the lane they are about."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from hermes.core.errors import StoreIsDownError
from hermes.core.keys import SessionKey
from hermes.core.messages import InboundMessage, Press
from hermes.core.ports import Clock
from hermes.services.inbound.notices import Notices
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.turns.lanes import Lanes
from hermes.store import codec, inbox, outbox
from hermes.store.db import Database, Tx
from hermes.store.inbox import InboxState

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
COMMAND_SECONDS = 20.0

E = TypeVar("E", contravariant=True)


class Acts(Protocol[E]):
    """Acts on a stored event and ends its inbox row."""

    async def act(self, event_id: str, event: E) -> None: ...


class Actions:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        lanes: Lanes,
        outbox_writer: OutboxWriter,
        notices: Notices,
        *,
        commands: Acts[InboundMessage],
        presses: Acts[Press],
        is_mine: Callable[[SessionKey], bool] | None = None,
    ) -> None:
        """``is_mine`` tells of a chat whether this node takes up what was left undone there."""
        self._is_mine = is_mine
        self._db = db
        self._clock = clock
        self._lanes = lanes
        self._outbox_writer = outbox_writer
        self._notices = notices
        self._commands = commands
        self._presses = presses
        self._running: set[str] = set()  # ids of events that are being acted on
        self._newest: dict[str, asyncio.Future[None]] = {}  # the last command of each chat that still runs
        self._tasks: set[asyncio.Future[None]] = set()
        self.is_closed = False

    def start(self, event_id: str, lane: str, event: InboundMessage | Press) -> None:
        """Act now, but after the commands that were written in this chat before and still run."""
        self._running.add(event_id)
        earlier = self._newest.get(lane)
        task = self._newest[lane] = self.spawn(self._act(event_id, event, earlier))
        task.add_done_callback(lambda _: self._newest.pop(lane, None) if self._newest.get(lane) is task else None)

    def spawn(self, work: Awaitable[None]) -> asyncio.Future[None]:
        """Run something beside the caller, until done or closed. A failure is logged."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("Notification failed", exc_info=task.exception())

    async def _act(self, event_id: str, event: InboundMessage | Press, earlier: asyncio.Future[None] | None) -> None:
        try:
            if earlier is not None:
                await asyncio.wait([earlier], timeout=COMMAND_SECONDS)
            if isinstance(event, Press):
                await self._presses.act(event_id, event)
            else:
                await self._commands.act(event_id, event)
        except StoreIsDownError as error:
            # Its row stays open and is retried.
            log.warning("Store is down", extra={"event": event_id, "reason": str(error)})
        except Exception as error:
            log.exception("Command failed", extra={"event": event_id})
            # End an event that cannot be acted on, and say so, so that what was written after it goes on.
            text = (await self._notices.words_for(event)).COMMAND_BROKE
            rows = self._outbox_writer.notice(event.session_key.target, text, key=f"ob_{event_id}")
            reason = f"{type(error).__name__}: {error}"
            lane = await self._db.write(_set_aside, event_id, reason, rows, now=self._clock.now())
            self._outbox_writer.due(rows)
            self._lanes.wake(lane)
        finally:
            self._running.discard(event_id)

    async def run(self) -> None:
        """Retry open events that nobody acts on, now and then: until closed or cancelled.

        The COMMIT of such an event was unknown, or the store was down when the event was to act.
        """
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            if self.is_closed:
                return
            try:
                await self.resume(RETRY_SECONDS)
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "looking for commands", "reason": str(error)})

    async def resume(self, age_seconds: float = 0.0) -> None:
        """Act on open events of at least this age; at a start, on all that the last process left."""
        before = self._clock.now() - age_seconds
        running = set(self._running)  # by now: what ends while we read is read as open
        for row in await self._db.read(inbox.acting):
            if row.id in running or row.id in self._running or row.received_at > before:
                continue
            if self._is_mine is not None and not self._is_mine(SessionKey.parse(row.lane)):
                continue
            try:
                event = codec.load_press(row.body) if row.kind == "press" else codec.load_message(row.body)
            except ValueError as error:
                await self._db.write(_set_aside, row.id, f"unreadable: {error}", (), now=self._clock.now())
            else:
                self.start(row.id, row.lane, event)

    async def close(self) -> None:
        self.is_closed = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2)
        for task in self._tasks:
            task.cancel()


def _set_aside(tx: Tx, event_id: str, reason: str, rows: Sequence[outbox.Outgoing], *, now: float) -> str:
    """End the event and store the notice. Return the event's lane."""
    if inbox.settle(tx, event_id, state=InboxState.SET_ASIDE, reason=reason, now=now):
        outbox.enqueue(tx, rows, now=now)
    row = inbox.get(tx, event_id)
    return row.lane if row is not None else ""
