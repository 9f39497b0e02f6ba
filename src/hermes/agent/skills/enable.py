"""Enable and disable skills in the configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hermes.agent.skills.parse import Skill, SkillError, same_name
from hermes.config import Loaded
from hermes.config.edit import set_list


def switch(loaded: Loaded, skill: Skill, *, on: bool, platform: str = "") -> str:
    """Write it into `config.yaml`; returns what is so now, as a sentence. Blocks."""
    settings = loaded.config.skills
    if platform and platform not in loaded.config.platforms:
        raise SkillError(f"There is no platform {platform!r}. Known: {', '.join(sorted(loaded.config.platforms))}.")
    names = settings.platform_disabled.get(platform, ()) if platform else settings.disabled
    mine = {same_name(skill.name), same_name(skill.address)}
    others = [name for name in names if same_name(name) not in mine]
    where = f" for {platform}" if platform else ""
    if on and len(others) == len(names):
        still = _still_off(loaded, mine, platform)
        return still or f"{skill.name} was on{where} already."
    key = f"skills.platform_disabled.{platform}" if platform else "skills.disabled"
    set_list(loaded, key, others if on else [*others, skill.name])
    still = _still_off(loaded, mine, platform) if on else ""
    return still or f"{skill.name} is {'on' if on else 'off'}{where}."


def _still_off(loaded: Loaded, mine: set[str], platform: str) -> str:
    """Return what else keeps a skill off after its line was taken out here."""
    settings = loaded.config.skills
    if platform and any(same_name(name) in mine for name in settings.disabled):
        return "It is switched off everywhere, so this changes nothing yet: enable it without naming a platform."
    return ""


class SkillSwitches:
    """For the running gateway: the configuration as it is, and a way to read it again."""

    def __init__(self, loaded: Callable[[], Loaded], read_again: Callable[[], Awaitable[None]]) -> None:
        self._loaded = loaded
        self._read_again = read_again

    async def switch(self, skill: Skill, *, on: bool, platform: str = "") -> str:
        answer = await asyncio.to_thread(switch, self._loaded(), skill, on=on, platform=platform)
        await self._read_again()
        return answer
