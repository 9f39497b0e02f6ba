"""What a session knows of its own talk, for requests that go on with it."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.agent.prompt import unanswered
from hermes.core.messages import ChatMessage, Role
from hermes.servers.api import parse
from hermes.servers.api.context import SessionNames
from hermes.services.gateway import Gateway
from hermes.store.db import Tx
from hermes.store.sessions import transcripts

TAIL_ROWS = 60


async def has_transcript(gateway: Gateway, names: SessionNames) -> bool:
    """Whether there is one: what a client says came before then counts for nothing."""
    newest = await gateway.db.read(transcripts.newest, key=str(names.key), limit=1)
    return any(session.seq and session.ended_at is None for session in newest)


async def check_answers(
    gateway: Gateway, names: SessionNames, messages: Sequence[ChatMessage], param: str = "messages"
) -> None:
    """Results are of calls the session waits for, or that stand before them: any other would be left out in silence."""
    if not any(message.role is Role.TOOL for message in messages):
        return
    lines = await gateway.db.read(newest_lines, str(names.key))
    parse.check_results((ChatMessage(Role.ASSISTANT, tool_calls=unanswered(lines)), *messages), param)


def newest_lines(tx: Tx, lane: str) -> list[ChatMessage]:
    session_id = tx.value("SELECT session_id FROM lanes WHERE key = :lane", lane=lane)
    return transcripts.history(tx, str(session_id), limit=TAIL_ROWS) if session_id else []
