"""Steering the gateway in a browser: the board, jobs, dead letters, tokens, nodes, a lost connection."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.browser.chromium import ALT, Chromium, eventually
from tests.browser.conftest import Desk, whole
from tests.chaos.world import GatewayProcess, Victim
from tests.contract.store.servers import PostgresForTests
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.fakes.whatsapp_account import free_port
from tests.integration.api.serving import served
from tests.integration.conftest import Start
from tests.integration.test_delivery import state_is

pytestmark = whole


def card_in(column: str, number: int = 1) -> str:
    return f"document.querySelector('[data-column={column}] [data-card=\"{number}\"]')"


async def test_dragged_card_is_seen_moved_in_a_second_window(desk: Desk) -> None:
    for title in ("Renew the passport", "Water the plants"):
        assert (await desk.api.post("/api/kanban/tasks", {"title": title})).status == 201
    here = await desk.signed_in("board")
    there = await desk.beside(here, "board")
    await here.wait(card_in("todo"))
    await there.wait(card_in("todo"))
    await here.drag('[data-card="1"]', '[data-column="done"] .cards')
    await here.wait(card_in("done"))
    await there.wait(card_in("done"))  # nobody touched this window
    assert (await desk.api.get("/api/kanban/tasks/1")).json["state"] == "done"
    assert (await desk.api.get("/api/kanban/tasks/2")).json["state"] == "todo"
    await there.run("document.querySelector('[data-card=\"2\"]').focus()")
    await there.key("ArrowLeft", ALT)
    await here.wait(card_in("triage", 2))
    assert await there.run("document.activeElement.dataset.card") == "2"  # the focus stays on the card
    assert here.problems == there.problems == []


async def test_job_is_edited_and_run(desk: Desk, model: FakeModel) -> None:
    page = await desk.signed_in("jobs")
    await page.wait_text("No jobs yet")
    await page.press_button("New job", ".page-head")
    await page.write("dialog textarea", "Say good morning")
    await page.write("dialog input[required]", "every 3h")
    await page.press_button("Save", "dialog")
    await page.wait("document.querySelector('.job')")
    await page.press_button("Edit", ".job")
    await page.write("dialog textarea", "Say good evening")
    await page.press_button("Save", "dialog")
    await page.wait("document.querySelector('.job .clip')?.innerText === 'Say good evening'")
    await page.press_button("Run now", ".job")
    await eventually(lambda: _was_asked(model, "Say good evening"))
    await page.press_button("Past slots", ".job")
    await page.wait("document.querySelector('dialog .list li')")
    await page.key("Escape")
    await page.press_button("Pause", ".job")
    await page.wait_text("Resume")
    assert page.problems == []


async def _was_asked(model: FakeModel, words: str) -> bool:
    return any(words in str(request["messages"][-1]["content"]) for request in model.requests)


async def test_dead_letter_is_sent_again(desk: Desk, model: FakeModel, telegram: FakeTelegram) -> None:
    telegram.block(7)
    telegram.user_says("hello")
    await state_is(desk.api.gateway, "dead")
    page = await desk.signed_in("messages?state=dead")
    await page.wait("document.querySelector('table.data tbody tr')")
    await page.wait("document.querySelector('nav.side .badge')?.innerText === '1'")
    telegram.unblock(7)
    await page.press_button("Send again", "table.data")
    await telegram.wait_for(lambda: "echo: hello" in telegram.texts(), 20)
    await page.wait_text("No dead letters")
    await page.goto(desk.url("messages"))
    await page.click("table.data tbody tr .quiet-link")
    await page.wait("document.querySelectorAll('dialog .timeline .step').length >= 3")
    assert page.problems == []


async def test_token_with_a_typo_is_corrected(start: Start, browser: Chromium, telegram: FakeTelegram) -> None:
    right = telegram.token
    async with served(start, TELEGRAM_BOT_TOKEN="") as api:
        desk = Desk(api, browser)
        page = await desk.signed_in("platforms")
        await page.press_button("Set up", '[data-platform="telegram"]')
        await page.write('dialog input[type="password"]', f"{right}-typo")
        await page.press_button("Test", "dialog")
        await page.wait("document.querySelector('dialog .notice.bad, dialog .bad-text')")
        await page.write('dialog input[type="password"]', right)
        await page.press_button("Test", "dialog")
        await page.wait("document.querySelector('dialog .notice.good')")
        await page.press_button("Save", "dialog")
        await page.wait("document.querySelector('[data-platform=\"telegram\"] .state.good')")
        telegram.user_says("hello")
        await telegram.wait_for(lambda: "echo: hello" in telegram.texts(), 20)
        assert right not in await page.run("document.documentElement.outerHTML")
        assert page.problems == []


class Wire:
    """The way between browser and gateway, which can be cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: set[asyncio.StreamWriter] = set()
        self.is_cut = False

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.close()
            return
        there_reader, there = await asyncio.open_connection("127.0.0.1", self._port)
        ends = {writer, there}
        self._open |= ends
        try:
            await asyncio.gather(_pump(reader, there), _pump(there_reader, writer))
        finally:
            self._open -= ends
            for end in ends:
                end.close()

    def cut(self) -> None:
        self.is_cut = True
        for end in list(self._open):
            end.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()


