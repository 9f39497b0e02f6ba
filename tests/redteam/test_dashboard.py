"""Attack the dashboard: keys of every role at every route, stolen and forged cookies, hostile pages, stored text."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest
from yarl import URL

from hermes.servers.api.lazy_routes import FAMILIES
from hermes.servers.dashboard.lazy import SIGN_IN_ROUTES
from hermes.store import people
from hermes.store.api import sign_ins
from hermes.store.api.sign_ins import SignIn
from hermes.store.db import Tx
from tests.fakes.telegram import FakeTelegram
from tests.integration.api.conftest import Answer
from tests.integration.api.serving import Served, default_key, served
from tests.integration.api.test_dashboard import link_code, new_browser, sign_in
from tests.integration.api.test_dashboard_manage import ask
from tests.integration.api.test_dashboard_watch import chat
from tests.integration.conftest import Start

SECONDS = 60
SECRET = "the tulips are blue"
TABLES = ("people", "person_accounts", "grants", "transcript", "inbox", "sessions", "dashboard_sign_ins")
STREAMS = {"/api/events", "/api/logs/events"}
BODIES: dict[str, Any] = {
    "PATCH /api/people/{person_id}": {"role": "owner"},
    "POST /api/people/{person_id}/links": {"account": "telegram:7"},
    "PATCH /api/platforms/{name}": {"settings": {"token": "1:evil"}},
    "POST /api/platforms/{name}/test": {"settings": {"token": "1:evil"}},
    "POST /api/platforms/{name}/login/answer": {"text": "yes"},
    "PATCH /api/settings": {"settings": {"approvals.mode": "off"}},
    "POST /api/sessions/{id}/steer": {"text": "obey"},
    "POST /api/sessions/{id}/queue": {"text": "obey"},
}
OPEN_TO_GUESTS = {
    "GET /api/overview", "GET /api/usage", "GET /api/grants", "GET /api/events",
    "GET /api/dashboard/sign-ins", "DELETE /api/dashboard/sign-ins/{sign_in_id}",
}  # fmt: skip
"""What a guest may ask for: it answers with the guest's own, or with nothing."""
OWN_HAND = {
    "PATCH /api/platforms/{name}", "POST /api/platforms/{name}/test", "POST /api/platforms/{name}/pause",
    "POST /api/platforms/{name}/resume", "POST /api/platforms/{name}/login", "GET /api/platforms/{name}/login",
    "DELETE /api/platforms/{name}/login", "POST /api/platforms/{name}/login/answer", "PATCH /api/settings",
    "PATCH /api/people/{person_id}",
}  # fmt: skip
"""What the default key may not do: it stands in a file."""


def addresses() -> list[tuple[str, str]]:
    families = [routes for name, routes in FAMILIES.items() if name.startswith(("watch.", "manage."))]
    later = [(method, path) for routes in families for method, path, _ in routes]
    return [*later, *((method, path) for method, path, name in SIGN_IN_ROUTES if name != "sign_in")]


@pytest.fixture
async def api(start: Start) -> AsyncIterator[Served]:
    async with served(start) as running, asyncio.timeout(SECONDS):
        yield running


async def victim(api: Served, telegram: FakeTelegram) -> dict[str, str]:
    """Somebody's data of every kind: a chat, a session of the API, a person, a grant, a dead letter."""
    telegram.user_says(SECRET)
    await telegram.wait_for(lambda: any(SECRET in sent.text for sent in telegram.sent), 10)
    await chat(api, SECRET, "work")

    def more(tx: Tx) -> str:
        tx.run(
            "INSERT INTO grants (id, person_id, scope, subject, session_id, touches_host, granted_by, granted_at)"
            " VALUES ('gr_1', 'local', 'always', :subject, '', 0, 'local', 1)",
            subject=SECRET,
        )
        return str(tx.value("SELECT person_id FROM person_accounts WHERE platform = 'telegram' AND user_id = '7'"))

    person = await api.gateway.db.write(more)
    session = (await api.get("/api/sessions/work")).json["id"]
    message = (await api.get("/api/messages?direction=in")).json["data"][0]["id"]
    return {
        "id": session,
        "person_id": person,
        "grant_id": "gr_1",
        "message_id": message,
        "name": "telegram",
        "sign_in_id": "si_none",
    }


