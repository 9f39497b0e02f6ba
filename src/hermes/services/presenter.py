"""While it works: typing, and a preview that grows. A quick answer needs neither, and costs neither.

A preview is an outbox row, so its message id survives a crash; its edits are not stored. The turn closes it before
the final text is committed, and the final text then replaces it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from hermes.config import Config
from hermes.config.schema import ToolProgress
from hermes.core.errors import PlatformError, RateLimitedError, StoreIsDownError
from hermes.core.keys import SessionKey, Target
from hermes.core.lane import DOORS
from hermes.core.media import without_files
from hermes.core.messages import OutboundMessage
from hermes.core.ports import Adapter, ShowsTyping
from hermes.core.text import one_line, trim
from hermes.services.events import EventBus, SegmentEnded, TextArrived, ToolStarted, TurnEnded, TurnEvent, TurnStarted
from hermes.services.letters import Letters
from hermes.store import outbox
from hermes.store.db import Database
from hermes.store.outbox import OutboxKind

log = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0
CURSOR = " ▌"


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a turn may take before anything is shown, and how often typing is renewed. Tests shorten it."""

    first_sign_seconds: float = 0.4
    preview_after_seconds: float = 1.2
    typing_every_seconds: float = 4.0


@dataclass(slots=True)
class _Show:
    """What one running turn shows in its chat."""

    key: SessionKey
    turn_id: str
    started: float
    is_resumed: bool = False
    timer: asyncio.TimerHandle | None = None
    task: asyncio.Task[None] | None = None
    text: str = ""
    progress: list[str] = field(default_factory=list)
    preview: str = ""
    message_id: str = ""
    shown: str = ""
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    def rendering(self) -> str:
        return "\n".join([*self.progress[-5:], without_files(self.text)]).strip()


DEFAULT_PACE = Pace()


class Presenter:
    def __init__(
        self,
        db: Database,
        bus: EventBus,
        letters: Letters,
        adapter_of: Callable[[Target], Adapter | None],
        config: Callable[[], Config],
        pace: Pace = DEFAULT_PACE,
    ) -> None:
        self._db = db
        self._bus = bus
        self._letters = letters
        self._adapter_of = adapter_of
        self._config = config
        self._pace = pace
        self._shows: dict[str, _Show] = {}

    async def run(self) -> None:
        """Watch turns until cancelled; then nothing is left running."""
        try:
            with self._bus.watch(self._saw):
                await asyncio.Event().wait()
        finally:
            shows = [show for turn_id in list(self._shows) if (show := self._forget(turn_id)) is not None]
            tasks = [show.task for show in shows if show.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _saw(self, event: TurnEvent) -> None:
        match event:
            case TurnStarted():
                if SessionKey.parse(event.lane).platform not in DOORS:
                    self._begin(event)
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

    def _begin(self, turn: TurnStarted) -> None:
        loop = asyncio.get_running_loop()
        show = _Show(SessionKey.parse(turn.lane), turn.turn_id, loop.time(), turn.is_resumed)
        self._shows[turn.turn_id] = show
        show.timer = loop.call_later(self._pace.first_sign_seconds, self._start, show)

    def _start(self, show: _Show) -> None:
        show.task = asyncio.create_task(self._keep_showing(show), name=f"present {show.turn_id}")

    def _change(self, turn_id: str, *, text: str = "", progress: str = "") -> None:
        show = self._shows.get(turn_id)
        if show is None:
            return
        show.text += text
        if progress and self._wants(show, progress):
            show.progress.append(progress)

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
        show.closing.set()
        _, pending = await asyncio.wait([show.task], timeout=CLOSE_SECONDS)
        if pending:
            show.task.cancel()
        return show.preview

    def leave(self, turn_id: str) -> None:
        """Stop showing a turn that is not carried here any more. What was shown of it stays until it goes on."""
        show = self._forget(turn_id)
        if show is not None:
            show.closing.set()

    async def _keep_showing(self, show: _Show) -> None:
        loop = asyncio.get_running_loop()
        next_typing = 0.0
        while not show.closing.is_set():
            pause = self._pace.typing_every_seconds
            adapter = self._adapter_of(show.key.target)
            if adapter is not None:
                pause = adapter.capabilities.edit_pause_seconds
                try:
                    if loop.time() >= next_typing:
                        await self._type(adapter, show.key.target)
                        next_typing = loop.time() + self._pace.typing_every_seconds
                    if adapter.capabilities.edits and loop.time() - show.started >= self._pace.preview_after_seconds:
                        await self._show_text(adapter, show)
                except RateLimitedError as error:
                    pause = error.retry_after
                except (PlatformError, StoreIsDownError) as error:
                    # A sign of life that could not be shown is no loss; the answer itself is in the outbox.
                    log.debug("Preview not shown", extra={"turn": show.turn_id, "reason": str(error)})
            await self._pause(show, pause)

    async def _pause(self, show: _Show, seconds: float) -> None:
        """Wait the full pause between two calls to one chat, unless the turn ends. No token wakes it."""
        with contextlib.suppress(TimeoutError):  # the pause is over
            async with asyncio.timeout(seconds):
                await show.closing.wait()

    async def _type(self, adapter: Adapter, target: Target) -> None:
        if adapter.capabilities.typing and isinstance(adapter, ShowsTyping):
            await adapter.typing(target)

    async def _show_text(self, adapter: Adapter, show: _Show) -> None:
        limits = adapter.capabilities
        text = trim(show.rendering(), limits.text_limit - len(CURSOR), limits.text_unit)
        if not text or text == show.shown or show.closing.is_set():
            return
        if show.is_resumed and not show.preview:
            # What an earlier process was showing goes on growing; a second message would leave the first one torn.
            show.preview = await self._db.read(outbox.preview_of_turn, show.turn_id)
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
