"""/background and /agents: start work beside the chat, list and stop what runs."""

from __future__ import annotations

from hermes.core.keys import SessionKey
from hermes.core.lane import DOORS
from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, command
from hermes.services.requests.background import MAX_RUNNING, Agent, Background
from hermes.services.requests.subtasks import PLATFORM

SHOWN = 60


@command("background", summary="Work on something in the background", usage="/background TEXT")
async def background(ctx: CommandContext) -> str:
    if not ctx.rest:
        return ctx.words.BACKGROUND_USAGE
    work = ctx.parts.get(Background)
    key = f"bg_{ctx.event_id}"
    others = [
        agent
        for agent in await work.working_for(ctx.person.id)
        if agent.is_background and SessionKey.parse(agent.lane).chat != key
    ]
    if len(others) >= MAX_RUNNING:
        return ctx.words.BACKGROUND_FULL.format(count=len(others))
    await work.begin(ctx.rest, key=key, lane=ctx.lane, person_id=ctx.person.id, role=ctx.role)
    return ctx.words.BACKGROUND_BEGUN.format(task=one_line(ctx.rest, SHOWN))


@command("agents", summary="What runs for you now", usage="/agents [stop NAME|all]")
async def agents(ctx: CommandContext) -> str:
    work = ctx.parts.get(Background)
    running = await work.working_for(ctx.person.id)
    verb, _, name = ctx.rest.partition(" ")
    if verb.lower() == "stop":
        return await _stop(ctx, work, running, name.strip().strip("`").lower())
    if not running:
        return ctx.words.AGENTS_NONE
    lines = "\n".join(_line(ctx, agent) for agent in running)
    return ctx.words.AGENTS.format(lines=lines, example=running[-1].name)


async def _stop(ctx: CommandContext, work: Background, running: list[Agent], name: str) -> str:
    """Without a name, the only one in the background is meant."""
    in_background = [agent for agent in running if agent.is_background]
    if name == "all":
        chosen = running
    elif name:
        chosen = [agent for agent in running if agent.name == name]
    else:
        chosen = in_background if len(in_background) == 1 else []
    stopped = [agent for agent in chosen if await work.stop(agent)]
    if not stopped:
        return ctx.words.AGENT_UNKNOWN
    return ctx.words.AGENT_STOPPED.format(
        tasks="; ".join(one_line(agent.task, SHOWN) or agent.name for agent in stopped)
    )


def _line(ctx: CommandContext, agent: Agent) -> str:
    form = ctx.words.AGENT_LINE_WAITS if agent.is_waiting else ctx.words.AGENT_LINE
    return form.format(
        name=agent.name,
        where=_where(ctx, agent),
        span=ctx.words.span(ctx.services.clock.now() - agent.since),
        task=one_line(agent.task, SHOWN),
    )


def _where(ctx: CommandContext, agent: Agent) -> str:
    words, platform = ctx.words, SessionKey.parse(agent.lane).platform
    if agent.is_background:
        return words.AGENT_IN_BACKGROUND
    if platform in DOORS:
        return words.AGENT_HANDED_ON if platform == PLATFORM else words.AGENT_BY_API
    return words.AGENT_HERE if agent.lane == ctx.lane else words.AGENT_ELSEWHERE
