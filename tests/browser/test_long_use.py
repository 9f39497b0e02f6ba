"""Eight hours of use, without growth: pages opened and left, events by the thousand, answers written."""

from __future__ import annotations

import os
import statistics

import pytest

from tests.browser.conftest import Desk, whole
from tests.browser.test_chat import say
from tests.browser.test_looks import LOADED, PAGES
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram

pytestmark = [whole, pytest.mark.timeout(3600)]

ROUNDS = 3 * int(os.environ.get("HERMES_TEST_HOURS", "8"))
WARM = 6
"""Rounds in which caches fill: scripts of pages, compiled code, pools."""
MAX_GROWTH = 512 * 1024
"""Between the second quarter of the day and the last one."""


async def test_page_does_not_grow_in_eight_hours_of_use(desk: Desk, model: FakeModel, telegram: FakeTelegram) -> None:
    """A round stands for twenty minutes: every page once, messages from a phone, a chat, tasks that change."""
    page = await desk.signed_in()
    heaps: list[int] = []
    nodes: list[int] = []
    await desk.api.post("/api/kanban/tasks", {"title": "Water the plants"})
    for number in range(ROUNDS):
        for name in PAGES:
            await page.run(f"document.querySelector('nav.side a[href$=\"/dashboard/{name}\"]').click()")
            await page.wait(f"location.pathname.endsWith('/{name}') && {LOADED}")
            state = "ready" if number % 2 else "todo"
            await desk.api.call("PATCH", "/api/kanban/tasks/1", {"state": state, "priority": number})
        for turn in range(3):
            telegram.user_says(f"message {number}.{turn}")
        await page.run("document.querySelector('nav.side a[href$=\"/dashboard/chat\"]').click()")
        await page.wait("document.querySelector('.composer textarea')")
        await say(page, f"round {number}")
        await page.wait_text(f"echo: round {number}")
        await page.run("document.querySelector('.conversations-head a.button').click()")
        await page.wait("!document.querySelector('.message')")
        heaps.append(await page.heap_bytes())
        nodes.append(await page.node_count())
    quarter = ROUNDS // 4
    second, last = statistics.median(heaps[quarter : 2 * quarter]), statistics.median(heaps[-quarter:])
    print(f"\nheap by round: {[round(heap / 1e6, 2) for heap in heaps]} MB; nodes: {nodes[WARM]} and {nodes[-1]}")
    assert last - second < MAX_GROWTH, heaps
    assert nodes[-1] < nodes[WARM] * 1.5 + 500, nodes
    assert page.problems == []
