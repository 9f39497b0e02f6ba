"""schedule_cronjob, list_cronjobs, change_cronjob, cancel_cronjob: do something later or again and again."""

from __future__ import annotations

from typing import Any, Literal

from hermes.agent.entries import JobTools, Scheduling
from hermes.agent.toolkit.context import ApprovalNeed, ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.core.errors import GatewayError, ToolError
from hermes.core.text import visible

SHOWN = 300
WITHIN_A_JOB = "A job cannot schedule or change jobs. Say in your answer what should be scheduled."


def _may_deliver(ctx: ToolContext, deliver: str = "", prompt: str = "", **_: Any) -> ApprovalNeed | None:
    """To the chat where it is made and to home channels without asking; to any other chat only when approved."""
    others = _jobs(ctx).foreign_targets(ctx, deliver) if deliver else []
    if not others:
        return None
    shown = visible(prompt[:SHOWN]) + ("…" if len(prompt) > SHOWN else "")
    subject = f"schedule_cronjob:{','.join(sorted(others))}"
    return ApprovalNeed(ctx.words.ASK_SCHEDULE.format(targets=", ".join(others), text=shown), subject=subject)


@tool(toolset="schedule", approval=_may_deliver, is_at_hand=True)
async def schedule_cronjob(
    ctx: ToolContext,
    prompt: str,
    schedule: str,
    deliver: str = "origin",
    name: str = "",
    repeat: int = 0,
    no_agent: bool = False,
    timezone: str = "",
    script: str = "",
    skills: list[str] | None = None,
    catch_up: Literal["run_once", "run_all", "skip"] = "run_once",
) -> str:
    """Schedule work for later: a reminder, or a task that you do again and again on your own.

    `prompt` is what you are asked when the time comes; you then see nothing of this conversation, so write down
    everything that is needed. For a plain reminder set `no_agent`: then `prompt` is sent as it stands.
    `schedule`: 30m, 2h, 1d (once, so long from now); every 30m, every 2h; five-field cron such as 0 8 * * 1-5; an ISO
    time such as 2026-03-01T09:00 (once); or tomorrow 9:00, monday at 8, weekdays at 8, every day at 7:30, every monday
    at 9, monthly on the 1st at 9. Times are those of `timezone`, else of the gateway.
    `deliver`: origin (this chat), local, all, a platform (its home channel) or platform:chat. `repeat`: how many times
    it runs (0: no limit). `script` names an existing script whose output you read first. `catch_up` says what happens
    with times at which the gateway was down.
    """
    fields: dict[str, Any] = {"prompt": prompt, "schedule": schedule, "deliver": deliver, "catch_up": catch_up}
    optional = {"name": name, "timezone": timezone, "script": script, "skills": skills, "no_agent": no_agent}
    fields |= {key: value for key, value in (*optional.items(), ("repeat", repeat)) if value}
    try:
        return await _jobs(ctx).create_for_tool(ctx, fields)
    except GatewayError as error:
        raise ToolError(str(error)) from None


@tool(toolset="schedule")
async def list_cronjobs(ctx: ToolContext) -> str:
    """List the scheduled jobs of the person: id, name, schedule, next time, state."""
    return await _jobs(ctx).list_for_tool(ctx)


@tool(toolset="schedule", approval=_may_deliver)
async def change_cronjob(
    ctx: ToolContext, job: str, prompt: str = "", schedule: str = "", deliver: str = "", name: str = "", repeat: int = 0
) -> str:
    """Change a scheduled job, by its id or name. What is left empty stays; `schedule` as in schedule_cronjob."""
    given = {"prompt": prompt, "schedule": schedule, "deliver": deliver, "name": name, "repeat": repeat}
    fields = {key: value for key, value in given.items() if value}
    if not fields:
        raise ToolError("Nothing to change: give a prompt, schedule, deliver, name or repeat.")
    try:
        return await _jobs(ctx).change_for_tool(ctx, job, fields)
    except GatewayError as error:
        raise ToolError(str(error)) from None


@tool(toolset="schedule")
async def cancel_cronjob(ctx: ToolContext, job: str, action: Literal["remove", "pause", "resume"] = "remove") -> str:
    """Remove, pause or resume a scheduled job, by its id or name."""
    try:
        return await _jobs(ctx).act_for_tool(ctx, job, action)
    except GatewayError as error:
        raise ToolError(str(error)) from None


def _jobs(ctx: ToolContext) -> JobTools:
    if ctx.session_key.platform == "cron":
        raise ToolError(WITHIN_A_JOB)
    return ctx.parts.get(Scheduling).jobs()
