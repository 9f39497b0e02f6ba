"""/skills: list and show skills; admins also install and switch them."""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path

from hermes.agent.skills.enable import SkillSwitches
from hermes.agent.skills.library import SkillLibrary
from hermes.agent.skills.parse import Skill, same_name
from hermes.agent.skills.render import listed, missing_lines, view
from hermes.core.i18n.en import Texts
from hermes.core.roles import PersonRole, at_least
from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, command

LINE = 90
FOR_ADMINS = frozenset({"enable", "disable", "install"})
USAGE = "/skills [show NAME]"


@command("skills", summary="Which skills I can load", usage=USAGE)
async def skills(ctx: CommandContext) -> str:
    library = ctx.parts.get(SkillLibrary)
    await asyncio.to_thread(library.refresh)
    verb, _, rest = ctx.rest.partition(" ")
    verb, rest = verb.lower(), rest.strip()
    if verb in FOR_ADMINS and not at_least(ctx.role, PersonRole.ADMIN):
        return ctx.words.NOT_ALLOWED.format(
            name=f"skills {verb}", role=ctx.words.role(PersonRole.ADMIN), mine=ctx.words.role(ctx.role)
        )
    match verb:
        case "" | "list":
            return _list(ctx, library)
        case "show" if rest:
            skill = library.get(rest, ctx.session_key.platform)
            return await asyncio.to_thread(view, library, skill)
        case "enable" | "disable" if rest:
            name, _, platform = rest.partition(" ")
            switches = ctx.parts.get(SkillSwitches)
            return await switches.switch(library.get(name), on=verb == "enable", platform=platform.strip())
        case "install" if rest:
            return await _install(ctx, library, rest)
        case _:
            return ctx.words.SKILLS_HELP


def _list(ctx: CommandContext, library: SkillLibrary) -> str:
    platform = ctx.session_key.platform
    text = listed(library.offered(platform), LINE) or ctx.words.SKILLS_NONE
    off = [skill.name for skill in library.all() if library.why_off(skill, platform)]
    lines = [text, ctx.words.SKILLS_HOW]
    if at_least(ctx.role, PersonRole.ADMIN):
        lines += [ctx.words.SKILLS_OFF.format(names=", ".join(off))] if off else []
        lines += [f"! {one_line(trouble, 200)}" for trouble in library.troubles()[:5]]
    return "\n".join(lines)


async def _install(ctx: CommandContext, library: SkillLibrary, rest: str) -> str:
    """``SOURCE [--yes] [--replace]``, as in the command line. What was found is shown before anything is installed."""
    from hermes.agent.skills.install import install  # it knows archives and git, and is seldom needed

    try:
        typed = shlex.split(rest)
    except ValueError:
        return ctx.words.SKILLS_QUOTE
    flags = {word for word in typed if word.startswith("--")}
    if len(typed) - len(flags) != 1 or not flags <= {"--yes", "--replace"}:
        return ctx.words.SKILLS_SOURCE
    candidate = await asyncio.to_thread(
        install,
        next(word for word in typed if word not in flags),
        library.folder,
        environ=os.environ,
        cwd=Path.home(),
        now=ctx.services.clock.now(),
        is_agreed="--yes" in flags,
        replaces="--replace" in flags,
        taken=frozenset(same_name(known) for known in ctx.commands),
    )
    await asyncio.to_thread(library.refresh)
    return await asyncio.to_thread(_describe_installed, ctx.words, library, candidate.skill)


def _describe_installed(words: Texts, library: SkillLibrary, installed: Skill) -> str:
    skill = library.get(installed.name)
    lines = [
        words.SKILL_INSTALLED.format(name=skill.name, about=one_line(skill.description, 200)),
        words.SKILL_LOAD.format(name=skill.name),
    ]
    return "\n".join([*lines, *missing_lines(library, skill)])
