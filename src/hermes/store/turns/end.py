"""End a turn in one transaction: events, calls, questions, words and lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hermes.core.dataclasses import dataclass
from hermes.core.messages import ChatMessage, Usage
from hermes.store import approvals, claims, inbox, outbox
from hermes.store.claims import Claim
from hermes.store.db import Tx
from hermes.store.inbox import InboxState
from hermes.store.outbox import Outgoing
from hermes.store.sessions import transcripts
from hermes.store.turns import lanes, tool_calls, turns
from hermes.store.turns.turns import NO_USAGE, Turn, TurnState


class CardWriter(Protocol):
    """Writes what is shown in place of a question that has ended: its outbox rows, or none."""

    def __call__(self, tx: Tx, approval: approvals.Approval, /, *, now: float) -> Sequence[Outgoing]: ...


def no_cards(_tx: Tx, _approval: approvals.Approval, /, *, now: float) -> Sequence[Outgoing]:  # noqa: ARG001 - a default
    return ()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ends: its last words to the transcript, what goes out, and what its events end as."""

    state: TurnState
    inbox_state: InboxState
    reason: str = ""
    messages: Sequence[ChatMessage] = ()
    replies: Sequence[Outgoing] = ()
    usage: Usage = NO_USAGE
    model: str = ""
    cards: CardWriter = no_cards


@dataclass(frozen=True, slots=True)
class _EndingLane:
    seq: int
    turn_id: str
    steps: int


_ENDING_LANE = """
    SELECT lanes.seq, lanes.turn_id, COALESCE(turns.steps, 0) FROM lanes LEFT JOIN turns ON turns.id = lanes.turn_id
    WHERE lanes.key = :key AND lanes.token = :token AND lanes.owner IS NOT NULL
"""
_SLEEP = f"""
    UPDATE lanes SET owner = NULL, next_at = NULL, turn_id = CASE WHEN turn_id = :id THEN '' ELSE turn_id END
    WHERE key = :lane AND token = :token AND seq = :seen AND NOT EXISTS ({inbox.HAS_QUEUED})
"""
"""Lets the lane go, its turn over, unless something in it may be begun or arrived since ``:seen``."""


def finish(tx: Tx, held: Claim, turn: Turn, ending: Ending, *, now: float) -> bool:
    """End a turn, its events and calls, store replies and give the lane back at once. True: the lane sleeps now."""
    lane = tx.one(_ENDING_LANE, _EndingLane, key=held.key, token=held.token)
    if lane is None:
        raise lanes.LostClaim(held.key)
    if lane.turn_id == turn.id:
        _end(tx, turn, ending, now, has_steps=bool(lane.steps or turn.steps))
    if tx.run(_SLEEP, lane=held.key, token=held.token, seen=lane.seq, id=turn.id):
        return True
    lanes.leave(tx, turn.lane, turn.id)
    return False


def cancel_waiting(tx: Tx, lane: str, ending: Ending, *, now: float, only: str = "") -> str:
    """End a turn that nobody holds (asleep, or left by a dead process), if it is ``only``. Returns its id or ''."""
    # Written, not read: whoever claims the lane at this moment waits for us, or is here before us.
    held = tx.value(
        "UPDATE lanes SET token = token + 1 WHERE key = :lane AND owner IS NULL RETURNING turn_id", lane=lane
    )
    turn = turns.get(tx, str(held)) if held else None
    if turn is None or only not in ("", turn.id):
        return ""
    _end(tx, turn, ending, now)
    lanes.leave(tx, turn.lane, turn.id)
    claims.wake(tx, "lanes", lane, at=now)
    return turn.id


def abandon(tx: Tx, held: Claim, turn_id: str, *, now: float) -> None:
    """A clean stop in mid-turn: the next process goes on, and this does not count as a death."""
    tx.run("UPDATE turns SET attempts = attempts - 1 WHERE id = :id AND attempts > 0", id=turn_id)
    claims.abandon(tx, "lanes", held, now=now)


def _end(tx: Tx, turn: Turn, ending: Ending, now: float, *, has_steps: bool = True) -> None:
    """End all of it but its lane. Only a turn that made steps can have calls, and questions about them."""
    if has_steps:
        reason = ending.reason or "the turn ended"
        # Approvals first, as in approvals.answer: two transactions that meet here wait for each other in one order.
        for withdrawn in approvals.cancel(tx, turn.id, reason=reason, now=now):
            outbox.enqueue(tx, ending.cards(tx, withdrawn, now=now), now=now)
        tool_calls.close_open(tx, turn, reason, now=now)
    if ending.messages:
        transcripts.append(tx, turn.session_id, turn.id, ending.messages, now=now)
    _end_row(tx, turn, ending, now)
    inbox.settle_turn(tx, turn.id, state=ending.inbox_state, reason=ending.reason, now=now)
    outbox.enqueue(tx, ending.replies, now=now)


def _end_row(tx: Tx, turn: Turn, ending: Ending, now: float) -> None:
    tx.run(
        """
        UPDATE turns SET state = :state, reason = :reason, ended_at = :now, model = :model,
            prompt_tokens = prompt_tokens + :prompt, completion_tokens = completion_tokens + :completion,
            cost = cost + :cost
        WHERE id = :id
        """,
        id=turn.id,
        state=ending.state.value,
        reason=ending.reason,
        model=ending.model,
        prompt=ending.usage.prompt_tokens,
        completion=ending.usage.completion_tokens,
        cost=ending.usage.cost,
        now=now,
    )
