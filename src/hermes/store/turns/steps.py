"""Store a turn while it runs: lines and calls, one transaction each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hermes.core.approval import SHARED
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, Role, Usage
from hermes.core.requests import EVENT_KINDS
from hermes.core.roles import capped
from hermes.core.turn import CallState
from hermes.store import approvals, claims, grants, inbox, outbox, outbox_files
from hermes.store.claims import Claim
from hermes.store.db import Tx
from hermes.store.inbox import InboxRow
from hermes.store.outbox import Outgoing
from hermes.store.outbox_files import UNDELIVERED
from hermes.store.sessions import sessions, transcripts
from hermes.store.turns import lanes, prompts, tool_calls
from hermes.store.turns.prompts import Compose
from hermes.store.turns.tool_calls import NewCall, StoredCall
from hermes.store.turns.turns import Turn

STEER, QUEUE = "steer", "queue"  # kinds of messages that say for themselves what they do while a turn runs
OWN_TURN = EVENT_KINDS | {QUEUE}


def add_message(
    tx: Tx, held: Claim, turn: Turn, message: ChatMessage, outgoing: Sequence[Outgoing] = (), *, now: float
) -> None:
    """One more line before the model speaks: what became of the files that came along; the person is told too."""
    lanes.must_hold(tx, held)
    transcripts.append(tx, turn.session_id, turn.id, [message], now=now)
    outbox.enqueue(tx, outgoing, now=now)


def tell_lost_files(
    tx: Tx,
    held: Claim,
    turn: Turn,
    outgoing: Callable[[Sequence[outbox_files.LostFile]], Sequence[Outgoing]],
    *,
    now: float,
) -> tuple[list[ChatMessage], Sequence[Outgoing]]:
    """A line about files of earlier answers that never arrived, each told once. Not between a call and its result.

    ``letters`` tells the person of those of which they have not heard; what it wrote comes back with the line.
    """
    lanes.must_hold(tx, held)
    if any(call.state != CallState.DONE for call in tool_calls.of_step(tx, turn.id, turn.steps)):
        return [], ()
    lost = outbox_files.take_lost(tx, turn.lane)
    if not lost:
        return [], ()
    lines = [f"{file.name} did not reach the person: {file.reason}" for file in lost]
    message = ChatMessage(Role.USER, "\n".join([UNDELIVERED, *lines]))
    transcripts.append(tx, turn.session_id, turn.id, [message], now=now)
    rows = outgoing([file for file in lost if not file.was_told])
    outbox.enqueue(tx, rows, now=now)
    return [message], rows


def tell_moved(
    tx: Tx, held: Claim, turn: Turn, text: str, rows: Sequence[Outgoing], *, now: float
) -> list[ChatMessage]:
    """A line that the lane depends on its old node no more. Between a call and its result a later turn says so."""
    lanes.must_hold(tx, held)
    if any(call.state != CallState.DONE for call in tool_calls.of_step(tx, turn.id, turn.steps)):
        return []
    lanes.depend_on(tx, held.key, "")
    message = ChatMessage(Role.USER, f"[{text}]")
    transcripts.append(tx, turn.session_id, turn.id, [message], now=now)
    outbox.enqueue(tx, rows, now=now)
    return [message]


# What is written while it runs


def steering(tx: Tx, turn: Turn) -> tuple[str, bool]:
    """Return the lane's busy mode, and whether a message waits that steers this turn in any mode."""
    marked = [row for row in inbox.queued(tx, turn.lane) if row.kind == STEER]
    return lanes.busy_mode(tx, turn.lane), bool(_of_turns_person(tx, turn, marked))


def steer(
    tx: Tx, held: Claim, turn: Turn, *, compose: Compose, now: float, only_marked: bool = False
) -> ChatMessage | None:
    """Hand what arrived meanwhile to the running turn, as one more user message.

    ``only_marked``: only messages that were written to steer. Messages for a turn of their own are left alone, and so
    are those of other people, or of the same person with a lower role: they must not run with this turn's rights.
    """
    lanes.must_hold(tx, held)
    queued = inbox.queued(tx, held.key)
    chosen = [row for row in queued if row.kind == STEER or not (only_marked or row.kind in OWN_TURN)]
    rows = _of_turns_person(tx, turn, chosen)
    prompt = prompts.composed(tx, compose, rows, now)
    if prompt is None:
        return None
    prompts.take(tx, turn.id, rows)
    transcripts.append(tx, turn.session_id, turn.id, [prompt.message], now=now)
    return prompt.message


