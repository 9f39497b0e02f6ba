"""`/api/kanban`: the board over HTTP. A key that may not see everything sees the tasks that it made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from hermes.agent.kanban import Actor, BoardError, event_to_dict, task_to_dict
from hermes.core.entries.kanban import AGENT, DEFAULT_BOARD, TaskState
from hermes.servers.api import parse
from hermes.servers.api.bodies import NewTaskBody, TaskChangesBody, TaskCommentBody, decode
from hermes.servers.api.context import CALLER, ApiParts, Caller
from hermes.servers.api.errors import ApiError, bad_request
from hermes.servers.app import json_response
from hermes.store import people
from hermes.store.api.api_keys import PLATFORM
from hermes.store.kanban.tasks import NewTask

MAX_LISTED = 500


class KanbanRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway
        self._board = parts.gateway.board()
        self._dispatch = parts.gateway.dispatch()

    async def listed(self, request: web.Request) -> web.Response:
        """``?board=&state=&assignee=&limit=&offset=``."""
        query = request.query
        states = tuple(_state(word) for word in query.getall("state", []))
        limit, offset = (_count(query, name) for name in ("limit", "offset"))
        try:
            found = await self._board.tasks(
                _actor(request[CALLER]),
                query.get("board", DEFAULT_BOARD),
                states=states,
                assignee=query.get("assignee", ""),
                limit=min(limit or MAX_LISTED, MAX_LISTED),
                offset=offset,
            )
        except BoardError as error:
            raise _refused(error) from None
        return json_response({"object": "list", "data": [task_to_dict(task) for task in found]})

    async def create(self, request: web.Request) -> web.Response:
        caller = request[CALLER]
        body = decode(await parse.read_body(request), NewTaskBody)
        await self._gateway.requests.meet(caller.sender_id, caller.role)
        actor = _actor(caller)
        for_agent = body.assignee == AGENT
        new = NewTask(
            body.title,
            body.body,
            body.board,
            priority=body.priority,
            assignee=body.assignee,
            made_by=actor.person_id,
            made_by_role=caller.role.value,
        )
        try:
            task = await self._board.make(actor, new, needs=tuple(body.needs), ready=for_agent)
        except BoardError as error:
            raise _refused(error) from None
        return json_response(task_to_dict(task), status=201)

    async def show(self, request: web.Request) -> web.Response:
        try:
            found = await self._board.show(_actor(request[CALLER]), _number(request))
        except BoardError as error:
            raise _refused(error) from None
        return json_response(found.to_dict())

    async def change(self, request: web.Request) -> web.Response:
        """Change fields; ``state`` moves the task."""
        number, actor = _number(request), _actor(request[CALLER])
        body = decode(await parse.read_body(request), TaskChangesBody)
        given = {"title": body.title, "body": body.body, "priority": body.priority, "rank": body.rank}
        changes: dict[str, object] = {name: value for name, value in given.items() if value is not None}
        if body.assignee is not None:
            changes["assignee"] = body.assignee
        try:
            if changes:
                await self._board.change(actor, number, changes)
            if body.state is not None:
                await self._board.move(actor, number, _state(body.state), body.reason or "")
            found = await self._board.show(actor, number)
        except BoardError as error:
            raise _refused(error) from None
        return json_response(found.to_dict())

    async def comment(self, request: web.Request) -> web.Response:
        number, actor = _number(request), _actor(request[CALLER])
        body = decode(await parse.read_body(request), TaskCommentBody)
        try:
            task = await self._board.comment(actor, number, body.text)
        except BoardError as error:
            raise _refused(error) from None
        return json_response(task_to_dict(task), status=201)

    async def events(self, request: web.Request) -> web.Response:
        """What happened after event ``?after=``: for whoever follows the board. Admins and the owner."""
        if not request[CALLER].sees_all:
            raise ApiError(403, "Only an admin or the owner follows the whole board.", code="role_not_enough")
        try:
            found = await self._board.events_after(_count(request.query, "after"), request.query.get("board", ""))
        except BoardError as error:
            raise _refused(error) from None
        return json_response({"object": "list", "data": [event_to_dict(event) for event in found]})

    async def stats(self, _request: web.Request) -> web.Response:
        status = await self._dispatch.status()
        try:
            counts = await self._board.counts()
        except BoardError as error:
            raise _refused(error) from None
        return json_response(
            {
                "object": "kanban.stats",
                "counts": {state.value: counts.get(state, 0) for state in TaskState},
                "dispatch": {
                    "activity": status.activity.value,
                    "running": status.running,
                    "ready": status.ready,
                    "reason": status.reason or None,
                },
            }
        )


def _actor(caller: Caller) -> Actor:
    return Actor(caller.label, people.first_id(PLATFORM, caller.sender_id), caller.role)


def _refused(error: BoardError) -> ApiError:
    text = str(error)
    if text.startswith("There is no task"):
        return ApiError(404, text, code="task_not_found", kind="invalid_request_error")
    if text.startswith("The board cannot be"):
        return ApiError(503, text, code="board_unavailable", kind="server_error", headers={"Retry-After": "5"})
    return bad_request(text, code="invalid_task")


def _number(request: web.Request) -> int:
    word = request.match_info["task"]
    if not word.isdecimal() or len(word) > 15:
        raise ApiError(404, f"There is no task {word!r}.", code="task_not_found", kind="invalid_request_error")
    return int(word)


def _state(word: str) -> TaskState:
    try:
        return TaskState(word)
    except ValueError:
        raise bad_request(f"state is one of {', '.join(TaskState)}.", code="invalid_state", param="state") from None


def _count(query: Mapping[str, Any], name: str) -> int:
    word = str(query.get(name, "0"))
    if not word.isdecimal() or len(word) > 15:
        raise bad_request(f"{name} is a whole number.", code="invalid_number", param=name)
    return int(word)
