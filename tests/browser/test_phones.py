"""Phones and the browser: codes that a phone scans, and a conversation that goes on in both places."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest

from hermes.core.roles import PersonRole
from hermes.platforms.whatsapp import linking
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Desk, whole
from tests.browser.test_chat import say
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.fakes.weixin import TOKEN, FakeWeixin
from tests.fakes.whatsapp import FakeWhatsApp
from tests.fakes.whatsapp_account import bridges, free_port
from tests.integration.api.serving import served
from tests.integration.conftest import Start
from tests.integration.watching import make
from tests.integration.whatsapp.test_linking import NUMBER, QUICK

pytestmark = [whole, pytest.mark.timeout(300)]

SECONDS = 60.0
DARK = "document.querySelector('dialog svg.qr path')?.getAttribute('d').length ?? 0"


@pytest.fixture
async def weixin() -> AsyncIterator[FakeWeixin]:
    async with FakeWeixin() as fake:
        yield fake


async def begin(page: Page, platform: str) -> None:
    await page.wait(f"document.querySelector('[data-platform={platform}]')")
    await page.press_button("Sign in with a QR code", f"[data-platform={platform}]")


async def test_weixin_is_signed_in_with_a_code_on_the_page(start: Start, browser: Chromium, weixin: FakeWeixin) -> None:
    async with served(start, WEIXIN_QR_URL=weixin.url) as api:
        page = await Desk(api, browser).signed_in("platforms")
        weixin.statuses.extend([{"status": "wait"}, {"status": "expired"}])
        await begin(page, "weixin")
        await page.wait(f"{DARK} > 500", SECONDS)
        await weixin.wait_for(lambda: len(weixin.codes) == 2, SECONDS)  # the first was not scanned in time
        await page.wait(f"{DARK} > 500", SECONDS)
        weixin.statuses.extend([{"status": "scaned"}, weixin.confirms()])
        await page.wait("document.querySelector('dialog .notice.good')", SECONDS)
        await page.key("Escape")
        await page.wait("document.querySelector('[data-platform=weixin] .state.good')", SECONDS)
        weixin.user_says("hello")
        await weixin.wait_for(lambda: weixin.texts() == ["echo: hello"], SECONDS)
        assert TOKEN not in await page.run("document.documentElement.outerHTML")
        assert page.problems == []


async def test_whatsapp_is_linked_with_a_code_on_the_page(
    start: Start, browser: Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge = bridges()  # skips where there can be none
    monkeypatch.setattr(linking, "Pace", lambda: QUICK)
    async with FakeWhatsApp(port=free_port(), is_linked=False) as phone:
        phone.devices.clear()
        for name, value in phone.bridge_environ.items():
            monkeypatch.setenv(name, value)
        async with served(start, WHATSAPP_BRIDGE_FOLDER=str(bridge), PATH=os.environ["PATH"]) as api:
            page = await Desk(api, browser).signed_in("platforms")
            await begin(page, "whatsapp")
            await page.wait(f"{DARK} > 500", SECONDS)
            phone.scan()
            await page.wait("document.querySelector('dialog .notice.good')", SECONDS)
            await page.key("Escape")
            await page.wait("document.querySelector('[data-platform=whatsapp] .state')", SECONDS)
            account = api.gateway.config.account("whatsapp")
            assert account is not None
            assert NUMBER in account.access.allowed_users
            assert page.problems == []


async def test_code_that_nobody_scans_is_given_up_with_the_dialog(
    start: Start, browser: Chromium, weixin: FakeWeixin
) -> None:
    async with served(start, WEIXIN_QR_URL=weixin.url) as api:
        page = await Desk(api, browser).signed_in("platforms")
        await begin(page, "weixin")
        await page.wait(f"{DARK} > 500", SECONDS)
        await page.key("Escape")
        await page.wait("!document.querySelector('dialog')")
        state = "fetch('/api/platforms/weixin/login').then((told) => told.json()).then((login) => login.state)"
        await page.wait(f"{state}.then((now) => now === 'failed' || now === 'idle')", SECONDS)
        weixin.statuses.append(weixin.confirms())  # too late
        account = api.gateway.config.account("weixin")
        assert account is None or not account.is_ready
        assert page.problems == []


async def test_conversation_of_telegram_is_continued_in_the_browser_and_seen_on_both_sides(
    desk: Desk, telegram: FakeTelegram, model: FakeModel
) -> None:
    await make(desk.api.gateway, 7, PersonRole.OWNER)
    page = await desk.signed_in()
    telegram.user_says("from the phone")
    await telegram.wait_for(lambda: "echo: from the phone" in telegram.texts(), SECONDS)
    await page.click('.conversations-list a[href*="id="]')
    await page.wait_text("echo: from the phone")
    await page.wait_text("also on Telegram")
    await say(page, "from the desk")
    await page.wait("document.querySelector('.lines').innerText.includes('echo: from the desk')")
    await telegram.wait_for(lambda: any("echo: from the desk" in text for text in telegram.texts()), SECONDS)
    assert any("Dashboard: from the desk" in text for text in telegram.texts())  # and what was asked
    telegram.user_says("again from the phone")
    await page.wait_text("echo: again from the phone")
    heard = [str(line["content"]) for line in model.requests[-1]["messages"] if line["role"] == "user"]
    assert [next(one for one in ("again", "desk", "phone") if one in text) for text in heard] == [
        "phone",
        "desk",
        "again",
    ]  # one conversation
    await page.wait("document.querySelector('.composer .round:not(.stop)')")
    shown = await page.run("[...document.querySelectorAll('.message.user .bubble')].map((one) => one.innerText.trim())")
    assert shown == ["from the phone", "from the desk", "again from the phone"]
    assert await page.run("document.querySelectorAll('.message.agent').length") == 3  # nothing stands there twice
    assert page.problems == []
