"""Talking to the agent in a browser: the first answer, streams, stops, branches, pictures."""

from __future__ import annotations

import asyncio

import pytest

from tests.browser.chromium import Page, eventually
from tests.browser.conftest import Desk, whole
from tests.fakes.model import FakeModel, Reply, calls_tools

FIRST_LOAD = 200 * 1024
SLOW = tuple(f"word{number} " for number in range(400))


async def say(page: Page, text: str) -> None:
    await page.write(".composer textarea", text)
    await page.key("Enter")


async def test_first_visit_leads_from_the_link_to_the_first_answer(desk: Desk, model: FakeModel) -> None:
    model.says("Hello **Ana**.\n\n```python\nprint('hi')\n```")
    page = await desk.browser.page()
    link = await desk.link()
    await page.goto(link)
    await page.wait("document.querySelector('.composer textarea')")
    assert "sign-in" not in await page.run("location.href + document.documentElement.outerHTML.slice(0, 2000)")
    assert 0 < page.received_bytes < FIRST_LOAD
    assert all(url.startswith((desk.api.url, "data:", "about:")) for url in page.requests.values())
    await say(page, "Who am I?")
    await page.wait("document.querySelector('.message.agent strong')?.innerText === 'Ana'")
    await page.wait("document.querySelector('pre .hljs-built_in, pre .hljs-string')")  # the code has colours
    await page.wait("document.querySelectorAll('.conversations-list li').length === 1")  # live, without a reload
    await page.wait("document.querySelectorAll('.message.user').length === 1")
    assert page.problems == []
    phone = await desk.beside(page, "chat", size=(390, 844), is_phone=True, language="zh-CN")
    await phone.wait("document.querySelector('nav.bottom a')")
    assert await phone.run("document.documentElement.scrollWidth <= innerWidth")
    assert await phone.run("document.documentElement.lang") == "zh-Hans"  # as the browser is set
    assert "概览" in await phone.text("nav.bottom")
    await phone.press_button("更多", "nav.bottom")
    await phone.press_button("English", "nav.side")
    await phone.wait("document.querySelector('nav.bottom').innerText.includes('Overview')")
    assert phone.problems == []


@whole
async def test_running_turn_is_shown_as_it_is_written_and_stopped_with_a_key(desk: Desk, model: FakeModel) -> None:
    model.script([Reply(tokens=SLOW, tokens_per_second=40)])
    page = await desk.signed_in()
    await say(page, "Count.")
    await page.wait("document.querySelector('.message.agent')?.innerText.includes('word5')")
    assert "word399" not in await page.text(".lines")
    await page.key("Escape")
    await page.wait("document.querySelector('.composer .round:not(.stop)')")
    assert "word399" not in await page.text(".lines")
    assert page.problems == []


@whole
async def test_tool_calls_unfold_and_the_last_answer_is_asked_again(desk: Desk, model: FakeModel) -> None:
    model.script([calls_tools(("list_files", {"path": "."})), "First answer."])
    page = await desk.signed_in()
    await say(page, "Look around.")
    await page.wait_text("First answer.")
    await page.wait("document.querySelector('.message.agent [aria-label=Retry]')")
    await page.click("details.tool summary")
    await page.wait("document.querySelector('details.tool[open] .tool-body pre')")
    model.says("Second answer.")
    await page.press_button("Retry", ".lines")
    await page.wait_text("Second answer.")
    assert page.problems == []


@whole
async def test_edited_message_is_sent_in_a_branch_and_the_original_stays(desk: Desk, model: FakeModel) -> None:
    model.script(["One.", "Two.", "Three."])
    page = await desk.signed_in()
    await say(page, "first")
    await page.wait_text("One.")
    await page.wait("document.querySelector('.composer .round:not(.stop)')")
    await say(page, "second")
    await page.wait_text("Two.")
    await page.wait("document.querySelectorAll('.message.user').length === 2")
    before = await page.run("location.search")
    last = "[...document.querySelectorAll('.message.user')].at(-1)"
    button = f"{last}.querySelector('[aria-label=\"Edit and branch\"]')"
    await page.wait(button)
    await page.run(f"{button}.click()")
    await page.write("dialog textarea", "second, put differently")
    await page.press_button("Send in a branch", "dialog")
    await page.wait_text("Three.")
    assert await page.run("location.search") != before
    await page.wait("document.querySelector('.lines').innerText.includes('second, put differently')")
    sent = [line["content"] for line in model.requests[-1]["messages"] if line["role"] == "user"]
    assert [str(text).rsplit("\n", 1)[-1] for text in sent] == ["first", "second, put differently"]
    await page.goto(desk.url(f"chat{before}"))
    await page.wait_text("Two.")
    assert "Three." not in await page.text(".lines")


@whole
async def test_message_written_while_a_turn_runs_waits_behind_it(desk: Desk, model: FakeModel) -> None:
    model.script([Reply(tokens=SLOW[:60], tokens_per_second=30), "And then."])
    page = await desk.signed_in()
    await say(page, "Begin.")
    await page.wait("document.querySelector('.message.agent')?.innerText.includes('word2')")
    await say(page, "What then?")
    await page.wait_text("And then.")
    order = await page.run(
        "[...document.querySelectorAll('.message.user')].map((one) => one.innerText.split('\\n')[0])"
    )
    assert order == ["Begin.", "What then?"]


@whole
async def test_pasted_picture_reaches_the_model(desk: Desk, model: FakeModel) -> None:
    model.says("A red square.")
    page = await desk.signed_in()
    await page.wait("document.querySelector('.composer textarea')")
    await page.run(
        """(async () => {
            const canvas = document.createElement('canvas'); canvas.width = canvas.height = 8;
            const brush = canvas.getContext('2d'); brush.fillStyle = 'red'; brush.fillRect(0, 0, 8, 8);
            const blob = await new Promise((done) => canvas.toBlob(done, 'image/png'));
            const data = new DataTransfer(); data.items.add(new File([blob], 'square.png', {type: 'image/png'}));
            document.querySelector('.composer textarea').dispatchEvent(
                new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));
        })()"""
    )
    await page.wait("document.querySelector('.thumbs img')")
    await say(page, "What is this?")
    await page.wait_text("A red square.")
    parts = model.requests[-1]["messages"][-1]["content"]
    assert any("data:image/png;base64," in str(part) for part in parts)
    assert page.problems == []


@whole
@pytest.mark.timeout(180)
async def test_chat_of_a_phone_is_seen_live_and_continued_in_a_copy(
    desk: Desk, model: FakeModel, telegram: object
) -> None:
    from tests.fakes.telegram import FakeTelegram

    assert isinstance(telegram, FakeTelegram)
    page = await desk.signed_in()
    telegram.user_says("from the phone")
    await telegram.wait_for(lambda: bool(telegram.texts()), 20)
    await page.wait("document.querySelector('.conversations-list a[href*=\"id=\"]')")
    await page.click('.conversations-list a[href*="id="]')
    await page.wait_text("echo: from the phone")
    telegram.user_says("again from the phone")
    await page.wait_text("echo: again from the phone")
    await page.press_button("Continue in a copy")
    await page.wait("document.querySelector('.composer textarea')")
    await say(page, "and from the desk")
    await page.wait_text("echo: and from the desk")
    await asyncio.sleep(0)
    assert not any("desk" in text for text in telegram.texts())
    await eventually(lambda: page.run("document.querySelectorAll('.message.user').length === 3"))
