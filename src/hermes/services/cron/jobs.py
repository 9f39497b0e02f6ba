"""Make, change and look up jobs: the same rules for chats, tools, the command line and the API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hermes.agent.skills.library import SkillLibrary
from hermes.config import Config, Loaded
from hermes.core.dataclasses import dataclass
from hermes.core.entries.job_slots import CatchUp, QuietHours, SlotState
from hermes.core.entries.schedule import Schedule, ScheduleError, longest_prefix, next_after, parse
from hermes.core.errors import ConfigError, GatewayError
from hermes.core.i18n.catalogue import LocalizedText
from hermes.core.keys import LOCAL, AccountKey, SessionKey, Target
from hermes.core.ports import Clock
from hermes.core.roles import Action, PersonRole, at_least, may
from hermes.core.targets.names import LOCAL as LOCAL_CHAT
from hermes.core.targets.names import recipients
from hermes.core.text import one_line, storable
from hermes.services.cron import scripts
from hermes.services.cron.firing import deliver_to, fire, lane_of, zone_of_job
from hermes.services.models import full_model_name
from hermes.services.outbound.alerts import home_channels
from hermes.services.time_zone import zone_of
from hermes.store import grants
from hermes.store.db import Database, Tx
from hermes.store.entries import job_slots, jobs
from hermes.store.entries.job_slots import JobSlot, SlotDelivery
from hermes.store.entries.jobs import JobRow, JobState
from hermes.store.grants import JOB_GRANTS, Grant
from hermes.store.ids import new_id

MAX_PROMPT_CHARS = 20_000
MAX_NAME_CHARS = 60
MAX_JOBS = 100
"""Jobs of one person who is no admin."""
MAX_REPEATS = 1_000_000
MAX_GRANTS = 20
SHOWN_CHARS = 200

FIELDS = (
    "schedule", "prompt", "name", "script", "skills", "model", "workdir", "repeat", "deliver", "no_agent", "catch_up",
    "quiet", "timezone", "grants",
)  # fmt: skip
"""What a job can be told, by the names that every door uses."""


class JobError(GatewayError):
    """A job cannot be made or changed like this; the text says why and what to write instead."""


class NoSuchJobError(JobError):
    """No job of this person has this name."""


def refusal(sentence: str, /, **values: Any) -> JobError:
    """Make an error of a sentence of the catalogue; each reader gets it in their language."""
    shown = {key: one_line(value, SHOWN_CHARS) if isinstance(value, str) else value for key, value in values.items()}
    return JobError(LocalizedText(lambda words: str(getattr(words, sentence)).format(**shown)))


@dataclass(frozen=True, slots=True)
class Maker:
    """Who makes or changes a job. ``origin`` is the lane of the chat, '' where there is none."""

    person_id: str
    role: PersonRole
    origin: str = ""

    @property
    def sees_all(self) -> bool:
        return may(self.role, Action.READ_ALL)

    @property
    def may_reach_all(self) -> bool:
        return at_least(self.role, PersonRole.ADMIN)


class Jobs:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        loaded: Callable[[], Loaded],
        home: Path,
        skills: SkillLibrary,
        changed: Callable[[], None],
        wake: Callable[[str], None],
        status: Callable[[], Awaitable[dict[str, Any]]],
    ) -> None:
        """``changed`` sets the timer anew, ``wake`` serves a lane, ``status`` is the timer's."""
        self.status = status
        self._db = db
        self._clock = clock
        self._loaded = loaded
        self._home = home
        self._skills = skills
        self._changed = changed
        self._wake = wake

    @property
    def _config(self) -> Config:
        return self._loaded().config

    # Reading

    def parse_schedule(self, text: str, timezone: str = "") -> Schedule:
        """Read a schedule in a zone. JobError names the three nearest right ones."""
        try:
            return parse(text, now=self._clock.now(), zone=self._zone(timezone))
        except ScheduleError as error:
            raise refusal("JOB_BAD_SCHEDULE", text=text, nearest="; ".join(error.nearest)) from None

    def split(self, text: str, timezone: str = "") -> tuple[str, str] | None:
        """Split ``tomorrow 9:00 water the plants`` into its schedule and the rest; None without a schedule."""
        zone, now = self._zone(timezone), self._clock.now()
        found = longest_prefix(text.split(), lambda words: parse(words, now=now, zone=zone))
        if found is None:
            return None
        count = len(text.split()) - len(found[1])
        return " ".join(text.split()[:count]), text.split(maxsplit=count)[count] if found[1] else ""

    def _zone(self, timezone: str) -> Any:
        if timezone:
            try:
                return ZoneInfo(timezone)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                raise refusal("JOB_NO_ZONE", zone=timezone) from None
        return zone_of(self._config.timezone)

    async def listed(self, maker: Maker) -> list[JobRow]:
        return await self._db.read(jobs.listed, person_id="" if maker.sees_all else maker.person_id)

    async def find(self, name: str, maker: Maker) -> JobRow:
        """Find a job by id, by the end of an id or by name, among those of this person."""
        word = storable(name).strip().strip("`")
        found = await self._db.read(jobs.named, word, person_id="" if maker.sees_all else maker.person_id)
        if not found:
            raise NoSuchJobError(LocalizedText(lambda words: words.JOB_UNKNOWN.format(name=one_line(word, 60))))
        if len(found) > 1:
            ids = ", ".join(job.id for job in found)
            raise refusal("JOB_SEVERAL", name=word, ids=ids)
        return found[0]

    async def history(self, job: JobRow, *, limit: int = 20) -> list[JobSlot]:
        """List what became of its slots, the newest first, with the deliveries as they are now."""
        return await self._db.read(_history, job.id, limit)

    # Making

    async def create(self, fields: Mapping[str, Any], maker: Maker, *, job_id: str = "") -> JobRow:
        """Make a job. With the id of a call that is repeated after a crash it is made once."""
        if not at_least(maker.role, PersonRole.USER):
            raise refusal("JOB_NOT_FOR_GUESTS")
        now = self._clock.now()
        blank = JobRow(
            id=job_id or new_id("job"),
            name="",
            person_id=maker.person_id,
            role=maker.role.value,
            prompt="",
            deliver="origin" if maker.origin else "local",
            origin=maker.origin,
            created_at=now,
            updated_at=now,
        )
        job = await asyncio.to_thread(self._with, blank, {"schedule": "", **fields}, maker)
        if not (job.prompt or job.script):
            raise refusal("JOB_EMPTY")
        given = _grants(fields.get("grants") or (), job, maker, now)
        made = await self._db.write(_insert, job, given, is_limited=not maker.may_reach_all)
        self._changed()
        return made

    async def refused(self, fields: Mapping[str, Any], maker: Maker) -> dict[str, str]:
        """Say which parts of a job that is to be made would be refused, each with the reason."""
        now, found = self._clock.now(), dict[str, str]()
        blank = JobRow(id="", name="-", person_id=maker.person_id, role=maker.role.value, prompt="-", created_at=now)
        for name, value in fields.items():
            try:
                await asyncio.to_thread(self._with, blank, {name: value}, maker)
            except GatewayError as error:
                found[name] = str(error)
        return found

    async def change(self, name: str, fields: Mapping[str, Any], maker: Maker) -> JobRow:
        """Change what is named, and nothing else. A new schedule counts from now."""
        job = await self.find(name, maker)
        changed = await asyncio.to_thread(self._with, job, fields, maker)
        if not (changed.prompt or changed.script):
            raise refusal("JOB_EMPTY")
        # Whoever changes a job lends it no rights, and takes none that are above their own.
        role = job.role if at_least(maker.role, PersonRole(job.role)) else maker.role.value
        now = self._clock.now()
        given = _grants(fields.get("grants") or (), job, maker, now)
        changed = replace(changed, role=role, updated_at=now)
        differs = {name: value for name, value in asdict(changed).items() if value != getattr(job, name)}
        made = await self._db.write(_update, job.id, differs, given)
        self._changed()
        return made or changed

    def _with(self, job: JobRow, fields: Mapping[str, Any], maker: Maker) -> JobRow:
        """Return the job with what was told of it, each part checked. Blocks."""
        unknown = [name for name in fields if name not in FIELDS]
        if unknown:
            raise refusal("JOB_NO_FIELD", name=unknown[0], fields=", ".join(FIELDS))
        text = {name: storable(str(value)).strip() for name, value in fields.items() if isinstance(value, str)}
        changes: dict[str, Any] = {}
        if "prompt" in text:
            if len(text["prompt"]) > MAX_PROMPT_CHARS:
                raise refusal("JOB_TOO_LONG", count=MAX_PROMPT_CHARS)
            changes["prompt"] = text["prompt"]
        changes |= {name: self._checked(name, text[name], maker) for name in _CHECKED if name in text}
        if "skills" in fields:
            changes["skills"] = ",".join(self._skill_names(fields["skills"] or ()))
        if "no_agent" in fields:
            changes["no_agent"] = int(bool(fields["no_agent"]))
        if "repeat" in fields:
            changes["runs_left"] = _repeat(fields["repeat"])
        if "deliver" in text:
            changes["deliver"] = self._deliver(text["deliver"], job, maker)
        job = replace(job, **changes)
        if "schedule" in text or "timezone" in text:
            job = self._scheduled(job, text.get("schedule") or job.schedule)
        if not job.name:
            job = replace(job, name=one_line(job.prompt or job.script, MAX_NAME_CHARS))
        return job

    def _checked(self, name: str, value: str, maker: Maker) -> str:
        match name:
            case "name":
                return one_line(value, MAX_NAME_CHARS)
            case "script" if value:
                if not may(maker.role, Action.APPROVE_HOST):
                    raise refusal("JOB_SCRIPT_ROLE")
                return scripts.check(self._home, value)
            case "model" if value:
                try:
                    return full_model_name(value, self._loaded())
                except ConfigError as error:
                    raise JobError(*error.args) from None
            case "workdir" if value:
                if maker.role is not PersonRole.OWNER or not Path(value).is_dir():
                    raise refusal("JOB_NO_FOLDER", folder=value)
                return value
            case "catch_up":
                if value not in list(CatchUp):
                    raise refusal("JOB_CATCH_UP", value=value, known=", ".join(CatchUp))
            case "quiet" if value:
                try:
                    QuietHours.parse(value)
                except ValueError:
                    raise refusal("JOB_QUIET", text=value) from None
            case "timezone" if value:
                self._zone(value)
        return value

    def _skill_names(self, names: str | Sequence[str]) -> list[str]:
        wanted = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
        for name in filter(None, wanted):
            if self._skills.find(name) is None:
                raise refusal("JOB_NO_SKILL", name=name)
        return list(filter(None, wanted))

    def _deliver(self, text: str, job: JobRow, maker: Maker) -> str:
        """Check the targets. Whoever is no admin has answers sent to the chat where they made the job."""
        origin = SessionKey.parse(job.origin).target if job.origin else None
        homes = {AccountKey(LOCAL): "", **home_channels(self._config)}
        try:
            named = recipients(text, origin=origin, homes=homes)
        except ValueError as error:
            raise JobError(str(error)) from None
        if any(target.chat.startswith("#") for target in named):
            raise refusal("JOB_BY_ID")
        if not maker.may_reach_all and any(target not in (origin, LOCAL_CHAT) for target in named):
            raise refusal("JOB_ONLY_HERE")
        return text

    def _scheduled(self, job: JobRow, text: str) -> JobRow:
        schedule = self.parse_schedule(text, job.timezone)
        slot = next_after(schedule, self._clock.now(), self._zone(job.timezone))
        is_waiting = job.state != JobState.PAUSED
        return replace(
            job,
            schedule=schedule.text,
            kind=schedule.kind.value,
            at=schedule.at,
            seconds=schedule.seconds,
            is_relative=int(schedule.is_relative),
            state=JobState.ACTIVE.value if is_waiting else job.state,
            next_slot=slot if is_waiting else None,
            next_at=slot if is_waiting else None,
        )

    # Acting

    async def pause(self, name: str, maker: Maker) -> JobRow:
        job = await self.find(name, maker)
        if job.state == JobState.DONE:
            raise refusal("JOB_IS_DONE", name=job.name)
        await self._db.write(jobs.pause, job.id, reason="paused by hand", now=self._clock.now())
        self._changed()
        return await self._again(job)

    async def resume(self, name: str, maker: Maker) -> JobRow:
        """Let a job run again, from its next due time on; what passed meanwhile does not count."""
        job = await self.find(name, maker)
        now = self._clock.now()
        slot = next_after(job.due, now, zone_of_job(job, self._config))
        if slot is None or (job.runs_left is not None and job.runs_left <= 0):
            raise refusal("JOB_IS_DONE", name=job.name)
        resumed = replace(
            job, state=JobState.ACTIVE.value, reason="", next_slot=slot, next_at=slot, failures=0, updated_at=now
        )
        await self._db.write(jobs.update, resumed)
        self._changed()
        return resumed

    async def run(self, name: str, maker: Maker, *, key: str = "") -> tuple[JobRow, str]:
        """Run a job now, beside its schedule; returns it and the id of the event. One ``key`` runs it once."""
        job = await self.find(name, maker)
        event_id = await self._db.write(_run_now, job, self._config, key=key, now=self._clock.now())
        self._wake(str(lane_of(job.id)))
        return job, event_id

    async def remove(self, name: str, maker: Maker) -> JobRow:
        job = await self.find(name, maker)
        await self._db.write(_remove, job.id, now=self._clock.now())
        self._changed()
        return job

    async def _again(self, job: JobRow) -> JobRow:
        return await self._db.read(jobs.get, job.id) or job

    # Telling

    def targets_of(self, job: JobRow) -> tuple[Target, ...]:
        return deliver_to(job, self._config)[0]

    def when(self, at: float | None, job: JobRow) -> str:
        """Format a time in the job's zone."""
        if at is None:
            return "-"
        return datetime.fromtimestamp(at, zone_of_job(job, self._config)).strftime("%Y-%m-%d %H:%M:%S %Z").strip()

    def when_here(self, at: float | None) -> str:
        """Format a time in the zone of the gateway."""
        form = "%Y-%m-%d %H:%M:%S %Z"
        return datetime.fromtimestamp(at, zone_of(self._config.timezone)).strftime(form).strip() if at else "-"

    def to_dict(self, job: JobRow) -> dict[str, Any]:
        return {
            "id": job.id,
            "name": job.name,
            "state": job.state,
            "reason": job.reason,
            "schedule": job.schedule,
            "timezone": job.timezone,
            "prompt": job.prompt,
            "script": job.script,
            "skills": list(filter(None, job.skills.split(","))),
            "model": job.model,
            "workdir": job.workdir,
            "no_agent": bool(job.no_agent),
            "repeat": job.runs_left,
            "deliver": job.deliver,
            "deliver_to": list(map(str, self.targets_of(job))),
            "catch_up": job.catch_up,
            "quiet": job.quiet,
            "person": job.person_id,
            "role": job.role,
            "failures": job.failures,
            "next_run_at": job.next_slot,
            "next_run": self.when(job.next_slot, job),
            "created_at": job.created_at,
        }

    def slot_to_dict(self, job: JobRow, slot: JobSlot) -> dict[str, Any]:
        return {
            "slot": slot.slot,
            "due": self.when(slot.slot, job),
            "until": slot.last_slot if slot.slots != 1 else None,
            "count": slot.slots or None,
            "state": slot.state,
            "reason": slot.reason,
            "outcome": slot.outcome,
            "error": slot.error,
            "delivery": slot.delivery,
            "event_id": slot.event_id,
            "turn_id": slot.turn_id,
            "ended_at": slot.ended_at,
        }


