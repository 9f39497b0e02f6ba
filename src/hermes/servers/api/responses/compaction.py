"""`POST /v1/responses/compact`: a long conversation as a short one, with a summary that only this gateway reads.

The answer holds what the user said last and a `compaction` item. Sent back as input, that item stands for all that came
before it, as the summary of a long chat does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from hermes.agent import compression
from hermes.core.messages import ChatMessage, Json, Role
from hermes.core.text import storable
from hermes.servers.api.content import InputLimits, read_text
from hermes.servers.api.errors import bad_request

MARK = "hermes-summary-1:"
LAST_MESSAGES = 4
"""So many of the newest messages of the user stay as they are."""


def seal(summary: str) -> str:
    """The summary as `encrypted_content`: opaque to clients, though no secret, since it is their own conversation."""
    return base64.b64encode(f"{MARK}{summary}".encode()).decode()


def read_compaction(item: Json, where: str, limits: InputLimits) -> ChatMessage:
    """The message that a summary is to the model."""
    sealed = item.get("encrypted_content")
    try:
        text = base64.b64decode(sealed, validate=True).decode() if isinstance(sealed, str) else ""
    except (binascii.Error, ValueError):
        text = ""
    if not text.startswith(MARK):
        message = "This compaction item was not made here: send the items it stands for."
        raise bad_request(message, code="invalid_compaction", param=f"{where}.encrypted_content")
    return compression.summary_message(storable(read_text(text.removeprefix(MARK), where, limits)))


def newest_words(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The newest words of the user, which no summary repeats exactly."""
    own = [message for message in messages if message.role is Role.USER and not compression.is_summary(message)]
    return own[-LAST_MESSAGES:]
