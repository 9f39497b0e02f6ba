"""The dashboard over real HTTP: signing in, the cookie, the page's files, and what other pages cannot do."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from hermes.core.errors import GatewayError
from hermes.hosting.control.handlers.dashboard import DashboardVerbs
from tests.fakes.clock import FakeClock
from tests.integration.api.conftest import Answer
from tests.integration.api.serving import Quiet, Served, default_key, served
from tests.integration.conftest import Start

SECONDS = 20


@pytest.fixture
async def api(start: Start) -> AsyncIterator[Served]:
    async with served(start) as running, asyncio.timeout(SECONDS):
        yield running


@dataclass
class Browser:
    """A browser with our page open: it keeps the cookie, and the page repeats the token."""

    http: aiohttp.ClientSession
    origin: str
    session: dict[str, Any]

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Ask as our own page does; ``headers`` replace what the browser would send, '' leaves one out."""
        sent = {"Origin": self.origin, "X-Hermes-CSRF": self.session.get("csrf", "")}
        if method == "GET":
            sent = {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        shown = {name: value for name, value in sent.items() if value}
        async with self.http.request(method, path, json=body, headers=shown, allow_redirects=False) as answer:
            return Answer(answer.status, dict(answer.headers), await answer.read())


def new_browser(api: Served) -> Browser:
    jar = aiohttp.CookieJar(unsafe=True)  # the host is an address
    return Browser(aiohttp.ClientSession(api.url, cookie_jar=jar), api.url, {})


async def link_code(api: Served) -> str:
    """What `hermes dashboard` asks the gateway for."""
    verbs = DashboardVerbs(api.gateway.db, api.gateway.clock, lambda: api.gateway.config, lambda: api.url)
    made = await verbs.mapping()["dashboard.link"]({}, Quiet())
    return str(made["url"]).partition("#sign-in=")[2]


async def sign_in(api: Served, browser: Browser, **proof: str) -> Answer:
    answer = await browser.ask("POST", "/api/dashboard/sign-in", proof or {"code": await link_code(api)})
    if answer.status == 200:
        browser.session = answer.json
    return answer


@pytest.fixture
async def browser(api: Served) -> AsyncIterator[Browser]:
    one = new_browser(api)
    try:
        yield one
    finally:
        await one.http.close()


async def test_a_link_signs_the_owner_in_once_and_the_cookie_then_counts_as_a_key(
    api: Served, browser: Browser
) -> None:
    code = await link_code(api)
    answer = await sign_in(api, browser, code=code)
    assert answer.status == 200, answer.body
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/" in cookie
    assert "Secure" not in cookie
    assert browser.session["role"] == "owner"
    assert browser.session["pages"][:2] == ["chat", "overview"]
    assert "settings" in browser.session["pages"]
    assert (await browser.ask("GET", "/api/dashboard/session")).json["csrf"] == browser.session["csrf"]
    assert (await browser.ask("GET", "/v1/models")).status == 200
    assert (await browser.ask("GET", "/api/sessions")).status == 200
    assert (await browser.ask("GET", "/api/overview")).json["sentence"] == "All is well."
    again = await sign_in(api, browser, code=code)
    assert (again.status, again.error["code"]) == (401, "invalid_code")


async def test_a_code_that_is_too_old_signs_nobody_in(start: Start) -> None:
    clock = FakeClock()
    async with served(start, clock=clock) as api, asyncio.timeout(SECONDS):
        browser, code = new_browser(api), await link_code(api)
        clock.advance(301)
        assert (await sign_in(api, browser, code=code)).error["code"] == "invalid_code"
        await browser.http.close()


async def test_a_sign_in_that_is_too_large_names_no_setting_that_would_not_help(api: Served, browser: Browser) -> None:
    answer = await sign_in(api, browser, code="x" * 10_001)
    assert (answer.status, answer.error["message"]) == (413, "The body is larger than 10,000 bytes. Send less.")


async def test_the_address_of_a_page_that_was_signed_in_signs_nobody_in(api: Served, browser: Browser) -> None:
    """What a stolen history, log or screenshot holds: the address with its code, and the addresses after that."""
    code = await link_code(api)
    await sign_in(api, browser, code=code)
    thief = new_browser(api)
    try:
        assert (await sign_in(api, thief, code=code)).status == 401
        for path in (f"/dashboard/?sign-in={code}", f"/api/dashboard/session?code={code}", f"/api/sessions?key={code}"):
            answer = await thief.ask("GET", path)
            assert answer.status in (200, 401)
            assert "Set-Cookie" not in answer.headers
        assert (await thief.ask("GET", "/api/dashboard/session")).status == 401
    finally:
        await thief.http.close()


async def test_a_change_needs_the_token_and_our_own_page(api: Served, browser: Browser) -> None:
    await sign_in(api, browser)
    made = await browser.ask("POST", "/api/kanban/tasks", {"title": "Water the plants"})
    assert made.status == 201, made.body
    task = {"title": "Evil"}
    refused = {
        "csrf_missing": {"X_Hermes_CSRF": ""},
        "csrf_wrong": {"X_Hermes_CSRF": "0" * 64},
        "origin_not_allowed": {"Origin": "http://evil.example"},
    }
    for code, headers in refused.items():
        answer = await browser.ask("POST", "/api/kanban/tasks", task, **headers)
        assert (answer.status, answer.error["code"]) == (403, code)
    near = f"http://127.0.0.1:{api.server.port + 1}"  # another program's page on this host has the same cookies
    for headers in (
        {"Origin": near},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Origin": "null"},
    ):
        assert (await browser.ask("POST", "/api/kanban/tasks", task, **headers)).status == 403
        assert (await browser.ask("GET", "/api/sessions", **headers)).status == 403
        assert "Access-Control-Allow-Origin" not in (await browser.ask("GET", "/api/sessions", **headers)).headers
    titles = [one["title"] for one in (await browser.ask("GET", "/api/kanban/tasks")).json["data"]]
    assert titles == ["Water the plants"]


async def test_another_page_that_may_use_the_api_may_not_use_the_cookie(start: Start) -> None:
    friend = "http://friend.example"
    async with served(start, API_SERVER_CORS_ORIGINS=friend) as api, asyncio.timeout(SECONDS):
        browser = new_browser(api)
        await sign_in(api, browser)
        answer = await browser.ask("GET", "/api/sessions", Origin=friend)
        assert (answer.status, answer.error["code"]) == (403, "origin_not_allowed")
        await browser.http.close()


async def test_a_name_that_was_made_to_point_here_is_refused(api: Served, browser: Browser) -> None:
    """DNS rebinding: the hostile page has our address, and its own name."""
    await sign_in(api, browser)
    for path in ("/dashboard/", "/", "/api/dashboard/session", "/api/events"):
        answer = await browser.ask("GET", path, Host=f"evil.example:{api.server.port}")
        assert (answer.status, answer.error["code"]) == (403, "host_not_allowed")
    answer = await browser.ask("POST", "/api/dashboard/sign-in", {"code": await link_code(api)}, Host="evil.example")
    assert answer.status == 403


async def test_a_named_key_signs_in_with_its_role_and_its_end_signs_it_out(api: Served, browser: Browser) -> None:
    key = (await api.new_key("phone", "guest"))["Authorization"].removeprefix("Bearer ")
    assert (await sign_in(api, browser, key="hk_wrong")).error["code"] == "invalid_api_key"
    assert (await sign_in(api, browser, key=key)).status == 200
    assert (browser.session["name"], browser.session["role"]) == ("phone", "guest")
    assert "settings" not in browser.session["pages"]
    assert (await browser.ask("GET", "/api/pairings")).status == 403
    await api.revoke("phone")
    answer = await browser.ask("GET", "/api/sessions")
    assert (answer.status, answer.error["code"]) == (401, "signed_out")


async def test_signing_out_and_revoking_end_a_sign_in(api: Served, browser: Browser) -> None:
    await sign_in(api, browser)
    other = new_browser(api)
    await sign_in(api, other, key=default_key(api.gateway).reveal())
    listed = (await browser.ask("GET", "/api/dashboard/sign-ins")).json["data"]
    assert sorted(one["name"] for one in listed) == ["dashboard", "default"]
    assert [one["is_this"] for one in listed if one["id"] == browser.session["id"]] == [True]
    gone = await browser.ask("DELETE", f"/api/dashboard/sign-ins/{other.session['id']}")
    assert gone.json["deleted"] is True
    assert (await other.ask("GET", "/api/sessions")).status == 401
    assert (await browser.ask("POST", "/api/dashboard/sign-out")).json["deleted"] is True
    assert (await browser.ask("GET", "/api/dashboard/session")).status == 401
    assert "hermes_dashboard" not in str(list(browser.http.cookie_jar))
    await other.http.close()


async def test_many_wrong_codes_are_refused_for_a_while(api: Served, browser: Browser) -> None:
    statuses = [(await sign_in(api, browser, code=f"wrong{number}")).status for number in range(40)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert (await sign_in(api, browser)).status == 200  # a right one is never refused


async def test_the_page_is_the_same_everywhere_below_its_address_and_allows_nothing_inline(
    api: Served, browser: Browser
) -> None:
    home = await browser.ask("GET", "/", Accept="text/html,*/*")
    assert (home.status, home.headers["Location"]) == (302, "/dashboard/")
    assert (await browser.ask("GET", "/", Accept="application/json")).status == 404
    pages = [
        await browser.ask("GET", path)
        for path in ("/dashboard", "/dashboard/", "/dashboard/jobs", "/dashboard/sessions/s_1")
    ]
    assert {page.status for page in pages} == {200}
    assert len({page.body for page in pages}) == 1
    policy = pages[0].headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert pages[0].headers["Content-Type"] == "text/html; charset=utf-8"
    for path in (
        "/dashboard/assets/none.js",
        "/dashboard/assets/..%2f..%2fsign_in.py",
        "/dashboard/%2e%2e%2fsign_in.py",
    ):
        answer = await browser.ask("GET", path)
        assert answer.status == 404 or answer.body == pages[0].body
        assert b"import" not in answer.body


async def test_a_proxy_may_show_the_gateway_under_a_path_and_by_https(start: Start) -> None:
    environ: dict[str, Any] = {
        "HERMES_DASHBOARD_BASE_PATH": "/hermes",
        "HERMES_TRUSTED_PROXIES": "127.0.0.1",
        "API_SERVER_ALLOWED_HOSTS": "box.example.ts.net",
    }
    async with served(start, **environ) as api, asyncio.timeout(SECONDS):
        browser = new_browser(api)
        passed = {
            "X-Forwarded-Host": "box.example.ts.net",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-For": "100.64.0.7",
        }
        headers = {**passed, "Origin": "https://box.example.ts.net"}
        code = {"code": await link_code(api)}
        async with browser.http.post("/hermes/api/dashboard/sign-in", json=code, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            told, cookie = await answer.json(), answer.headers["Set-Cookie"]
        assert "Secure" in cookie
        assert "Path=/hermes/" in cookie
        assert told["base_path"] == "/hermes"
        token = cookie.partition("=")[2].partition(";")[0]
        shown = {**passed, "Cookie": f"hermes_dashboard={token}"}
        async with browser.http.get("/hermes/api/dashboard/sign-ins", headers=shown) as answer:
            assert [one["address"] for one in (await answer.json())["data"]] == ["100.64.0.7"]
        async with browser.http.get("/hermes/dashboard/jobs") as answer:
            assert answer.status == 200
        await browser.http.close()


async def test_headers_of_a_proxy_that_nobody_named_count_for_nothing(api: Served, browser: Browser) -> None:
    headers = {"X_Forwarded_Host": "127.0.0.1", "X_Forwarded_Proto": "https", "X_Forwarded_For": "10.0.0.1"}
    answer = await browser.ask("POST", "/api/dashboard/sign-in", {"code": await link_code(api)}, **headers)
    assert "Secure" not in answer.headers["Set-Cookie"]
    listed = (await browser.ask("GET", "/api/dashboard/sign-ins")).json["data"]
    assert [one["address"] for one in listed] == ["127.0.0.1"]
    answer = await browser.ask("GET", "/dashboard/", Host="evil.example", X_Forwarded_Host="127.0.0.1")
    assert answer.status == 403


async def test_a_dashboard_that_is_switched_off_signs_nobody_in(start: Start) -> None:
    async with served(start, HERMES_DASHBOARD_ENABLED="false") as api, asyncio.timeout(SECONDS):
        browser = new_browser(api)
        assert (await browser.ask("GET", "/dashboard/")).status == 404
        assert (await sign_in(api, browser, key=default_key(api.gateway).reveal())).status == 404
        with pytest.raises(GatewayError, match="switched off"):
            await link_code(api)
        assert (await api.get("/v1/models")).status == 200
        await browser.http.close()


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root becomes another user")
async def test_a_link_for_one_user_of_the_machine_signs_no_other_in(api: Served, browser: Browser) -> None:
    """Every user reads the arguments of a browser: a link among them is worth nothing to the others."""
    verbs = DashboardVerbs(api.gateway.db, api.gateway.clock, lambda: api.gateway.config, lambda: api.url)
    made = await verbs.mapping()["dashboard.link"]({"uid": os.getuid()}, Quiet())
    code = str(made["url"]).partition("#sign-in=")[2]
    post = "import json, sys, urllib.request, urllib.error\n"
    post += "request = urllib.request.Request(sys.argv[1], json.dumps({'code': sys.argv[2]}).encode())\n"
    post += "request.add_header('Content-Type', 'application/json')\n"
    post += "try: print(urllib.request.urlopen(request, timeout=10).status)\n"
    post += "except urllib.error.HTTPError as error: print(error.code, error.read().decode())\n"
    url = f"{api.url.rstrip('/')}/api/dashboard/sign-in"
    python = shutil.which("python3", path="/usr/bin") or sys.executable  # ours may lie in root's home
    thief = await asyncio.create_subprocess_exec(
        python, "-I", "-c", post, url, code, user=65534, cwd="/", stdout=asyncio.subprocess.PIPE
    )
    told, _ = await thief.communicate()
    assert told.decode().startswith("401 "), told
    assert "hermes dashboard --no-open" in told.decode()
    assert (await sign_in(api, browser, code=code)).status == 200  # the attempt did not spend it
    assert (await sign_in(api, browser, code=code)).status == 401
