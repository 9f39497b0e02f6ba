"""Talking to the agent in a browser: the first answer, streams, stops, branches, pictures."""

from __future__ import annotations

import asyncio
import base64

from tests.browser.chromium import Page, eventually
from tests.browser.conftest import Desk, whole
from tests.fakes.model import FakeModel, Reply, calls_tools
from tests.fakes.telegram import FakeTelegram

FIRST_LOAD = 200 * 1024
SLOW = tuple(f"word{number} " for number in range(400))
SHIFTS = """window.shifted = 0; new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value;
}).observe({type: 'layout-shift', buffered: true});"""


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


async def test_answer_is_text_until_what_cleans_it_has_come(desk: Desk, model: FakeModel) -> None:
    model.says("Hello **Ana**.\n\n```python\nprint('hi')\n```\n\n<b>bold</b>")
    first = await desk.signed_in()
    await say(first, "Who am I?")
    await first.wait("document.querySelector('.message.agent strong')")
    await first.wait("document.querySelector('.composer .round:not(.stop)')")
    page = await desk.browser.page(beside=first)
    await page.hold("*/sanitize-*")
    await page.call("Page.navigate", url=await first.run("location.href"))
    await page.wait_text("Hello **Ana**.")
    await eventually(lambda: asyncio.sleep(0, page.held))
    assert not await page.run("!!document.querySelector('.message.agent :is(strong, pre, .markdown)')")
    await page.release()
    await page.wait("document.querySelector('.message.agent strong')?.innerText === 'Ana'")
    await page.wait("document.querySelector('pre .hljs-built_in, pre .hljs-string')")
    assert "<b>bold</b>" in await page.text(".message.agent")
    assert page.problems == []


@whole
async def test_text_that_is_never_read_stays_text_and_the_others_are_formatted(desk: Desk, model: FakeModel) -> None:
    first = await desk.signed_in()
    for number in range(3):
        model.says(f"Answer **{number}**.")
        await say(first, f"Question {number}")
        await first.wait(f"document.querySelectorAll('.message.agent strong').length === {number + 1}")
        await first.wait("document.querySelector('.composer .round:not(.stop)')")
    page = await desk.browser.page(beside=first)
    await page.hold("*/formatting.worker-*")
    await page.call("Page.navigate", url=await first.run("location.href"))
    worker = (await eventually(lambda: asyncio.sleep(0, page.held)))[0]
    page.held.clear()
    script = base64.b64encode(b"addEventListener('message', () => undefined); postMessage({id: 0, html: []})").decode()
    typed = [{"name": "Content-Type", "value": "text/javascript"}]
    await page.call("Fetch.fulfillRequest", requestId=worker, responseCode=200, responseHeaders=typed, body=script)
    await page.wait_text("Answer **2**.")
    await eventually(lambda: asyncio.sleep(0, page.held), 100)  # the page gives the silent worker ten seconds
    await page.release()
    await page.wait("document.querySelectorAll('.message.agent strong').length === 2")
    assert "Answer **0**." in await page.text(".lines")
    assert page.problems == []


