"""Prepare the files of a turn: fetch the new ones, report the lost ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hermes.agent.prompt import under
from hermes.core.i18n.catalogue import ENGLISH
from hermes.core.messages import OutboundMessage
from hermes.services.turns import attachments
from hermes.services.turns.model_calls import shows_pictures
from hermes.services.turns.turn import RunningTurn, TurnServices
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.outbox_files import LostFile
from hermes.store.turns import steps


class Files:
    def __init__(self, parts: TurnServices) -> None:
        self._parts = parts

    async def tell_lost(self, work: RunningTurn) -> None:
        """Report files of earlier answers that never arrived to model and person."""
        if not work.begun.has_lost_files:
            return

        def notice(lost: Sequence[LostFile]) -> list[Outgoing]:
            lines = [work.words.FILE_NOT_TAKEN.format(name=file.name, reason=file.reason) for file in lost]
            return self._notice(work, lines, "lost")

        now = self._parts.clock.now()
        message, rows = await self._parts.db.write(steps.tell_lost_files, work.begun.claim, work.turn, notice, now=now)
        self._parts.outbox_writer.due(rows)
        work.history += message

    async def tell_moved(self, work: RunningTurn) -> None:
        """Say to model and person that the files and processes of another node are not here."""
        before, here = work.begun.depends_on, self._parts.node
        if not before or before == here:
            return
        rows = self._notice(work, [work.words.MOVED_FROM_NODE.format(before=before, here=here)], "moved")
        text = ENGLISH.MOVED_FROM_NODE.format(before=before, here=here)
        now = self._parts.clock.now()
        message = await self._parts.db.write(steps.tell_moved, work.begun.claim, work.turn, text, rows, now=now)
        if message:
            self._parts.outbox_writer.due(rows)
            work.history += message

    async def fetch(self, work: RunningTurn) -> None:
        """Bring what came with the message into the workspace; after a crash before that, the inbox still knows it."""
        prompt = work.begun.prompt
        files = prompt.attachments if prompt is not None and work.steps == 0 else ()
        if prompt is None or not files:
            return
        last = work.history[-1]
        if last != prompt.message and last.text.startswith(attachments.MARK):
            return  # fetched before the crash
        arrival = await self._parts.attachments.fetch(
            work.key.target,
            files,
            self._parts.context_of(work),
            work.words,
            sees=shows_pictures(self._parts.config(), work),
        )
        message = arrival.message
        if prompt.speaker:  # what is said in a voice message is that person's too
            rest = message.text.removeprefix(attachments.MARK).lstrip("\n")
            message = replace(message, text=under(f"{attachments.MARK} {prompt.speaker}", rest))
        notice = self._notice(work, arrival.troubles, "files", reply_to=work.turn.reply_to)
        now = self._parts.clock.now()
        await self._parts.db.write(steps.add_message, work.begun.claim, work.turn, message, notice, now=now)
        self._parts.outbox_writer.due(notice)
        work.history.append(message)

    def _notice(self, work: RunningTurn, lines: Sequence[str], name: str, *, reply_to: str = "") -> list[Outgoing]:
        """Render the rows, if there are lines. Named after the turn, a resumed one does not send them twice."""
        message = OutboundMessage(work.key.target, "\n".join(lines), reply_to=reply_to)
        key = f"ob_{work.turn.id}.{name}"
        writer = self._parts.outbox_writer
        return writer.rows(message, OutboxKind.REPLY, turn_id=work.turn.id, key=key) if lines else []