async def attack(
    http: aiohttp.ClientSession, method: str, path: str, known: dict[str, str], headers: dict[str, str]
) -> Answer:
    """Ask, and read what a stream says at first."""
    body = BODIES.get(f"{method} {path}", {} if method != "GET" else None)
    for name, value in known.items():
        path = path.replace(f"{{{name}}}", value)
    async with http.request(method, path, json=body, headers=headers) as answer:
        if path in STREAMS and answer.status == 200:
            return Answer(200, dict(answer.headers), await answer.content.readline())
        return Answer(answer.status, dict(answer.headers), await answer.read())


async def state_of(api: Served) -> str:
    """What an attack could change."""

    def look(tx: Tx) -> str:
        rows = [
            tx.all(f"SELECT * FROM {table} ORDER BY 1", lambda *row: row)
            for table in (
                "people",
                "person_accounts",
                "grants",
                "transcript",
                "inbox",
                "sessions",
                "dashboard_sign_ins",
            )
        ]
        return repr([[each[:3] for each in table] for table in rows])

    config = api.gateway.config
    telegram = config.account("telegram")
    return f"{await api.gateway.db.read(look)} {config.approvals.mode} {telegram.enabled if telegram else ''}"


async def test_no_key_no_cookie_no_answer(api: Served, telegram: FakeTelegram) -> None:
    known = await victim(api, telegram)
    before = await state_of(api)
    forged = {"Cookie": f"hermes_dashboard_{api.server.port}=forged; hermes_dashboard=forged"}
    for headers in ({}, {"Authorization": "Bearer hk_wrong"}, forged):
        for method, path in addresses():
            answer = await attack(api.stranger, method, path, known, headers)
            assert answer.status in (401, 403, 429), f"{method} {path}: {answer.status}"
            assert SECRET not in answer.body.decode()
    assert await state_of(api) == before


@pytest.mark.parametrize("role", ["guest", "user"])
async def test_a_key_of_a_lower_role_sees_and_changes_nothing_of_others(
    api: Served, telegram: FakeTelegram, role: str
) -> None:
    known = await victim(api, telegram)
    key = await api.new_key("mallory", role)
    before = await state_of(api)
    for method, path in addresses():
        answer = await attack(api.stranger, method, path, known, key)
        told = answer.body.decode()
        assert SECRET not in told, f"{method} {path}"
        assert telegram.token not in told
        if f"{method} {path}" in OPEN_TO_GUESTS:
            assert answer.status in (200, 404), f"{method} {path}: {answer.status} {told}"
        else:
            assert answer.status in (401, 403, 404), f"{method} {path}: {answer.status} {told}"
    assert await state_of(api) == before


async def test_the_key_in_the_file_changes_neither_settings_nor_platforms(api: Served, telegram: FakeTelegram) -> None:
    known = await victim(api, telegram)
    for method, path in addresses():
        if f"{method} {path}" in OWN_HAND:
            answer = await attack(api.http, method, path, known, {})
            assert (answer.status, answer.error["code"]) == (403, "key_in_a_file"), f"{method} {path}"
    assert api.gateway.config.approvals.mode != "off"


async def test_the_key_in_the_file_gives_no_account_the_rights_of_another_person(
    api: Served, telegram: FakeTelegram
) -> None:
    known = await victim(api, telegram)
    await api.gateway.db.write(
        lambda tx: people.ensure(tx, "p_boss", platform="qq", user_id="1", name="boss", role="owner", now=1.0)
    )
    await api.gateway.db.write(people.set_role, known["person_id"], "guest")
    before = await state_of(api)
    answer = await api.call("POST", "/api/people/p_boss/links", {"account": "telegram:7"})
    assert (answer.status, answer.json["error"]["code"]) == (403, "key_in_a_file")
    assert await state_of(api) == before


async def test_a_stranger_at_the_sign_in_sends_no_more_than_a_key_needs(api: Served) -> None:
    body = b'{"code": "x", "more": "' + b"x" * 20_000 + b'"}'

    async def in_pieces() -> AsyncIterator[bytes]:
        yield body

    for data in (body, in_pieces()):
        headers = {"Content-Type": "application/json", "Origin": api.url}
        async with api.stranger.post("/api/dashboard/sign-in", data=data, headers=headers) as answer:
            assert answer.status == 413


