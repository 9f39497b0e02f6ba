"""Tell the model about jobs: what the tools of jobs answer, and the skills that a run reads first."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.agent.skills.library import SkillLibrary
from hermes.agent.skills.parse import SkillError
from hermes.agent.skills.render import view
from hermes.agent.toolkit.context import ToolContext
from hermes.core.keys import LOCAL, AccountKey
from hermes.core.roles import PersonRole, at_least
from hermes.core.targets.names import LOCAL as LOCAL_CHAT
from hermes.core.targets.names import recipients
from hermes.services.cron.jobs import Jobs, Maker
from hermes.services.outbound.alerts import home_channels, home_targets
from hermes.store.entries.jobs import JobRow


def skill_texts(library: SkillLibrary, names: Sequence[str]) -> str:
    """Return the skills of a run as the model reads them. One that is gone is named. Blocks."""
    texts = []
    for name in names:
        skill = library.find(name)
        try:
            texts.append(view(library, skill) if skill is not None else f"[The skill {name} is not there any more.]")
        except SkillError as error:
            texts.append(f"[{error}]")
    return "\n\n".join(texts)


class ToolJobs(Jobs):
    """Jobs, as the tools use them."""

    async def create_for_tool(self, ctx: ToolContext, fields: Mapping[str, Any]) -> str:
        """Make a job. Its id follows from the call: a call that is repeated after a crash makes no second one."""
        job_id = f"job_{hashlib.sha256(ctx.call_id.encode()).hexdigest()[:13]}" if ctx.call_id else ""
        job = await self.create(fields, _maker(ctx), job_id=job_id)
        return f"Scheduled. {self._line(job)}"

    async def list_for_tool(self, ctx: ToolContext) -> str:
        found = [job for job in await self.listed(_maker(ctx)) if job.person_id == ctx.person_id]
        return "\n".join(map(self._line, found)) or "There are no jobs."

    async def change_for_tool(self, ctx: ToolContext, name: str, fields: Mapping[str, Any]) -> str:
        return f"Changed. {self._line(await self.change(name, fields, _maker(ctx)))}"

    async def act_for_tool(self, ctx: ToolContext, name: str, action: str) -> str:
        match action:
            case "pause":
                return f"Paused. {self._line(await self.pause(name, _maker(ctx)))}"
            case "resume":
                return f"Resumed. {self._line(await self.resume(name, _maker(ctx)))}"
            case _:
                return f"Removed: {(await self.remove(name, _maker(ctx))).name}"

    def foreign_targets(self, ctx: ToolContext, deliver: str) -> list[str]:
        """Return the targets that are neither the chat itself nor a home channel."""
        if not at_least(ctx.role, PersonRole.ADMIN):
            return []  # making the job says that it goes to this chat alone
        origin, homes = ctx.origin.target, home_targets(self._config)
        accounts = {AccountKey(LOCAL): "", **home_channels(self._config)}
        try:
            named = recipients(deliver, origin=origin, homes=accounts)
        except ValueError:
            return []  # making the job says what is wrong
        return [str(target) for target in named if target not in (origin, LOCAL_CHAT, *homes)]

    def _line(self, job: JobRow) -> str:
        targets = ", ".join(map(str, self.targets_of(job))) or job.deliver
        return (
            f"{job.id} {job.name!r}: {job.schedule}, {job.state}, next {self.when(job.next_slot, job)}, "
            f"delivered to {targets}"
        )


def _maker(ctx: ToolContext) -> Maker:
    return Maker(ctx.person_id, ctx.role, str(ctx.origin))
