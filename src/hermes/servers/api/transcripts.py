"""Lines of a transcript as a client may see them: OpenAI's shapes, nothing of ours, and no end of megabytes."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.core.messages import ChatMessage, Image, Json, Role
from hermes.servers.api import parse
from hermes.servers.api.context import SessionNames
from hermes.servers.api.results import tool_call
from hermes.services.gateway import Gateway
from hermes.store import codec
from hermes.store.api import pictures
from hermes.store.db import Tx
from hermes.store.sessions import sessions, transcripts
from hermes.store.sessions.transcripts import TranscriptLine

LONGEST_TEXT = 100 * 1024
"""Of a call's arguments or result; what is longer is for the model, not for a screen."""


def trimmed(text: str, longest: int = LONGEST_TEXT) -> str:
    more = len(text) - longest
    return f"{text[:longest]}\n[{more:,} more characters]" if more > 0 else text


def message_id(turn_id: str, number: int) -> str:
    """One for each message the model writes in a turn: the same in events, in transcripts and after a restart."""
    return f"msg_{turn_id}_{number}"


def message_to_dict(message: ChatMessage, longest: int = LONGEST_TEXT) -> Json:
    shown: Json = {"role": message.role.value, "content": _content(message, longest)}
    if message.tool_calls:
        calls = (tool_call(call) for call in message.tool_calls)
        shown["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": trimmed(call["function"]["arguments"], longest)}}
            for call in calls
        ]
    if message.role is Role.TOOL:
        shown["tool_call_id"] = message.tool_call_id
        shown["name"] = message.name
    return shown


def _content(message: ChatMessage, longest: int) -> str | list[Json] | None:
    text = trimmed(message.text, longest) if message.role is Role.TOOL else message.text
    if message.images:
        words = [{"type": "text", "text": text}] if text else []
        return [*words, *(_picture(image) for image in message.images)]
    return None if not text and message.tool_calls else text


def _picture(image: Image) -> Json:
    """An address as it is; of a picture that came as data, its kind and size."""
    if image.url.startswith(pictures.PREFIX):
        media_type, length = pictures.describe(image.url)
        url = {"url": f"data:{media_type};base64", "detail": image.detail}
        return {"type": "image_url", "image_url": url, "omitted_characters": length}
    if not image.url.startswith("data:"):
        return {"type": "image_url", "image_url": {"url": image.url, "detail": image.detail}}
    kind = image.url.partition(",")[0]
    return {
        "type": "image_url",
        "image_url": {"url": kind, "detail": image.detail},
        "omitted_characters": len(image.url),
    }


def answer_of(lines: Sequence[TranscriptLine], turn_id: str, inputs: int) -> list[tuple[str, ChatMessage]]:
    """Return what the agent added in a turn behind its ``inputs`` lines, with ids; unreadable lines are skipped."""
    number = 0
    found: list[tuple[str, ChatMessage]] = []
    for line in lines[inputs:]:
        message = codec.read_chat(line.body)
        if message is None or message.role not in (Role.ASSISTANT, Role.TOOL):
            continue
        number += message.role is Role.ASSISTANT
        found.append((message_id(turn_id, number), message))
    return found


TAIL_ROWS = 60


async def has_transcript(gateway: Gateway, names: SessionNames) -> bool:
    """Whether there is one: what a client says came before then counts for nothing."""
    newest = await gateway.db.read(sessions.newest, key=str(names.key), limit=1)
    return any(session.seq and session.ended_at is None for session in newest)


async def check_answers(
    gateway: Gateway, names: SessionNames, messages: Sequence[ChatMessage], param: str = "messages"
) -> None:
    """Results are of calls that the session knows: any other would be left out in silence."""
    if not any(message.role is Role.TOOL for message in messages):
        return
    lines = await gateway.db.read(newest_lines, str(names.key))
    parse.check_results(messages, param, parse.known_calls(lines))


def newest_lines(tx: Tx, lane: str) -> list[ChatMessage]:
    session_id = tx.value("SELECT session_id FROM lanes WHERE key = :lane", lane=lane)
    return transcripts.history(tx, str(session_id), limit=TAIL_ROWS) if session_id else []
