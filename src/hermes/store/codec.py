"""Values to JSON text and back, typed."""

from __future__ import annotations

import logging

import msgspec

from hermes.core.messages import ChatMessage, InboundMessage, OutboundMessage, Press
from hermes.core.requests import AgentRequest

log = logging.getLogger(__name__)

_encoder = msgspec.json.Encoder()
_message = msgspec.json.Decoder(InboundMessage)
_press = msgspec.json.Decoder(Press)
_outbound = msgspec.json.Decoder(OutboundMessage)
_chat = msgspec.json.Decoder(ChatMessage)
_chats = msgspec.json.Decoder(list[ChatMessage])
_numbers = msgspec.json.Decoder(list[int])
_request = msgspec.json.Decoder(AgentRequest)


def dump(value: InboundMessage | Press | OutboundMessage | ChatMessage | AgentRequest) -> str:
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


def load_chats(joined: str) -> list[ChatMessage]:
    """Bodies joined by commas. Some hundred pass with every turn of a long talk: one by one they cost twice as much."""
    return _chats.decode(f"[{joined}]")


def load_numbers(joined: str) -> list[int]:
    return _numbers.decode(f"[{joined}]")


def load_request(body: str) -> AgentRequest:
    return _request.decode(body)
