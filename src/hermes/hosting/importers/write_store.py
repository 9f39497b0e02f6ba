"""Write people, sessions, jobs and tasks of another gateway into our store. What is there stays."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

from hermes.core.entries.kanban import MAX_BODY, MAX_TITLE, TaskState, closes_circle
from hermes.core.entries.schedule import ScheduleError, parse
from hermes.core.errors import GatewayError
from hermes.core.keys import LOCAL, MAIN
from hermes.core.roles import PersonRole
from hermes.core.text import one_line
from hermes.hosting.importers.found import FoundHome, FoundJob, FoundPairing, FoundTask
from hermes.hosting.importers.report import Fate, ImportReport
from hermes.services.cron.jobs import Jobs, Maker
from hermes.services.time_zone import zone_of
from hermes.store import pairings, people
from hermes.store.db import Database, Tx
from hermes.store.entries import jobs as job_rows
from hermes.store.kanban import imports as task_imports
from hermes.store.kanban import tasks as board
from hermes.store.kanban.imports import ImportedTask
from hermes.store.kanban.tasks import NewTask
from hermes.store.pairings import PairingState
from hermes.store.sessions import imports, sessions
from hermes.store.sessions.imports import ImportedSession, ImportOutcome

BY = "import"
_FATES = {
    ImportOutcome.NEW: Fate.CAME,
    ImportOutcome.LONGER: Fate.LONGER,
    ImportOutcome.SAME: Fate.SAME,
    ImportOutcome.OURS: Fate.KEPT,
}


# People


async def import_people(
    found: FoundHome, db: Database, platforms: Collection[str], report: ImportReport, *, now: float, is_dry: bool
) -> None:
    """Let in whom the other gateway let in, as users: who is the owner here was decided here."""
    for pairing in found.pairings:
        if pairing.platform not in platforms:
            reason = f"there is no platform {pairing.platform} here"
            report.add("people", Fate.LEFT_OUT, pairing.name or pairing.user_id, reason)
            continue
        state = await (db.read(_state_of, pairing) if is_dry else db.write(_let_in, pairing, now=now))
        if state == PairingState.APPROVED.value:
            report.add("people", Fate.SAME)
        elif state in (PairingState.REFUSED.value, PairingState.REVOKED.value):
            report.add("people", Fate.KEPT, pairing.name or pairing.user_id, f"they were {state} here, and stays")
        else:
            report.add("people", Fate.CAME)


def _state_of(tx: Tx, pairing: FoundPairing) -> str:
    known = pairings.get(tx, pairing.platform, pairing.user_id)
    return known.state if known is not None else ""


def _let_in(tx: Tx, pairing: FoundPairing, *, now: float) -> str:
    """Store an approval, and return the state before it. Nobody is greeted: they know the agent."""
    state = _state_of(tx, pairing)
    if state in ("", PairingState.PENDING.value):
        platform, user, name = pairing.platform, pairing.user_id, pairing.name
        if not state:
            pairings.ask(tx, platform, user, account=MAIN, chat="", name=name, now=pairing.at or now)
        pairings.decide(tx, platform, user, PairingState.APPROVED, by=BY, now=now)
        people.ensure(
            tx,
            people.first_id(platform, user),
            platform=platform,
            user_id=user,
            name=name,
            role=PersonRole.USER.value,
            now=now,
        )
    return state


# Sessions


async def import_session(session: ImportedSession, db: Database, report: ImportReport, *, batch: str) -> None:
    """Store one session, or what it has more than at the last import. Without a ``batch`` nothing is written."""
    if batch:
        outcome, lines = await db.write(imports.bring_in, session, batch=batch)
    else:
        outcome, lines = await db.read(_outcome, session)
    report.lines += lines
    kept = "the conversation went on here, and stays as it is" if outcome is ImportOutcome.OURS else ""
    report.add("sessions", _FATES[outcome], session.title or session.id, kept)


def _outcome(tx: Tx, session: ImportedSession) -> tuple[ImportOutcome, int]:
    known = sessions.get(tx, session.id)
    if known is None:
        return ImportOutcome.NEW, len(session.lines)
    if known.seq >= len(session.lines):
        return ImportOutcome.SAME, 0
    if imports.is_used(tx, session.id):
        return ImportOutcome.OURS, 0
    return ImportOutcome.LONGER, len(session.lines) - known.seq


# Jobs


def job_id(kind: str, theirs: str) -> str:
    """Our id of a job from elsewhere, always the same."""
    return f"job_{hashlib.sha256(f'{kind}:{theirs}'.encode()).hexdigest()[:16]}"


async def import_jobs(
    found: FoundHome, db: Database, jobs: Jobs | None, timezone: str, report: ImportReport, *, now: float
) -> None:
    """Make the jobs that are not there, with the owner's rights. Without ``jobs`` nothing is made, only checked."""
    if jobs is not None and found.jobs:
        await db.write(people.ensure_local_owner, now=now)
    maker = Maker(people.first_id(LOCAL, LOCAL), PersonRole.OWNER)
    for job in found.jobs:
        name = job_id(found.kind, job.id)
        if await db.read(job_rows.get, name) is not None:
            report.add("jobs", Fate.SAME)
            continue
        for note in job.notes:
            report.note("jobs", job.name, note)
        try:
            if jobs is None:
                parse(str(job.fields["schedule"]), now=now, zone=zone_of(timezone))
            else:
                await _make_job(job, name, jobs, maker, report)
        except ScheduleError as error:
            report.add("jobs", Fate.LEFT_OUT, job.name, error.reason)
        except GatewayError as error:
            report.add("jobs", Fate.LEFT_OUT, job.name, str(error))
        else:
            report.add("jobs", Fate.CAME)


