"""`/v1/responses/{id}`: responses that were stored, read again, streamed again, deleted or cancelled."""

from __future__ import annotations

import asyncio

from aiohttp import web

from hermes.core.roles import Action, may
from hermes.core.text import storable
from hermes.servers.api import results
from hermes.servers.api.context import CALLER, SESSION_ID_HEADER, SessionNames
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.api.idempotency import Attempts
from hermes.servers.api.responses import shapes
from hermes.servers.api.responses.answers import Answering, ResponseAnswers, with_headers
from hermes.servers.api.responses.finalizer import ResponseFinalizer
from hermes.servers.api.responses.places import is_visible
from hermes.servers.app import json_response
from hermes.services.gateway import Gateway
from hermes.services.requests.requests import RequestHandle
from hermes.store import codec, inbox
from hermes.store.api import pictures
from hermes.store.api.responses import StoredResponse
from hermes.store.ids import new_id

TRIES_TO_STOP = 20
STOP_PAUSE_SECONDS = 0.05


class StoredResponseRoutes:
    def __init__(
        self, gateway: Gateway, finalizer: ResponseFinalizer, answers: ResponseAnswers, attempts: Attempts
    ) -> None:
        self._gateway = gateway
        self._requests = gateway.requests
        self._finalizer = finalizer
        self._answers = answers
        self._attempts = attempts

    async def show(self, request: web.Request) -> web.StreamResponse:
        found = await self._find(request, Action.READ_ALL)
        if request.query.get("stream") not in ("true", "1"):
            stored = await self._finalizer.settled(found)
            return with_headers(stored.body, {SESSION_ID_HEADER: stored.session_id})
        starting_after = _starting_after(request)
        async with self._requests.join(found.event_id) as joined:
            stored = await self._finalizer.settled(found)
            handle, state = joined or (RequestHandle(found.event_id, ""), None)
            names = SessionNames(stored.session_id, is_named=True)
            with (
                self._finalizer.holding(new_id("resp"), found.event_id) as hold,
                self._attempts.attempt(request, f"read:{stored.id}") as attempt,
            ):
                is_background = bool(stored.body["background"])
                answering = Answering(names, stored.body, hold, handle, attempt, is_background, state=state)
                return await self._answers.replay(request, answering, starting_after)

    async def show_input(self, request: web.Request) -> web.Response:
        from hermes.servers.api.responses.paging import page_of  # few clients list: a start needs it not

        limit, order, after = page_of(request)
        stored = await self._find(request, Action.READ_ALL)
        row = await self._gateway.db.read(inbox.get, stored.event_id)
        messages = codec.load_request(row.body).messages[-stored.inputs :] if row is not None else ()
        if names := pictures.names_in(messages):
            messages = tuple(pictures.put_back(messages, await self._gateway.db.read(pictures.load, names)))
        items = shapes.input_items(messages, stored.id)
        items = items if order == "asc" else items[::-1]
        if after:
            ids = [item["id"] for item in items]
            items = items[ids.index(after) + 1 :] if after in ids else []
        return json_response(shapes.listed(items[:limit], has_more=len(items) > limit))

    async def delete(self, request: web.Request) -> web.Response:
        """The response goes; the session it belongs to, and a turn that still runs in it, do not."""
        stored = await self._find(request, Action.CHANGE_ALL)
        if not may(request[CALLER].role, Action.CHANGE_OWN):
            message = "The role of this key may not delete. Ask with one of a user, an admin or the owner."
            raise ApiError(403, message, code="role_not_enough", kind="permission_error")
        await self._finalizer.delete(stored.id)
        return json_response(shapes.deleted(stored.id))

    async def cancel(self, request: web.Request) -> web.Response:
        """Stop the turn of a response. One that has ended stays as it is."""
        stored = await self._find(request, Action.CHANGE_ALL)
        for _ in range(TRIES_TO_STOP):
            if not stored.is_open:
                break
            state = await self._requests.stop(stored.event_id)
            if state is None or state.status in results.FINAL_STATUS:
                stored = await self._finalizer.settled(await self._find(request, Action.CHANGE_ALL))
            if stored.is_open:
                await asyncio.sleep(STOP_PAUSE_SECONDS)
        return with_headers(stored.body, {SESSION_ID_HEADER: stored.session_id})

    async def _find(self, request: web.Request, action: Action) -> StoredResponse:
        """The response that the path names. To others than who asked for it, it does not exist."""
        response_id = storable(request.match_info["id"])
        stored = await self._finalizer.load(response_id)
        if stored is None or not is_visible(stored, request[CALLER], action):
            raise not_found(f"Response with id {response_id[:80]!r} not found.", code="response_not_found")
        return stored


def _starting_after(request: web.Request) -> int:
    """The last sequence number that the client has seen; -1 for none."""
    given = request.query.get("starting_after", "")
    if not given:
        return -1
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        message = "starting_after is the sequence_number of the last event that was read."
        raise bad_request(message, code="invalid_value", param="starting_after")
    return int(given)
