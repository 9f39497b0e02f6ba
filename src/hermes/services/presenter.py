"""While it works: typing, and a preview that grows. A quick answer needs neither, and costs neither.

A preview is an outbox row, so its message id survives a crash; its edits are not stored. The turn closes it before
the final text is committed, and the final text then replaces it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from hermes.config import Config
from hermes.config.schema import ToolProgress
from hermes.core.errors import PlatformError, RateLimitedError, StoreIsDownError
from hermes.core.keys import SessionKey, Target
from hermes.core.messages import OutboundMessage
from hermes.core.ports import Adapter, ShowsTyping
from hermes.core.text import one_line, trim
from hermes.services.events import EventBus, SegmentEnded, TextArrived, ToolStarted, TurnEnded, TurnEvent, TurnStarted
from hermes.services.letters import Letters
from hermes.store import outbox
from hermes.store.db import Database
from hermes.store.outbox import OutboxKind

log = logging.getLogger(__name__)

FIRST_SIGN_SECONDS = 0.4
PREVIEW_AFTER_SECONDS = 1.2
TYPING_EVERY_SECONDS = 4.0
CLOSE_SECONDS = 10.0
CURSOR = " ▌"


@dataclass(slots=True)
class _Show:
    """What one running turn shows in its chat."""

    key: SessionKey
    turn_id: str
    started: float
    timer: asyncio.TimerHandle | None = None
    task: asyncio.Task[None] | None = None
    text: str = ""
    progress: list[str] = field(default_factory=list)
    preview: str = ""
    message_id: str = ""
    shown: str = ""
    is_closing: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def rendering(self) -> str:
        return "\n".join([*self.progress[-5:], self.text]).strip()


class Presenter:
    def __init__(
        self,
        db: Database,
        bus: EventBus,
        letters: Letters,
        adapter_of: Callable[[Target], Adapter | None],
        config: Callable[[], Config],
    ) -> None:
        self._db = db
        self._bus = bus
        self._letters = letters
        self._adapter_of = adapter_of
        self._config = config
        self._shows: dict[str, _Show] = {}

    async def run(self) -> None:
        """Watch turns until cancelled."""
        with self._bus.watch(self._saw):
            await asyncio.Event().wait()

    def _saw(self, event: TurnEvent) -> None:
        match event:
            case TurnStarted(lane=lane, turn_id=turn_id):
                self._begin(lane, turn_id)
            case TextArrived(turn_id=turn_id, text=text):
                self._change(turn_id, text=text)
            case SegmentEnded(turn_id=turn_id):
                self._change(turn_id, text="\n\n")
            case ToolStarted(turn_id=turn_id, name=name, arguments=arguments):
                self._change(turn_id, progress=progress_line(name, arguments))
            case TurnEnded(turn_id=turn_id):
                self._forget(turn_id)
            case _:
                pass

    def _begin(self, lane: str, turn_id: str) -> None:
        loop = asyncio.get_running_loop()
        show = self._shows[turn_id] = _Show(SessionKey.parse(lane), turn_id, loop.time())
        show.timer = loop.call_later(FIRST_SIGN_SECONDS, self._start, show)

    def _start(self, show: _Show) -> None:
        show.task = asyncio.create_task(self._keep_showing(show), name=f"present {show.turn_id}")

    def _change(self, turn_id: str, *, text: str = "", progress: str = "") -> None:
        show = self._shows.get(turn_id)
        if show is None:
            return
        show.text += text
        if progress and self._wants(show, progress):
            show.progress.append(progress)
        show.changed.set()

    def _wants(self, show: _Show, line: str) -> bool:
        mode = self._config().agent.tool_progress
        if mode is ToolProgress.NEW:
            return not show.progress or show.progress[-1].split(" ", 2)[:2] != line.split(" ", 2)[:2]
        return mode is not ToolProgress.OFF

    def _forget(self, turn_id: str) -> _Show | None:
        show = self._shows.pop(turn_id, None)
        if show is not None and show.timer is not None:
            show.timer.cancel()
        return show

    async def close(self, turn_id: str) -> str:
        """End the show; its call in flight is awaited. Returns the outbox id of the preview, or ''."""
        show = self._forget(turn_id)
        if show is None or show.task is None:
            return ""
        show.is_closing = True
        show.changed.set()
        _, pending = await asyncio.wait([show.task], timeout=CLOSE_SECONDS)
        if pending:
            show.task.cancel()
        return show.preview

    async def _keep_showing(self, show: _Show) -> None:
        loop = asyncio.get_running_loop()
        next_typing = 0.0
        while not show.is_closing and show.turn_id in self._shows:
            pause = TYPING_EVERY_SECONDS
            adapter = self._adapter_of(show.key.target)
            if adapter is not None:
                pause = adapter.capabilities.edit_pause_seconds
                try:
                    if loop.time() >= next_typing:
                        await self._type(adapter, show.key.target)
                        next_typing = loop.time() + TYPING_EVERY_SECONDS
                    if adapter.capabilities.edits and loop.time() - show.started >= PREVIEW_AFTER_SECONDS:
                        await self._show_text(adapter, show)
                except RateLimitedError as error:
                    pause = error.retry_after
                except (PlatformError, StoreIsDownError) as error:
                    # A sign of life that could not be shown is no loss; the answer itself is in the outbox.
                    log.debug("Preview not shown", extra={"turn": show.turn_id, "reason": str(error)})
            await self._pause(show, pause)

    async def _pause(self, show: _Show, seconds: float) -> None:
        """Wait the full pause between two calls to one chat, unless the turn ends."""
        deadline = asyncio.get_running_loop().time() + seconds
        while not show.is_closing:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return
            show.changed.clear()
            try:
                async with asyncio.timeout(left):
                    await show.changed.wait()
            except TimeoutError:
                return

    async def _type(self, adapter: Adapter, target: Target) -> None:
        if adapter.capabilities.typing and isinstance(adapter, ShowsTyping):
            await adapter.typing(target)

    async def _show_text(self, adapter: Adapter, show: _Show) -> None:
        limits = adapter.capabilities
        text = trim(show.rendering(), limits.text_limit - len(CURSOR), limits.text_unit)
        if not text or text == show.shown or show.is_closing:
            return
        if not show.preview:
            await self._send_preview(show, text)
        elif show.message_id or await self._look_up(show):
            message = OutboundMessage(show.key.target, text + CURSOR, replaces=show.message_id)
            await adapter.send(message)
            show.shown = text

    async def _send_preview(self, show: _Show, text: str) -> None:
        message = OutboundMessage(show.key.target, text + CURSOR)
        rows = self._letters.rows(message, OutboxKind.PREVIEW, turn_id=show.turn_id)[:1]
        show.preview = rows[0].id
        now = self._letters.now()
        await self._db.write(outbox.enqueue, rows, now=now)
        show.shown = text
        self._letters.due(rows)

    async def _look_up(self, show: _Show) -> bool:
        row = await self._db.read(outbox.get, show.preview)
        show.message_id = row.message_id if row is not None else ""
        return bool(show.message_id)


def progress_line(name: str, arguments: str) -> str:
    """One line about a tool at work: an emoji, its name, the start of what it was given."""
    emoji = {"read_file": "📖", "search_files": "🔎", "terminal": "💻"}.get(name, "⚙️")
    return f"{emoji} {name} `{one_line(arguments, 50)}`"