def _of_turns_person(tx: Tx, turn: Turn, rows: Sequence[InboxRow]) -> list[InboxRow]:
    """Return the rows of the turn's person, written with the turn's role or more, and still held."""
    platform = SessionKey.parse(turn.lane).platform
    own: dict[str, bool] = {}
    for sender in {row.sender_id for row in rows}:
        is_own, is_below = inbox.standing(tx, platform, sender, turn.id)
        own[sender] = is_own and not is_below
    return [row for row in rows if own[row.sender_id] and capped(turn.role, row.role) == turn.role]


# What the model asks for


def add_step(
    tx: Tx,
    held: Claim,
    turn: Turn,
    message: ChatMessage,
    new_calls: Sequence[NewCall],
    *,
    usage: Usage,
    origin: str = "",
    is_mixed: bool = False,
    now: float,
) -> list[StoredCall]:
    """Append what the model said and the calls it asks for; questions go out in the same transaction.

    A call that a standing grant covers is allowed instead of asked about. ``origin`` is the lane in whose session
    grants are given, where the turn was handed its task by another one. ``is_mixed``: people of lower roles write in
    the conversation, so only what was allowed with that in view is allowed for longer.
    """
    lanes.must_hold(tx, held)
    transcripts.append(tx, turn.session_id, turn.id, [message], now=now)
    step = turn.steps + 1
    _count_step(tx, turn, step, usage)
    for position, new in enumerate(new_calls):
        state = _ask(tx, turn, new, origin, now, is_mixed=is_mixed)
        tool_calls.insert(tx, turn, step, position, new, state, now)
    return tool_calls.of_step(tx, turn.id, step)


def _count_step(tx: Tx, turn: Turn, step: int, usage: Usage) -> None:
    tx.run(
        """
        UPDATE turns SET steps = :step, prompt_tokens = prompt_tokens + :prompt,
            completion_tokens = completion_tokens + :completion, cost = cost + :cost WHERE id = :id
        """,
        cost=usage.cost,
        step=step,
        prompt=usage.prompt_tokens,
        completion=usage.completion_tokens,
        id=turn.id,
    )


def _ask(tx: Tx, turn: Turn, new: NewCall, origin: str, now: float, *, is_mixed: bool) -> CallState:
    """Put the question of a call, unless it needs none or somebody has answered its kind for longer."""
    if new.approval is None:
        return CallState.PROPOSED
    asked = replace(new.approval, session_id=_session_of_grants(tx, turn, origin))
    grant = None
    if not is_mixed or asked.subject.startswith(SHARED):
        grant = grants.covering(
            tx,
            person_id=turn.person_id,
            session_id=asked.session_id,
            subject=asked.subject,
            touches_host=asked.touches_host,
        )
    place = {"lane": turn.lane, "turn_id": turn.id, "tool_call_id": new.id}
    if grant is not None:
        by, scope = f"grant {grant.id}", grant.scope
        approvals.note_granted(tx, asked, **place, by=by, scope=scope, now=now)
        return CallState.ALLOWED
    approvals.ask(tx, asked, **place, now=now)
    outbox.enqueue(tx, new.outgoing, now=now)
    return CallState.WAITING


def _session_of_grants(tx: Tx, turn: Turn, origin: str) -> str:
    """The session a grant is given for: that of the chat which is asked, also for a task it has handed on."""
    if origin in ("", turn.lane):
        return turn.session_id
    if origin.startswith(grants.JOB_GRANTS):
        return origin  # every run of a job is a session of its own
    return sessions.of_lane(tx, origin) or turn.session_id


def wait_for_approval(tx: Tx, held: Claim, turn: Turn, shown: Sequence[Outgoing] = (), *, now: float) -> bool:
    """Let the lane sleep until an answer or the expiry; False if answered. ``shown`` ends the preview either way."""
    lane = lanes.must_hold(tx, held)
    outbox.enqueue(tx, shown, now=now)
    deadline = approvals.pending_until(tx, turn.id)
    if deadline is None or deadline <= now or not tool_calls.only_wait(tool_calls.of_step(tx, turn.id, turn.steps)):
        return False
    if not claims.release(tx, "lanes", held, seen=lane.seq, next_at=deadline):
        return False
    tx.run("UPDATE turns SET state = 'waiting', attempts = 0 WHERE id = :id", id=turn.id)
    return True
