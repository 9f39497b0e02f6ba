"""`/api/kanban` over real HTTP."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from hermes.servers.api.lazy_routes import lazy_routes
from tests.integration.api.conftest import Api, Families


@pytest.fixture
def families() -> Families:
    return (partial(lazy_routes, "entries.kanban.KanbanRoutes"),)


async def test_a_task_is_added_changed_moved_and_commented(api: Api) -> None:
    made = await api.post("/api/kanban/tasks", {"title": "Tidy up", "priority": 2})
    assert made.status == 201
    number = made.json["id"]
    changed = await api.call(
        "PATCH", f"/api/kanban/tasks/{number}", {"title": "Tidy all", "state": "blocked", "reason": "no key"}
    )
    assert (changed.json["title"], changed.json["state"], changed.json["reason"]) == ("Tidy all", "blocked", "no key")
    assert (await api.post(f"/api/kanban/tasks/{number}/comments", {"text": "soon"})).status == 201
    shown = await api.get(f"/api/kanban/tasks/{number}")
    assert [comment["body"] for comment in shown.json["comments"]] == ["soon"]
    listed = await api.get("/api/kanban/tasks?state=blocked")
    assert [task["id"] for task in listed.json["data"]] == [number]
    events = await api.get("/api/kanban/events?after=0")
    assert [event["kind"] for event in events.json["data"]] == ["made", "changed", "moved", "commented"]


@pytest.mark.parametrize(
    "path, code",
    [("/api/kanban/tasks/999", "task_not_found"), ("/api/kanban/tasks/x", "task_not_found")],
)
async def test_a_task_that_is_not_there_is_a_404(api: Api, path: str, code: str) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.error["code"]) == (404, code)


async def test_wrong_words_are_refused_by_name(api: Api) -> None:
    assert (await api.post("/api/kanban/tasks", {"title": ""})).status == 400
    made = await api.post("/api/kanban/tasks", {"title": "a"})
    refused = await api.call("PATCH", f"/api/kanban/tasks/{made.json['id']}", {"state": "running"})
    assert refused.status == 400
    assert "by itself" in refused.error["message"]
    assert (await api.get("/api/kanban/tasks?state=nowhere")).error["param"] == "state"


async def test_stats_say_what_dispatch_does(api: Api) -> None:
    answer = await api.get("/api/kanban/stats")
    assert answer.json["dispatch"]["activity"] == "idle"


async def test_a_task_that_a_key_gives_to_the_agent_is_done(api: Api) -> None:
    made = await api.post("/api/kanban/tasks", {"title": "Say hello", "assignee": "agent"})
    async with asyncio.timeout(20):
        while True:
            shown = await api.get(f"/api/kanban/tasks/{made.json['id']}")
            if shown.json["state"] == "done":
                break
            await asyncio.sleep(0.05)
    assert "Say hello" in shown.json["result"]
    assert [run["state"] for run in shown.json["runs"]] == ["answered"]
