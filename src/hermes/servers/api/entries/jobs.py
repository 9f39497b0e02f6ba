"""`/api/jobs`: make, list, change, run and remove jobs. Each key sees its own; admins and the owner see all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from hermes.core.errors import GatewayError
from hermes.core.messages import Json
from hermes.servers.api import parse
from hermes.servers.api.bodies import JobBody, JobChangeBody, decode
from hermes.servers.api.context import CALLER, ApiParts
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.app import json_response
from hermes.store import people

if TYPE_CHECKING:
    from hermes.services.cron.jobs import Jobs, Maker
    from hermes.store.entries.jobs import JobRow

MAX_SLOTS = 200


class JobRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway

    async def listed(self, request: web.Request) -> web.Response:
        jobs, maker = await self._entered(request)
        return json_response({"object": "list", "data": [_job(jobs, job) for job in await jobs.listed(maker)]})

    async def create(self, request: web.Request) -> web.Response:
        jobs, maker = await self._entered(request)
        fields = _job_fields(decode(await parse.read_body(request), JobBody))
        try:
            return json_response(_job(jobs, await jobs.create(fields, maker)), status=201)
        except GatewayError as error:
            raise bad_request(str(error), code="invalid_job") from None

    async def read(self, request: web.Request) -> web.Response:
        jobs, maker = await self._entered(request)
        return json_response(_job(jobs, await self._found(jobs, maker, request)))

    async def change(self, request: web.Request) -> web.Response:
        jobs, maker = await self._entered(request)
        fields = _job_fields(decode(await parse.read_body(request), JobChangeBody))
        job = await self._found(jobs, maker, request)
        try:
            return json_response(_job(jobs, await jobs.change(job.id, fields, maker)))
        except GatewayError as error:
            raise bad_request(str(error), code="invalid_job") from None

    async def remove(self, request: web.Request) -> web.Response:
        jobs, maker = await self._entered(request)
        job = await self._found(jobs, maker, request)
        await jobs.remove(job.id, maker)
        return json_response({"id": job.id, "object": "job", "deleted": True})

    async def history(self, request: web.Request) -> web.Response:
        jobs, maker = await self._entered(request)
        job = await self._found(jobs, maker, request)
        slots = await jobs.history(job, limit=MAX_SLOTS)
        return json_response({"object": "list", "data": [jobs.slot_to_dict(job, slot) for slot in slots]})

    async def pause(self, request: web.Request) -> web.Response:
        return await self._acted(request, "pause")

    async def resume(self, request: web.Request) -> web.Response:
        return await self._acted(request, "resume")

    async def run(self, request: web.Request) -> web.Response:
        jobs, maker = await self._entered(request)
        job, event_id = await jobs.run((await self._found(jobs, maker, request)).id, maker)
        return json_response({**_job(jobs, job), "event_id": event_id}, status=202)

    async def _acted(self, request: web.Request, action: str) -> web.Response:
        jobs, maker = await self._entered(request)
        job = await self._found(jobs, maker, request)
        try:
            changed = await (jobs.pause if action == "pause" else jobs.resume)(job.id, maker)
        except GatewayError as error:
            raise ApiError(409, str(error), code="job_is_done") from None
        return json_response(_job(jobs, changed))

    async def _entered(self, request: web.Request) -> tuple[Jobs, Maker]:
        """Return the jobs, and the person of the key."""
        from hermes.services.cron.jobs import Maker

        caller = request[CALLER]
        await self._gateway.requests.meet(caller.sender_id, caller.role)
        person = await self._gateway.db.read(people.find, "api", caller.sender_id)
        if person is None:
            raise ApiError(403, "This key belongs to nobody.", code="role_not_enough", kind="permission_error")
        return self._gateway.jobs(), Maker(person.id, caller.role)

    async def _found(self, jobs: Jobs, maker: Maker, request: web.Request) -> JobRow:
        try:
            return await jobs.find(request.match_info["job_id"], maker)
        except GatewayError as error:
            raise not_found(str(error), code="job_not_found") from None


def _job_fields(body: JobBody | JobChangeBody) -> dict[str, Any]:
    given: dict[str, Any] = msgspec.structs.asdict(body)
    return {name: value for name, value in given.items() if value is not None}


def _job(jobs: Jobs, job: JobRow) -> Json:
    return {"object": "job", **jobs.to_dict(job)}