async def _make_job(job: FoundJob, name: str, jobs: Jobs, maker: Maker, report: ImportReport) -> None:
    """Make one job. A skill, a model, a folder or a target that is not to be had here is left away with a note."""
    fields = dict(job.fields)
    for part, reason in (await jobs.refused(fields, maker)).items():
        if part not in ("model", "skills", "workdir", "deliver"):
            continue  # without it there is no job: create says why
        given = one_line(str(fields.pop(part)), 60)
        if part == "deliver":
            fields[part] = "local"
        then = "its answers are kept in cron/output" if part == "deliver" else "the job runs without"
        report.note("jobs", job.name, f"{part} {given} is not usable here ({reason.rstrip('.')}): {then}")
    await jobs.create(fields, maker, job_id=name)
    if job.is_paused:
        await jobs.pause(name, maker)


# The board


async def import_tasks(
    found: FoundHome, db: Database | None, report: ImportReport, *, now: float, is_dry: bool
) -> None:
    """Bring tasks in, none of them for the agent: whoever wants the agent to do one assigns it here."""
    numbers: dict[tuple[str, str], int] = {}
    for task in found.tasks:
        key = f"{found.kind}:{task.board}:{task.id}"
        known = await db.read(task_imports.is_known, key) if db is not None else None
        if known is not None:
            numbers[task.board, task.id] = known
            report.add("tasks", Fate.SAME)
            continue
        if not task.title.strip():
            report.add("tasks", Fate.LEFT_OUT, task.id, "it has no title")
            continue
        if not is_dry and db is not None:
            numbers[task.board, task.id] = await db.write(
                task_imports.bring_in, _task(task, key), actor=f"import from {found.kind}", now=now
            )
        report.add("tasks", Fate.CAME)
    if not is_dry and db is not None:
        await db.write(_depend, found.tasks, numbers)


def _task(task: FoundTask, key: str) -> ImportedTask:
    state = TaskState(task.state) if task.state in list(TaskState) else TaskState.TRIAGE
    was = ""
    if state is TaskState.RUNNING:
        state, was = TaskState.READY, "it was running there"
    assignee = f"profile:{one_line(task.assignee, 40)}" if task.assignee else ""
    new = NewTask(
        one_line(task.title, MAX_TITLE),
        task.body[:MAX_BODY],
        task.board,
        state,
        task.priority,
        assignee,
        people.first_id(LOCAL, LOCAL),
        PersonRole.USER.value,
        dedupe_key=key,
    )
    comments = [(one_line(comment.author, 60), comment.body[:MAX_BODY], comment.at) for comment in task.comments]
    return ImportedTask(new, task.result[:MAX_BODY], was, task.created_at, task.done_at, comments)


def _depend(tx: Tx, found: list[FoundTask], numbers: Mapping[tuple[str, str], int]) -> None:
    """Store who waits for whom, but for circles, which nothing would ever leave."""
    waits_for: dict[int, set[int]] = {}
    for number, needed_number in board.needs(tx):
        waits_for.setdefault(number, set()).add(needed_number)
    for task in found:
        for needed in task.needs:
            ours, needs = numbers.get((task.board, task.id)), numbers.get((task.board, needed))
            if ours is None or needs is None or ours == needs:
                continue
            if not closes_circle(ours, needs, waits_for):
                waits_for.setdefault(ours, set()).add(needs)
                task_imports.depend(tx, ours, needs)
