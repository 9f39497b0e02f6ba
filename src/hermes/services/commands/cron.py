"""/cron: make, list, change and cancel jobs in any chat."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, command

if TYPE_CHECKING:
    from hermes.services.cron.jobs import Jobs, Maker
    from hermes.store.entries.job_slots import JobSlot
    from hermes.store.entries.jobs import JobRow

MAX_LISTED = 20
OPTIONS = {
    "--name": "name", "--deliver": "deliver", "--repeat": "repeat", "--tz": "timezone", "--timezone": "timezone",
    "--schedule": "schedule", "--prompt": "prompt", "--script": "script", "--skills": "skills", "--model": "model",
    "--catch-up": "catch_up", "--quiet": "quiet",
}  # fmt: skip


@command(
    "cron",
    summary="Do something later, or repeatedly",
    usage="/cron [add WHEN TEXT|show|edit|pause|resume|run|remove|history JOB|status]",
)
async def cron(ctx: CommandContext) -> str:
    from hermes.services.cron.jobs import Maker  # loaded when the first job is talked about

    jobs, maker = ctx.services.jobs(), Maker(ctx.person.id, ctx.role, ctx.lane)
    verb, _, rest = ctx.rest.partition(" ")
    rest = rest.strip()
    match verb.lower():
        case "" | "list":
            return await _list(ctx, jobs, maker)
        case "add" | "create":
            return await _add(ctx, jobs, maker, rest)
        case "status":
            return await _status(ctx, jobs)
        case "show" | "edit" | "pause" | "resume" | "run" | "remove" | "cancel" | "delete" | "history" if rest:
            return await _act(ctx, jobs, maker, verb.lower(), rest)
        case "help":
            return ctx.words.CRON_USAGE
    if jobs.split(ctx.rest) is not None:
        return await _add(ctx, jobs, maker, ctx.rest)
    return ctx.words.CRON_USAGE


async def _list(ctx: CommandContext, jobs: Jobs, maker: Maker) -> str:
    found = await jobs.listed(maker)
    if not found:
        return ctx.words.CRON_NONE
    lines = [_line(ctx, jobs, job) for job in found[:MAX_LISTED]]
    if len(found) > MAX_LISTED:
        lines.append(ctx.words.CRON_MORE.format(count=len(found) - MAX_LISTED))
    return ctx.words.CRON_LIST.format(lines="\n".join(lines))


def _line(ctx: CommandContext, jobs: Jobs, job: JobRow) -> str:
    form = ctx.words.CRON_LINE if job.next_slot is not None else ctx.words.CRON_LINE_OFF
    state = ctx.words.job_state(job.state)
    about = f"{state} ({job.reason})" if job.reason else state
    return form.format(id=job.id, name=job.name, schedule=job.schedule, next=jobs.when(job.next_slot, job), state=about)


async def _add(ctx: CommandContext, jobs: Jobs, maker: Maker, text: str) -> str:
    plain, fields = _options(text)
    if "schedule" not in fields:
        quoted = _quoted(plain)
        found = quoted or jobs.split(plain, str(fields.get("timezone", "")))
        if found is None:
            if not plain:
                return ctx.words.CRON_USAGE
            jobs.parse_schedule(" ".join(plain.split()[:3]))  # raises, with the nearest right ones
            return ctx.words.CRON_USAGE
        fields["schedule"], plain = found
    fields = {"prompt": plain, **fields}
    # One message makes one job, also when a crash lets the command run twice.
    job = await jobs.create(fields, maker, job_id=f"job_{ctx.event_id.rpartition('_')[2]}")
    return ctx.words.CRON_MADE.format(**_about(ctx, jobs, job))


def _about(ctx: CommandContext, jobs: Jobs, job: JobRow) -> dict[str, str]:
    here = ctx.session_key.target
    where = [ctx.words.CRON_HERE if target == here else str(target) for target in jobs.targets_of(job)]
    return {
        "id": job.id,
        "name": job.name,
        "schedule": job.schedule,
        "next": jobs.when(job.next_slot, job),
        "where": ", ".join(where) or job.deliver,
    }


async def _act(ctx: CommandContext, jobs: Jobs, maker: Maker, verb: str, rest: str) -> str:
    name, _, more = rest.partition(" ")
    words = ctx.words
    match verb:
        case "show":
            job = await jobs.find(rest, maker)
            about = f"→ {_about(ctx, jobs, job)['where']}"
            return "\n".join([_line(ctx, jobs, job), about, *([job.script] if job.script else []), job.prompt])
        case "edit":
            plain, fields = _options(more)
            if plain and "prompt" not in fields:
                fields["prompt"] = plain
            if not fields:
                return words.CRON_USAGE
            return words.CRON_CHANGED.format(**_about(ctx, jobs, await jobs.change(name, fields, maker)))
        case "pause":
            return words.CRON_PAUSED.format(**_about(ctx, jobs, await jobs.pause(rest, maker)))
        case "resume":
            return words.CRON_RESUMED.format(**_about(ctx, jobs, await jobs.resume(rest, maker)))
        case "run":
            job, _ = await jobs.run(rest, maker, key=f"run by {ctx.event_id}")
            return words.CRON_RUNS.format(name=job.name)
        case "history":
            job = await jobs.find(rest, maker)
            lines = [_slot_line(ctx, jobs, job, slot) for slot in await jobs.history(job, limit=10)]
            form = words.CRON_HISTORY if lines else words.CRON_NO_HISTORY
            return form.format(name=job.name, lines="\n".join(lines))
        case _:
            return words.CRON_REMOVED.format(name=(await jobs.remove(rest, maker)).name)


def _slot_line(ctx: CommandContext, jobs: Jobs, job: JobRow, slot: JobSlot) -> str:
    states = [ctx.words.job_state(each) for each in (slot.state, slot.outcome, slot.delivery) if each]
    many = f" ×{slot.slots}" if slot.slots > 1 else ""
    reason = slot.error or slot.reason
    about = f": {one_line(reason, 120)}" if reason else ""
    return f"{jobs.when(slot.slot, job)}{many} {', '.join(filter(None, states))}{about}"


async def _status(ctx: CommandContext, jobs: Jobs) -> str:
    status = await jobs.status()
    words = ctx.words
    if not status["is_running"]:
        return words.CRON_STATUS_OFF.format(reason=words.CRON_STATUS_STOPPED)
    counts = status["jobs"]
    text = words.CRON_STATUS_ON.format(
        active=counts.get("active", 0), paused=counts.get("paused", 0), next=jobs.when_here(status["next_at"])
    )
    overdue = words.CRON_OVERDUE.format(count=status["overdue"]) if status["overdue"] else ""
    return words.GAP.join(filter(None, (text, overdue)))


def _options(text: str) -> tuple[str, dict[str, Any]]:
    """Take ``--name value`` out of what was typed; returns the rest as it stands."""
    fields: dict[str, Any] = {}
    words = text.split(" ")
    rest: list[str] = []
    while words:
        word = words.pop(0)
        name, has_value, value = word.partition("=")
        if word == "--no-agent":
            fields["no_agent"] = True
        elif name in OPTIONS and (has_value or words):
            fields[OPTIONS[name]] = value if has_value else _value(words)
        else:
            rest.append(word)
    return " ".join(rest).strip(), fields


def _value(words: list[str]) -> str:
    """Take the next word, or as many as stand in quotes."""
    value = words.pop(0)
    while value[:1] in ("'", '"') and (len(value) == 1 or value[-1] != value[0]) and words:
        value += f" {words.pop(0)}"
    return value.strip("'\"") if value[:1] in ("'", '"') else value


def _quoted(plain: str) -> tuple[str, str] | None:
    """Split ``"every 2h" check the server``."""
    if plain[:1] not in ("'", '"', "“"):
        return None
    try:
        first = shlex.split(plain.replace("“", '"').replace("”", '"'))[0]
    except (ValueError, IndexError):
        return None
    return first, plain[len(first) + 2 :].strip()