async def test_a_guest_who_signs_in_a_thousand_times_ends_no_sign_in_of_others(api: Served) -> None:
    browser = new_browser(api)
    await sign_in(api, browser)

    def again(tx: Tx) -> int:
        for number in range(1100):
            at = api.gateway.clock.now() + number
            sign_ins.add(tx, SignIn(f"si_{number}", f"h{number}", "guest", "", "", at, at, at + 9e9))
        return len(sign_ins.listed(tx, now=api.gateway.clock.now()))

    assert await api.gateway.db.write(again) == 51
    assert (await browser.ask("GET", "/api/dashboard/session")).status == 200
    await browser.http.close()


async def test_a_path_that_holds_the_base_path_a_thousand_times_is_just_unknown(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(start, HERMES_DASHBOARD_BASE_PATH="/h") as api, asyncio.timeout(SECONDS):
        async with api.stranger.get("/h" * 2000 + "/health") as answer:
            assert answer.status in (401, 404)
        async with api.stranger.get("/h/health") as answer:
            assert answer.status == 200
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_deleted_session_takes_nothing_of_another_keys_session_of_the_same_name(api: Served) -> None:
    bob, mallory = await api.new_key("bob", "user"), await api.new_key("mallory", "user")
    asked = {"input": SECRET}
    answers = []
    for who in (bob, mallory):
        headers = {**who, "X-Hermes-Session-Id": "application/json", "Idempotency-Key": "first"}
        async with api.stranger.post("/v1/responses", json=asked, headers=headers) as answer:
            assert answer.status == 200
            answers.append((await answer.json())["id"])
    async with api.stranger.post("/v1/responses", json=asked, headers={**bob, "Idempotency-Key": "other"}) as answer:
        other = (await answer.json())["id"]
    path = "/api/sessions/application%2Fjson"
    async with api.stranger.delete(path, headers=mallory) as answer:
        assert answer.status == 200, await answer.text()
    found = []
    for who, name in zip((bob, mallory), answers, strict=True):
        async with api.stranger.get(f"/v1/responses/{name}", headers=who) as answer:
            found.append(answer.status)
    assert found == [200, 404]
    async with api.stranger.post("/v1/responses", json=asked, headers={**bob, "Idempotency-Key": "other"}) as answer:
        assert (await answer.json())["id"] == other, "the answer that was kept for a repeat"


async def test_no_secret_stands_in_any_answer_to_the_owner(api: Served, telegram: FakeTelegram) -> None:
    known = await victim(api, telegram)
    owner = await api.new_key("desk", "owner")
    secrets = [telegram.token, "sk-test-0123456789", default_key(api.gateway).reveal(), owner["Authorization"][7:]]
    for method, path in addresses():
        if method == "GET":
            told = (await attack(api.stranger, method, path, known, owner)).body.decode()
            assert not [secret for secret in secrets if secret in told], path


async def test_a_hostile_page_reads_and_does_nothing_with_the_cookie_of_its_visitor(
    api: Served, telegram: FakeTelegram
) -> None:
    known = await victim(api, telegram)
    browser = new_browser(api)
    await sign_in(api, browser)
    before = await state_of(api)
    hostile: list[dict[str, str]] = [
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": f"http://127.0.0.1:{api.server.port + 1}", "Sec-Fetch-Site": "same-site"},
        {"Origin": f"https://127.0.0.1.evil.example:{api.server.port}"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},  # an image or a form: no Origin for GET
        {"Host": f"evil.example:{api.server.port}", "Origin": f"http://evil.example:{api.server.port}"},
    ]
    for headers in hostile:
        for method, path in addresses():
            answer = await attack(browser.http, method, path, known, headers)
            assert answer.status in (401, 403), f"{method} {path} {headers}: {answer.status}"
            assert "Host" in headers or "Access-Control-Allow-Origin" not in answer.headers
            assert SECRET not in answer.body.decode()
    for csrf in ("", "0" * 64, browser.session["id"]):  # our own origin, without the token
        for method, path in addresses():
            if method != "GET":
                headers = {"Origin": api.url, **({"X-Hermes-CSRF": csrf} if csrf else {})}
                assert (await attack(browser.http, method, path, known, headers)).status == 403
    assert await state_of(api) == before
    await browser.http.close()


async def test_a_code_counts_once_though_many_show_it_at_the_same_time(api: Served) -> None:
    code = await link_code(api)
    browsers = [new_browser(api) for _ in range(10)]
    statuses = [answer.status for answer in await asyncio.gather(*(sign_in(api, one, code=code) for one in browsers))]
    assert statuses.count(200) == 1
    assert set(statuses) <= {200, 401, 429}
    await asyncio.gather(*(one.http.close() for one in browsers))


async def test_neither_code_nor_cookie_nor_key_reaches_the_log(api: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    code, browser = await link_code(api), new_browser(api)
    await sign_in(api, browser, code=code)
    key = default_key(api.gateway).reveal()
    await sign_in(api, new := new_browser(api), key=key)
    await browser.ask("GET", "/api/overview")
    cookies = [cookie.value for cookie in browser.http.cookie_jar]
    assert cookies
    told = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert "Dashboard signed in" in told
    assert not [secret for secret in (code, key, *cookies, browser.session["csrf"]) if secret in told]
    for one in (browser, new):
        await one.http.close()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"code": 7}', b'{"code": ""}', b'{"code": "a", "key": "b"}',
                                  b'{"key": "\\ud800"}', json.dumps({"code": "x" * 10_000}).encode()])  # fmt: skip
