"""The board of tasks in a whole gateway: chats, the agent, dependencies, crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from hermes.agent.kanban import Actor
from hermes.core.entries.kanban import AGENT, TaskState
from hermes.core.roles import PersonRole
from hermes.services.gateway import Gateway
from hermes.store import people
from hermes.store.kanban import runs, tasks
from hermes.store.kanban.tasks import NewTask, Task
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start, crash

OWNER = Actor("owner", "p_local_local", PersonRole.OWNER)


def new_task(title: str, **more: object) -> NewTask:
    return NewTask(title, assignee=AGENT, made_by=OWNER.person_id, made_by_role="owner", **more)  # type: ignore[arg-type]


async def wait_for_task(gateway: Gateway, number: int, holds: Callable[[Task], bool], seconds: float = 20) -> Task:
    async with asyncio.timeout(seconds):
        while True:
            task = (await gateway.board().show(OWNER, number)).task
            if holds(task):
                return task
            await asyncio.sleep(0.02)


async def test_a_ready_task_of_the_agent_is_done_and_told_in_the_chat_that_asked(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        telegram.user_says("/kanban do Count the apples")
        await telegram.wait_for(lambda: any("echo: Task #1: Count the apples" in text for text in telegram.texts(7)))
        task = await wait_for_task(gateway, 1, lambda task: task.state is TaskState.DONE)
        assert task.result.startswith("echo: Task #1: Count the apples")
        assert task.session_id


async def test_a_task_that_is_asked_for_again_with_its_key_does_not_run_again(start: Start) -> None:
    async with start() as gateway:
        asked = new_task("Count the apples", dedupe_key="cli:1")
        made = await gateway.board().make(OWNER, asked, ready=True)
        await wait_for_task(gateway, made.id, lambda task: task.state is TaskState.DONE)
        again = await gateway.board().make(OWNER, asked, ready=True)  # the first answer was lost in a crash
        assert (again.id, again.state) == (made.id, TaskState.DONE)
        assert len(await (await gateway.board().db()).read(runs.of_task, made.id)) == 1


async def test_a_task_waits_for_the_one_it_needs(start: Start) -> None:
    async with start() as gateway:
        first = await gateway.board().make(OWNER, NewTask("Bake", made_by=OWNER.person_id, made_by_role="owner"))
        second = await gateway.board().make(OWNER, new_task("Eat"), needs=(first.id,), ready=True)
        assert (second.state, second.blocked_by) == (TaskState.BLOCKED, "dependency")
        await gateway.board().move(OWNER, first.id, TaskState.DONE)
        await wait_for_task(gateway, second.id, lambda task: task.state is TaskState.DONE)


async def test_a_chain_of_tasks_runs_in_order_with_the_results_before(start: Start) -> None:
    async with start() as gateway:
        last = 0
        for title in ("one", "two", "three"):
            made = await gateway.board().make(OWNER, new_task(title), needs=(last,) if last else (), ready=True)
            last = made.id
        task = await wait_for_task(gateway, last, lambda task: task.state is TaskState.DONE)
        assert "Result of #2 (two)" in task.result


async def test_a_task_that_a_crash_interrupted_is_done_once(start: Start, model: FakeModel) -> None:
    async with start() as gateway:
        model.hold()
        await gateway.board().make(OWNER, new_task("Survive"), ready=True)
        await model.is_holding()
        await crash(gateway)
    model.release()
    async with start() as gateway:
        task = await wait_for_task(gateway, 1, lambda task: task.state is TaskState.DONE)
        assert task.attempts == 1
        assert len((await gateway.board().show(OWNER, 1)).runs) == 1


async def test_no_more_tasks_run_at_once_than_allowed(start: Start, model: FakeModel, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.yaml").write_text("kanban: {max_running: 1}\n")
    async with start() as gateway:
        model.hold()
        for title in ("a", "b", "c"):
            await gateway.board().make(OWNER, new_task(title), ready=True)
        await model.is_holding()
        counts = await gateway.board().counts()
        assert (counts[TaskState.RUNNING], counts[TaskState.READY]) == (1, 2)
        model.release()


async def test_a_user_sees_the_own_tasks_only(start: Start) -> None:
    ann, bob = (Actor(name, f"p_{name}", PersonRole.USER) for name in ("ann", "bob"))
    async with start() as gateway:
        await gateway.board().make(ann, NewTask("secret", made_by=ann.person_id, made_by_role="user"))
        assert [task.title for task in await gateway.board().tasks(ann)] == ["secret"]
        assert await gateway.board().tasks(bob) == []
        assert [task.title for task in await gateway.board().tasks(OWNER)] == ["secret"]


async def test_a_board_whose_file_is_no_database_stops_nothing_else(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with start() as gateway:
        home = gateway.home
        await gateway.board().make(OWNER, NewTask("keep me", made_by=OWNER.person_id, made_by_role="owner"))
    file = home / "kanban.db"
    file.write_bytes(bytes(100) + file.read_bytes()[100:])
    async with start() as gateway:
        telegram.user_says("hello")
        await telegram.wait_for(lambda: "echo: hello" in telegram.texts(7))
        titles = [task.title for task in await gateway.board().tasks(OWNER)]
        assert titles == ["keep me"]


async def test_ten_thousand_tasks_are_listed_quickly(start: Start) -> None:
    async with start() as gateway:
        db = await gateway.board().db()

        def seed(tx: object) -> None:
            for number in range(10_000):
                tasks.make(tx, NewTask(f"task {number}", made_by="x"), actor="seed", now=0.0)  # type: ignore[arg-type]

        await db.alone(seed)
        loop = asyncio.get_running_loop()
        began = loop.time()
        found = await gateway.board().tasks(OWNER)
        assert len(found) == 500
        assert loop.time() - began < 0.5


async def test_a_task_of_the_owner_is_done_in_its_folder(start: Start, model: FakeModel, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "note.txt").write_text("the door code is 4711")
    model.script([calls_tools(("read_file", {"path": "note.txt"})), "read"])
    async with start() as gateway:
        await gateway.db.write(people.ensure_local_owner, now=1.0)
        task = await gateway.board().make(OWNER, new_task("Read the note", workdir=str(folder)), ready=True)
        await wait_for_task(gateway, task.id, lambda task: task.state is TaskState.DONE)
    assert "4711" in str(model.last_request)
