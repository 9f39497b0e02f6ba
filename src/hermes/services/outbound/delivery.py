"""Deliver outbox rows to adapters, in order per target, to a known outcome."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from hermes.config import Config
from hermes.core.dataclasses import dataclass
from hermes.core.errors import (
    ConflictError,
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    StoreIsDownError,
    UnreachableError,
    WindowClosedError,
)
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import pick
from hermes.core.keys import Target
from hermes.core.messages import OutboundMessage, Receipt
from hermes.core.ports import Adapter, Clock
from hermes.services.outbound import media
from hermes.services.outbound.rate_limits import NO_LIMITS, RateLimiter, Slot
from hermes.services.stale_claims import Orphans
from hermes.store import claims, codec, outbox, outbox_sending
from hermes.store.claims import Claim
from hermes.store.db import Database, Tx
from hermes.store.outbox import OutboxKind
from hermes.store.outbox_quota import LateNotes, ReplyQuota
from hermes.store.outbox_sending import BegunDelivery, Sending
from hermes.store.turns import turns

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
SEND_SECONDS = 60.0
SEND_FILE_SECONDS = 330.0  # a large file over a slow line
NO_ADAPTER_SECONDS = 60.0  # what waits is hastened when the account is connected
MOVED_SECONDS = 0.5  # another node may have the account by then
BACKOFF_SECONDS = (1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
MIN_WAIT_SECONDS = 0.2  # of one that was told to wait for no time at all


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """The outcome of one attempt: exactly one of the store's records."""

    record: Callable[[Tx, float], None]
    is_sent: bool = False
    reason: str = ""
    again_in: float | None = None


class Served(Protocol):
    """The targets that this node sends to: see ``services.cluster``. A gateway alone sends to all of them."""

    def has(self, target: str) -> bool: ...
    def prefixes(self) -> list[str]: ...
    def wake_elsewhere(self, target: str) -> None: ...
    def may_act(self) -> bool: ...


