"""Compose a turn's reply: its text, files and voice, in place of the preview."""

from __future__ import annotations

from hermes.agent.messaging import OutgoingFiles
from hermes.core.lane import DOORS
from hermes.core.messages import AttachmentKind, OutboundMessage
from hermes.services.outbound.media import ComposedReply
from hermes.services.turns.turn import RunningTurn, TurnServices
from hermes.store import outbox
from hermes.store.outbox import OutboxKind, Outgoing

SPEAKS = "text_to_speech"


class Replies:
    def __init__(self, parts: TurnServices) -> None:
        self._parts = parts

    async def close_preview(self, work: RunningTurn) -> str:
        """End what the turn was showing; the outbox id of it, or ''. After a crash the outbox remembers it."""
        shown = await self._parts.previews.close(work.turn.id)
        if not shown and work.begun.is_resumed:
            return await self._parts.db.read(outbox.preview_of_turn, work.turn.id)
        return shown

    def rows(self, work: RunningTurn, text: str, preview: str) -> list[Outgoing]:
        """A text of ours, in the place of the preview if there is one."""
        return [
            row
            for message in self._messages(work, text)
            for row in self._parts.outbox_writer.rows(message, OutboxKind.REPLY, turn_id=work.turn.id, replaces=preview)
        ]

    async def mail(self, work: RunningTurn, text: str, preview: str, *, is_answer: bool) -> ComposedReply:
        """What goes out at the end. Only the agent's own last words can bring files along."""
        if not is_answer:
            return ComposedReply(self.rows(work, text, preview))
        composed = [
            await self._parts.media.compose(
                message,
                lambda: self._parts.context_of(work),
                work.words,
                turn_id=work.turn.id,
                lane=work.turn.lane,
                preview=preview,
            )
            for message in self._messages(work, text)
        ]
        if len(composed) == 1:
            return composed[0]
        return ComposedReply(
            [row for each in composed for row in each.rows],
            [file for each in composed for file in each.files],
            [line for each in composed for line in each.refused],
        )

    def _messages(self, work: RunningTurn, text: str) -> list[OutboundMessage]:
        whole = f"{work.header}\n\n{text}" if work.header else text
        return [OutboundMessage(target, whole, reply_to=work.turn.reply_to) for target in work.answered_in]

    async def speak(self, work: RunningTurn, text: str) -> OutgoingFiles | None:
        """The answer as a voice message too, where the chat wants that for voice messages and one came."""
        prompt = work.begun.prompt
        is_spoken_to = prompt is not None and any(file.kind is AttachmentKind.VOICE for file in prompt.attachments)
        if not is_spoken_to or work.begun.choices.voice != "on" or work.key.platform in DOORS:
            return None
        if any(name == SPEAKS for name, _ in work.made):  # it has spoken already, in words of its own choice
            return None
        return await self._parts.voice_reply.say(
            work.key.target, text, work.words, lane=work.turn.lane, turn_id=work.turn.id
        )
