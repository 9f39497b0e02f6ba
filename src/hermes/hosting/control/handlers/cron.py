"""Answer calls about jobs: list, make, change, run, remove, history, status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.core.errors import GatewayError
from hermes.core.roles import PersonRole
from hermes.hosting.control.server import Handler, Reply
from hermes.services.gateway import Gateway
from hermes.services.outbound.alerts import home_targets
from hermes.store import people

if TYPE_CHECKING:
    from hermes.services.cron.jobs import Maker

OWNER = "local"


class CronVerbs:
    """Jobs on the control socket. Callers are at the machine, so they are the owner."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def mapping(self) -> Mapping[str, Handler]:
        return {
            "cron.list": self.listed,
            "cron.create": self.create,
            "cron.edit": self.edit,
            "cron.pause": self.pause,
            "cron.resume": self.resume,
            "cron.run": self.run,
            "cron.remove": self.remove,
            "cron.history": self.history,
            "cron.status": self.status,
        }

    async def _maker(self) -> Maker:
        from hermes.services.cron.jobs import Maker  # loaded when the first job is talked about

        owner = await self._gateway.db.write(people.ensure_local_owner, now=self._gateway.clock.now())
        return Maker(owner.id, PersonRole.OWNER)

    async def listed(self, _args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        jobs = self._gateway.jobs()
        return [jobs.to_dict(job) for job in await jobs.listed(await self._maker())]

    async def create(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{job: {…}, key}``: one key makes one job. The answer says where the job's answers will go."""
        jobs, fields = self._gateway.jobs(), args.get("job")
        if not isinstance(fields, dict):
            raise GatewayError("The job is missing.")
        key = str(args.get("key") or "")
        job = await jobs.create(fields, await self._maker(), job_id=f"job_{key}" if key else "")
        homes = [] if fields.get("deliver") else [str(target) for target in home_targets(self._gateway.config)]
        return {**jobs.to_dict(job), "home_channels": homes}

    async def edit(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        jobs, fields = self._gateway.jobs(), args.get("job")
        if not isinstance(fields, dict) or not fields:
            raise GatewayError("There is nothing to change.")
        return jobs.to_dict(await jobs.change(_name(args), fields, await self._maker()))

    async def pause(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        jobs = self._gateway.jobs()
        return jobs.to_dict(await jobs.pause(_name(args), await self._maker()))

    async def resume(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        jobs = self._gateway.jobs()
        return jobs.to_dict(await jobs.resume(_name(args), await self._maker()))

    async def run(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        jobs, key = self._gateway.jobs(), str(args.get("key") or "")
        job, event_id = await jobs.run(_name(args), await self._maker(), key=f"run by {key}" if key else "")
        return {**jobs.to_dict(job), "event_id": event_id}

    async def remove(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        jobs = self._gateway.jobs()
        return jobs.to_dict(await jobs.remove(_name(args), await self._maker()))

    async def history(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        jobs = self._gateway.jobs()
        job = await jobs.find(_name(args), await self._maker())
        slots = await jobs.history(job, limit=int(args.get("limit") or 20))
        return {"job": jobs.to_dict(job), "slots": [jobs.slot_to_dict(job, slot) for slot in slots]}

    async def status(self, _args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        jobs = self._gateway.jobs()
        status = await jobs.status()
        return {**status, "next": jobs.when_here(status["next_at"]), "is_enabled": self._gateway.config.cron.enabled}


def _name(args: Mapping[str, Any]) -> str:
    name = str(args.get("name") or "").strip()
    if not name:
        raise GatewayError("The job is missing. Look: hermes cron list")
    return name