class Delivery:
    def __init__(
        self,
        db: Database,
        adapter_of: Callable[[Target], Adapter | None],
        config: Callable[[], Config],
        clock: Clock,
        owner: str,
        rate_limiter: RateLimiter,
        on_sent: Callable[[Target], None] = lambda _: None,
        on_refused: Callable[[Target, PlatformError], None] = lambda *_: None,
        bring_files: Callable[[OutboundMessage], Awaitable[OutboundMessage]] | None = None,
        served: Served | None = None,
    ) -> None:
        self._db = db
        self._adapter_of = adapter_of
        self._config = config
        self._clock = clock
        self._owner = owner
        self._rate_limiter = rate_limiter
        self._on_sent = on_sent
        self._on_refused = on_refused
        self._bring_files = bring_files
        self._served = served
        self._orphans = Orphans(db, "targets", clock, owner)
        self._active: dict[str, bool] = {}  # target → woken again while it was being served
        self._handed: dict[str, tuple[BegunDelivery, Slot]] = {}  # claimed by the transaction that stored the row
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_draining = False
        self._is_closed = False

    def wake(self, target: str) -> None:
        """Start to serve a target. Called after the commit that stored its row."""
        is_in_hand = target in self._active or target in self._handed
        if self._served is not None and not is_in_hand and not self._served.has(target):
            self._served.wake_elsewhere(target)
            return
        if self._is_closed:
            return
        if target in self._active:
            self._active[target] = True
            return
        self._active[target] = False
        task = asyncio.create_task(self._serve(target), name=f"deliver {target}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def begin_within(self, tx: Tx, target: str, *, now: float) -> BegunDelivery | None:
        """Claim an idle target and begin its row in the storing transaction, which saves a commit. May run twice."""
        if self._is_draining or target in self._active or (self._served is not None and not self._served.has(target)):
            return None
        return outbox_sending.take(tx, target, owner=self._owner, now=now, terms=self._terms(target))

    def reserve(self, target: str) -> Slot | None:
        """Reserve a slot for a row of an idle target, if it could be sent at once."""
        if self._is_draining or target in self._active or (self._served is not None and not self._served.has(target)):
            return None
        return self._place_now(target)

    def adopt(self, begun: BegunDelivery, place: Slot) -> None:
        """Send what ``begin_within`` claimed, now that it is committed."""
        self._handed[begun.claim.key] = (begun, place)
        self.wake(begun.claim.key)

    async def run(self) -> None:
        """Look for due targets until cancelled: what a crash left, what waited for its time."""
        while True:
            try:
                await self._orphans.free(self._active)
                await self.look()
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "looking for targets", "reason": str(error)})
            await asyncio.sleep(POLL_SECONDS)

    async def look(self) -> None:
        """Serve what is due and free now."""
        now = self._clock.now()
        if self._served is None:
            found = await self._db.read(claims.due, "targets", now=now)
        else:
            due = await self._db.read(claims.due_targets, self._served.prefixes(), now=now)
            found = [target for target in due if self._served.has(target)]
        for target in found:
            self.wake(target)

    async def drain(self, seconds: float) -> None:
        """Let sends in flight finish; what is left stays in the outbox."""
        self._is_draining = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2)

    async def connected(self, account: str) -> None:
        """Send what waited for this account now, not at its next try."""
        await self._db.write(outbox.hasten, account, now=self._clock.now())
        await self.look()

    async def _serve(self, target: str) -> None:
        try:
            while True:
                self._active[target] = False
                await self._send_all(target)
                if not self._active[target] or self._is_closed:
                    return
        except StoreIsDownError as error:
            log.warning("Store is down", extra={"target": target, "reason": str(error)})
        except Exception:
            # Its claim is found in nobody's hand and freed, and its row is repeated as one of unknown outcome.
            log.exception("Delivery broke", extra={"target": target})
        finally:
            del self._active[target]

    async def _send_all(self, target: str) -> None:
        """Send what is due there. A row is begun only when it has its place: until then it is plainly not sent."""
        rests = True
        begun: BegunDelivery | None
        place: Slot | None
        while rests:
            begun, place = await self._first(target)
            rests = False
            while begun is not None:
                if begun.expired:
                    log.warning("Delivery expired", extra={"target": target, "letters": begun.expired})
                if begun.sending is None or place is None:
                    rests = begun.rests
                    break
                begun, place = await self._send_one(begun.claim, begun.sending, place)
            if place is not None:
                place.give_back()

    async def _first(self, target: str) -> tuple[BegunDelivery | None, Slot]:
        if (handed := self._handed.pop(target, None)) is not None:
            return handed
        place = self._place_now(target) or await self._rate_limiter.final(Target.parse(target))
        try:
            begun = await self._db.claim(
                outbox_sending.take,
                target,
                owner=self._owner,
                now=self._clock.now(),
                terms=self._terms(target),
                if_gone=_nothing_left_us,
            )
        except BaseException:
            place.give_back()
            raise
        return begun, place

    def _place_now(self, target: str) -> Slot | None:
        try:
            return self._rate_limiter.at_once(Target.parse(target))
        except ValueError:  # a damaged row, which is told so when it is its turn
            return NO_LIMITS

    async def _send_one(self, held: Claim, sending: Sending, place: Slot) -> tuple[BegunDelivery | None, Slot | None]:
        """Send, then record and begin the next row in one transaction, however often the store must be asked."""
        try:
            outcome = await self._attempt(sending)
        finally:
            place.end()
        if outcome.is_sent:
            self._on_sent(Target.parse(sending.target))
        else:
            log.warning(
                "Not delivered", extra={"target": sending.target, "outbox": sending.id, "reason": outcome.reason}
            )
            if outcome.again_in is not None:
                # The slow poll would find it too, up to a second later.
                asyncio.get_running_loop().call_later(outcome.again_in + 0.01, self.wake, sending.target)
        next_place = self._place_now(sending.target)
        try:
            return await self._record(held, sending, outcome, may_begin=next_place is not None), next_place
        except BaseException:
            if next_place is not None:
                next_place.give_back()
            raise

    async def _record(
        self, held: Claim, sending: Sending, outcome: AttemptOutcome, *, may_begin: bool
    ) -> BegunDelivery | None:
        while True:
            try:
                return await self._db.claim(
                    _record_and_next,
                    held,
                    outcome,
                    may_begin=may_begin,
                    now=self._clock.now(),
                    terms=self._terms(sending.target),
                    if_gone=_nothing_left_us,
                )
            except StoreIsDownError as error:
                # The receipt is in hand: it is recorded again, never sent again.
                log.warning("Store is down", extra={"outbox": sending.id, "reason": str(error)})
                await asyncio.sleep(POLL_SECONDS)

    async def _attempt(self, sending: Sending) -> AttemptOutcome:
        try:
            target, body = Target.parse(sending.target), codec.load_outbound(sending.body)
        except ValueError as error:  # a damaged row: nobody could ever send it
            return self._dead(sending, f"unreadable: {error}")
        adapter = self._adapter_of(target)
        if self._served is not None and (adapter is None or not self._served.may_act()):
            return self._later(sending, MOVED_SECONDS, f"{target.platform} is not connected at this node")
        if adapter is None:
            return self._later(sending, NO_ADAPTER_SECONDS, f"{target.platform} is not connected")
        if sending.kind == OutboxKind.EDIT and not adapter.capabilities.edits:
            return self._dead(sending, f"{target.platform} does not edit")
        is_repeat = sending.repeats > 0
        message = body
        if (body.replaces, body.is_repeat) != (sending.replaces_message, is_repeat):
            message = replace(body, replaces=sending.replaces_message, is_repeat=is_repeat)
        seconds = SEND_FILE_SECONDS if body.attachment is not None else SEND_SECONDS
        if body.attachment is not None and self._bring_files is not None:
            try:
                message = await self._bring_files(message)
            except (StoreIsDownError, OSError) as error:
                return self._later(sending, self._backoff(sending.attempts), str(error))
        try:
            async with asyncio.timeout(seconds):
                receipt = await adapter.send(message)
        except TimeoutError:
            return self._unknown(sending, f"no answer within {seconds:.0f} s")
        except PlatformError as error:
            self._on_refused(target, error)
            if isinstance(error, RateLimitedError):
                self._rate_limiter.hold(target, error.retry_after, in_all=error.in_all)
            outcome = self._refused(sending, error)
            return self._with_word(sending, body, outcome) if isinstance(error, RejectedError) else outcome
        except Exception as error:
            log.exception("Adapter broke", extra={"target": sending.target, "outbox": sending.id})
            return self._unknown(sending, f"the adapter failed: {error}")
        return self._sent(sending, receipt)

    def _sent(self, sending: Sending, receipt: Receipt) -> AttemptOutcome:
        def record(tx: Tx, now: float) -> None:
            outbox_sending.record_sent(tx, sending.id, message_id=receipt.message_id, note=receipt.note, now=now)

        return AttemptOutcome(record, is_sent=True)

    def _refused(self, sending: Sending, error: PlatformError) -> AttemptOutcome:
        reason = str(error)
        match error:
            case RateLimitedError(retry_after=seconds):
                reason_given = f"{outbox.TOLD_TO_WAIT} {seconds:.0f} s: {reason}"
                return self._later(sending, max(seconds, MIN_WAIT_SECONDS), reason_given)
            case OutcomeUnknownError():
                return self._unknown(sending, reason)
            case WindowClosedError():
                return self._parked(sending, reason)
            case RejectedError() if sending.replaces_message and sending.kind != OutboxKind.EDIT:
                return AttemptOutcome(
                    lambda tx, _: outbox_sending.send_anew(tx, sending.id, reason=reason), reason=reason
                )
            case RejectedError():
                return self._dead(sending, reason)
            case CredentialsError() | ConflictError():
                return self._later(sending, BACKOFF_SECONDS[-1], reason)
            case UnreachableError() | _:
                return self._later(sending, self._backoff(sending.attempts), reason)

    def _dead(self, sending: Sending, reason: str) -> AttemptOutcome:
        return AttemptOutcome(
            lambda tx, now: outbox_sending.record_rejected(tx, sending.id, reason=reason, now=now), reason=reason
        )

    def _with_word(self, sending: Sending, body: OutboundMessage, outcome: AttemptOutcome) -> AttemptOutcome:
        """A file that the platform would not take is told about, in the transaction that gives it up."""
        lifetime = self._config().delivery.answer_ttl_seconds

        def record(tx: Tx, now: float) -> None:
            outcome.record(tx, now)
            words = self._words(tx, sending)
            target = Target.parse(sending.target)
            notice = media.lost(words, target, sending.id, body, outcome.reason, expires_at=now + lifetime)
            outbox.enqueue(tx, [notice] if notice is not None else [], now=now)

        return replace(outcome, record=record)

    def _words(self, tx: Tx, sending: Sending) -> Texts:
        """The texts in the language of the turn's person."""
        row = outbox.get(tx, sending.id)
        return self._words_of_turn(tx, row.turn_id if row is not None else "")

    def _words_of_turn(self, tx: Tx, turn_id: str) -> Texts:
        languages = turns.languages_of(tx, [turn_id] if turn_id else [])
        return words_of(pick(self._config().language, next(iter(languages.values()), "")))

    def _terms(self, target: str) -> ReplyQuota | None:
        """What the platform asks of what follows a person's message; None where it does not count."""
        try:
            adapter = self._adapter_of(Target.parse(target))
        except ValueError:  # a damaged row, which is told so when it is its turn
            return None
        if adapter is None or not adapter.capabilities.sends_per_inbound:
            return None
        can = adapter.capabilities
        lifetime = self._config().delivery.parked_ttl_seconds
        return ReplyQuota(can.text_limit, can.text_unit, can.note_room, lifetime, self._notes)

    def _notes(self, tx: Tx, turn_id: str) -> LateNotes:
        words = self._words_of_turn(tx, turn_id)
        return LateNotes(last=words.WRITE_TO_GET_THE_REST, late=words.COULD_NOT_BE_SENT_EARLIER)

    def _later(self, sending: Sending, seconds: float, reason: str) -> AttemptOutcome:
        def record(tx: Tx, now: float) -> None:
            outbox_sending.record_not_sent(
                tx, sending.id, not_before=now + seconds, reason=reason, was_counted=sending.is_counted
            )

        return AttemptOutcome(record, reason=reason, again_in=seconds)

    def _unknown(self, sending: Sending, reason: str) -> AttemptOutcome:
        seconds = self._backoff(sending.repeats + 1)

        def record(tx: Tx, now: float) -> None:
            outbox_sending.record_unknown(tx, sending.id, not_before=now + seconds, reason=reason)

        return AttemptOutcome(record, reason=reason, again_in=seconds)

    def _parked(self, sending: Sending, reason: str) -> AttemptOutcome:
        lifetime = self._config().delivery.parked_ttl_seconds

        def record(tx: Tx, now: float) -> None:
            if sending.kind in (OutboxKind.NOTICE, OutboxKind.PREVIEW, OutboxKind.EDIT):
                outbox_sending.record_rejected(tx, sending.id, reason=reason, now=now)
            else:
                outbox.record_parked(tx, sending.id, expires_at=now + lifetime, reason=reason)

        return AttemptOutcome(record, reason=reason)

    def _backoff(self, attempts: int) -> float:
        step = BACKOFF_SECONDS[min(attempts, len(BACKOFF_SECONDS)) - 1]
        return step * random.uniform(0.75, 1.25)


def _record_and_next(
    tx: Tx, held: Claim, outcome: AttemptOutcome, *, may_begin: bool, now: float, terms: ReplyQuota | None
) -> BegunDelivery | None:
    """A receipt always counts; whatever else was learned counts only for who still holds the target."""
    if outcome.is_sent or claims.seq_of(tx, "targets", held) is not None:
        outcome.record(tx, now)
    if outcome.is_sent and outbox_sending.rest(tx, held):
        return BegunDelivery(held, None)
    return outbox_sending.begin_next(tx, held, now=now, may_begin=may_begin, terms=terms)


def _nothing_left_us(tx: Tx, begun: BegunDelivery | None) -> None:
    """The caller is gone before any byte left: the row is ready as before, and the target is free."""
    if begun is None or begun.sending is None:
        return
    sending = begun.sending
    outbox_sending.record_not_sent(tx, sending.id, not_before=0.0, reason="", was_counted=sending.is_counted)
    claims.abandon(tx, "targets", begun.claim, now=0.0)