@whole
async def test_long_conversation_grows_upwards_and_what_is_read_stays(desk: Desk, model: FakeModel) -> None:
    for number in range(25):
        model.says(f"Answer **{number}**:\n\n```python\n" + f"print({number}, 'hi')\n" * 12 + "```")
        await desk.api.post("/v1/responses", {"input": f"Question {number}", "conversation": "long"})
    page = await desk.signed_in()
    await page.wait("document.querySelector('.conversations-list a')")
    url = await page.run("document.querySelector('.conversations-list a').href")
    await page.call("Page.addScriptToEvaluateOnNewDocument", source=SHIFTS)
    await page.goto(url)
    await page.wait("document.querySelectorAll('.message.agent strong').length === 25")
    answers = await page.run("[...document.querySelectorAll('.message.agent strong')].map((one) => one.innerText)")
    assert answers == [str(number) for number in range(25)]
    place = "(({scrollHeight, scrollTop, clientHeight}) => scrollHeight - scrollTop - clientHeight)"
    assert await page.run(f"{place}(document.querySelector('.scroller'))") < 2  # the newest line stays in sight
    assert await page.run("shifted") < 0.01
    colours = "[...document.querySelectorAll('.message.agent')].map((one) => !!one.querySelector('.hljs-string'))"
    await page.wait(f"{colours}.at(-1)")
    assert not await page.run(f"{colours}[0]")  # code gets its colours when somebody comes near
    await page.run("document.querySelector('.scroller').scrollTop = 0")
    await page.wait(f"{colours}[0]")
    assert page.problems == []


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
    order = "[...document.querySelectorAll('.message.user')].map((one) => one.innerText.split('\\n')[0]).join('|')"
    await page.wait(f"{order} === 'Begin.|What then?'")  # the page draws the lines anew when a turn has ended
    assert await page.run(order) == "Begin.|What then?"


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
async def test_running_turn_is_steered_from_the_composer(desk: Desk, model: FakeModel) -> None:
    model.hold()
    model.script([calls_tools(("list_files", {"path": "."})), "As you wish: in French."])
    page = await desk.signed_in()
    await say(page, "Translate it.")
    await model.is_holding()
    await page.write(".composer textarea", "into French, please")
    await page.press_button("Steer", ".composer")
    await page.wait_text("Handed to the running turn.")
    model.release()
    await page.wait_text("As you wish: in French.")
    sent = [str(line["content"]) for line in model.requests[-1]["messages"]]
    assert any("into French, please" in text for text in sent)
    assert len(model.requests) == 2  # the same turn
    assert page.problems == []


@whole
async def test_draft_outlives_a_reload_and_goes_with_the_sign_out(desk: Desk) -> None:
    page = await desk.signed_in()
    await say(page, "first")
    await page.wait_text("echo: first")
    await page.write(".composer textarea", "half a thou")
    await page.call("Page.reload")
    await page.wait("document.querySelector('.composer textarea')?.value === 'half a thou'")
    await page.press_button("New chat", ".conversations")
    await page.wait("document.querySelector('.composer textarea')?.value === ''")  # each conversation has its own
    await page.run("document.querySelector('.preferences button:last-child').click()")
    await page.wait("document.querySelector('.sign-in')")
    assert await page.run("Object.keys(sessionStorage).length") == 0
    assert page.problems == []


@whole
async def test_reader_above_stays_there_and_unread_conversations_are_marked(
    desk: Desk, model: FakeModel, telegram: FakeTelegram
) -> None:
    page = await desk.signed_in()
    model.when("long", "\n\n".join(f"Paragraph {number}." for number in range(120)))
    await say(page, "Something long.")
    await page.wait_text("Paragraph 119.")
    await page.wait("document.querySelector('.composer .round:not(.stop)')")
    await page.run("document.querySelector('.scroller').scrollTop = 300")
    await page.wait("document.querySelector('.jump')")
    model.script([Reply(tokens=SLOW[:40], tokens_per_second=40)])
    opened = await page.run("new URLSearchParams(location.search).get('id')")
    await desk.api.post(f"/api/sessions/{opened}/chat", {"input": "and more"})
    await page.wait("document.querySelector('.lines').innerText.includes('word39')")
    assert abs(await page.run("document.querySelector('.scroller').scrollTop") - 300) < 5
    assert await page.run("document.querySelectorAll('.conversations-list a.unread').length") == 0
    telegram.user_says("from the phone")
    await page.wait("document.querySelectorAll('.conversations-list a.unread').length === 1")
    await page.click(".conversations-list a.unread")
    await page.wait_text("echo: from the phone")
    await page.wait("document.querySelectorAll('.conversations-list a.unread').length === 0")
    await page.call("Page.reload")
    await page.wait("document.querySelectorAll('.conversations-list li').length === 2")
    assert await page.run("document.querySelectorAll('.conversations-list a.unread').length") == 0
    assert page.problems == []
