"""Begin or resume a turn: ``take`` for a free lane, ``begin_next`` for a held one; the rules are handed in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace

from hermes.core.dataclasses import dataclass
from hermes.core.i18n.languages import guess
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage
from hermes.core.requests import EVENT_KINDS
from hermes.core.roles import PersonRole, capped
from hermes.store import approvals, claims, inbox, outbox, people
from hermes.store.chat_settings import NO_CHOICES, ChatSettings
from hermes.store.claims import Claim
from hermes.store.db import Tx
from hermes.store.inbox import InboxRow
from hermes.store.outbox import Outgoing
from hermes.store.people import Person
from hermes.store.sessions import sessions, transcripts
from hermes.store.sessions.sessions import Session
from hermes.store.sessions.transcripts import Context
from hermes.store.turns import lanes, prompts, tool_calls, turns
from hermes.store.turns.lanes import HeldLane
from hermes.store.turns.prompts import Compose, Prompt
from hermes.store.turns.tool_calls import StoredCall
from hermes.store.turns.turns import NOBODY, Turn, TurnState

HISTORY_STEP = 50


@dataclass(frozen=True, slots=True)
class Pick:
    """Which queued rows make the next prompt; with none, when to look again (None: when woken)."""

    rows: Sequence[InboxRow] = ()
    look_again_at: float | None = None


@dataclass(frozen=True, slots=True)
class BeginRules:
    """Pure decisions, handed in: which rows, what prompt, and whether the session is renewed (its reason).

    ``tell_renewed`` writes what is said of that, given the session that is over and the
    language of whoever writes; it goes out with the turn's begin.
    """

    pick: Callable[[Sequence[InboxRow], str, float], Pick]
    compose: Compose
    renews: Callable[[Session, float], str]
    tell_renewed: Callable[[Session, str, float], Sequence[Outgoing]] = lambda _session, _language, _now: ()


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """A turn in hand: its row, the transcript so far and the calls of its last step.

    ``role`` is the lowest of three: the sender's when the message was stored, the turn's at its begin, the person's.
    ``heard`` is the lowest role of all who wrote in a shared conversation, also of a key that wrote as its person; ''
    elsewhere. ``summary`` stands for the lines before ``history``; ``outgoing`` was stored with its begin and is to be
    sent.
    """

    claim: Claim
    turn: Turn
    history: list[ChatMessage]
    calls: list[StoredCall]
    is_resumed: bool
    renewed: str = ""
    prompt: Prompt | None = None
    event_ids: tuple[str, ...] = ()
    role: str = ""
    heard: str = ""
    person_name: str = ""
    summary: str = ""
    choices: ChatSettings = NO_CHOICES
    has_lost_files: bool = False
    outgoing: Sequence[Outgoing] = ()
    language: str = ""
    depends_on: str = ""
    """The node on whose files or processes the session depends; '' for none."""


@dataclass(frozen=True, slots=True)
class _QueuedPrompt:
    """A prompt that waits for its turn, and the rows it is made of."""

    prompt: Prompt
    rows: Sequence[InboxRow]


@dataclass(frozen=True, slots=True)
class _Nothing:
    """Nothing to do now; when to look again (None: when woken)."""

    until: float | None


_LOOK_AGAIN = None


def take(
    tx: Tx, lane: str, *, owner: str, now: float, rules: BeginRules, turn_id: str, session_id: str, node: str = ""
) -> BegunTurn | None:
    """Claim a lane and begin or resume its turn, in one transaction. None: it is not free, or nothing is due.

    ``node`` is the name of this node in a cluster.
    """
    claimed = lanes.claim(tx, lane, owner=owner, now=now, node=node)
    if claimed is None:
        return None
    held, seen = claimed
    return begin_next(tx, held, now=now, rules=rules, turn_id=turn_id, session_id=session_id, seen=seen)


def begin_next(
    tx: Tx,
    held: Claim,
    *,
    now: float,
    rules: BeginRules,
    turn_id: str,
    session_id: str,
    seen: HeldLane | None = None,
) -> BegunTurn | None:
    """Resume the lane's open turn, else begin one, else let it sleep. ``seen``: the lane's row, if just read."""
    while True:
        lane, seen = seen or lanes.must_hold(tx, held), None
        look = _resume if lane.turn_id else _look_into_queue
        found = look(tx, held, lane, rules, now)
        if isinstance(found, BegunTurn):
            return found
        if isinstance(found, _QueuedPrompt):
            return _begin(tx, held, lane, found, rules, turn_id, session_id, now)
        # Where it cannot be released, something arrived between the two statements: look instead of sleeping on it.
        if found is not _LOOK_AGAIN and claims.release(tx, "lanes", held, seen=lane.seq, next_at=found.until):
            return None


# From the queue


def _look_into_queue(
    tx: Tx, held: Claim, lane: HeldLane, rules: BeginRules, now: float
) -> _QueuedPrompt | _Nothing | None:
    pick = rules.pick(inbox.queued(tx, held.key), lane.busy_mode, now)
    if not pick.rows:
        return _Nothing(pick.look_again_at)
    prompt = prompts.composed(tx, rules.compose, [prompts.as_allowed(tx, row) for row in pick.rows], now)
    return _LOOK_AGAIN if prompt is None else _QueuedPrompt(prompt, pick.rows)


def _begin(
    tx: Tx,
    held: Claim,
    lane: HeldLane,
    queued: _QueuedPrompt,
    rules: BeginRules,
    turn_id: str,
    session_id: str,
    now: float,
) -> BegunTurn:
    prompt = queued.prompt
    present, renewed, outgoing = _session(tx, lane.session_id, prompt, rules, now)
    known = present.id if present is not None else ""
    person = _writer(tx, prompt)
    role = capped(person.role, *(row.role for row in queued.rows))
    turn = turns.insert(
        tx,
        turn_id,
        lane=held.key,
        session_id=known or session_id,
        person_id=person.id or prompt.person_id,
        reply_to=prompt.reply_to,
        now=now,
        role=role,
    )
    lanes.enter(tx, held.key, turn_id=turn_id, session_id=turn.session_id)
    if lane.node and not known:
        lanes.depend_on(tx, held.key, "")  # what the session before it used is of no use to this one
    prompts.take(tx, turn_id, queued.rows)
    talk = _join(tx, turn, prompt, is_new=not known, now=now)
    heard = present.heard if present is not None else ""
    key = SessionKey.parse(held.key)
    is_anothers = bool(key.person) and key.person != prompt.sender_id  # an admin goes on with the session of a key
    if prompt.overhears:
        heard = sessions.hear(tx, turn.session_id, PersonRole.GUEST.value)  # anybody may have said that
    elif is_anothers or role != person.role or (prompt.speaker and not key.person):
        heard = sessions.hear(tx, turn.session_id, role or PersonRole.GUEST.value)
    return BegunTurn(
        held,
        turn,
        talk.messages,
        [],
        is_resumed=False,
        renewed=renewed,
        prompt=prompt,
        event_ids=tuple(row.id for row in queued.rows),
        role=role,
        heard=heard,
        person_name=person.name,
        summary=talk.summary,
        choices=lane.choices,
        has_lost_files=bool(lane.files_lost),
        outgoing=outgoing,
        language=person.language,
        depends_on=lane.node if known else "",
    )


def _session(
    tx: Tx, current: str, prompt: Prompt, rules: BeginRules, now: float
) -> tuple[Session | None, str, Sequence[Outgoing]]:
    """The session to go on with, None for a new one; why it is new ('' for the first), and what is said of that."""
    known = sessions.get(tx, current) if current else None
    if known is None:
        return None, "", ()
    reason = rules.renews(known, now)
    if not reason:
        return known, "", ()
    sessions.end(tx, known.id, reason=reason, now=now)
    outgoing: Sequence[Outgoing] = ()
    if known.seq:
        language = _writer(tx, prompt).language or guess("", prompt.message.text)
        outgoing = rules.tell_renewed(known, language, now)
    outbox.enqueue(tx, outgoing, now=now)
    return None, reason, outgoing


def _writer(tx: Tx, prompt: Prompt) -> Person:
    """Whose turn a prompt begins."""
    writer = prompt.person_id
    person = people.get(tx, writer) if writer else people.find(tx, prompt.platform, prompt.sender_id)
    return person or NOBODY


def _join(tx: Tx, turn: Turn, prompt: Prompt, *, is_new: bool, now: float) -> Context:
    """Add the prompt to the session of its turn, and read the talk as it is then."""
    messages = [*prompt.before, prompt.message]
    if is_new:
        return sessions.start(tx, turn.session_id, turn.lane, turn.id, messages, now=now)
    transcripts.append(tx, turn.session_id, turn.id, messages, now=now)
    return _context(tx, turn.session_id, prompt)


def _context(tx: Tx, session_id: str, prompt: Prompt | None) -> Context:
    """The newest lines of the session; all of those that the request itself brought along are among them.

    In a talk longer than that, the first line moves on in steps: requests in between begin with the same lines.
    """
    brought = len(prompt.before) if prompt is not None else 0
    talk = transcripts.context(tx, session_id, limit=transcripts.HISTORY_ROWS + brought)
    if brought or len(talk.seqs) < transcripts.HISTORY_ROWS:
        return talk
    first = -(-talk.seqs[0] // HISTORY_STEP) * HISTORY_STEP
    start = bisect_left(talk.seqs, first)
    return replace(talk, messages=talk.messages[start:], seqs=talk.seqs[start:])


# Where it was left


def _resume(tx: Tx, held: Claim, lane: HeldLane, rules: BeginRules, now: float) -> BegunTurn | _Nothing | None:
    """Go on with the lane's turn, unless it waits for an approval."""
    turn = turns.get(tx, lane.turn_id)
    if turn is None:
        # A damaged store came back without the row of this turn: what it had consumed waits in line again.
        prompts.give_back(tx, lane.turn_id)
        lanes.leave(tx, held.key, lane.turn_id)
        return _LOOK_AGAIN
    calls = tool_calls.as_they_stand(tx, turn.id, turn.steps, now=now)
    if turn.state == TurnState.WAITING and tool_calls.only_wait(calls):
        return _Nothing(approvals.pending_until(tx, turn.id))
    # Count one more attempt, so that a turn which kills its process is not tried for ever.
    tx.run("UPDATE turns SET state = 'running', attempts = attempts + 1 WHERE id = :id", id=turn.id)
    return _go_on(tx, held, lane, replace(turn, state=TurnState.RUNNING, attempts=turn.attempts + 1), calls, rules, now)


