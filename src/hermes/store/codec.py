"""Convert values to JSON text and back, typed."""

from __future__ import annotations

import logging

import msgspec

from hermes.core.messages import ChatMessage, InboundMessage, OutboundMessage, Press
from hermes.core.requests import AgentRequest

log = logging.getLogger(__name__)

_encoder = msgspec.json.Encoder()
_chats = msgspec.json.Decoder(list[ChatMessage])
_numbers = msgspec.json.Decoder(list[int])

# Each raises msgspec.DecodeError, a ValueError, for what does not fit its type.
load_message = msgspec.json.Decoder(InboundMessage).decode
load_press = msgspec.json.Decoder(Press).decode
load_outbound = msgspec.json.Decoder(OutboundMessage).decode
load_chat = msgspec.json.Decoder(ChatMessage).decode
load_request = msgspec.json.Decoder(AgentRequest).decode


def dump(value: InboundMessage | Press | OutboundMessage | ChatMessage | AgentRequest) -> str:
    return _encoder.encode(value).decode()


def read_chat(body: str) -> ChatMessage | None:
    """None when the row is damaged."""
    try:
        return load_chat(body)
    except msgspec.DecodeError:  # what does not fit the type is one too
        log.exception("Transcript line not readable")
        return None


def load_chats(joined: str) -> list[ChatMessage]:
    """Bodies joined by commas. Some hundred pass with every turn of a long talk: one by one they cost twice as much."""
    return _chats.decode(f"[{joined}]")


def load_numbers(joined: str) -> list[int]:
    return _numbers.decode(f"[{joined}]")
