"""Tell from the store how a request ended and what its turn did, for whoever did not follow it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from hermes.agent.prompt import unanswered
from hermes.core.dataclasses import dataclass
from hermes.core.messages import ChatMessage, Role, Usage
from hermes.core.requests import TurnResult
from hermes.services.requests.requests import RequestState
from hermes.store import codec, inbox
from hermes.store.db import Tx
from hermes.store.sessions import transcripts
from hermes.store.turns import tool_calls
from hermes.store.turns.tool_calls import StoredCall
from hermes.store.turns.turns import Turn, TurnState

_MODEL_REASON = re.compile(r"model (\w+): ")


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What a turn added to its session behind its input, and the stored calls of the gateway by their call ids."""

    messages: Sequence[ChatMessage] = ()
    calls: Mapping[str, StoredCall] = field(default_factory=dict)


def read_record(tx: Tx, row: inbox.InboxRow, turn: Turn) -> TurnRecord:
    brought = len(codec.load_request(row.body).messages)
    lines = transcripts.of_turn(tx, turn.session_id, turn.id, since=turn.created_at)
    found = (codec.read_chat(line.body) for line in lines[brought:])
    calls = {call.call_id: call for call in tool_calls.of_turn(tx, turn.id)} if turn.steps else {}
    return TurnRecord([message for message in found if message is not None], calls)


def stored_result(state: RequestState, turn: Turn, messages: Sequence[ChatMessage]) -> TurnResult:
    """How a turn ended, from its row and its last words."""
    last = messages[-1] if messages and messages[-1].role is Role.ASSISTANT else ChatMessage(Role.ASSISTANT)
    usage = stored_usage(turn)
    if state.status == "completed":
        calls = unanswered(messages)
        reason = "tool_calls" if calls else "stop"
        return TurnResult(turn.id, TurnState.DONE, last.text, "", reason, calls, usage, turn.model, steps=turn.steps)
    kind = _MODEL_REASON.match(turn.reason)
    ended = TurnState.STOPPED if state.status == "cancelled" else TurnState.FAILED
    return TurnResult(
        turn.id,
        ended,
        reason=turn.reason or state.row.reason,
        finish_reason="error",
        usage=usage,
        model=turn.model,
        error_kind=kind[1] if kind else "",
        steps=turn.steps,
    )


def stored_usage(turn: Turn) -> Usage:
    return Usage(turn.prompt_tokens, turn.completion_tokens)


def read_result(tx: Tx, state: RequestState) -> TurnResult:
    """The end of a request that has ended."""
    if state.turn is None:
        ended = "stopped" if state.status == "cancelled" else "failed"
        return TurnResult("", ended, reason=state.row.reason, finish_reason="error")
    messages = read_record(tx, state.row, state.turn).messages
    result = stored_result(state, state.turn, messages)
    if len(messages) < 2 or codec.load_request(state.row.body).options.format is not None:
        return result
    earlier = messages[:-1] if messages[-1].role is Role.ASSISTANT else messages
    return replace(
        result, segments=tuple(message.text.strip() for message in earlier if message.role is Role.ASSISTANT)
    )
