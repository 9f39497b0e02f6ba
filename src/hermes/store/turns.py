"""Turns: begun from the inbox, carried step by step, ended once.

Every function here is one transaction of the state machine in ``services/turns.py``. A worker shows its lane's
claim with each of them, so one that lost its lane cannot write over its successor.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Protocol

from hermes.core.keys import SessionKey
from hermes.core.languages import guess
from hermes.core.messages import Attachment, ChatMessage, Image, Role, ToolCall, Usage
from hermes.core.people import PersonRole
from hermes.core.requests import TurnOptions
from hermes.core.values import dataclass
from hermes.store import approvals, claims, files_out, grants, inbox, outbox, people, sessions
from hermes.store.choices import NO_CHOICES, Choices
from hermes.store.claims import Claim
from hermes.store.db import Tx
from hermes.store.inbox import InboxRow, InboxState
from hermes.store.outbox import Outgoing
from hermes.store.people import Person
from hermes.store.sessions import Context, Session


class TurnState(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"  # for an approval
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    SET_ASIDE = "set_aside"


class CallState(StrEnum):
    PROPOSED = "proposed"
    WAITING = "waiting"
    ALLOWED = "allowed"
    REFUSED = "refused"  # denied, expired or cancelled; its result is not written yet
    STARTED = "started"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    lane: str
    session_id: str
    state: str
    person_id: str
    reply_to: str
    attempts: int
    steps: int
    created_at: float
    ended_at: float | None
    model: str
    prompt_tokens: int
    completion_tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class Call:
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
class Pick:
    """Which queued rows make the next prompt; with none, when to look again (None: when woken)."""

    rows: Sequence[InboxRow] = ()
    look_again_at: float | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """A user message made of one or more events; the turn belongs to whoever sent the last of them.

    ``before`` are lines that a request brought along and that stand before it. ``person_id`` is set where the gateway
    itself asks on somebody's behalf.
    """

    message: ChatMessage
    platform: str
    sender_id: str
    reply_to: str
    attachments: tuple[Attachment, ...] = ()
    before: tuple[ChatMessage, ...] = ()
    options: TurnOptions | None = None
    person_id: str = ""


Compose = Callable[[Sequence[InboxRow]], Prompt]


def _tells_nobody(_session: Session, _language: str, _now: float) -> Sequence[Outgoing]:
    return ()


@dataclass(frozen=True, slots=True)
class BeginRules:
    """Pure decisions, handed in: which rows, what prompt, and whether the session is renewed (its reason).

    ``tell_renewed`` writes what is said of that, given the session that is over and the
    language of whoever writes; it goes out with the turn's begin.
    """

    pick: Callable[[Sequence[InboxRow], str, float], Pick]
    compose: Compose
    renews: Callable[[Session, float], str]
    tell_renewed: Callable[[Session, str, float], Sequence[Outgoing]] = _tells_nobody


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn in hand: its row, the transcript so far and the calls of its last step.

    ``summary`` stands for the lines before ``history``; ``letters`` were stored with its begin and are to be sent.
    """

    claim: Claim
    turn: Turn
    history: list[ChatMessage]
    calls: list[Call]
    is_resumed: bool
    renewed: str = ""
    prompt: Prompt | None = None
    event_ids: tuple[str, ...] = ()
    role: str = ""
    person_name: str = ""
    summary: str = ""
    choices: Choices = NO_CHOICES
    has_lost_files: bool = False
    letters: Sequence[Outgoing] = ()
    language: str = ""


class Lost(Exception):  # noqa: N818 - a fact, not an error: the lane has another owner
    """The claim shown is not the newest: whoever calls must stop at once."""


HISTORY_STEP = 50
STEER, QUEUE = "steer", "queue"  # kinds of messages that say for themselves what they do while a turn runs
UNDELIVERED = "[undelivered files]"  # how a line begins that tells the model what never arrived
NO_USAGE = Usage()
NOBODY = Person("", "", "")
TURN = (
    "id, lane, session_id, state, person_id, reply_to, attempts, steps, created_at, ended_at, model, "
    "prompt_tokens, completion_tokens, reason"
)
CALL = (
    "id, step, position, call_id, name, arguments, state, outcome, result, approval_id, process_group, "
    "process_started, created_at, started_at, ended_at"
)


