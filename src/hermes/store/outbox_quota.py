"""Join waiting texts where a platform counts replies, and add our notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hermes.core.dataclasses import dataclass
from hermes.core.messages import OutboundMessage, TextUnit
from hermes.core.text import length
from hermes.store import codec
from hermes.store.db import Tx


@dataclass(frozen=True, slots=True)
class LateNotes:
    """Our words around what goes out late: below the last one that may be sent for now, above what is late."""

    last: str
    late: str


@dataclass(frozen=True, slots=True)
class ReplyQuota:
    """``note_room`` is what a message may have beyond ``text_limit`` for our own words.

    ``notes`` gives these in the language of whoever a turn is for.
    """

    text_limit: int
    unit: TextUnit
    note_room: int
    parked_seconds: float
    notes: Callable[[Tx, str], LateNotes]


def plain_text(body: str) -> OutboundMessage | None:
    """The message, if it is nothing but a text."""
    try:
        message = codec.load_outbound(body)
    except ValueError:  # a damaged row is told so when it is its turn
        return None
    is_plain = message.attachment is None and not message.buttons and bool(message.text)
    return message if is_plain else None


def joined(text: str, others: Sequence[OutboundMessage | None], terms: ReplyQuota) -> tuple[str, int]:
    """The text with those behind it, as far as they fit into one message; and how many did."""
    for count, other in enumerate(others):
        longer = f"{text}\n\n{other.text}" if other is not None else ""
        if not longer or length(longer, terms.unit) > terms.text_limit:
            return text, count
        text = longer
    return text, len(others)


def noted(body: str, notes: LateNotes, terms: ReplyQuota, *, is_last: bool, is_late: bool) -> str | None:
    """The body with our words above and below, where they belong. None: the word below has no room in it."""
    message = plain_text(body)
    if message is None:
        return None if is_last else body
    most = terms.text_limit + terms.note_room
    text = message.text.removesuffix(f"\n\n{notes.last}")  # of a try that came to nothing
    below = f"\n\n{notes.last}" if is_last else ""
    if length(text + below, terms.unit) > most:
        return None
    above = f"{notes.late}\n" if is_late and not text.startswith(notes.late) else ""
    if length(above + text + below, terms.unit) <= most:
        text = above + text
    text += below
    return body if text == message.text else codec.dump(replace(message, text=text))
