"""Write the question of an approval: a card for each chat, and the whole text before a card that cannot show it.

Imported with the first question.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from hermes.core.dataclasses import dataclass
from hermes.core.keys import Target
from hermes.core.markdown.call_card import Card
from hermes.core.messages import Attachment, AttachmentKind, OutboundMessage
from hermes.core.text import length
from hermes.services.outbound import approval_cards
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.outbound.spool import Spool
from hermes.store.approvals import Question
from hermes.store.ids import new_code
from hermes.store.outbox import OutboxKind, Outgoing

log = logging.getLogger(__name__)

PROOF_CHARS = 8
MAX_PARTS = 30
"""Where no file can be sent: the messages that one text may fill."""


@dataclass(frozen=True, slots=True)
class QuestionTarget:
    """A chat that is asked. ``copy`` numbers the home channels; None for the chat of the turn itself."""

    target: Target
    copy: int | None = None
    reply_to: str = ""
    is_for_admins: bool = False


class QuestionWriter:
    def __init__(self, outbox_writer: OutboxWriter, spool: Spool) -> None:
        self._outbox_writer = outbox_writer
        self._spool = spool

    def write(
        self, card: Card, question: Question, chats: Sequence[QuestionTarget], *, seconds: float, turn_id: str
    ) -> tuple[Question, list[Outgoing]]:
        """Return the question as it is stored, and its rows. It may write files: call it in a thread.

        Where one of these chats cannot show all of it in one message, the question gets a proof: the code that stands
        at the end of the whole text, without which nobody can approve it.
        """
        if not all(self._shows_all(card, question, chat, seconds) for chat in chats):
            question = replace(question, proof=new_code(PROOF_CHARS))
        rows: list[Outgoing] = []
        for chat in chats:
            name = approval_cards.name_of_question(question.id, chat.copy)
            answer = self._how(card, question, chat, seconds)
            about, before = card.whole() if not question.proof else "", list[Outgoing]()
            if question.proof:
                about, answer, before = self._long(card, question, chat.target, name, answer, turn_id)
            message = OutboundMessage(
                chat.target,
                f"{about}\n{answer}",
                reply_to=chat.reply_to,
                buttons=approval_cards.buttons(card.words, question),
            )
            rows += [*before, *self._outbox_writer.rows(message, OutboxKind.QUESTION, turn_id=turn_id, key=name)]
        # Asked after its time, a question could only be answered in vain.
        return question, [replace(row, expires_at=question.expires_at) for row in rows]

    def _how(self, card: Card, question: Question, chat: QuestionTarget, seconds: float) -> str:
        return approval_cards.how_to_answer(
            card.words,
            question,
            seconds=seconds,
            has_buttons=self._outbox_writer.capabilities(chat.target).buttons,
            is_for_admins=chat.is_for_admins,
        )

    def _shows_all(self, card: Card, question: Question, chat: QuestionTarget, seconds: float) -> bool:
        limits = self._outbox_writer.capabilities(chat.target)
        return card.fits(self._how(card, question, chat, seconds), limits)

    def _long(
        self, card: Card, question: Question, target: Target, name: str, answer: str, turn_id: str
    ) -> tuple[str, str, list[Outgoing]]:
        """Return an excerpt, how to answer, and the rows that bring the whole text before it.

        The whole text goes out as a file, else as messages; on a platform that takes it in one message it is the card.
        """
        words, limits = card.words, self._outbox_writer.capabilities(target)
        at_end = approval_cards.how_at_end(words, proof=question.proof, subject=question.subject)
        file_name = f"approval-{question.code}.txt"
        values = {"count": card.count(), "code": question.code, "file": file_name}
        key = approval_cards.name_of_whole(name)
        if limits.media:
            try:
                rows = self._text_file(target, file_name, card.file_text(at_end), key=key, turn_id=turn_id)
            except OSError as error:
                log.warning("Question not written to a file", extra={"turn": turn_id, "reason": str(error)})
            else:
                return card.excerpt(), f"{words.APPROVAL_LONG_FILE.format(**values)}\n{answer}", rows
        whole = f"{words.APPROVAL_LONG_HERE.format(**values)}\n{answer}\n{at_end}"
        if length(f"{card.whole()}\n{whole}", limits.text_unit) <= limits.text_limit:
            return card.whole(), whole, []
        message = OutboundMessage(target, f"{card.whole()}\n{at_end}")
        parts = self._outbox_writer.rows(message, OutboxKind.REPLY, turn_id=turn_id, key=key)
        if len(parts) <= MAX_PARTS:
            return card.excerpt(), f"{words.APPROVAL_LONG_MESSAGES.format(**values)}\n{answer}", parts
        return card.excerpt(), f"{words.APPROVAL_LONG_ELSEWHERE.format(**values)}\n{answer}", []

    def _text_file(self, target: Target, name: str, text: str, *, key: str, turn_id: str) -> list[Outgoing]:
        """Put a text into the spool and return the row that carries it."""
        data = text.encode("utf-8", "replace")
        path = self._spool.put(data, key)
        file = Attachment(AttachmentKind.DOCUMENT, path=str(path), name=name, mime="text/plain", size=len(data))
        message = OutboundMessage(target, "", attachment=file)
        return self._outbox_writer.rows(message, OutboxKind.QUESTION, turn_id=turn_id, key=key)