_CHECKED = ("name", "script", "model", "workdir", "catch_up", "quiet", "timezone")


def _repeat(value: Any) -> int | None:
    if value in (None, "", 0):
        return None
    if isinstance(value, bool) or not str(value).isdigit() or not 1 <= int(value) <= MAX_REPEATS:
        raise refusal("JOB_REPEAT", most=MAX_REPEATS)
    return int(value)


def _grants(subjects: Sequence[str] | str, job: JobRow, maker: Maker, now: float) -> list[Grant]:
    """Make the grants that a job carries. Only who may allow something on the host can give a grant for it."""
    wanted = [subjects] if isinstance(subjects, str) else list(subjects)
    if len(wanted) > MAX_GRANTS:
        raise refusal("JOB_GRANTS_MANY", most=MAX_GRANTS)
    touches_host = may(maker.role, Action.APPROVE_HOST)
    return [
        Grant(
            id=new_id("gr"),
            person_id=job.person_id,
            scope="session",
            subject=storable(subject).strip(),
            session_id=f"{JOB_GRANTS}{job.id}",
            touches_host=int(touches_host),
            granted_by=maker.person_id,
            granted_at=now,
            reason=f"given to the job {job.name}",
            revoked_at=None,
        )
        for subject in wanted
        if subject.strip()
    ]


