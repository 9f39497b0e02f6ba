"""Run the turns of one SessionKey one at a time and in order.

A lane that has work gets a task here, which claims it in the store, carries its turns one after another and lets
it fall asleep. Waking a lane twice is harmless; a slow poll finds whatever a wake-up missed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Protocol

from hermes.config import Config
from hermes.core.dataclasses import dataclass
from hermes.core.errors import StoreIsDownError
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.languages import pick as pick_language
from hermes.core.keys import SessionKey
from hermes.core.lane import DOORS, FRESH, FRESH_SESSION, BusyMode, rows_of_next_prompt
from hermes.core.ports import Clock
from hermes.core.session_reset import ResetMode, renewal, renewal_reason
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.stale_claims import Orphans
from hermes.services.time_zone import zone_of
from hermes.services.turns import StopReason, TurnControl, TurnRunner
from hermes.store import claims, inbox
from hermes.store.db import Database, Tx
from hermes.store.ids import new_id
from hermes.store.inbox import InboxState
from hermes.store.outbox import Outgoing
from hermes.store.sessions import sessions
from hermes.store.turns import begin as turn_begin
from hermes.store.turns import end as turn_end
from hermes.store.turns import lanes, turns
from hermes.store.turns.begin import BeginRules, BegunTurn, Pick
from hermes.store.turns.end import CardWriter, Ending
from hermes.store.turns.lanes import LostClaim
from hermes.store.turns.prompts import Prompt
from hermes.store.turns.turns import TurnState

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
STORE_RETRY_SECONDS = 0.5
BROKEN_LANE_SECONDS = 5.0
STOP_SECONDS = 15.0


@dataclass(slots=True)
class _Active:
    """A lane being served by this process."""

    task: asyncio.Task[None] | None = None
    woken_again: bool = False
    turn_id: str = ""
    control: TurnControl = field(default_factory=TurnControl)
    # Turns asked to end before their begin, already stored, had come back to us.
    ends_early: dict[str, StopReason] = field(default_factory=dict)
    # Begun by the transaction that queued its message.
    handed: BegunTurn | None = None
    # Another node may have to be woken for it.
    is_news: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def is_about(self, turn_id: str) -> bool:
        return self.turn_id == turn_id or turn_id in self.ends_early

    def end_turn(self) -> None:
        self.turn_id = ""
        self.over.set()


@dataclass(frozen=True, slots=True)
class Stopped:
    """What /stop ended: a turn, and how many messages that waited behind it."""

    turn_id: str
    set_aside: int


class TurnsElsewhere(Protocol):
    """Ends turns that run on other nodes."""

    def interrupt(self, lane: str, turn_id: str, reason: StopReason) -> None: ...
    async def stop(self, lane: str, turn_id: str, reason: StopReason) -> bool: ...


class Lanes:
    """``elsewhere`` reaches the turns of other nodes; None where there are none."""

    elsewhere: TurnsElsewhere | None = None

    def __init__(
        self,
        db: Database,
        runner: TurnRunner,
        compose: Callable[..., Prompt],
        config: Callable[[], Config],
        clock: Clock,
        owner: str,
        outbox_writer: OutboxWriter,
    ) -> None:
        self._db = db
        self._node = ""
        self._takes_any = True
        self._wake_elsewhere: Callable[[str], None] | None = None
        self._outbox_writer = outbox_writer
        self._runner = runner
        self._compose = compose
        self._config = config
        self._clock = clock
        self._owner = owner
        self._active: dict[str, _Active] = {}
        self._orphans = Orphans(db, "lanes", clock, owner)
        self._is_draining = False
        self._interrupted = 0

    def join(self, node: str, wake_elsewhere: Callable[[str], None], *, takes_any: bool = True) -> None:
        """Be one node, of this name, among others. ``wake_elsewhere`` wakes them for a lane that is not served here.

        ``takes_any`` False: only what is asked for here is served, and nothing that waits for any node.
        """
        self._node = node
        self._wake_elsewhere = wake_elsewhere
        self._takes_any = takes_any

    @property
    def interrupted(self) -> int:
        """How many turns the drain left for the next process."""
        return self._interrupted

    @property
    def is_draining(self) -> bool:
        """Whether the process is about to end: what runs is left for the next one."""
        return self._is_draining

    @property
    def cards(self) -> CardWriter:
        return self._runner.cards

    def wake(self, lane: str) -> None:
        """Start to serve a lane. Called after the commit that queued something."""
        if not self._is_draining:
            self._start(lane).is_news = True
        elif self._wake_elsewhere is not None:
            self._wake_elsewhere(lane)

    def hear(self, lane: str) -> None:
        """Another node has work in this lane for whoever may have it."""
        if not self._is_draining and self._takes_any:
            self._start(lane)

    def begin_within(self, tx: Tx, lane: str, *, now: float) -> BegunTurn | None:
        """In the transaction that queues something in an idle lane: claim it and begin its turn, for ``adopt``.

        It saves a commit with every message. It runs in the store's thread, maybe twice, and changes nothing here.
        """
        if self._is_draining or lane in self._active:
            return None
        return turn_begin.take(
            tx,
            lane,
            owner=self._owner,
            now=now,
            rules=self._rules(lane),
            turn_id=new_id("t"),
            session_id=new_id("s"),
            node=self._node,
        )

    def adopt(self, begun: BegunTurn) -> None:
        """Run what ``begin_within`` began, now that it is committed."""
        self._start(begun.claim.key, begun)

    def _start(self, lane: str, handed: BegunTurn | None = None) -> _Active:
        active = self._active.get(lane)
        if active is None:
            active = self._active[lane] = _Active()
            active.task = asyncio.create_task(self._serve(lane, active), name=f"lane {lane}")
        else:
            active.woken_again = True
        active.handed = active.handed or handed
        return active

    def running_turn(self, lane: str) -> str:
        active = self._active.get(lane)
        return active.turn_id if active is not None else ""

    def is_serving(self, lane: str) -> bool:
        """Tell whether this node works on the lane."""
        return lane in self._active

    def running(self) -> list[tuple[str, str]]:
        """Lane and turn id of every turn that runs here now."""
        return [(lane, active.turn_id) for lane, active in self._active.items() if active.turn_id]

    def interrupt(self, lane: str, turn_id: str, reason: StopReason = StopReason.INTERRUPTED) -> bool:
        """End this turn, and only this one. False when it is not running here (any more)."""
        active = self._active.get(lane)
        if active is None or active.task is None or not active.turn_id:
            if active is not None:
                active.ends_early[turn_id] = reason
            if self.elsewhere is not None:
                self.elsewhere.interrupt(lane, turn_id, reason)
            return False
        if active.turn_id != turn_id:
            return False
        if active.control.is_ending:
            active.control.asked_late = active.control.asked_late or reason
            return False
        if active.control.reason is not None:
            return False
        active.control.reason = reason
        active.task.cancel()
        return True

    async def stop(self, lane: str, reason: StopReason = StopReason.STOPPED, *, up_to: int) -> Stopped:
        """End the lane's turn, running or waiting, and set aside what waited before message number ``up_to``."""
        now = self._clock.now()
        set_aside, turn_id = await self._db.write(_set_aside, lane, reason=reason.value, up_to=up_to, now=now)
        if not turn_id:
            return Stopped("", set_aside)
        is_stopped = await self.end_here(lane, turn_id, reason)
        if not is_stopped and self.elsewhere is not None:
            is_stopped = await self.elsewhere.stop(lane, turn_id, reason)
        # What was not running sleeps on an approval, or fell asleep just now.
        ending = Ending(TurnState.STOPPED, InboxState.SET_ASIDE, reason.value, cards=self.cards)
        is_stopped |= await self._db.write(_stop_sleeping, lane, turn_id, ending, now=self._clock.now())
        return Stopped(turn_id if is_stopped else "", set_aside)

    async def end_here(self, lane: str, turn_id: str, reason: StopReason) -> bool:
        """End this turn if it runs here, and wait until it has ended. False: it was not running here."""
        if not self.is_serving(lane):
            return False
        is_stopped = self.interrupt(lane, turn_id, reason)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                while (active := self._active.get(lane)) is not None and active.is_about(turn_id):
                    active.over.clear()
                    await active.over.wait()
        except TimeoutError:
            log.warning("Turn is slow to stop", extra={"lane": lane, "turn": turn_id})
        return is_stopped

    async def run(self) -> None:
        """Look for due lanes, now and then, until cancelled. The first look finds what a crash left."""
        while True:
            try:
                await self._orphans.free(self._active)
                await self.look()
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "looking for lanes", "reason": str(error)})
            await asyncio.sleep(POLL_SECONDS)

    async def look(self) -> None:
        """Serve what is due and free now."""
        now = self._clock.now()
        if not self._takes_any:
            return
        if self._node:
            found = await self._db.read(lanes.due, now=now, node=self._node)
        else:
            found = await self._db.read(claims.due, "lanes", now=now)
        for lane in found:
            self.hear(lane)

    async def drain(self, seconds: float) -> None:
        """Take no more work; give running turns a moment to finish, then leave them for the next process."""
        self._is_draining = True
        in_hand = list(self._active)
        tasks = [active.task for active in self._active.values() if active.task is not None]
        if not tasks:
            return
        _, unfinished = await asyncio.wait(tasks, timeout=seconds)
        for active in list(self._active.values()):
            if active.task in unfinished and active.task is not None and not active.control.is_ending:
                # What somebody has asked for before stands: after the restart it would go on though it was stopped.
                active.control.reason = active.control.reason or StopReason.DRAIN
                self._interrupted += bool(active.turn_id) and active.control.reason is StopReason.DRAIN
                active.task.cancel()
        if unfinished:
            await asyncio.wait(unfinished, timeout=2)
        if self._wake_elsewhere is not None:
            for lane in in_hand:
                self._wake_elsewhere(lane)

    def resume(self) -> None:
        """Take work again after a drain."""
        self._is_draining = False

    # Serving one lane

    async def _serve(self, lane: str, active: _Active) -> None:
        try:
            while True:
                active.woken_again = False
                await self._serve_until_asleep(lane, active)
                if active.handed is None and (not active.woken_again or self._is_draining):
                    return
        finally:
            self._active.pop(lane, None)
            active.end_turn()

    async def _serve_until_asleep(self, lane: str, active: _Active) -> None:
        begun: BegunTurn | None = None
        try:
            begun, active.handed = active.handed, None
            if begun is None:
                begun = await self._db.claim(
                    turn_begin.take,
                    lane,
                    owner=self._owner,
                    now=self._clock.now(),
                    rules=self._rules(lane),
                    turn_id=new_id("t"),
                    session_id=new_id("s"),
                    node=self._node,
                    if_gone=give_back,
                )
                if begun is None and active.is_news and self._wake_elsewhere is not None:
                    self._wake_elsewhere(lane)
                active.is_news = False
            while begun is not None:
                if await self._carry(begun, active) or self._is_draining:
                    return
                begun = await self._db.claim(
                    turn_begin.begin_next,
                    begun.claim,
                    now=self._clock.now(),
                    rules=self._rules(begun.claim.key),
                    turn_id=new_id("t"),
                    session_id=new_id("s"),
                    if_gone=give_back,
                )
        except LostClaim:
            log.warning("Lane taken over", extra={"lane": lane})
        except StoreIsDownError as error:
            log.warning("Store is down", extra={"lane": lane, "reason": str(error)})
            await asyncio.sleep(STORE_RETRY_SECONDS)
        except Exception:
            log.exception("Lane broke", extra={"lane": lane})
            await asyncio.sleep(BROKEN_LANE_SECONDS)  # it is taken up again, but not all the time
            if begun is not None:
                await self._db.write(claims.abandon, "lanes", begun.claim, now=self._clock.now())

    async def _carry(self, begun: BegunTurn, active: _Active) -> bool:
        """Run one turn. True when the lane sleeps afterwards."""
        early = active.ends_early.pop(begun.turn.id, None)
        active.turn_id, active.control = begun.turn.id, TurnControl(early)
        try:
            return await self._runner.run(begun, active.control)
        except asyncio.CancelledError:
            await self._leave(begun)
            raise
        except (StoreIsDownError, LostClaim) as error:
            await self._leave_later(begun, error)
            raise
        except Exception as error:
            log.exception("Turn broke", extra={"lane": begun.turn.lane, "turn": begun.turn.id})
            return await self._runner.fail(begun, active.control, error)
        finally:
            active.end_turn()

    async def _leave(self, begun: BegunTurn) -> None:
        """A clean stop: the next process, or we ourselves, go on with the turn; it does not count as a death."""
        await self._db.write(turn_end.abandon, begun.claim, begun.turn.id, now=self._clock.now())

    async def _leave_later(self, begun: BegunTurn, error: Exception) -> None:
        """The store failed in mid-turn: give the turn back as soon as it answers, so that it is taken up again."""
        if isinstance(error, LostClaim):
            return
        for pause in (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 10.0, 10.0):
            await asyncio.sleep(pause)
            try:
                await self._leave(begun)
            except StoreIsDownError as still:
                log.warning("Store is down", extra={"turn": begun.turn.id, "reason": str(still)})
            else:
                return

    def _rules(self, lane: str) -> BeginRules:
        key = SessionKey.parse(lane)
        config = self._config()

        def pick(rows: Sequence[inbox.InboxRow], chosen: str, now: float) -> Pick:
            return Pick(*rows_of_next_prompt(rows, self.mode_of(key, chosen), now))

        policy, zone = config.reset_for(key), zone_of(config.timezone)

        def renews(session: sessions.Session, now: float) -> str:
            if key.platform in FRESH:
                return FRESH_SESSION
            if key.platform in DOORS:
                return ""  # whoever names a session there means that one
            return renewal_reason(policy, last_used=session.updated_at, now=now, zone=zone)

        def tell_renewed(session: sessions.Session, language: str, now: float) -> list[Outgoing]:
            if not config.sessions.reset_notice or key.platform in DOORS:
                return []
            why = renewal(policy, last_used=session.updated_at, now=now, zone=zone)
            words = words_of(pick_language(config.language, language))
            text = words.RENEWED_IDLE if why is ResetMode.IDLE else words.RENEWED_DAILY
            notice = text.format(span=words.span(policy.idle_minutes * 60), hour=policy.at_hour)
            # Named by how far the session had come: one that is taken up again can be renewed again.
            return self._outbox_writer.notice(key.target, notice, key=f"ob_renewed_{session.id}_{session.seq}")

        return BeginRules(pick, self._compose, renews, tell_renewed)

    def mode_of(self, key: SessionKey, chosen: str = "") -> BusyMode:
        """The busy mode of a chat; ``chosen`` is its own choice, '' where it made none."""
        return self._config().busy_mode_for(key, chosen)


def give_back(tx: Tx, begun: BegunTurn | None) -> None:
    """The caller of a claim is gone: nobody will carry this turn, so the lane is free again."""
    if begun is not None:
        turn_end.abandon(tx, begun.claim, begun.turn.id, now=0.0)


def _set_aside(tx: Tx, lane: str, *, reason: str, up_to: int, now: float) -> tuple[int, str]:
    """Set aside what waits; also say which turn the lane is in."""
    turn = turns.of_lane(tx, lane)
    count = inbox.set_aside_queued(tx, lane, reason=reason, up_to=up_to, now=now)
    return count, turn.id if turn is not None else ""


def _stop_sleeping(tx: Tx, lane: str, turn_id: str, ending: Ending, *, now: float) -> bool:
    """End the turn if it sleeps. True when it was stopped, now or just before."""
    turn_end.cancel_waiting(tx, lane, ending, now=now, only=turn_id)
    turn = turns.get(tx, turn_id)
    return turn is not None and turn.state == TurnState.STOPPED