@dataclass(frozen=True, slots=True)
class _Lane:
    seq: int
    turn_id: str
    session_id: str
    busy_mode: str
    model: str
    reasoning: str
    voice: str
    tool_progress: str
    personality: str
    files_lost: int

    @property
    def choices(self) -> Choices:
        return Choices(self.model, self.reasoning, self.voice, self.tool_progress, self.personality)


def take(
    tx: Tx, lane: str, *, owner: str, now: float, rules: BeginRules, turn_id: str, session_id: str
) -> Begun | None:
    """Claim a lane and begin or resume its turn, in one transaction. None: it is not free, or nothing is due."""
    row = tx.one(_CLAIM_LANE, lambda token, *lane: (token, _Lane(*lane)), key=lane, owner=owner, now=now)
    if row is None:
        return None
    held = Claim(lane, row[0], row[1].seq)
    return begin_next(tx, held, now=now, rules=rules, turn_id=turn_id, session_id=session_id, seen=row[1])


def begin_next(
    tx: Tx,
    held: Claim,
    *,
    now: float,
    rules: BeginRules,
    turn_id: str,
    session_id: str,
    seen: _Lane | None = None,
) -> Begun | None:
    """Resume the lane's open turn, else begin one from the queue, else let the lane sleep (None).

    ``seen`` is the lane's row, where the claim of this same transaction has just read it.
    """
    while True:
        lane, seen = seen or _lane(tx, held), None
        if lane.turn_id:
            turn = get(tx, lane.turn_id)
            if turn is None:
                _give_up_lost(tx, held.key, lane.turn_id)
                continue
            begun = _resume(tx, held, turn, rules, now)
            if begun is not None:
                return replace(begun, choices=lane.choices, has_lost_files=bool(lane.files_lost))
            sleep_until = approvals.pending_until(tx, lane.turn_id)
        else:
            pick = rules.pick(inbox.queued(tx, held.key), lane.busy_mode, now)
            prompt = _composed(tx, rules.compose, [_as_allowed(tx, row) for row in pick.rows], now)
            if prompt is not None:
                break
            if pick.rows:
                continue
            sleep_until = pick.look_again_at
        if claims.release(tx, "lanes", held, seen=lane.seq, next_at=sleep_until):
            return None
        # Something arrived between the two statements: look again instead of sleeping on it.
    known, renewed, letters = _session(tx, lane.session_id, prompt, rules, now)
    person = _writer(tx, prompt)
    person_id = person.id or prompt.person_id
    turn = _insert(tx, held.key, known or session_id, turn_id, person_id, prompt, pick.rows, now)
    said = [*prompt.before, prompt.message]
    if known:
        sessions.append(tx, known, turn_id, said, now=now)
        talk = _context(tx, known, prompt)
    else:
        talk = sessions.start(tx, session_id, held.key, turn_id, said, now=now)
    event_ids = tuple(row.id for row in pick.rows)
    return Begun(
        held,
        turn,
        talk.messages,
        [],
        False,
        renewed,
        prompt,
        event_ids,
        person.role,
        person.name,
        talk.summary,
        lane.choices,
        bool(lane.files_lost),
        letters,
        person.language,
    )


