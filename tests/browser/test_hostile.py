"""Hostile text in chats, hostile pages elsewhere, stolen addresses: in a real browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.browser.chromium import Page
from tests.browser.conftest import Desk, whole
from tests.browser.test_chat import say
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram

EVIL = """\
<script>window.evil = 1</script><img src=x onerror="window.evil = 2"><svg onload="window.evil = 3"></svg>
[click](javascript:window.evil=4) [data](data:text/html,<script>window.evil=5</script>) ![pixel](https://evil.example/p.png)
<a href="javascript:window.evil=6">a</a> <iframe srcdoc="<script>parent.evil=7</script>"></iframe>
<form action="https://evil.example"><input name=q></form> <style>body{display:none}</style>
`` `<img src=x onerror=evil=8>` `` <base href="https://evil.example/">
<meta http-equiv=refresh content="0;url=https://evil.example">
\u202egnp.exe\u202c <details open ontoggle=window.evil=9><math><mtext></math>

```html
<p></code></pre><img src=x onerror=window.evil=11><script>window.evil = 12</script>&lt;script&gt;
```
"""


async def is_harmless(page: Page) -> bool:
    return bool(
        await page.run(
            "window.evil === undefined && !document.querySelector("
            "'.lines script, .lines iframe, .lines form, .lines style, .lines base, .lines meta, "
            ".lines svg:not(.icon), .lines img, .lines [onerror], .lines [onload], "
            'a[href^="javascript:"], a[href^="data:"]\')'
        )
    )


async def test_hostile_text_of_a_chat_is_shown_as_text(desk: Desk, model: FakeModel) -> None:
    long_line = "x" * 1_000_000
    model.script([EVIL, long_line])
    page = await desk.signed_in()
    await say(page, "<b>mine</b><script>window.evil = 10</script>")
    await page.wait("document.querySelector('.message.agent')?.innerText.includes('window.evil = 1')")
    await page.wait("document.querySelector('.message.agent .message-tools')")
    assert "<script>window.evil = 10</script>" in await page.text(".message.user")
    assert "<img src=x onerror" in await page.text(".message.agent")
    await page.wait("document.querySelector('.message.agent pre .hljs-tag')")  # coloured in the worker
    assert "<script>window.evil = 12</script>&lt;script&gt;" in await page.text(".message.agent pre")
    assert await is_harmless(page)
    assert all(url.startswith((desk.api.url, "data:", "about:")) for url in page.requests.values())
    await say(page, "a long line")
    await page.wait("[...document.querySelectorAll('.message.agent')].at(-1).innerText.includes('Show all')")
    assert await page.run(
        "document.querySelector('.scroller').scrollWidth <= document.querySelector('.scroller').clientWidth"
    )
    assert await page.run("document.querySelector('.lines').innerText.length") < 100_000
    await page.goto(page_url := await page.run("location.href"))
    await page.wait("document.querySelector('.message.agent')?.innerText.includes('window.evil = 1')")
    assert await is_harmless(page), page_url
    assert page.problems == []


@whole
async def test_hostile_names_of_a_platform_are_shown_as_text_on_every_page(
    desk: Desk, model: FakeModel, telegram: FakeTelegram
) -> None:
    model.says(EVIL)
    telegram.user_says(EVIL, name="<img src=x onerror=window.evil=1>\u202e")
    await telegram.wait_for(lambda: bool(telegram.texts()), 20)
    page = await desk.signed_in()
    for name in ("overview", "messages", "sessions", "people", "logs", "chat"):
        await page.goto(desk.url(name))
        await page.wait("document.querySelector('main h1')")
        await asyncio.sleep(0.5)
        assert await page.run("window.evil === undefined")
        assert not await page.run(
            "!!document.querySelector('main img:not([src^=\"data:\"]), main script, main iframe')"
        )
    assert page.problems == []


@asynccontextmanager
async def other_origin(html: str) -> AsyncIterator[str]:
    """A page on another port, and under another name of this machine: another site for the browser."""
    app = web.Application()

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=html, content_type="text/html")

    app.router.add_get("/", page)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://localhost:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


HOSTILE_PAGE = """<!doctype html><title>other</title><body><iframe id=frame src="{url}/dashboard/"></iframe>
<form id=form method=post action="{url}/api/kanban/tasks" enctype="text/plain" target=out>
<input name='{{"title":"by a form","x":"' value='"}}'></form><iframe name=out id=out></iframe></body>"""

ATTACKS = """(async () => {
    const seen = [];
    const attempt = async (path, options) => {
        try {
            const answer = await fetch('%(url)s' + path, options);
            seen.push([path, answer.status, answer.type, (await answer.text()).slice(0, 50)]);
        } catch (error) { seen.push([path, 'failed']); }
    };
    for (const path of ['/api/dashboard/session', '/api/sessions', '/api/settings', '/api/overview', '/dashboard/'])
        await attempt(path, {credentials: 'include'});
    for (const type of ['text/plain', 'application/json', 'application/x-www-form-urlencoded'])
        await attempt('/api/kanban/tasks', {method: 'POST', credentials: 'include', headers: {'Content-Type': type},
            body: '{"title": "by fetch"}'});
    await attempt('/api/kanban/tasks', {method: 'POST', mode: 'no-cors', credentials: 'include',
        body: '{"title": "by no-cors"}'});
    await attempt('/api/dashboard/sign-out', {method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}'});
    await new Promise((done) => { const events = new EventSource('%(url)s/api/events', {withCredentials: true});
        events.onmessage = () => { seen.push(['events', 'read']); done(); };
        events.onerror = () => { events.close(); done(); };
        setTimeout(done, 3000); });
    document.getElementById('form').submit();
    await new Promise((done) => setTimeout(done, 500));
    const script = document.createElement('script'); script.src = '%(url)s/api/dashboard/session';
    await new Promise((done) => { script.onload = script.onerror = done; document.body.append(script); });
    let framed = '';
    try { framed = document.getElementById('frame').contentDocument?.body?.innerText ?? ''; }
    catch (error) { framed = ''; }
    const opened = window.open('%(url)s/dashboard/');
    await new Promise((done) => setTimeout(done, 500));
    let read = ''; try { read = opened?.document?.body?.innerText ?? ''; } catch (error) { read = ''; }
    return {seen, framed, read};
})()"""


@whole
async def test_hostile_page_of_another_origin_reads_and_does_nothing(desk: Desk) -> None:
    mine = await desk.signed_in("board")
    url = desk.api.url
    async with other_origin(HOSTILE_PAGE.format(url=url)) as address:
        page = await desk.browser.page(beside=mine)  # the same person: the cookie is there
        await page.goto(address)
        told = await page.run(ATTACKS % {"url": url})
    assert [line for line in told["seen"] if line[1] not in {"failed", 0, 403}] == []
    assert (told["framed"], told["read"]) == ("", "")
    answer = await desk.api.get("/api/kanban/tasks")
    assert answer.json["data"] == []
    await mine.goto(desk.url("overview"))
    await mine.wait("document.querySelector('.sentence')")  # still signed in


@whole
async def test_stolen_addresses_sign_nobody_in(desk: Desk) -> None:
    """The link after it was used, and every address that a history, a log or a screenshot may hold."""
    link = await desk.link()
    mine = await desk.browser.page()
    await mine.goto(link)
    await mine.wait("document.querySelector('.frame')")
    after = await mine.run("location.href")
    for address in (link, after, desk.url("settings")):
        thief = await desk.browser.page()
        await thief.goto(address)
        await thief.wait("document.querySelector('.sign-in')")
        assert await thief.run("fetch('/api/dashboard/session').then((answer) => answer.status)") == 401
        await thief.close()
    assert await mine.run("fetch('/api/dashboard/session').then((answer) => answer.status)") == 200
