"""Show a turn at work: typing, tool progress, and a preview that grows.

A preview is an outbox row, so its message id survives a crash; its edits are not stored. The turn closes it before
the final text is committed, and the final text then replaces it. Every call here asks the pacer for its place first;
an edit that waited shows what is newest when its place is free.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import field
from typing import Any

from hermes.config import Config
from hermes.config.agent_settings import ToolProgressMode
from hermes.core.dataclasses import dataclass
from hermes.core.errors import PlatformError, RateLimitedError, StoreIsDownError
from hermes.core.keys import SessionKey, Target
from hermes.core.lane import DOORS
from hermes.core.markdown.streaming import preview
from hermes.core.media import without_files
from hermes.core.messages import Capabilities, OutboundMessage
from hermes.core.ports import Adapter, EndsTyping, ShowsTyping
from hermes.services.events import (
    EventBus,
    SegmentEnded,
    TextArrived,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnStarted,
)
from hermes.services.outbound import tool_progress
from hermes.services.outbound.rate_limits import RateLimiter, Slot, Urgency
from hermes.services.outbound.rows import OutboxWriter
from hermes.store import outbox
from hermes.store.db import Database, Tx
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.outbox_sending import BegunDelivery

log = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0
TRY_AGAIN_SECONDS = 1.0
LINES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class PresenterTiming:
    """How long a turn may take before anything is shown, and how often typing is renewed. Tests shorten it."""

    first_sign_seconds: float = 0.4
    preview_after_seconds: float = 1.2
    typing_every_seconds: float = 4.0
    told_it_waits_seconds: float = 1.0


@dataclass(slots=True)
class _Show:
    """What one running turn shows in its chat."""

    key: SessionKey
    turn_id: str
    started: float
    mode: ToolProgressMode
    is_resumed: bool = False
    timer: asyncio.TimerHandle | None = None  # the first sign, then the next typing
    task: asyncio.Task[None] | None = None
    typing: asyncio.Task[None] | None = None
    has_typed: bool = False
    text: str = ""
    lines: list[tool_progress.ProgressLine] = field(default_factory=list)
    notices: int = 0
    lines_told: int = 0
    preview: str = ""
    message_id: str = ""
    shown: str = ""
    is_closing: bool = False
    # A call, or a write, is under way, which must not be cut in two.
    is_busy: bool = False

    @property
    def target(self) -> Target:
        return self.key.target

    def rendering(self) -> str:
        lines = "\n".join(line.shown for line in self.lines[-LINES_SHOWN:])
        return "\n\n".join(part for part in (lines, without_files(self.text).strip()) if part)


DEFAULT_PACE = PresenterTiming()


class Presenter:
    def __init__(
        self,
        db: Database,
        bus: EventBus,
        outbox_writer: OutboxWriter,
        adapter_of: Callable[[Target], Adapter | None],
        config: Callable[[], Config],
        rate_limiter: RateLimiter,
        pace: PresenterTiming = DEFAULT_PACE,
    ) -> None:
        self._db = db
        self._bus = bus
        self._outbox_writer = outbox_writer
        self._adapter_of = adapter_of
        self._config = config
        self._rate_limiter = rate_limiter
        self._pace = pace
        self._shows: dict[str, _Show] = {}
        self._last_calls: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Watch turns until cancelled; then nothing is left running."""
        try:
            with self._bus.watch(self._saw):
                await asyncio.Event().wait()
        finally:
            shows = [show for turn_id in list(self._shows) if (show := self._forget(turn_id)) is not None]
            tasks = [task for show in shows for task in (show.task, show.typing) if task is not None]
            tasks += self._last_calls
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def set_mode(self, lane: str, mode: ToolProgressMode) -> None:
        """A chat chose anew how much it is shown of tools: that counts for its running turn too."""
        for show in self._shows.values():
            if str(show.key) == lane:
                show.mode = mode

    def _saw(self, event: TurnEvent) -> None:
        match event:
            case TurnStarted():
                if SessionKey.parse(event.lane).platform not in DOORS:
                    self._begin(event)
            case TextArrived(turn_id=turn_id, text=text):
                if (show := self._shows.get(turn_id)) is not None:
                    show.text += text
            case SegmentEnded(turn_id=turn_id):
                if (show := self._shows.get(turn_id)) is not None:
                    show.text += "\n\n"
            case ToolStarted(turn_id=turn_id, call_id=call_id, name=name, arguments=arguments):
                if (show := self._shows.get(turn_id)) is not None:
                    tool_progress.started(show.lines, show.mode, call_id, name, arguments)
            case ToolEnded(turn_id=turn_id, call_id=call_id, result=result):
                if (show := self._shows.get(turn_id)) is not None:
                    tool_progress.ended(show.lines, show.mode, call_id, result)
            case TurnEnded(turn_id=turn_id):
                self.leave(turn_id)
            case _:
                pass

    def _begin(self, turn: TurnStarted) -> None:
        loop = asyncio.get_running_loop()
        mode = tool_progress.mode_of(turn.tool_progress, self._config().agent.tool_progress)
        show = _Show(SessionKey.parse(turn.lane), turn.turn_id, loop.time(), mode, turn.is_resumed)
        self._shows[turn.turn_id] = show
        show.timer = loop.call_later(self._pace.first_sign_seconds, self._start, show)

    def _start(self, show: _Show) -> None:
        self._renew_typing(show)
        show.task = asyncio.create_task(self._keep_showing(show), name=f"present {show.turn_id}")

    def _forget(self, turn_id: str) -> _Show | None:
        show = self._shows.pop(turn_id, None)
        if show is not None:
            show.is_closing = True
            if show.timer is not None:
                show.timer.cancel()
        return show

    async def close(self, turn_id: str) -> str:
        """End the show; its calls in flight are awaited. Returns the outbox id of the preview, or ''."""
        show = self._forget(turn_id)
        if show is None or show.task is None:
            return ""
        self._end(show)
        tasks = [task for task in (show.task, show.typing) if task is not None and not task.done()]
        if tasks:
            _, pending = await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
            for task in pending:
                task.cancel()
        return show.preview

    def leave(self, turn_id: str) -> None:
        """Stop showing a turn that is not carried here any more. What was shown of it stays until it goes on."""
        show = self._forget(turn_id)
        if show is not None:
            self._end(show)

    def _end(self, show: _Show) -> None:
        if show.task is not None and not show.is_busy:
            show.task.cancel()  # it only waits: for its pause to be over, or for a place
        adapter: object = self._adapter_of(show.target)
        if show.has_typed and isinstance(adapter, EndsTyping):
            self._spawn(self._end_typing(adapter, show))

    # Typing

    def _renew_typing(self, show: _Show) -> None:
        """Typing is shown while there is room for it; whoever has something to say goes before it."""
        if show.is_closing:
            return
        pause = self._pace.typing_every_seconds
        adapter = self._adapter_of(show.target)
        if adapter is not None and adapter.capabilities.typing and isinstance(adapter, ShowsTyping):
            if (place := self._rate_limiter.at_once(show.target, Urgency.SIGN)) is None:
                pause = min(pause, TRY_AGAIN_SECONDS)
            else:
                show.has_typed = True
                show.typing = self._spawn(self._type(adapter, show, place))
        show.timer = asyncio.get_running_loop().call_later(pause, self._renew_typing, show)

    async def _type(self, adapter: ShowsTyping, show: _Show, place: Slot) -> None:
        await self._called(show, place, adapter.typing(show.target))

    async def _end_typing(self, adapter: EndsTyping, show: _Show) -> None:
        if show.typing is not None and not show.typing.done():
            await asyncio.wait([show.typing], timeout=CLOSE_SECONDS)
        try:
            await adapter.typing_ended(show.target)
        except PlatformError as error:  # it ends by itself, only later
            log.debug("Typing not ended", extra={"turn": show.turn_id, "reason": str(error)})

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._last_calls.add(task)
        task.add_done_callback(self._last_calls.discard)
        return task

    async def _called(self, show: _Show, place: Slot, call: Coroutine[Any, Any, object]) -> bool:
        """Make a call that only shows something. When it fails nothing is lost: the answer itself is in the outbox."""
        try:
            await call
        except PlatformError as error:
            if isinstance(error, RateLimitedError):
                self._rate_limiter.hold(show.target, error.retry_after, in_all=error.in_all)
            log.debug("Typing or preview not shown", extra={"turn": show.turn_id, "reason": str(error)})
            return False
        finally:
            place.end()
        return True

    # The preview

    async def _keep_showing(self, show: _Show) -> None:
        while not show.is_closing:
            pause = self._pace.typing_every_seconds
            adapter = self._adapter_of(show.target)
            if adapter is not None:
                pause = adapter.capabilities.edit_pause_seconds
                wait = show.started + self._pace.preview_after_seconds - asyncio.get_running_loop().time()
                if wait > 0:
                    await asyncio.sleep(wait)
                await self._show_news(adapter, show)
            if not show.is_closing:
                await asyncio.sleep(pause)

    async def _show_news(self, adapter: Adapter, show: _Show) -> None:
        limits = adapter.capabilities
        try:
            if limits.edits:
                await self._show_text(adapter, show)
            elif len(show.lines) > show.lines_told and show.notices < limits.progress_notices:
                # Where nothing can be edited, a few messages tell what is being done.
                show.is_busy = True
                text = "\n".join(line.shown for line in show.lines[show.lines_told :][-LINES_SHOWN:])
                show.lines_told = len(show.lines)
                show.notices += 1
                rows = self._outbox_writer.notice(show.target, text, turn_id=show.turn_id)
                await self._db.write(outbox.enqueue, rows, now=self._outbox_writer.now())
                self._outbox_writer.due(rows)
        except StoreIsDownError as error:
            log.debug("Preview not shown", extra={"turn": show.turn_id, "reason": str(error)})
        finally:
            show.is_busy = False

    def _news(self, limits: Capabilities, show: _Show) -> str:
        """What is to be shown now, '' when it is shown already."""
        text = preview(show.rendering(), limits.text_limit, limits.text_unit)
        return "" if text == show.shown or show.is_closing else text

    async def _show_text(self, adapter: Adapter, show: _Show) -> None:
        if not self._news(adapter.capabilities, show) or not await self._is_ready(show):
            return
        place = None if show.is_closing else await self._rate_limiter.edit(show.target)
        # Looked at again: the newest text counts, and meanwhile the turn may have come to its end.
        text = self._news(adapter.capabilities, show) if place is not None else ""
        if place is None or not text:
            if place is not None:
                place.give_back()
            return
        show.is_busy = True
        if not show.preview:
            # Stored, and begun in the place that it has: so it does not wait among the finals.
            rows = self._outbox_writer.rows(
                OutboundMessage(show.target, text), OutboxKind.PREVIEW, turn_id=show.turn_id
            )[:1]
            show.preview = rows[0].id
            try:
                begun = await self._db.write(self._store, rows, place, now=self._outbox_writer.now())
                self._outbox_writer.stored(rows, begun, place)
            finally:
                if not place.is_handed_on:
                    place.give_back()
            show.shown = text
        elif await self._called(
            show, place, adapter.send(OutboundMessage(show.target, text, replaces=show.message_id))
        ):
            show.shown = text

    async def _is_ready(self, show: _Show) -> bool:
        """Whether there is a message to edit, or none yet. One that is on its way is waited for."""
        show.is_busy = True
        if show.is_resumed and not show.preview:
            # What an earlier process was showing goes on growing; a second message would leave the first one torn.
            show.preview = await self._db.read(outbox.preview_of_turn, show.turn_id)
        if show.preview and not show.message_id:
            row = await self._db.read(outbox.get, show.preview)
            show.message_id = row.message_id if row is not None else ""
        show.is_busy = False
        return bool(show.message_id) or not show.preview

    def _store(self, tx: Tx, rows: Sequence[Outgoing], place: Slot, *, now: float) -> BegunDelivery | None:
        outbox.enqueue(tx, rows, now=now)
        return self._outbox_writer.begin_within(tx, rows, place, now=now)
