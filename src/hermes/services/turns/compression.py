"""Compress long sessions beside the turns: a summary stored as a revision.

No lane is held meanwhile: a message that comes goes on with the talk as it is. Whatever goes wrong leaves all as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from hermes.agent import compression
from hermes.agent.compression import BYTES_PER_TOKEN, PROMPT_SHARE, summary_message
from hermes.agent.step import ask_model
from hermes.agent.toolkit.search import names_found
from hermes.config import Config
from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError, ModelError, StoreIsDownError
from hermes.core.i18n.catalogue import LocalizedText
from hermes.core.keys import SessionKey, Target
from hermes.core.messages import ChatMessage
from hermes.core.ports import Clock, Model, ModelRequest
from hermes.store.db import Database
from hermes.store.sessions import revisions, transcripts, undo
from hermes.store.sessions.transcripts import HISTORY_ROWS, Context
from hermes.store.sessions.undo import Shorter

log = logging.getLogger(__name__)

MAX_AT_ONCE = 2
CALL_SECONDS = 180.0
MAX_SUMMARY_TOKENS = 2000
URGENT = 0.9
"""What was undone is not done again by itself before the talk fills so much of the window."""

REST_TURNS, MAX_REST_TURNS = 10, 80
"""After an attempt in vain a talk is left alone for so many turns, and twice as many after the next."""

MAX_RESTING = 1000


class NothingToDoError(GatewayError):
    """The talk is too short, or its summary would not be shorter."""


class StillUndoneError(NothingToDoError):
    """Somebody took it back, and there is still room."""


@dataclass(frozen=True, slots=True)
class Compressed:
    """What became of it: so many lines of so many characters, and the summary. ``revision`` 0: not stored."""

    lines: int
    characters: int
    summary: str
    revision: int = 0


@dataclass(frozen=True, slots=True)
class FinishedTurn:
    """A session as a turn left it. ``model`` is the one that was asked for ('' the default)."""

    key: SessionKey
    session_id: str
    history: Sequence[ChatMessage]
    summary: str = ""
    model: str = ""
    was_too_long: bool = False


@dataclass(slots=True)
class _Rest:
    turns: int
    next: int


class Compression:
    """``model`` finds the one of a setting and a chat; ``tell`` writes to a chat."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        config: Callable[[], Config],
        model: Callable[[str, SessionKey], Model],
        tell: Callable[[Target, str], Awaitable[None]],
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._model = model
        self._tell = tell
        self._running: dict[str, asyncio.Task[Compressed]] = {}
        self._resting = BoundedDict[str, _Rest](MAX_RESTING)
        self._telling: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Own what works in the background: it ends with this."""
        try:
            await asyncio.Event().wait()
        finally:
            tasks = [*self._running.values(), *self._telling]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def window(self, model: str) -> int:
        return self._config().context_window(model)

    def grown(self, talk: FinishedTurn) -> None:
        """A turn has ended with this talk: begin to make it shorter, if it has grown so long."""
        settings = self._config().compression
        if not settings.enabled or talk.session_id in self._running or len(self._running) >= MAX_AT_ONCE:
            return
        if not talk.was_too_long and self._rests(talk.session_id):
            return
        window = self.window(talk.model)
        share = compression.share(talk.history, talk.summary, window=window, most_lines=HISTORY_ROWS)
        is_urgent = talk.was_too_long or share >= max(URGENT, settings.at)
        if is_urgent or share >= settings.at:
            self._begin(talk.key, talk.session_id, window, is_wanted=is_urgent)

    def _rests(self, session_id: str) -> bool:
        """Whether what was tried in vain is left alone for this turn too: asking a model each time would cost."""
        rest = self._resting.get(session_id)
        if rest is None or rest.turns <= 0:
            return False
        rest.turns -= 1
        return True

    def begin(self, key: SessionKey, session_id: str, *, is_preview: bool = False) -> asyncio.Task[Compressed]:
        """Make this talk shorter now, or join whoever is at it; a preview only says how it would be."""
        if is_preview:
            return self._start(f"preview of {session_id}", self._preview(key, session_id))
        return self._running.get(session_id) or self._begin(key, session_id, self.window(""), is_wanted=True)

    def tell_when_done(
        self, work: asyncio.Task[Compressed], target: Target, say: Callable[[asyncio.Task[Compressed]], str]
    ) -> None:
        """For whoever does not wait for it."""

        async def tell() -> None:
            await asyncio.wait({work})
            if not work.cancelled():
                await self._tell(target, say(work))

        task = asyncio.create_task(tell(), name="tell of a compression")
        self._telling.add(task)
        task.add_done_callback(self._log_failure)

    def _log_failure(self, task: asyncio.Task[None]) -> None:
        self._telling.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("Compression notice not sent", extra={"reason": str(error)})

    def _begin(self, key: SessionKey, session_id: str, window: int, *, is_wanted: bool) -> asyncio.Task[Compressed]:
        return self._start(session_id, self._compress(key, session_id, window, is_wanted=is_wanted))

    def _start(self, name: str, work: Coroutine[Any, Any, Compressed]) -> asyncio.Task[Compressed]:
        task = self._running[name] = asyncio.create_task(work, name=f"compress {name}")
        task.add_done_callback(lambda _: self._ended(name, task))
        return task

    def _ended(self, session_id: str, task: asyncio.Task[Compressed]) -> None:
        self._running.pop(session_id, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, StillUndoneError):
            before = self._resting.get(session_id)
            turns = before.next if before else REST_TURNS
            self._resting[session_id] = _Rest(turns, min(2 * turns, MAX_REST_TURNS))
        match error:
            case None:
                made = task.result()
                if not made.revision:
                    return
                self._resting.pop(session_id, None)
                facts = {"lines": made.lines, "characters": made.characters, "now": len(made.summary)}
                log.info("Compressed", extra={"session": session_id, "revision": made.revision, **facts})
            case NothingToDoError() as reason:
                log.debug("Nothing to compress", extra={"session": session_id, "reason": str(reason)})
            case ModelError() | StoreIsDownError() as error:
                log.warning("Compression failed", extra={"session": session_id, "reason": str(error)})
            case _:
                log.error("Compression broke", extra={"session": session_id}, exc_info=error)

    async def _compress(self, key: SessionKey, session_id: str, window: int, *, is_wanted: bool) -> Compressed:
        newest = None if is_wanted else await self._db.read(revisions.newest, session_id)
        if newest is not None and newest.undone_at is not None:
            raise StillUndoneError(LocalizedText(lambda words: words.COMPRESS_UNDONE))
        talk = await self._db.read(transcripts.context, session_id)
        made, up_to = await self._summarise(key, talk, window)
        shorter = Shorter(talk, up_to, made.summary, self._config().compression.model)
        revision = await self._db.write(undo.compress, session_id, shorter, now=self._clock.now())
        if not revision:
            raise NothingToDoError(LocalizedText(lambda words: words.COMPRESS_WENT_ON))
        return Compressed(made.lines, made.characters, made.summary, revision)

    async def _preview(self, key: SessionKey, session_id: str) -> Compressed:
        talk = await self._db.read(transcripts.context, session_id)
        made, _ = await self._summarise(key, talk, self.window(""))
        return made

    async def _summarise(self, key: SessionKey, talk: Context, window: int) -> tuple[Compressed, int]:
        history = talk.messages
        count = compression.cut(history, window)
        older = history[:count]
        size = compression.characters(older) + len(talk.summary)
        if not count or size < compression.SMALLEST_GAIN:
            raise NothingToDoError(LocalizedText(lambda words: words.COMPRESS_TOO_LITTLE))
        route = self._config().compression.model
        most = int(self.window(route.partition("/")[2]) * BYTES_PER_TOKEN * PROMPT_SHARE)
        asked = compression.request(older, talk.summary, most=most)
        request = ModelRequest(asked, max_tokens=MAX_SUMMARY_TOKENS, deadline_seconds=CALL_SECONDS)
        reply = await ask_model(self._model(route, key), request, lambda _: None, lambda _: None)
        found = names_found([*([summary_message(talk.summary)] if talk.summary else []), *older])
        summary = compression.stored_summary(reply.text, found)
        if not reply.text.strip() or not compression.is_gain(older, talk.summary, summary):
            raise NothingToDoError(LocalizedText(lambda words: words.COMPRESS_NO_GAIN))
        return Compressed(count, size, summary), talk.seqs[count - 1]
