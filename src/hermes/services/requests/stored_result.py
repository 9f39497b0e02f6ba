"""Read from the store how a turn ended, for whoever was not there."""

from __future__ import annotations

import re

from hermes.agent.prompt import unanswered
from hermes.core.messages import ChatMessage, Role, Usage
from hermes.core.requests import TurnResult
from hermes.store import codec
from hermes.store.db import Tx
from hermes.store.sessions import transcripts
from hermes.store.turns.turns import Turn, TurnState

_MODEL_REASON = re.compile(r"model (\w+): ")


def stored_result(tx: Tx, turn: Turn) -> TurnResult:
    """Make the result from the turn's row and its last words."""
    lines = transcripts.lines_of_turn(tx, turn.session_id, turn.id)
    messages = [message for line in lines if (message := codec.read_chat(line.body)) is not None]
    last = messages[-1] if messages and messages[-1].role is Role.ASSISTANT else ChatMessage(Role.ASSISTANT)
    usage = Usage(turn.prompt_tokens, turn.completion_tokens)
    if turn.state == TurnState.DONE:
        calls = unanswered(messages)
        reason = "tool_calls" if calls else "stop"
        return TurnResult(turn.id, turn.state, last.text, "", reason, calls, usage, turn.model)
    kind = _MODEL_REASON.match(turn.reason)
    return TurnResult(
        turn.id,
        turn.state,
        reason=turn.reason,
        finish_reason="error",
        usage=usage,
        model=turn.model,
        error_kind=kind[1] if kind else "",
    )
