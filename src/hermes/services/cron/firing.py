"""Decide about jobs that are due, in one transaction: ledger, inbox event and the wake of the job's lane."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import tzinfo

from hermes.config import Config
from hermes.core.dataclasses import dataclass
from hermes.core.entries.job_slots import CatchUp, QuietHours, SlotDecision, SlotState, decide
from hermes.core.entries.schedule import ScheduleKind, next_after
from hermes.core.keys import LOCAL, AccountKey, ChatKind, SessionKey, Target
from hermes.core.messages import ChatMessage, Role
from hermes.core.people.access import Allowed, judge
from hermes.core.requests import AgentRequest, RequestKind, TurnOptions
from hermes.core.roles import PersonRole, capped
from hermes.core.targets.names import LOCAL as LOCAL_CHAT
from hermes.core.targets.names import recipients
from hermes.services.outbound.alerts import home_channels
from hermes.services.time_zone import zone_of
from hermes.store import codec, inbox, pairings, people
from hermes.store.db import Tx
from hermes.store.entries import job_slots, jobs
from hermes.store.entries.job_slots import SlotDelivery
from hermes.store.entries.jobs import JobRow, JobState
from hermes.store.inbox import InboxState, Incoming
from hermes.store.pairings import PairingState

log = logging.getLogger(__name__)

PLATFORM = "cron"
BATCH = 100
BRIEFING = (
    "This is a scheduled job, and nobody is writing. You work on your own: decide for yourself instead of asking. Your "
    "last message is delivered to the chat of the job by itself, so do not send it with a tool, and do not schedule "
    "anything. Say what the person should read, without a word about the job itself. If the job looks for something "
    "and there is nothing to report, answer with [SILENT] alone: then nothing is sent."
)
NOT_ALLOWED = "its maker may not give orders here any more"


@dataclass(frozen=True, slots=True)
class Fired:
    """What one transaction decided: the lanes to wake, how many slots run, whether more jobs are due."""

    lanes: tuple[str, ...] = ()
    has_more: bool = False


def lane_of(job_id: str) -> SessionKey:
    return SessionKey(PLATFORM, ChatKind.DM, job_id)


def zone_of_job(job: JobRow, config: Config) -> tzinfo:
    return zone_of(job.timezone or config.timezone)


def fire_due(tx: Tx, config: Config, pause: Callable[[Tx, JobRow, str], None], *, now: float) -> Fired:
    """Decide about every slot that is due, of at most BATCH jobs."""
    due = jobs.take_due(tx, now=now, limit=BATCH)
    lanes: list[str] = []
    for job in due:
        if why := _why_not(tx, job, config):
            pause(tx, job, why)
            continue
        decision = _decide(tx, job, config, now)
        for passed in decision.passed:
            job_slots.note_passed(tx, job.id, passed, now=now)
        for run in decision.runs:
            if fire(tx, job, config, run.slot, run.state, now=now):
                lanes.append(str(lane_of(job.id)))
        _move_on(tx, job, decision, now)
    return Fired(tuple(dict.fromkeys(lanes)), len(due) == BATCH)


def _decide(tx: Tx, job: JobRow, config: Config, now: float) -> SlotDecision:
    zone, schedule = zone_of_job(job, config), job.due
    quiet = _quiet_hours(job.quiet or config.cron.quiet_hours)
    slot: float | None = job.next_slot
    newest = job_slots.newest_slot(tx, job.id)

    def following(after: float) -> float | None:
        """Return the next slot that the ledger does not have: after the clock was set back it has later ones."""
        found = next_after(schedule, after, zone)
        while found is not None and found <= newest and job_slots.is_decided(tx, job.id, found):
            found = next_after(schedule, found, zone)
        return found

    if slot is not None and slot <= newest and job_slots.is_decided(tx, job.id, slot):
        slot = following(slot)
    if slot is None or slot > now:
        return SlotDecision(next_slot=slot)
    return decide(
        slot,
        now,
        following,
        CatchUp(job.catch_up),
        is_once=schedule.kind is ScheduleKind.ONCE,
        is_busy=job_slots.is_busy(tx, job.id),
        quiet_until=quiet.until(now, zone) if quiet is not None else 0.0,
        runs_left=job.runs_left,
    )


def _quiet_hours(text: str) -> QuietHours | None:
    try:
        return QuietHours.parse(text)
    except ValueError:  # the configuration says so when it is loaded
        return None


def _move_on(tx: Tx, job: JobRow, decision: SlotDecision, now: float) -> None:
    left = None if job.runs_left is None else max(0, job.runs_left - len(decision.runs))
    jobs.move_on(
        tx,
        job.id,
        state=JobState.ACTIVE if decision.next_slot is not None else JobState.DONE,
        slot=decision.next_slot,
        at=decision.wait_until or decision.next_slot,
        runs_left=left,
        now=now,
    )


def fire(tx: Tx, job: JobRow, config: Config, slot: float, state: SlotState, *, now: float, reason: str = "") -> bool:
    """Enter a slot into the ledger and its event into the inbox. False: the slot was decided before."""
    event_id = f"ev_{job.id}_{slot:.3f}".removesuffix(".000")
    if not job_slots.note_run(tx, job.id, slot, state=state, event_id=event_id, reason=reason, now=now):
        return False
    targets, trouble = deliver_to(job, config)
    if trouble:
        job_slots.note_delivery(tx, job.id, slot, SlotDelivery.FAILED, trouble)
    request = request_of(job, targets, slot)
    incoming = Incoming(
        id=event_id,
        keys=(f"{PLATFORM}:{job.id}:{slot:.3f}",),
        lane=str(request.session_key),
        platform=PLATFORM,
        account="main",
        kind="cron",
        sender_id=job.person_id,
        body=codec.dump(request),
        state=InboxState.QUEUED,
        ready_at=now,
        role=job.role,
    )
    [accepted] = inbox.accept(tx, [incoming], now=now)
    return accepted.is_new


def deliver_to(job: JobRow, config: Config) -> tuple[tuple[Target, ...], str]:
    """Return where the answer goes by the configuration of today, and why it goes nowhere."""
    origin = SessionKey.parse(job.origin).target if job.origin else None
    homes = {AccountKey(LOCAL): "", **home_channels(config)}
    try:
        return tuple(recipients(job.deliver, origin=origin, homes=homes)), ""
    except ValueError as error:
        return (), str(error)


def request_of(job: JobRow, targets: tuple[Target, ...], slot: float) -> AgentRequest:
    return AgentRequest(
        RequestKind.RUN,
        lane_of(job.id),
        job.person_id,
        (ChatMessage(Role.USER, job.prompt or f"Report what the script {job.script} printed."),),
        TurnOptions(
            instructions=BRIEFING,
            model=job.model,
            origin=str(_question_chat(job, targets)),
            folder=job.workdir,
            deliver=tuple(map(str, targets)),
            header="" if job.no_agent else f"⏰ {job.name}",
            answer=(job.prompt or job.script) if job.no_agent else "",
            job=job.id,
            slot=slot,
            script=job.script,
            skills=tuple(filter(None, job.skills.split(","))),
            may_be_silent=True,
        ),
        person_id=job.person_id,
    )


def _question_chat(job: JobRow, targets: tuple[Target, ...]) -> SessionKey:
    """The chat in which a run asks for approvals: where its answer goes, and there where the job was made."""
    made_in = SessionKey.parse(job.origin) if job.origin else None
    if made_in is not None and (not targets or made_in.target in targets):
        return made_in
    place = next((target for target in targets if target.platform != LOCAL), None) or next(iter(targets), LOCAL_CHAT)
    return SessionKey(place.platform, ChatKind.DM, place.chat, place.thread, account=place.account)


def _why_not(tx: Tx, job: JobRow, config: Config) -> str:
    """Return why a job must not run any more: its maker lost the right to talk here. '' if it may."""
    person = people.get(tx, job.person_id)
    if person is None or capped(person.role, job.role) in ("", PersonRole.GUEST):
        return NOT_ALLOWED
    accounts = people.accounts(tx, person.id)
    if any(account.platform in (LOCAL, "api") for account in accounts):
        return ""
    judged = [_is_let_in(tx, config, job, account) for account in accounts if account.platform in config.platforms]
    return NOT_ALLOWED if judged and not any(judged) else ""


def _is_let_in(tx: Tx, config: Config, job: JobRow, account: people.Account) -> bool:
    pairing = pairings.get(tx, account.platform, account.user_id)
    is_paired = pairing is not None and pairing.state == PairingState.APPROVED
    made_in = SessionKey.parse(job.origin) if job.origin else None
    chat = made_in.chat if made_in is not None and made_in.platform == account.platform else ""
    return any(
        isinstance(
            judge(
                settings.access,
                kind=kind,
                sender_id=account.user_id,
                chat=chat,
                is_addressed=True,
                is_paired=is_paired,
            ),
            Allowed,
        )
        for settings in config.platforms[account.platform].values()
        for kind in ((ChatKind.DM, ChatKind.GROUP) if chat else (ChatKind.DM,))
    )


# A clock that was set


def follow_clock(tx: Tx, config: Config, *, by: float, now: float) -> None:
    """Adapt waiting jobs to a clock that was set by so many seconds; ``now`` is the time after it.

    What counts from a moment waits as long as before. What goes by the calendar looks at it anew: a slot that the
    ledger has is not run again.
    """
    if by:
        jobs.shift_relative(tx, by=by)
    if by > 0:
        return  # due times that were jumped over are overdue, and caught up
    for job in jobs.by_calendar(tx):
        slot = next_after(job.due, now, zone_of_job(job, config))
        if slot is not None and job.next_slot is not None and slot < job.next_slot:
            jobs.set_next(tx, job.id, slot, slot)