async def test_lost_connection_is_said_and_nothing_is_missed(desk: Desk) -> None:
    wire = Wire(int(desk.api.url.rsplit(":", 1)[1]))
    server = await asyncio.start_server(wire.carry, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        page = await desk.browser.page()
        code = (await desk.link()).partition("#")[2]
        await page.goto(f"http://127.0.0.1:{port}/dashboard/board#{code}")
        await page.wait_text("The board is empty")
        wire.cut()
        await page.wait("document.querySelector('.connection')?.innerText.includes('Connection lost')", 60)
        assert (await desk.api.post("/api/kanban/tasks", {"title": "Made meanwhile"})).status == 201
        wire.is_cut = False
        await page.wait("document.querySelector('.connection.back')", 60)
        await page.wait_text("Made meanwhile")
        await page.wait("!document.querySelector('.connection')")
        wire.cut()
        assert page.problems == []


@pytest.fixture
def database_url(postgres: PostgresForTests) -> Iterator[str]:
    with postgres.schema() as url:
        yield url


async def test_killed_node_is_seen(
    start: Start, browser: Chromium, database_url: str, model: FakeModel, tmp_path: Path
) -> None:
    """The second node is a process of its own, and is ended with kill -9: it says goodbye to nobody."""
    environ = {
        "PATH": os.environ["PATH"],
        "HERMES_DATABASE_URL": database_url,
        "HERMES_NODE_NAME": "second",
        "OPENAI_API_KEY": "sk-test-0123456789",
        "OPENAI_BASE_URL": model.url,
        "API_SERVER_PORT": str(free_port()),
    }
    with (tmp_path / "second.out").open("w", encoding="utf-8") as output:
        second = GatewayProcess(tmp_path / "second", environ, output)
        async with served(start, HERMES_DATABASE_URL=database_url, folder="a") as api:
            page = await Desk(api, browser).signed_in("overview")
            second.start()
            try:
                await second.ready(60.0)
                row = "document.querySelector('[data-node=\"second\"]')"
                await page.wait(f"!!{row}?.querySelector('.state.good')", 60)  # nobody touched the window
                await second.kill(Victim.BOTH)
                await page.wait(f"{row} === null || !!{row}.querySelector('.state.bad')", 90)
            finally:
                await second.stop()
            assert page.problems == []


async def test_setting_is_checked_and_shows_where_it_comes_from(desk: Desk) -> None:
    page = await desk.signed_in("settings")
    await page.write("input[type=search]", "api.max_concurrent")
    field = '[id="set-api.max_concurrent"]'
    await page.write(field, "none")
    await page.key("Enter")
    await page.wait("document.querySelector('.setting .bad-text')")
    await page.write(field, "77")
    await page.key("Enter")
    await page.wait("document.querySelector('.setting .link')")  # back to the default
    assert page.problems == []


async def test_key_of_a_user_sees_only_what_its_role_may(desk: Desk) -> None:
    headers = await desk.api.new_key("kid", "user")
    page = await desk.browser.page()
    await page.goto(desk.url("settings"))
    await page.write("input[type=password]", "hk_wrong")
    await page.key("Enter")
    await page.wait("document.querySelector('[role=alert]')")
    await page.write("input[type=password]", headers["Authorization"].removeprefix("Bearer "))
    await page.key("Enter")
    await page.wait("document.querySelector('.frame')")
    names = await page.run("[...document.querySelectorAll('nav.side .links a')].map((one) => one.innerText.trim())")
    assert "Chat" in names
    assert not {"Settings", "Platforms", "Logs", "People"} & set(names)
    await asyncio.sleep(0)


def test_pages_of_this_suite_are_those_of_the_dashboard() -> None:
    from tests.browser.test_looks import PAGES

    router = (Path(__file__).parents[2] / "web/src/router.ts").read_text("utf-8")
    assert all(f'"{page}"' in router for page in PAGES)
