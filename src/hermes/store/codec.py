"""Values to JSON text and back, typed."""

from __future__ import annotations

import logging

import msgspec

from hermes.core.messages import ChatMessage, InboundMessage, OutboundMessage, Press

log = logging.getLogger(__name__)

_encoder = msgspec.json.Encoder()
_message = msgspec.json.Decoder(InboundMessage)
_press = msgspec.json.Decoder(Press)
_outbound = msgspec.json.Decoder(OutboundMessage)
_chat = msgspec.json.Decoder(ChatMessage)


def dump(value: InboundMessage | Press | OutboundMessage | ChatMessage) -> str:
    return _encoder.encode(value).decode()


def load_message(body: str) -> InboundMessage:
    return _message.decode(body)


def load_press(body: str) -> Press:
    return _press.decode(body)


def load_outbound(body: str) -> OutboundMessage:
    return _outbound.decode(body)


def load_chat(body: str) -> ChatMessage:
    return _chat.decode(body)


def read_chat(body: str) -> ChatMessage | None:
    """None when the row is damaged."""
    try:
        return load_chat(body)
    except msgspec.DecodeError:  # what does not fit the type is one too
        log.exception("Line of a transcript cannot be read")
        return None
