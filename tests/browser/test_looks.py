"""Every page in light, dark, Chinese and phone size: nothing overflows, nothing serious for axe, nothing fails.

HERMES_TEST_SCREENSHOTS=folder writes a picture of each.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hermes.core.roles import PersonRole
from tests.browser.chromium import Page
from tests.browser.conftest import Desk, whole
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.watching import answered, make, question, turn_is

pytestmark = [whole, pytest.mark.timeout(600)]

PAGES = (
    "chat",
    "overview",
    "messages",
    "approvals",
    "people",
    "jobs",
    "board",
    "sessions",
    "platforms",
    "skills",
    "models",
    "logs",
    "settings",
    "usage",
)
SCREENSHOTS = os.environ.get("HERMES_TEST_SCREENSHOTS", "")
AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
MAX_BYTES = 300 * 1024
FINDINGS = """axe.run(document, {resultTypes: ['violations']}).then((all) => JSON.stringify(
    all.violations.filter((one) => ['serious', 'critical'].includes(one.impact))
        .map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 160)} ${one.nodes[0].failureSummary.slice(0, 200)}`)))"""
LOADED = "document.querySelector('main h1') && !document.querySelector('main .loading, main .chart:empty')"
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


@pytest.fixture
async def busy(desk: Desk, model: FakeModel, telegram: FakeTelegram) -> Desk:
    """A gateway where something happened on every page."""
    await make(desk.api.gateway, 7, PersonRole.OWNER)
    model.when(
        "program",
        "Here is **one**:\n\n```python\ndef hello():\n    print('hi')  # 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    )
    telegram.user_says("Write me a program.")
    await telegram.wait_for(lambda: bool(telegram.texts()), 20)
    model.script([calls_tools(("read_file", {"path": "notes.txt"})), "I read the notes."])
    telegram.user_says("Read my notes.")
    await answered(telegram, "I read the notes.")
    for title, assignee in (("Renew the passport", ""), ("Water the plants", ""), ("Draft the post", "ana")):
        await desk.api.post("/api/kanban/tasks", {"title": title, "assignee": assignee})
    await desk.api.call("PATCH", "/api/kanban/tasks/2", {"state": "review"})
    job = {"prompt": "Summarize the news", "schedule": "weekdays at 8", "deliver": "local", "name": "Morning news"}
    await desk.api.post("/api/jobs", job)
    model.script([calls_tools(("danger", {"text": "bang"})), "Done."])
    telegram.user_says("do it")
    await question(telegram)
    await turn_is(desk.api.gateway, "waiting")
    return desk


async def open_page(page: Page, desk: Desk, name: str) -> None:
    await page.goto(desk.url(name))
    await page.wait(f"location.pathname.endsWith('/{name}') && {LOADED}")


async def test_every_page_fits_its_window_in_light_dark_chinese_and_on_a_phone(busy: Desk) -> None:
    first = await busy.signed_in()
    windows = {
        "light": first,
        "dark": await busy.browser.page(beside=first, is_dark=True),
        "phone": await busy.browser.page((390, 844), beside=first, is_phone=True),
        "chinese": await busy.browser.page(beside=first, language="zh-CN"),
        "chinese-dark": await busy.browser.page(beside=first, language="zh-CN", is_dark=True),
        "chinese-phone": await busy.browser.page((390, 844), beside=first, is_phone=True, language="zh-CN"),
    }
    for kind, page in windows.items():
        for name in PAGES:
            before = page.received_bytes
            await open_page(page, busy, name)
            if name == "chat":
                if kind.endswith("phone"):
                    await page.click(".talk-head .only-phone")  # the list is drawn when somebody opens it
                await page.wait("document.querySelector('.conversations-list a')")
                await page.run("document.querySelector('.conversations-list a').click()")
                await page.wait(f"document.querySelector('.message') && {LOADED}")
            assert await page.run("document.documentElement.scrollWidth <= innerWidth"), (kind, name)
            assert not await page.run("!!document.querySelector('main [role=alert]')"), (
                kind,
                name,
                await page.text("main"),
            )
            assert page.received_bytes - before < MAX_BYTES, (kind, name)
            if SCREENSHOTS:
                await page.run(DRAWN)
                await page.picture(Path(SCREENSHOTS, f"{name}-{kind}.png"))
        assert page.problems == [], kind
        if kind.startswith("chinese"):
            assert "概览" in await page.text("nav.bottom" if kind.endswith("phone") else "nav.side")
        await page.close()  # a browser has six connections for all windows of a gateway, and each keeps one


async def test_axe_finds_nothing_serious_on_any_page(busy: Desk) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: ./scripts/web build installs it")
    first = await busy.signed_in()
    pages = [
        first,
        await busy.browser.page(beside=first, is_dark=True),
        await busy.browser.page((390, 844), beside=first, is_phone=True),
    ]
    found: dict[str, list[str]] = {}
    for at, page in enumerate(pages):
        for name in PAGES:
            await open_page(page, busy, name)
            await page.run(f"{AXE.read_text('utf-8')}; true")
            told = json.loads(await page.run(FINDINGS))
            if told:
                found[f"{name} {at}"] = told
    thief = await busy.browser.page()
    await thief.goto(busy.url("chat"))
    await thief.wait("document.querySelector('.sign-in')")
    await thief.run(f"{AXE.read_text('utf-8')}; true")
    assert json.loads(await thief.run(FINDINGS)) == []
    assert found == {}


async def test_every_page_is_reached_and_used_with_keys_alone(busy: Desk) -> None:
    page = await busy.signed_in("overview")
    await page.key("Tab")
    assert await page.run("document.activeElement.className") == "skip"
    await page.key("Enter")
    assert await page.run("document.activeElement.id") == "main"
    for _ in range(3):
        await page.key("Tab")
    assert await page.run("document.activeElement.matches('a, button, input, select, [tabindex]')")
    await page.goto(busy.url("jobs"))
    await page.wait(f"{LOADED} && document.querySelector('.page-head button')")
    await page.run("document.querySelector('.page-head button').focus()")
    await page.key("Enter")
    await page.wait("document.querySelector('dialog[open]')")
    seen = set()
    for _ in range(20):
        await page.key("Tab")
        seen.add(await page.run("document.activeElement.closest('dialog') ? 'inside' : document.activeElement.tagName"))
        assert await page.run(
            "((at) => at === document.body || [at, at.parentElement].map((one) => getComputedStyle(one))"
            ".some((one) => one.outlineStyle !== 'none' || one.boxShadow !== 'none'))(document.activeElement)"
        ), await page.run("document.activeElement.outerHTML")  # the focus is seen
    assert seen <= {"inside", "BODY"}  # nothing behind the dialog gets it
    await page.key("Escape")
    await page.wait("!document.querySelector('dialog')")
    assert await page.run("document.activeElement.matches('.page-head button')")  # and it returns