def _go_on(
    tx: Tx, held: Claim, lane: HeldLane, turn: Turn, calls: list[StoredCall], rules: BeginRules, now: float
) -> BegunTurn:
    rows = inbox.of_turn(tx, turn.id)
    prompt = prompts.composed(tx, rules.compose, rows, now)
    talk = _context(tx, turn.session_id, prompt)
    person = turns.person_of(tx, turn)
    # A turn of an older version has no role of its own, and may hold the words of several people.
    limits = [turn.role] if turn.role else _roles_of_senders(tx, turn.lane, rows)
    return BegunTurn(
        held,
        turn,
        talk.messages,
        calls,
        is_resumed=True,
        prompt=prompt,
        event_ids=tuple(row.id for row in rows),
        role=capped(person.role, *limits),
        heard=sessions.heard(tx, turn.session_id),
        person_name=person.name,
        summary=talk.summary,
        choices=lane.choices,
        has_lost_files=bool(lane.files_lost),
        language=person.language,
        depends_on=lane.node,
    )


def _roles_of_senders(tx: Tx, lane: str, rows: Sequence[InboxRow]) -> list[str]:
    """Return the roles of all who wrote these rows in a chat; a request names its person itself."""
    platform = SessionKey.parse(lane).platform
    senders = {row.sender_id for row in rows if row.kind not in EVENT_KINDS}
    found = [people.find(tx, platform, sender) for sender in sorted(senders)]
    return [person.role if person is not None else PersonRole.GUEST.value for person in found]
