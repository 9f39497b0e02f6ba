"""The board on the control socket. Callers are at the machine, as its owner: tools were refused before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.agent.kanban import Actor, BoardError, event_to_dict, task_to_dict
from hermes.core.entries.kanban import DEFAULT_BOARD, TaskState, parse_task_number
from hermes.core.keys import LOCAL
from hermes.core.roles import PersonRole
from hermes.hosting.control.server import Handler, Reply
from hermes.services.gateway import Gateway
from hermes.store import people
from hermes.store.kanban.tasks import NewTask

NAME = "the command line"
FIELDS = ("title", "body", "priority", "assignee", "workdir", "limit_seconds", "max_attempts")


class KanbanVerbs:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._board = gateway.board()
        self._dispatch = gateway.dispatch()

    def mapping(self) -> Mapping[str, Handler]:
        return {
            "kanban.init": self.init,
            "kanban.create": self.create,
            "kanban.list": self.listed,
            "kanban.show": self.show,
            "kanban.move": self.move,
            "kanban.change": self.change,
            "kanban.comment": self.comment,
            "kanban.link": self.link,
            "kanban.need": self.need,
            "kanban.events": self.events,
            "kanban.stats": self.stats,
        }

    async def init(self, _args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """Make the board if there is none. Repeating it changes nothing."""
        existed = self._board.exists
        await self._board.db()
        return {"is_new": not existed, "counts": _counts(await self._board.counts())}

    async def create(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        await self._gateway.db.write(people.ensure_local_owner, now=self._gateway.clock.now())
        new = NewTask(
            str(args.get("title") or ""),
            str(args.get("body") or ""),
            str(args.get("board") or DEFAULT_BOARD),
            state=_state(args.get("state") or "todo"),
            priority=_whole(args.get("priority")),
            assignee=str(args.get("assignee") or ""),
            made_by=_ACTOR.person_id,
            made_by_role=PersonRole.OWNER.value,
            workdir=str(args.get("workdir") or ""),
            limit_seconds=_whole(args.get("limit_seconds")),
            max_attempts=_whole(args.get("max_attempts")),
            dedupe_key=f"cli:{args['key']}" if args.get("key") else None,
        )
        needs = tuple(_number(each) for each in args.get("needs") or ())
        return task_to_dict(await self._board.make(_ACTOR, new, needs=needs, ready=bool(args.get("ready"))))

    async def listed(self, args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        states = tuple(_state(state) for state in args.get("states") or ())
        found = await self._board.tasks(
            _ACTOR,
            str(args.get("board") or DEFAULT_BOARD),
            states=states,
            assignee=str(args.get("assignee") or ""),
            limit=_whole(args.get("limit")) or 200,
        )
        return [task_to_dict(task) for task in found]

    async def show(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        return (await self._board.show(_ACTOR, _number(args.get("task")))).to_dict()

    async def move(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{task, state, reason?}``."""
        state, reason = _state(args.get("state")), str(args.get("reason") or "")
        return task_to_dict(await self._board.move(_ACTOR, _number(args.get("task")), state, reason))

    async def change(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        changes = {name: args[name] for name in FIELDS if args.get(name) is not None}
        return task_to_dict(await self._board.change(_ACTOR, _number(args.get("task")), changes))

    async def comment(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        task = await self._board.comment(_ACTOR, _number(args.get("task")), str(args.get("text") or ""))
        return task_to_dict(task)

    async def link(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        number, url, title = _number(args.get("task")), str(args.get("url") or ""), str(args.get("title") or "")
        return task_to_dict(await self._board.link(_ACTOR, number, url, title))

    async def need(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{task, needs, remove?}``: the task waits for another."""
        number, needs = _number(args.get("task")), _number(args.get("needs"))
        return task_to_dict(await self._board.need(_ACTOR, number, needs, remove=bool(args.get("remove"))))

    async def events(self, args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        found = await self._board.events_after(_whole(args.get("after")), str(args.get("board") or ""))
        return [event_to_dict(event) for event in found]

    async def stats(self, _args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        status = await self._dispatch.status()
        try:
            counts = _counts(await self._board.counts())
        except BoardError:  # the status says why
            counts = {}
        return {
            "counts": counts,
            "dispatch": {
                "activity": status.activity.value,
                "running": status.running,
                "ready": status.ready,
                "reason": status.reason,
            },
        }


_ACTOR = Actor(NAME, people.first_id(LOCAL, LOCAL), PersonRole.OWNER)


def _counts(counts: Mapping[TaskState, int]) -> dict[str, int]:
    return {state.value: counts.get(state, 0) for state in TaskState}


def _number(value: Any) -> int:
    number = parse_task_number(str(value or ""))
    if number is None:
        raise BoardError(f"{value!r} is no number of a task. Numbers stand in: hermes kanban list")
    return number


def _state(value: Any) -> TaskState:
    try:
        return TaskState(str(value or ""))
    except ValueError:
        raise BoardError(f"{value!r} is no column. The columns: {', '.join(TaskState)}.") from None


def _whole(value: Any) -> int:
    try:
        return int(value or 0)
    except (TypeError, ValueError):
        raise BoardError(f"{value!r} is no whole number.") from None
