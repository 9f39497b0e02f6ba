"""Values to JSON text and back, typed."""

from __future__ import annotations

import msgspec

from hermes.core.messages import ChatMessage, InboundMessage, OutboundMessage, Press

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
