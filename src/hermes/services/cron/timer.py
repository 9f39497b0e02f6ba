"""Fire jobs at their due times: one timer, set to the next of them; nothing ticks.

A due slot is one transaction: its row in the ledger, its inbox event and the wake of its lane. From there it is a
message. When its turn has ended, the run is settled: outcome, output file, alerts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from hermes.config import Config
from hermes.core.dataclasses import dataclass
from hermes.core.errors import StoreIsDownError
from hermes.core.keys import Target
from hermes.core.messages import OutboundMessage, Role
from hermes.core.ports import Clock
from hermes.core.requests import is_silent
from hermes.core.text import one_line
from hermes.services.cron.firing import PLATFORM, deliver_to, fire_due, follow_clock, zone_of_job
from hermes.services.events import EventBus, TurnEnded
from hermes.services.outbound.alerts import home_targets
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.people.pairing import words_at_home
from hermes.services.turns.lanes import Lanes
from hermes.store import codec, outbox
from hermes.store.db import Database, Tx
from hermes.store.entries import job_slots, jobs
from hermes.store.entries.job_slots import JobSlot, Outcome, SlotDelivery
from hermes.store.entries.jobs import JobRow
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.private_files import write_private
from hermes.store.sessions import transcripts
from hermes.store.turns import turns

log = logging.getLogger(__name__)

MAX_WAIT_SECONDS = 3600.0
RETRY_SECONDS = 1.0
CLOCK_BACK_SECONDS = 5.0
MAX_FAILURES = 3
KEPT_OUTPUTS = 50
SHOWN_CHARS = 300
_LANES = f"agent:main:{PLATFORM}:"


@dataclass(frozen=True, slots=True)
class _EndedRun:
    """A run that has ended: what is written into its output file."""

    job: JobRow | None
    slot: JobSlot
    outcome: Outcome
    error: str
    text: str
    turn_id: str


class CronTimer:
    """``changed`` is called when a job was made or changed; ``clock_set`` when the clock was."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        config: Callable[[], Config],
        bus: EventBus,
        lanes: Lanes,
        outbox_writer: OutboxWriter,
        home: Path,
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._bus = bus
        self._lanes = lanes
        self._outbox_writer = outbox_writer
        self._home = home
        self._wakes = asyncio.Event()
        self._firing = asyncio.Lock()
        self._has_ended = True
        self._is_running = False
        self._fired_at: float | None = None
        self._clock_moved: float | None = None
        self._is_clock_known = False

    # Running

    async def run(self) -> None:
        self._is_running = True
        try:
            with self._bus.watch_ends(self._saw):
                while True:
                    try:
                        await self._turn_of_timer()
                    except StoreIsDownError as error:
                        log.warning("Store is down", extra={"while": "firing jobs", "reason": str(error)})
                        await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._is_running = False

    async def _turn_of_timer(self) -> None:
        """Settle and fire what is due, then wait for the next due time or a change."""
        self._wakes.clear()
        if self._has_ended:
            self._has_ended = False
            try:
                await self.settle()
            except BaseException:
                self._has_ended = True
                raise
        await self.fire()
        due = await self._db.read(jobs.next_due)
        pause = MAX_WAIT_SECONDS if due is None else min(MAX_WAIT_SECONDS, max(0.0, due - self._clock.now()))
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._wakes.wait()

    def changed(self) -> None:
        self._wakes.set()

    def _saw(self, event: TurnEnded) -> None:
        if event.lane.startswith(_LANES):
            self._has_ended = True
            self._wakes.set()

    async def fire(self) -> int:
        """Fire what is due now; returns how many jobs were woken."""
        async with self._firing:
            return await self._fire()

    async def _fire(self) -> int:
        if self._clock_moved is not None or not self._is_clock_known:
            await self._follow_clock()
        woken = 0
        while True:
            rows: list[Outgoing] = []

            def pause(tx: Tx, job: JobRow, reason: str, rows: list[Outgoing] = rows) -> None:
                self._pause(tx, job, reason, rows)

            fired = await self._db.write(fire_due, self._config(), pause, now=self._clock.now())
            self._outbox_writer.due(rows)
            for lane in fired.lanes:
                self._lanes.wake(lane)
            woken += len(fired.lanes)
            if fired.lanes:
                self._fired_at = self._clock.now()
                log.info("Jobs fired", extra={"count": len(fired.lanes)})
            if not fired.has_more:
                return woken

    def clock_set(self, by: float) -> None:
        """Follow a clock that was set by so many seconds, before anything else is fired."""
        self._clock_moved = (self._clock_moved or 0.0) + by
        self._wakes.set()

    async def _follow_clock(self) -> None:
        by = self._clock_moved
        if by is None:  # at the start: it may have been set back while nobody looked
            newest = await self._db.read(job_slots.newest_decided)
            by = 0.0 if newest > self._clock.now() + CLOCK_BACK_SECONDS else None
        if by is not None:
            await self._db.alone(follow_clock, self._config(), by=by, now=self._clock.now())
        self._clock_moved, self._is_clock_known = None, True

    # Settling

    async def settle(self) -> None:
        """Enter the end of runs whose turns have ended. The output file comes first, so that none is left out."""
        while found := await self._db.read(_ended_runs):
            for run in found:
                if self._config().always_log_local:
                    await asyncio.to_thread(self._write_output, run)
            rows = await self._db.write(self._settle, found, now=self._clock.now())
            self._outbox_writer.due(rows)

    def _settle(self, tx: Tx, found: list[_EndedRun], *, now: float) -> list[Outgoing]:
        rows: list[Outgoing] = []
        for run in found:
            delivery, why = SlotDelivery.NONE, ""
            if run.slot.delivery == SlotDelivery.FAILED:
                delivery, why = SlotDelivery.FAILED, run.slot.error
            elif run.outcome is Outcome.DONE:
                delivery, why = job_slots.delivery_of(tx, run.turn_id)
            error = run.error or why
            if not job_slots.settle(tx, run.slot, outcome=run.outcome, error=error, delivery=delivery, now=now):
                continue
            if run.job is None:
                continue
            self._count_outcome(tx, run, rows, now)
            self._count_delivery(tx, run.job, run.slot, delivery, why, rows)
        return rows

    def _count_outcome(self, tx: Tx, run: _EndedRun, rows: list[Outgoing], now: float) -> None:
        """Alert once when a job begins to fail; pause it after the third failure in a row."""
        job = run.job
        if job is None or run.outcome is Outcome.STOPPED:
            return
        failures = jobs.count_failure(tx, job.id, failed=run.outcome is Outcome.FAILED)
        words = words_at_home(tx, self._config().language)
        about = {"name": job.name, "id": job.id, "reason": one_line(run.error, SHOWN_CHARS)}
        if failures >= MAX_FAILURES and jobs.pause(tx, job.id, reason=f"failed {failures} times in a row", now=now):
            self._alert(tx, job, words.JOB_PAUSED.format(**about, count=failures), f"paused_{run.slot.slot}", rows)
        elif failures == 1:
            self._alert(tx, job, words.JOB_FAILED.format(**about), f"failed_{run.slot.slot}", rows)

    def _count_delivery(
        self, tx: Tx, job: JobRow, slot: JobSlot, delivery: SlotDelivery, why: str, rows: list[Outgoing]
    ) -> None:
        if delivery in (SlotDelivery.NONE, SlotDelivery.WAITING):
            return
        undelivered = jobs.count_undelivered(tx, job.id, failed=delivery is SlotDelivery.FAILED)
        if undelivered == 1:
            words = words_at_home(tx, self._config().language)
            text = words.JOB_UNDELIVERED.format(name=job.name, id=job.id, reason=one_line(why, SHOWN_CHARS))
            self._alert(tx, job, text, f"undelivered_{slot.slot}", rows)

    def _pause(self, tx: Tx, job: JobRow, reason: str, rows: list[Outgoing]) -> None:
        if jobs.pause(tx, job.id, reason=reason, now=self._clock.now()):
            words = words_at_home(tx, self._config().language)
            text = words.JOB_STOPPED.format(name=job.name, id=job.id, reason=words.reason(reason))
            self._alert(tx, job, text, f"stopped_{job.next_slot}", rows)

    def _alert(self, tx: Tx, job: JobRow, text: str, name: str, rows: list[Outgoing]) -> None:
        """Tell the home channels and the chat of the job, each once."""
        targets: list[Target] = home_targets(self._config())
        targets += [target for target in deliver_to(job, self._config())[0] if target not in targets]
        made = [
            row
            for number, target in enumerate(targets)
            for row in self._outbox_writer.rows(
                OutboundMessage(target, f"⚠️ {text}"), OutboxKind.REPLY, key=f"ob_{job.id}_{name}_{number}"
            )
        ]
        outbox.enqueue(tx, made, now=self._clock.now())
        rows += made

    def _write_output(self, run: _EndedRun) -> None:
        """Keep what a run said as ``cron/output/<job>/<time>.md``; the oldest files go."""
        folder = self._home / "cron" / "output" / run.slot.job_id
        config = self._config()
        zone = zone_of_job(run.job, config) if run.job is not None else None
        name = datetime.fromtimestamp(run.slot.slot, zone).strftime("%Y-%m-%d_%H-%M-%S")
        about = run.job.name if run.job is not None else run.slot.job_id
        ended = f"{run.outcome.value}: {run.error}" if run.error else run.outcome.value
        lines = [f"# {about}", "", f"Job {run.slot.job_id}, due {name}, {run.slot.state}, {ended}", "", run.text, ""]
        try:
            for made in (folder.parent.parent, folder.parent, folder):
                made.mkdir(mode=0o700, exist_ok=True)
            write_private(folder / f"{name}.md", "\n".join(lines))
            for old in sorted(folder.glob("*.md"))[:-KEPT_OUTPUTS]:
                old.unlink(missing_ok=True)
        except OSError as error:
            log.warning("Job output not written", extra={"job": run.slot.job_id, "reason": str(error)})

    # Beside

    async def sweep(self) -> None:
        """Settle what was missed, follow answers on their way, forget old entries. Called by the janitor."""
        await self.settle()
        now = self._clock.now()
        rows = await self._db.write(self._follow_deliveries)
        self._outbox_writer.due(rows)
        await self._db.alone(job_slots.forget_slots, before=now - job_slots.KEPT_SECONDS)

    def _follow_deliveries(self, tx: Tx) -> list[Outgoing]:
        rows: list[Outgoing] = []
        for slot in job_slots.undelivered(tx):
            delivery, why = job_slots.delivery_of(tx, slot.turn_id)
            if delivery is SlotDelivery.WAITING:
                continue
            job_slots.note_delivery(tx, slot.job_id, slot.slot, delivery, why)
            job = jobs.get(tx, slot.job_id)
            if job is not None:
                self._count_delivery(tx, job, slot, delivery, why, rows)
        return rows

    async def status(self) -> dict[str, Any]:
        """Return whether jobs are fired, and what waits."""
        return {
            "is_running": self._is_running,
            "fired_at": self._fired_at,
            "now": self._clock.now(),
            **await self._db.read(_overview, before=self._clock.now() - 5.0),
        }


def _overview(tx: Tx, *, before: float) -> dict[str, Any]:
    return {"jobs": jobs.counts(tx), "next_at": jobs.next_due(tx), "overdue": jobs.overdue(tx, before=before)}


def _ended_runs(tx: Tx) -> list[_EndedRun]:
    found = []
    for slot in job_slots.ended(tx):
        outcome, error = job_slots.outcome_of(tx, slot)
        text = _last_words(tx, slot.turn_id)
        if outcome is Outcome.DONE and is_silent(text):
            outcome = Outcome.SILENT
        found.append(_EndedRun(jobs.get(tx, slot.job_id), slot, outcome, error, text, slot.turn_id))
    return found


def _last_words(tx: Tx, turn_id: str) -> str:
    turn = turns.get(tx, turn_id) if turn_id else None
    if turn is None:
        return ""
    for line in reversed(transcripts.lines_of_turn(tx, turn.session_id, turn.id)):
        message = codec.read_chat(line.body) if line.kind == "message" else None
        if message is not None and message.role is Role.ASSISTANT and message.text:
            return message.text
    return ""