def _insert(tx: Tx, job: JobRow, given: Sequence[Grant], *, is_limited: bool) -> JobRow:
    known = jobs.get(tx, job.id)
    if known is not None:
        return known
    if is_limited and jobs.count(tx, person_id=job.person_id) >= MAX_JOBS:
        raise refusal("JOB_MANY", most=MAX_JOBS)
    jobs.insert(tx, job)
    for grant in given:
        grants.give(tx, grant)
    return job


def _update(tx: Tx, job_id: str, differs: Mapping[str, Any], given: Sequence[Grant]) -> JobRow | None:
    """Change these columns of the row as it is now: it may have run meanwhile."""
    job = jobs.get(tx, job_id)
    if job is None:
        raise NoSuchJobError(LocalizedText(lambda words: words.JOB_UNKNOWN.format(name=job_id)))
    job = replace(job, **differs)
    jobs.update(tx, job)
    for grant in given:
        grants.give(tx, grant)
    return job


def _remove(tx: Tx, job_id: str, *, now: float) -> None:
    grants.revoke_session(tx, f"{JOB_GRANTS}{job_id}", now=now)
    jobs.remove(tx, job_id, lane=str(lane_of(job_id)), now=now)


def _run_now(tx: Tx, job: JobRow, config: Config, *, key: str, now: float) -> str:
    """Fire a slot of its own, a fraction of a second beside those of the schedule."""
    slot = round(now, 3)
    if key:
        known = job_slots.event_of_run(tx, job.id, key)
        if known:
            return known
    while slot.is_integer() or job_slots.slot_of(tx, job.id, slot) is not None:
        slot = round(slot + 0.001, 3)
    fire(tx, job, config, slot, SlotState.RAN, now=now, reason=key or "run by hand")
    found = job_slots.slot_of(tx, job.id, slot)
    return found.event_id if found is not None else ""


def _history(tx: Tx, job_id: str, limit: int) -> list[JobSlot]:
    found = []
    for slot in job_slots.slots_of(tx, job_id, limit=limit):
        if slot.delivery == SlotDelivery.WAITING:
            slot = replace(slot, delivery=job_slots.delivery_of(tx, slot.turn_id)[0].value)
        found.append(slot)
    return found
