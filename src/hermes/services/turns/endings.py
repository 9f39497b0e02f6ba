"""End a turn once: last words, row and replies in one transaction, then publish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hermes.agent.messaging import OutgoingFiles
from hermes.agent.prompt import unanswered
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ModelError
from hermes.core.i18n.catalogue import localize
from hermes.core.lane import DOORS
from hermes.core.messages import ChatMessage, Role, ToolCall
from hermes.core.ports import ModelReply
from hermes.core.requests import TurnResult, is_silent
from hermes.services.events import TurnEnded
from hermes.services.outbound.media import ComposedReply
from hermes.services.outbound.rate_limits import Slot
from hermes.services.turns.compression import FinishedTurn
from hermes.services.turns.replies import Replies
from hermes.services.turns.stop import StopReason
from hermes.services.turns.turn import RunningTurn, TurnServices
from hermes.store import outbox_files, outbox_sending
from hermes.store.db import Tx
from hermes.store.inbox import InboxState
from hermes.store.turns import end as turn_end
from hermes.store.turns.end import Ending
from hermes.store.turns.turns import TurnState

NO_REPLY = ModelReply("")


@dataclass(slots=True)
class _TurnEnd:
    """An end that is about to be written. Only the call that makes it touches it.

    ``text`` is what the person reads, ``messages`` what joins the transcript, ``reason`` what `hermes trace` shows.
    """

    state: TurnState
    reason: str = ""
    text: str = ""
    messages: Sequence[ChatMessage] = ()
    reply: ModelReply = NO_REPLY
    error: ModelError | None = None
    voice_reply: OutgoingFiles | None = None

    @property
    def is_done(self) -> bool:
        return self.state is TurnState.DONE


class Endings:
    """Each of these is True when the lane sleeps afterwards, False when more waits in it."""

    def __init__(self, parts: TurnServices, replies: Replies) -> None:
        self._parts = parts
        self._replies = replies

    async def answered(self, work: RunningTurn, reply: ModelReply) -> bool:
        text = reply.text.rstrip() if work.continues_answer and not work.segments else reply.text.strip()
        if not text and not reply.tool_calls:
            text = work.words.EMPTY_REPLY
        shown = _reply_text(work, reply, text)
        if work.options.may_be_silent and is_silent(text):
            shown = ""
        is_stored = bool(reply.tool_calls) and bool(unanswered(work.history))
        answer = ChatMessage(Role.ASSISTANT, text, tool_calls=reply.tool_calls, thought=reply.thought)
        messages = [] if is_stored else [answer]
        voice_reply = await self._replies.speak(work, text)
        return await self._end(work, _TurnEnd(TurnState.DONE, "", shown, messages, reply, voice_reply=voice_reply))

    async def failed(self, work: RunningTurn, reason: str, text: str) -> bool:
        return await self._end(work, _TurnEnd(TurnState.FAILED, reason, text))

    async def set_aside(self, work: RunningTurn, reason: str, text: str) -> bool:
        """Give the turn up, and notify the sender."""
        return await self._end(work, _TurnEnd(TurnState.SET_ASIDE, reason, text))

    async def model_failed(self, work: RunningTurn, error: ModelError) -> bool:
        """What a person has begun to read stays, with the reason why there is no more of it."""
        kind, partial = error.kind.value, error.partial.strip()
        text = localize(error, work.words)
        if partial:
            text = f"{partial} …\n\n{text}"
        reason = f"model {kind}: {error}"
        return await self._end(
            work, _TurnEnd(TurnState.FAILED, reason, text, _interrupted_words(work, partial), error=error)
        )

    async def interrupted(self, work: RunningTurn, reason: StopReason) -> bool:
        """Ended on purpose: no answer goes out; what was said so far is kept, and marked as unfinished."""
        state = TurnState.INTERRUPTED if reason is StopReason.INTERRUPTED else TurnState.STOPPED
        text = _interrupted_words(work, work.partial.strip())
        return await self._end(work, _TurnEnd(state, reason.value, messages=text))

    async def _end(self, work: RunningTurn, end: _TurnEnd) -> bool:
        work.control.is_ending = True
        # Providers repeat the key that they refuse, and errors what they were made of.
        end.reason, end.text = self._parts.toolbox.hide(end.reason), self._parts.toolbox.hide(end.text)
        if work.options.job and not end.is_done:
            end.text = ""  # told of by the alert about the job, once
        preview = await self._replies.close_preview(work)
        if preview and not end.text:
            end.text = f"{work.partial.strip()} {work.words.INTERRUPTED_MARK}".strip()
        mail = await self._replies.mail(work, end.text, preview, is_answer=end.is_done) if end.text else ComposedReply()
        if end.voice_reply is not None:
            mail = replace(mail, rows=[*mail.rows, *end.voice_reply.rows], files=[*mail.files, *end.voice_reply.files])
        end.messages = [*end.messages, *mail.note]
        ending = Ending(
            end.state,
            InboxState.ANSWERED if end.is_done else InboxState.SET_ASIDE,
            end.reason,
            end.messages,
            mail.rows,
            end.reply.usage,
            end.reply.model,
            self._parts.cards,
        )
        with self._parts.outbox_writer.place_for(mail.rows) as place:
            sleeps, sending = await self._parts.db.write(
                self._write, work, ending, mail, place, end.reply.tool_calls, now=self._parts.clock.now()
            )
            self._parts.outbox_writer.stored(mail.rows, sending, place)
        # Tell whoever waits for the turn; and whoever makes a long talk shorter, if it may become one.
        result = TurnResult(
            work.turn.id,
            end.state.value,
            end.text if end.is_done else work.partial,
            end.reason,
            end.reply.finish_reason if end.is_done else "error",
            end.reply.tool_calls,
            work.spent,
            end.reply.model,
            error_kind=end.error.kind.value if end.error is not None else "",
            segments=tuple(work.segments),
            thinking=tuple(work.thinking),
            notices=tuple(work.notices),
            logprobs=end.reply.logprobs,
            is_rate_limited=end.error is not None and end.error.status == 429,
            retry_after=end.error.retry_after if end.error is not None else None,
            steps=work.steps,
        )
        self._parts.bus.publish(TurnEnded(work.turn.lane, work.turn.id, end.state.value, end.text, end.reason, result))
        if work.goes_on:
            history = [*work.history, *end.messages]
            name = work.options.model or work.begun.choices.model
            talk = FinishedTurn(work.key, work.turn.session_id, history, work.begun.summary, name, work.was_too_long)
            self._parts.grown(talk)
        return sleeps

    def _write(
        self,
        tx: Tx,
        work: RunningTurn,
        ending: Ending,
        mail: ComposedReply,
        place: Slot | None,
        calls: Sequence[ToolCall],
        *,
        now: float,
    ) -> tuple[bool, outbox_sending.BegunDelivery | None]:
        """The end of the turn and the beginning of its delivery, in one transaction."""
        outbox_files.note(tx, mail.files)
        if calls and work.steps:
            from hermes.store.turns import client_calls  # a start needs it not

            client_calls.note(tx, work.turn, calls, now=now)
        sleeps = turn_end.finish(tx, work.begun.claim, work.turn, ending, now=now)
        return sleeps, self._parts.outbox_writer.begin_within(tx, ending.replies, place, now=now)


def _reply_text(work: RunningTurn, reply: ModelReply, text: str) -> str:
    """The answer as it is told. One that was asked for in a form is told bare, and words beside a call are none."""
    if work.options.format is not None:
        return "" if reply.tool_calls else text
    # Whoever reads half an answer is told so. A client of the API has it in the reply's finish_reason.
    why = {"length": work.words.CUT_OFF_LENGTH, "content_filter": work.words.CUT_OFF_FILTER}.get(reply.finish_reason)
    is_told = work.key.platform in DOORS or text.endswith("…")
    # A client of the API reads the notices beside the answer: a stream could not put them above it any more.
    notices = [] if work.key.platform in DOORS and not work.options.origin else work.notices
    return "\n\n".join([*notices, text, *([why] if why and not is_told else [])]).rstrip()


def _interrupted_words(work: RunningTurn, partial: str) -> list[ChatMessage]:
    """The unfinished words, as the model reads them next time."""
    return [ChatMessage(Role.ASSISTANT, f"{partial} {work.words.INTERRUPTED_MARK}")] if partial else []