def _context(tx: Tx, session_id: str, prompt: Prompt | None) -> Context:
    """The newest lines of the session; all of those that the request itself brought along are among them.

    In a talk longer than that, the first line moves on in steps: requests in between begin with the same lines.
    """
    brought = len(prompt.before) if prompt is not None else 0
    talk = sessions.context(tx, session_id, limit=sessions.HISTORY_ROWS + brought)
    if brought or len(talk.seqs) < sessions.HISTORY_ROWS:
        return talk
    first = -(-talk.seqs[0] // HISTORY_STEP) * HISTORY_STEP
    start = bisect_left(talk.seqs, first)
    return replace(talk, messages=talk.messages[start:], seqs=talk.seqs[start:])


def _composed(tx: Tx, compose: Compose, rows: Sequence[InboxRow], now: float) -> Prompt | None:
    """The prompt these rows make. Rows that cannot be read are set aside, and None says to look again."""
    try:
        return compose(rows) if rows else None
    except ValueError as error:  # not JSON, or not what its kind should hold
        broken = [row for row in rows if _is_broken(compose, row)] or rows
        for row in broken:
            inbox.settle(tx, row.id, state=InboxState.SET_ASIDE, reason=f"unreadable: {error}", now=now)
        return None


def _as_allowed(tx: Tx, row: InboxRow) -> InboxRow:
    """A skill that a guest calls is only what they wrote: what reads skills is not for guests."""
    if row.kind != "skill":
        return row
    person = people.find(tx, SessionKey.parse(row.lane).platform, row.sender_id)
    is_guest = person is None or person.role == PersonRole.GUEST
    return replace(row, kind="message") if is_guest else row


def _is_broken(compose: Compose, row: InboxRow) -> bool:
    try:
        compose([row])
    except ValueError:
        return True
    return False


_LANE = "seq, turn_id, session_id, busy_mode, model, reasoning, voice, tool_progress, personality, files_lost"
_CLAIM_LANE = claims.claiming("lanes", f"token, {_LANE}")
_HELD_LANE = f"SELECT {_LANE} FROM lanes WHERE key = :key AND token = :token AND owner IS NOT NULL"  # noqa: S608


def _lane(tx: Tx, held: Claim) -> _Lane:
    lane = tx.one(_HELD_LANE, _Lane, key=held.key, token=held.token)
    if lane is None:
        raise Lost(held.key)
    return lane


def _give_up_lost(tx: Tx, lane: str, turn_id: str) -> None:
    """A damaged store came back without the row of this turn: what it had consumed waits in line again."""
    tx.run("UPDATE inbox SET state = 'queued', turn_id = '' WHERE turn_id = :id AND state = 'taken'", id=turn_id)
    tx.run("UPDATE lanes SET turn_id = '' WHERE key = :lane AND turn_id = :id", lane=lane, id=turn_id)


def _resume(tx: Tx, held: Claim, turn: Turn, rules: BeginRules, now: float) -> Begun | None:
    """Go on with the lane's turn, or return None while it waits for an approval."""
    calls = look_at_calls(tx, turn.id, turn.steps, now=now)
    if turn.state == TurnState.WAITING and _only_waits(calls):
        return None
    tx.run("UPDATE turns SET state = 'running', attempts = attempts + 1 WHERE id = :id", id=turn.id)
    turn = replace(turn, state=TurnState.RUNNING, attempts=turn.attempts + 1)
    rows = inbox.of_turn(tx, turn.id)
    prompt = _composed(tx, rules.compose, rows, now)
    talk = _context(tx, turn.session_id, prompt)
    event_ids = tuple(row.id for row in rows)
    person = _person(tx, turn)
    return Begun(
        held,
        turn,
        talk.messages,
        calls,
        True,
        "",
        prompt,
        event_ids,
        person.role,
        person.name,
        talk.summary,
        language=person.language,
    )


def _person(tx: Tx, turn: Turn) -> Person:
    """Whom the turn belongs to; somebody unknown has no role: what its tools may touch depends on it."""
    return (people.get(tx, turn.person_id) if turn.person_id else None) or NOBODY


def _writer(tx: Tx, prompt: Prompt) -> Person:
    """Whose turn a prompt begins."""
    writer = prompt.person_id
    person = people.get(tx, writer) if writer else people.find(tx, prompt.platform, prompt.sender_id)
    return person or NOBODY


def _language(tx: Tx, prompt: Prompt) -> str:
    """The language of whoever writes, as far as it is known."""
    return _writer(tx, prompt).language or guess("", prompt.message.text)


def languages_of(tx: Tx, turn_ids: Sequence[str]) -> dict[str, str]:
    """The language of the person of each of these turns, where it is known."""
    found = {}
    for turn_id in turn_ids:
        turn = get(tx, turn_id)
        if turn is not None and (language := _person(tx, turn).language):
            found[turn_id] = language
    return found


def _only_waits(calls: Sequence[Call]) -> bool:
    """Whether there is nothing to do before a person answers: one answer of two is acted on at once."""
    unfinished = {call.state for call in calls if call.state != CallState.DONE}
    return unfinished == {CallState.WAITING.value}


def _session(
    tx: Tx, current: str, prompt: Prompt, rules: BeginRules, now: float
) -> tuple[str, str, Sequence[Outgoing]]:
    """The session to go on with, '' for a new one; why it is new ('' if it is the first), and what is said of that."""
    known = sessions.get(tx, current) if current else None
    reason = rules.renews(known, now) if known is not None else ""
    if known is not None and not reason:
        return known.id, "", ()
    letters: Sequence[Outgoing] = ()
    if known is not None:
        sessions.end(tx, known.id, reason=reason, now=now)
        letters = rules.tell_renewed(known, _language(tx, prompt), now) if known.seq else ()
        outbox.enqueue(tx, letters, now=now)
    return "", reason, letters


def _insert(
    tx: Tx,
    lane: str,
    session_id: str,
    turn_id: str,
    person_id: str,
    prompt: Prompt,
    rows: Sequence[InboxRow],
    now: float,
) -> Turn:
    tx.run(
        """
        INSERT INTO turns (id, lane, session_id, state, person_id, reply_to, attempts, created_at)
        VALUES (:id, :lane, :session_id, 'running', :person_id, :reply_to, 1, :now)
        """,
        id=turn_id,
        lane=lane,
        session_id=session_id,
        person_id=person_id,
        reply_to=prompt.reply_to,
        now=now,
    )
    tx.run(
        "UPDATE lanes SET turn_id = :id, session_id = :session_id WHERE key = :lane",
        id=turn_id,
        session_id=session_id,
        lane=lane,
    )
    consume(tx, turn_id, rows)
    return Turn(turn_id, lane, session_id, TurnState.RUNNING, person_id, prompt.reply_to, 1, 0, now, None, "", 0, 0, "")


def consume(tx: Tx, turn_id: str, rows: Sequence[InboxRow]) -> None:
    for row in rows:
        tx.run(
            "UPDATE inbox SET state = 'taken', turn_id = :turn_id WHERE id = :id AND state = 'queued'",
            turn_id=turn_id,
            id=row.id,
        )


def add_message(
    tx: Tx, held: Claim, turn: Turn, message: ChatMessage, letters: Sequence[Outgoing] = (), *, now: float
) -> None:
    """One more line before the model speaks: what became of the files that came along; the person is told too."""
    _lane(tx, held)
    sessions.append(tx, turn.session_id, turn.id, [message], now=now)
    outbox.enqueue(tx, letters, now=now)


def tell_lost_files(
    tx: Tx, held: Claim, turn: Turn, letters: Callable[[Sequence[files_out.Lost]], Sequence[Outgoing]], *, now: float
) -> tuple[list[ChatMessage], Sequence[Outgoing]]:
    """A line about files of earlier answers that never arrived, each told once. Not between a call and its result.

    ``letters`` tells the person of those of which they have not heard; what it wrote comes back with the line.
    """
    _lane(tx, held)
    if any(call.state != CallState.DONE for call in calls_of_step(tx, turn.id, turn.steps)):
        return [], ()
    lost = files_out.take_lost(tx, turn.lane)
    if not lost:
        return [], ()
    lines = [f"{file.name} did not reach the person: {file.reason}" for file in lost]
    told = ChatMessage(Role.USER, "\n".join([UNDELIVERED, *lines]))
    sessions.append(tx, turn.session_id, turn.id, [told], now=now)
    rows = letters([file for file in lost if not file.was_told])
    outbox.enqueue(tx, rows, now=now)
    return [told], rows


def steering(tx: Tx, lane: str) -> tuple[str, bool]:
    """The lane's busy mode, and whether something waits that is to steer the running turn whatever the mode."""
    return busy_mode(tx, lane), any(row.kind == STEER for row in inbox.queued(tx, lane))


def steer(
    tx: Tx, held: Claim, turn: Turn, *, compose: Compose, now: float, only_marked: bool = False
) -> ChatMessage | None:
    """Hand what arrived meanwhile to the running turn, as one more user message.

    ``only_marked``: only what was written to steer. What wants a turn of its own is left alone.
    """
    _lane(tx, held)
    queued = inbox.queued(tx, held.key)
    rows = [row for row in queued if row.kind == STEER or not (only_marked or row.kind == QUEUE)]
    prompt = _composed(tx, compose, rows, now)
    if prompt is None:
        return None
    message = prompt.message
    consume(tx, turn.id, rows)
    sessions.append(tx, turn.session_id, turn.id, [message], now=now)
    return message


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call the model asked for; with an approval to ask first, where one is needed, and the letters that ask it."""

    id: str
    call: ToolCall
    approval: approvals.Question | None = None
    letters: Sequence[Outgoing] = ()


def add_step(
    tx: Tx,
    held: Claim,
    turn: Turn,
    message: ChatMessage,
    new_calls: Sequence[NewCall],
    *,
    usage: Usage,
    origin: str = "",
    now: float,
) -> list[Call]:
    """Append what the model said and the calls it asks for; questions go out in the same transaction.

    A call that a standing grant covers is allowed instead of asked about. ``origin`` is the lane in whose session
    grants are given, where the turn was handed its task by another one.
    """
    _lane(tx, held)
    sessions.append(tx, turn.session_id, turn.id, [message], now=now)
    step = turn.steps + 1
    tx.run(
        """
        UPDATE turns SET steps = :step, prompt_tokens = prompt_tokens + :prompt,
            completion_tokens = completion_tokens + :completion WHERE id = :id
        """,
        step=step,
        prompt=usage.prompt_tokens,
        completion=usage.completion_tokens,
        id=turn.id,
    )
    for position, new in enumerate(new_calls):
        state = _ask(tx, turn, new, origin, now)
        _insert_call(tx, turn, step, position, new, state, now)
    return calls_of_step(tx, turn.id, step)


def _ask(tx: Tx, turn: Turn, new: NewCall, origin: str, now: float) -> CallState:
    """Put the question of a call, unless it needs none or somebody has answered its kind for longer."""
    if new.approval is None:
        return CallState.PROPOSED
    asked = replace(new.approval, session_id=_session_of_grants(tx, turn, origin))
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
    outbox.enqueue(tx, new.letters, now=now)
    return CallState.WAITING


def _session_of_grants(tx: Tx, turn: Turn, origin: str) -> str:
    """The session a grant is given for: that of the chat which is asked, also for a task it has handed on."""
    if origin in ("", turn.lane):
        return turn.session_id
    return str(tx.value("SELECT session_id FROM lanes WHERE key = :key", key=origin) or turn.session_id)


def _insert_call(tx: Tx, turn: Turn, step: int, position: int, new: NewCall, state: CallState, now: float) -> None:
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


def start_call(tx: Tx, held: Claim, call_id: str, *, now: float) -> None:
    """Commit that the side effect may happen from now on."""
    _lane(tx, held)
    tx.run("UPDATE tool_calls SET state = 'started', started_at = :now WHERE id = :id", id=call_id, now=now)


def note_process(tx: Tx, call_id: str, *, group: int, started: str) -> None:
    """Remember a process group and when it was born, so that it can be killed after a crash and nothing else is."""
    tx.run(
        "UPDATE tool_calls SET process_group = :group, process_started = :started WHERE id = :id",
        group=group,
        started=started,
        id=call_id,
    )


def finish_call(
    tx: Tx,
    held: Claim,
    turn: Turn,
    call: Call,
    *,
    outcome: str,
    result: str,
    images: tuple[Image, ...] = (),
    effect: Callable[[Tx], None] | None = None,
    now: float,
) -> None:
    """Record a result, its transcript line and what the call changes in our own store together, once."""
    _lane(tx, held)
    is_first = _end_call(tx, turn, call, outcome=outcome, result=result, images=images, now=now)
    if is_first and effect is not None:
        effect(tx)


def _end_call(
    tx: Tx, turn: Turn, call: Call, *, outcome: str, result: str, images: tuple[Image, ...] = (), now: float
) -> bool:
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
        sessions.append(tx, turn.session_id, turn.id, [message], now=now)
    return bool(ended)


def wait_for_approval(tx: Tx, held: Claim, turn: Turn, shown: Sequence[Outgoing] = (), *, now: float) -> bool:
    """Let the lane sleep until an answer or the expiry. False: an answer is here already, go on.

    ``shown`` ends what the turn was showing, either way.
    """
    lane = _lane(tx, held)
    outbox.enqueue(tx, shown, now=now)
    deadline = approvals.pending_until(tx, turn.id)
    if deadline is None or deadline <= now or not _only_waits(calls_of_step(tx, turn.id, turn.steps)):
        return False
    if not claims.release(tx, "lanes", held, seen=lane.seq, next_at=deadline):
        return False
    tx.run("UPDATE turns SET state = 'waiting', attempts = 0 WHERE id = :id", id=turn.id)
    return True


class Cards(Protocol):
    """Writes what is shown in place of a question that has ended: its outbox rows, or none."""

    def __call__(self, tx: Tx, approval: approvals.Approval, /, *, now: float) -> Sequence[Outgoing]: ...


def no_cards(_tx: Tx, _approval: approvals.Approval, /, *, now: float) -> Sequence[Outgoing]:  # noqa: ARG001
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
    cards: Cards = no_cards


def finish(tx: Tx, held: Claim, turn: Turn, ending: Ending, *, now: float) -> bool:
    """End the turn, its events and its open calls, store its replies, and give the lane back: one transaction.

    True when the lane sleeps now; False when more is queued and the caller goes on with it. A turn that has
    ended already is left as it is.
    """
    lane = tx.one(_ENDING_LANE, _EndingLane, key=held.key, token=held.token)
    if lane is None:
        raise Lost(held.key)
    if lane.turn_id == turn.id:
        _end(tx, turn, ending, now, has_steps=bool(lane.steps or turn.steps))
    if tx.run(_SLEEP, lane=held.key, token=held.token, seen=lane.seq, id=turn.id):
        return True
    _forget_turn(tx, turn)
    return False


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
"""  # noqa: S608
"""Lets the lane go, its turn over, unless something in it may be begun or arrived since ``:seen``."""


def _forget_turn(tx: Tx, turn: Turn) -> None:
    tx.run("UPDATE lanes SET turn_id = '' WHERE key = :key AND turn_id = :id", key=turn.lane, id=turn.id)


def _end(tx: Tx, turn: Turn, ending: Ending, now: float, *, has_steps: bool = True) -> None:
    """End all of it but its lane. Only a turn that made steps can have calls, and questions about them."""
    if has_steps:
        # Approvals first, as in approvals.answer: two transactions that meet here wait for each other in one order.
        for withdrawn in approvals.cancel(tx, turn.id, reason=ending.reason or "the turn ended", now=now):
            outbox.enqueue(tx, ending.cards(tx, withdrawn, now=now), now=now)
        _close_calls(tx, turn, ending.reason or "the turn ended", now)
    if ending.messages:
        sessions.append(tx, turn.session_id, turn.id, ending.messages, now=now)
    tx.run(
        """
        UPDATE turns SET state = :state, reason = :reason, ended_at = :now, model = :model,
            prompt_tokens = prompt_tokens + :prompt, completion_tokens = completion_tokens + :completion
        WHERE id = :id
        """,
        id=turn.id,
        state=ending.state.value,
        reason=ending.reason,
        model=ending.model,
        prompt=ending.usage.prompt_tokens,
        completion=ending.usage.completion_tokens,
        now=now,
    )
    inbox.settle_turn(tx, turn.id, state=ending.inbox_state, reason=ending.reason, now=now)
    outbox.enqueue(tx, ending.replies, now=now)


def _close_calls(tx: Tx, turn: Turn, reason: str, now: float) -> None:
    """Every call gets an answer, so that the transcript stays one that a model accepts."""
    for call in open_calls(tx, turn.id):
        ran = call.state == CallState.STARTED
        result = f"Interrupted while it ran ({reason}); unknown how far it came." if ran else f"Skipped: {reason}."
        _end_call(tx, turn, call, outcome="interrupted" if ran else "skipped", result=result, now=now)


def abandon(tx: Tx, held: Claim, turn_id: str, *, now: float) -> None:
    """A clean stop in mid-turn: the next process goes on, and this does not count as a death."""
    tx.run("UPDATE turns SET attempts = attempts - 1 WHERE id = :id AND attempts > 0", id=turn_id)
    claims.abandon(tx, "lanes", held, now=now)


def cancel_waiting(tx: Tx, lane: str, ending: Ending, *, now: float, only: str = "") -> str:
    """End a turn that nobody has in hand: it sleeps on an approval, or was left by a process that ended.

    ``only`` names the turn that is meant. Returns the id of the turn that was ended, or ''.
    """
    # Written, not read: whoever claims the lane at this moment waits for us, or is here before us.
    held = tx.value(
        "UPDATE lanes SET token = token + 1 WHERE key = :lane AND owner IS NULL RETURNING turn_id", lane=lane
    )
    turn = get(tx, str(held)) if held else None
    if turn is None or only not in ("", turn.id):
        return ""
    _end(tx, turn, ending, now)
    _forget_turn(tx, turn)
    claims.wake(tx, "lanes", lane, at=now)
    return turn.id


def set_busy_mode(tx: Tx, lane: str, mode: str) -> None:
    tx.run(
        """
        INSERT INTO lanes (key, busy_mode) VALUES (:lane, :mode)
        ON CONFLICT (key) DO UPDATE SET busy_mode = excluded.busy_mode
        """,
        lane=lane,
        mode=mode,
    )


def busy_mode(tx: Tx, lane: str) -> str:
    return str(tx.value("SELECT busy_mode FROM lanes WHERE key = :lane", lane=lane) or "")


def get(tx: Tx, turn_id: str) -> Turn | None:
    return tx.one(f"SELECT {TURN} FROM turns WHERE id = :id", Turn, id=turn_id)  # noqa: S608


def of_lane(tx: Tx, lane: str) -> Turn | None:
    """The lane's open turn."""
    turn_id = tx.value("SELECT turn_id FROM lanes WHERE key = :lane", lane=lane)
    return get(tx, str(turn_id)) if turn_id else None


@dataclass(frozen=True, slots=True)
class Working:
    """A turn that has not ended: whose lane, since when, and what it was begun with."""

    turn_id: str
    lane: str
    state: str
    since: float
    kind: str
    body: str


def working_for(tx: Tx, person_id: str) -> list[Working]:
    """What runs or waits for this person now, the oldest first."""
    found = tx.all(
        """
        SELECT turns.id, turns.lane, turns.state, turns.created_at
        FROM lanes JOIN turns ON turns.id = lanes.turn_id
        WHERE lanes.turn_id <> '' AND turns.person_id = :person ORDER BY turns.created_at
        """,
        lambda *row: row,
        person=person_id,
    )
    working = []
    for turn_id, lane, state, since in found:
        first = next(iter(inbox.of_turn(tx, turn_id)), None)
        working.append(Working(turn_id, lane, state, since, first.kind if first else "", first.body if first else ""))
    return working


def get_call(tx: Tx, call_id: str) -> Call | None:
    return tx.one(f"SELECT {CALL} FROM tool_calls WHERE id = :id", Call, id=call_id)  # noqa: S608


def calls_of_step(tx: Tx, turn_id: str, step: int) -> list[Call]:
    return tx.all(
        f"SELECT {CALL} FROM tool_calls WHERE turn_id = :id AND step = :step ORDER BY position",  # noqa: S608
        Call,
        id=turn_id,
        step=step,
    )


def look_at_calls(tx: Tx, turn_id: str, step: int, *, now: float) -> list[Call]:
    """The calls of a step, after whatever expired has been ended."""
    approvals.expire(tx, turn_id, now=now)
    return calls_of_step(tx, turn_id, step)


def calls(tx: Tx, turn_id: str) -> list[Call]:
    return tx.all(f"SELECT {CALL} FROM tool_calls WHERE turn_id = :id ORDER BY step, position", Call, id=turn_id)  # noqa: S608


def open_calls(tx: Tx, turn_id: str) -> list[Call]:
    return [call for call in calls(tx, turn_id) if call.state != CallState.DONE]


@dataclass(frozen=True, slots=True)
class Leftover:
    call_id: str
    process_group: int
    process_started: str


def leftover_processes(tx: Tx) -> list[Leftover]:
    """Process groups of calls that never finished: of a worker that died."""
    return tx.all("SELECT id, process_group, process_started FROM tool_calls WHERE process_group <> 0", Leftover)