async def test_a_sign_in_that_makes_no_sense_is_refused(api: Served, body: bytes) -> None:
    async with api.stranger.post("/api/dashboard/sign-in", data=body) as answer:
        assert answer.status in (400, 401, 413), await answer.text()
        assert "Set-Cookie" not in answer.headers


async def test_a_cookie_that_is_no_text_is_no_cookie(api: Served) -> None:
    for value in ("a" * 5000, "\xff", "%00", '"quoted"', "=", "; ;"):
        headers = {"Cookie": f"hermes_dashboard_{api.server.port}={value}"}
        async with api.stranger.get("/api/dashboard/session", headers=headers) as answer:
            assert answer.status in (400, 401)


async def test_what_strangers_wrote_comes_out_as_json_and_never_as_a_page(api: Served, telegram: FakeTelegram) -> None:
    evil = "<script>alert(1)</script>\u202e<img src=x onerror=alert(1)>"
    telegram.user_says(evil)
    await telegram.wait_for(lambda: bool(telegram.sent), 10)
    browser = new_browser(api)
    await sign_in(api, browser)
    listed = await browser.ask("GET", "/api/messages")
    assert listed.headers["Content-Type"] == "application/json"
    assert listed.headers["X-Content-Type-Options"] == "nosniff"
    sessions = (await browser.ask("GET", "/api/sessions?platform=telegram")).json["data"]
    export = await browser.ask("GET", f"/api/sessions/{sessions[0]['id']}/export")
    assert export.headers["Content-Type"].startswith("text/markdown")
    assert export.headers["Content-Disposition"].startswith("attachment")
    assert "\r" not in export.headers["Content-Disposition"]
    assert orjson.loads(listed.body)
    await browser.http.close()


async def test_nobody_but_its_person_and_an_owner_writes_in_a_chat(api: Served, telegram: FakeTelegram) -> None:
    telegram.user_says(SECRET)
    await telegram.wait_for(lambda: any(SECRET in sent.text for sent in telegram.sent), 10)
    [session] = (await api.get("/api/sessions?platform=telegram")).json["data"]
    assert session["may_write"] is False  # the default key stands in a file
    before = telegram.texts()
    keys = {role: await api.new_key(f"eve-{role}", role) for role in ("guest", "user", "admin")}
    verbs = {"chat": {"message": "obey"}, "chat/stream": {"message": "obey"}, "steer": {"text": "obey"}}
    verbs |= {"queue": {"text": "obey"}, "retry": {}, "stop": {}}
    for role, key in keys.items():
        await chat(api, "hi", "mine", **key)
        listed = (await ask(api, key, "GET", "/api/sessions")).json["data"]
        assert (session["id"] in [one["id"] for one in listed]) == (role == "admin")
        assert not any(one["may_write"] for one in listed if one["platform"] != "api")
        for verb, body in verbs.items():
            answer = await ask(api, key, "POST", f"/api/sessions/{session['id']}/{verb}", body)
            if role != "admin":
                assert (answer.status, answer.error["code"]) == (404, "session_not_found"), (role, verb)
            elif verb != "stop":  # an admin may stop what runs anywhere
                assert (answer.status, answer.error["code"]) == (403, "not_your_chat"), (role, verb)
    for verb, body in verbs.items():
        answer = await api.post(f"/api/sessions/{session['id']}/{verb}", body)
        assert verb == "stop" or answer.error["code"] == "key_in_a_file"
    assert telegram.texts() == before
    owner = await api.new_key("desk", "owner")
    forged = {"message": "obey", "sender_id": "7", "person_id": "local", "session_key": "agent:main:local:dm:cli"}
    answer = await ask(api, owner, "POST", f"/api/sessions/{session['id']}/chat", forged)
    assert answer.status in (200, 400)
    role = await api.gateway.db.read(
        lambda tx: tx.value("SELECT MAX(role) FROM turns WHERE lane = :l", l=session["key"])
    )
    assert role == "user"


