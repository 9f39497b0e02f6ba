"""Store tool calls: proposed, approved, started, and ended once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.core.dataclasses import dataclass
from hermes.core.messages import ChatMessage, Image, Role, ToolCall
from hermes.core.turn import CallState
from hermes.store import approvals
from hermes.store.claims import Claim
from hermes.store.db import Tx
from hermes.store.outbox import Outgoing
from hermes.store.sessions import transcripts
from hermes.store.turns import lanes
from hermes.store.turns.turns import Turn


@dataclass(frozen=True, slots=True)
class StoredCall:
    id: str
    step: int
    position: int
    call_id: str
    name: str
    arguments: str
    state: str
    outcome: str
    result: str
    approval_id: str
    process_group: int
    process_started: str
    created_at: float
    started_at: float | None
    ended_at: float | None


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call the model asked for; with an approval to ask first, where one is needed, and the letters that ask it."""

    id: str
    call: ToolCall
    approval: approvals.Question | None = None
    outgoing: Sequence[Outgoing] = ()


COLUMNS = (
    "id, step, position, call_id, name, arguments, state, outcome, result, approval_id, process_group, "
    "process_started, created_at, started_at, ended_at"
)


def get(tx: Tx, call_id: str) -> StoredCall | None:
    return tx.one(f"SELECT {COLUMNS} FROM tool_calls WHERE id = :id", StoredCall, id=call_id)


def of_turn(tx: Tx, turn_id: str) -> list[StoredCall]:
    return tx.all(
        f"SELECT {COLUMNS} FROM tool_calls WHERE turn_id = :id ORDER BY step, position",
        StoredCall,
        id=turn_id,
    )


def of_step(tx: Tx, turn_id: str, step: int) -> list[StoredCall]:
    return tx.all(
        f"SELECT {COLUMNS} FROM tool_calls WHERE turn_id = :id AND step = :step ORDER BY position",
        StoredCall,
        id=turn_id,
        step=step,
    )


def as_they_stand(tx: Tx, turn_id: str, step: int, *, now: float) -> list[StoredCall]:
    """The calls of a step, after whatever expired has been ended."""
    approvals.expire(tx, turn_id, now=now)
    return of_step(tx, turn_id, step)


def only_wait(calls: Sequence[StoredCall]) -> bool:
    """Whether there is nothing to do before a person answers: one answer of two is acted on at once."""
    unfinished = {call.state for call in calls if call.state != CallState.DONE}
    return unfinished == {CallState.WAITING.value}


def insert(tx: Tx, turn: Turn, step: int, position: int, new: NewCall, state: CallState, now: float) -> None:
    tx.run(
        """
        INSERT INTO tool_calls (id, turn_id, step, position, call_id, name, arguments, state, approval_id, created_at)
        VALUES (:id, :turn_id, :step, :position, :call_id, :name, :arguments, :state, :approval_id, :now)
        """,
        id=new.id,
        turn_id=turn.id,
        step=step,
        position=position,
        call_id=new.call.id,
        name=new.call.name,
        arguments=new.call.arguments,
        state=state.value,
        approval_id=new.approval.id if new.approval else "",
        now=now,
    )


def start(tx: Tx, held: Claim, call_id: str, *, now: float, node: str = "") -> str:
    """Commit that the side effect may happen from now on. Returns the role that the turn's person has now, if any.

    ``node`` is the node on whose files or processes the lane depends from now on; '' leaves that as it is.
    """
    lanes.must_hold(tx, held)
    if node:
        lanes.depend_on(tx, held.key, node)
    tx.run("UPDATE tool_calls SET state = 'started', started_at = :now WHERE id = :id", id=call_id, now=now)
    role = tx.value(
        """
        SELECT people.role FROM tool_calls JOIN turns ON turns.id = tool_calls.turn_id
        JOIN people ON people.id = turns.person_id WHERE tool_calls.id = :id
        """,
        id=call_id,
    )
    return str(role or "")


def finish(
    tx: Tx,
    held: Claim,
    turn: Turn,
    call: StoredCall,
    *,
    outcome: str,
    result: str,
    images: tuple[Image, ...] = (),
    effect: Callable[[Tx], None] | None = None,
    now: float,
) -> None:
    """Record a result, its transcript line and what the call changes in our own store together, once."""
    lanes.must_hold(tx, held)
    is_first = _end(tx, turn, call, outcome=outcome, result=result, images=images, now=now)
    if is_first and effect is not None:
        effect(tx)


def close_open(tx: Tx, turn: Turn, reason: str, *, now: float) -> None:
    """Every call gets an answer, so that the transcript stays one that a model accepts."""
    for call in of_turn(tx, turn.id):
        if call.state == CallState.DONE:
            continue
        ran = call.state == CallState.STARTED
        result = f"Interrupted while it ran ({reason}); unknown how far it came." if ran else f"Skipped: {reason}."
        _end(tx, turn, call, outcome="interrupted" if ran else "skipped", result=result, now=now)


def _end(
    tx: Tx, turn: Turn, call: StoredCall, *, outcome: str, result: str, images: tuple[Image, ...] = (), now: float
) -> bool:
    """True the first time: a call that has ended keeps the result it has."""
    ended = tx.run(
        """
        UPDATE tool_calls SET state = 'done', outcome = :outcome, result = :result, process_group = 0, ended_at = :now
        WHERE id = :id AND state <> 'done'
        """,
        id=call.id,
        outcome=outcome,
        result=result,
        now=now,
    )
    if ended:
        message = ChatMessage(Role.TOOL, result, tool_call_id=call.call_id, name=call.name, images=images)
        transcripts.append(tx, turn.session_id, turn.id, [message], now=now)
    return bool(ended)


# The processes that calls began


def note_process(tx: Tx, call_id: str, *, group: int, started: str) -> None:
    """Remember a process group and when it was born, so that it can be killed after a crash and nothing else is."""
    tx.run(
        "UPDATE tool_calls SET process_group = :group, process_started = :started WHERE id = :id",
        group=group,
        started=started,
        id=call_id,
    )


@dataclass(frozen=True, slots=True)
class Leftover:
    call_id: str
    process_group: int
    process_started: str


def leftover_processes(tx: Tx, *, of_all: bool = True) -> list[Leftover]:
    """Process groups of calls that never finished: of a worker that died.

    ``of_all`` False: not those in lanes that a node holds.
    """
    condition = "" if of_all else _IN_FREE_LANES
    return tx.all(
        f"SELECT id, process_group, process_started FROM tool_calls WHERE process_group <> 0 {condition}",
        Leftover,
    )


_IN_FREE_LANES = """
    AND EXISTS (SELECT 1 FROM turns JOIN lanes ON lanes.key = turns.lane
                WHERE turns.id = tool_calls.turn_id AND lanes.owner IS NULL)
"""