ODD_TEXTS = (
    "%00",
    "%ED%A0%80",
    "..%2F..%2Fetc",
    "%2e%2e",
    "a" * 3000,
    "-1",
    "9" * 40,
    "1e308",
    "nan",
    "%F0%9F%92%A9",
    "'--",
)
ODD_VALUES: tuple[Any, ...] = (
    None,
    "",
    "\x00",
    "\ud800",
    "a\u202eb",
    -1,
    2**70,
    1e308,
    True,
    [],
    {},
    ["\ud800"],
    {"\x00": "\ud800"},
)
LISTS = {
    "/api/sessions",
    "/api/jobs",
    "/api/kanban/tasks",
    "/api/kanban/events",
    "/api/approvals",
    "/v1/skills",
    "/v1/toolsets",
}
FILTERS = (
    "limit",
    "before",
    "after",
    "query",
    "state",
    "direction",
    "platform",
    "days",
    "level",
    "language",
    "cursor",
    "format",
)


async def test_odd_paths_pages_and_bodies_of_an_owner_are_refused_and_break_nothing(
    api: Served, telegram: FakeTelegram, caplog: pytest.LogCaptureFixture
) -> None:
    """Each odd value at some of the routes; with HERMES_TEST_WALK=all each at every route, in a minute or two."""
    known = await victim(api, telegram)
    owner = await api.new_key("desk", "owner")
    turn = itertools.count()
    one_in = 1 if os.environ.get("HERMES_TEST_WALK") == "all" else 9  # shares no factor with the numbers of values
    walked = [*addresses(), *(("GET", path) for path in sorted(LISTS))]
    broken: list[str] = []

    async def ask_raw(method: str, path: str, data: bytes | None = None) -> None:
        if next(turn) % one_in:
            return
        url = URL(f"{api.url.rstrip('/')}{path}", encoded=True)
        headers = {**owner, "Content-Type": "application/json"}
        async with api.stranger.request(method, url, data=data, headers=headers, allow_redirects=False) as answer:
            told = b"" if path.partition("?")[0] in STREAMS else await answer.read()
            if answer.status >= 500 or b"Traceback" in told:
                broken.append(f"{method} {path[:80]} {data!r:.80}: {answer.status} {told!r:.200}")

    for method, path in walked:
        named = path
        for name, value in known.items():
            named = named.replace(f"{{{name}}}", value)
        if path in STREAMS:
            continue
        for other in ("HEAD", "OPTIONS", "TRACE", "PUT"):
            await ask_raw(other, named)
        if "{" in path:
            for odd in ODD_TEXTS:
                await ask_raw(method, re.sub(r"\{[^}]*\}", odd, path), b"{}" if method != "GET" else None)
        if method == "GET":
            for name in FILTERS:
                for odd in ODD_TEXTS:
                    await ask_raw("GET", f"{named}?{name}={odd}")
        elif not named.endswith(("/login", "/pause", "/resume")):
            fields = BODIES.get(f"{method} {path}", {"text": ""})
            for field in fields:
                for value in ODD_VALUES:
                    await ask_raw(method, named, json.dumps({field: value}).encode())
    assert broken == []
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
    assert (await api.get("/api/overview")).status == 200


async def test_a_revoked_cookie_opens_no_route(api: Served, telegram: FakeTelegram) -> None:
    known = await victim(api, telegram)
    browser, other = new_browser(api), new_browser(api)
    await sign_in(api, browser)
    await sign_in(api, other)
    revoked = await other.ask("DELETE", f"/api/dashboard/sign-ins/{browser.session['id']}")
    assert revoked.status == 200
    before = await state_of(api)
    shown = {"Origin": api.url, "X-Hermes-CSRF": browser.session["csrf"]}
    for method, path in addresses():
        answer = await attack(browser.http, method, path, known, shown)
        assert (answer.status, answer.error["code"]) == (401, "signed_out"), f"{method} {path}"
    assert await state_of(api) == before
    for one in (browser, other):
        await one.http.close()
