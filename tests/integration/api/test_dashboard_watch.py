"""What the dashboard shows of a running gateway: messages and their life, usage, logs, and what changes, live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from hermes.core.roles import PersonRole
from hermes.hosting import paths
from hermes.hosting.logs import format as log_format
from hermes.servers.api.context import ApiParts, Caller
from hermes.servers.api.watch import events as events_of_dashboard
from hermes.servers.api.watch.events import MAX_REMEMBERED, MAX_WAITING, EventHub, Listener
from hermes.store import inbox, outbox
from hermes.store.db import Tx
from hermes.store.inbox import InboxState, Incoming
from hermes.store.outbox import OutboxKind, Outgoing
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel
from tests.fakes.silent import silent_server
from tests.fakes.telegram import FakeTelegram
from tests.integration.api.serving import Served, served
from tests.integration.conftest import Start

SECONDS = 20


@pytest.fixture
async def api(start: Start) -> AsyncIterator[Served]:
    async with served(start) as running, asyncio.timeout(SECONDS):
        yield running


async def chat(api: Served, text: str, session: str = "talk", **who: str) -> None:
    body = {"messages": [{"role": "user", "content": text}]}
    http = api.stranger if who else api.http
    async with http.post("/v1/chat/completions", json=body, headers={"X-Hermes-Session-Id": session, **who}) as answer:
        assert answer.status == 200, await answer.text()


class Events:
    """An open stream, read event by event."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.last_id = ""

    async def next(self, *kinds: str) -> tuple[str, Any]:
        """Return the next event, or the next of these kinds."""
        kind, data = "", b""
        async for line in self._response.content:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "id":
                self.last_id = value
            elif name == "data":
                data = value.encode()
            elif not line.strip() and kind:
                if not kinds or kind in kinds:
                    return kind, orjson.loads(data)
                kind = ""
        raise AssertionError("The stream ended.")


@asynccontextmanager
async def listening(api: Served, last_id: str = "", **who: str) -> AsyncIterator[Events]:
    http = api.stranger if who else api.http
    headers = {**who, **({"Last-Event-ID": last_id} if last_id else {})}
    async with http.get("/api/events", headers=headers) as response:
        assert response.status == 200, await response.text()
        yield Events(response)


async def test_a_message_is_listed_with_its_outcome_and_shown_step_by_step(api: Served, telegram: FakeTelegram) -> None:
    telegram.user_says("what time is it?")
    await telegram.wait_for(lambda: any("what time" in sent.text for sent in telegram.sent), 10)
    await chat(api, "hello there")
    while True:
        listed = (await api.get("/api/messages?direction=in")).json["data"]
        if len(listed) == 2 and {one["outcome"] for one in listed} == {"answered"}:
            break
        await asyncio.sleep(0.05)
    assert [(one["platform"], one["text"]) for one in listed] == [
        ("api", "hello there"),
        ("telegram", "what time is it?"),
    ]
    only = (await api.get("/api/messages?platform=telegram&query=TIME")).json["data"]
    assert [one["direction"] for one in only] == ["out", "in"]
    first = (await api.get("/api/messages?limit=1")).json
    assert first["has_more"] is True
    second = (await api.get(f"/api/messages?limit=1&before={first['next_before']}")).json["data"]
    assert first["data"][0]["id"] != second[0]["id"]
    shown = (await api.get(f"/api/messages/{listed[1]['id']}")).json
    assert [step["kind"] for step in shown["steps"]] == ["in", "turn", "model", "turn", "out"]
    assert shown["turn"]["state"] == "done"
    assert (await api.get("/api/messages/ev_none")).status == 404
    assert (await api.get("/api/messages?state=nonsense")).status == 400
    assert (await api.get("/api/messages?before=nonsense")).status == 400


async def test_a_dead_letter_is_sent_again(api: Served, telegram: FakeTelegram) -> None:
    def die(tx: Tx) -> None:
        body = '{"target":"telegram:7","text":"lost words"}'
        row = Outgoing("ob_1", "telegram:7", "g_1", 0, OutboxKind.NOTICE, body, expires_at=1e12)
        outbox.enqueue(tx, [row], now=api.gateway.clock.now() + 1e6)
        tx.run("UPDATE outbox SET state = 'dead', settled_at = 1, reason = 'chat not found' WHERE id = 'ob_1'")

    await api.gateway.db.write(die)
    [dead] = (await api.get("/api/messages?state=dead")).json["data"]
    assert (dead["can_retry"], dead["reason"], dead["outcome"]) == (True, "chat not found", "not delivered")
    again = await api.post("/api/messages/ob_1/retry", {})
    assert again.status == 200, again.body
    assert (await api.post("/api/messages/ob_1/retry", {})).status in (200, 409)
    assert (await api.post("/api/messages/ob_none/retry", {})).status == 404


async def test_usage_is_summed_by_day_model_and_person(api: Served, model: FakeModel) -> None:
    model.says("Paid for.", cost=0.25)
    ana = await api.new_key("ana", "user")
    await chat(api, "one")
    await chat(api, "two", "other", **ana)
    everybody = (await api.get("/api/usage?days=7")).json
    assert len(everybody["by_day"]) == 7
    assert (everybody["by_day"][-1]["turns"], everybody["by_day"][-1]["messages"]) == (2, 2)
    assert everybody["by_model"][0]["turns"] == 2
    assert (everybody["by_day"][-1]["cost"], (await api.get("/api/overview")).json["cost_today"]) == (0.25, 0.25)
    assert len(everybody["by_person"]) == 2
    async with api.stranger.get("/api/usage", headers=ana) as answer:
        own = await answer.json()
    assert (own["by_day"][-1]["turns"], own["by_day"][-1]["messages"], own["by_person"]) == (1, 1, [])


async def test_the_log_is_filtered_and_followed(api: Served) -> None:
    path = paths.log(str(api.gateway.home))
    Path(path).parent.mkdir(exist_ok=True)
    for level, words in (("INFO", "Connected"), ("WARNING", "Disconnected"), ("ERROR", "Request failed")):
        log_format.append(path, log_format.line(1_780_000_000.0, level, words, {"platform": "telegram"}))
    log_format.append(path, "  Traceback: of the line before")
    found = (await api.get("/api/logs?level=WARNING")).json["data"]
    assert [(one["level"], one["source"]) for one in found] == [("WARNING", "telegram"), ("ERROR", "telegram")]
    assert "Traceback" in found[1]["text"]
    assert len((await api.get("/api/logs?query=dISConn")).json["data"]) == 1
    async with api.http.get("/api/logs/events?level=ERROR") as response:
        assert await response.content.readline() == b": follows\n"
        log_format.append(path, log_format.line(1_780_000_001.0, "INFO", "Connected", {}))
        log_format.append(path, log_format.line(1_780_000_001.0, "ERROR", "Store is down", {}))
        kind, data = await Events(response).next("log")
        assert (kind, data["text"]) == ("log", "Store is down")


async def test_what_changes_is_told_at_once_and_again_to_those_who_were_away(
    api: Served, telegram: FakeTelegram
) -> None:
    async with listening(api) as events:
        assert (await events.next())[0] == "hello"
        telegram.user_says("good morning")
        _, message = await events.next("message")
        assert (message["direction"], message["platform"]) == ("in", "telegram")
        while (await events.next("turn"))[1]["state"] != "done":
            pass
        last_id = events.last_id
    await chat(api, "while you were away")
    await asyncio.sleep(0)
    async with listening(api, last_id) as events:
        assert (await events.next())[0] == "hello"
        kind, message = await events.next("message", "reload")
        while message.get("platform") != "api":  # the reply to the first may come in between
            kind, message = await events.next("message", "reload")
        assert kind == "message"
    async with listening(api, "0badcafe-17") as events:
        assert [(await events.next())[0] for _ in range(2)] == ["hello", "reload"]


async def test_a_key_hears_of_its_own_and_of_nobody_elses(api: Served, telegram: FakeTelegram) -> None:
    ana, bob = await api.new_key("ana", "user"), await api.new_key("bob", "user")
    await chat(api, "hello", "a", **ana)
    await chat(api, "hello", "b", **bob)
    async with listening(api, **ana) as events:
        assert (await events.next())[0] == "hello"
        telegram.user_says("a secret of the owner")
        await telegram.wait_for(lambda: any("secret" in sent.text for sent in telegram.sent), 10)
        await chat(api, "bob's words", "b", **bob)
        async with api.stranger.post("/api/kanban/tasks", json={"title": "Bob's task"}, headers=bob) as answer:
            assert answer.status == 201
        await chat(api, "ana's words", "a", **ana)
        heard: list[tuple[str, Any]] = []
        while not (heard and heard[-1][0] == "turn" and heard[-1][1]["state"] == "done"):
            heard.append(await events.next())
    assert {data["session_key"] for kind, data in heard if kind in ("message", "turn", "session")} == {
        heard[-1][1]["session_key"]
    }
    assert {kind for kind, _ in heard} <= {"message", "turn", "session"}


async def test_a_revoked_key_hears_nothing_more(
    api: Served, telegram: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.servers.api.watch.events.KEEP_ALIVE_SECONDS", 0.2)
    ana = await api.new_key("ana", "admin")
    async with listening(api, **ana) as events:
        assert (await events.next())[0] == "hello"
        await api.revoke("ana")
        with pytest.raises(AssertionError, match="stream ended"):
            await events.next("none of them")


async def test_one_key_leaves_room_for_the_streams_of_others(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_of_dashboard, "MAX_OF_ONE_KEY", 2)
    guest = await api.new_key("guest", "guest")
    async with listening(api, **guest), listening(api, **guest):
        async with api.stranger.get("/api/events", headers=guest) as refused:
            assert refused.status == 429
        async with listening(api) as events:
            assert (await events.next())[0] == "hello"


async def test_two_pages_that_open_at_once_begin_one_round_of_looks(start: Start) -> None:
    async with served(start) as api:
        hub = EventHub(ApiParts(api.gateway))
        caller = Caller("desk", PersonRole.OWNER)
        before = asyncio.all_tasks()
        await asyncio.gather(*(hub.attach(Listener(caller, "local")) for _ in range(3)))
        begun = [task for task in asyncio.all_tasks() - before if task.get_name() == "dashboard events"]
        try:
            assert len(begun) == 1
        finally:
            for task in begun:
                task.cancel()
            await asyncio.wait(begun)


async def test_pages_that_come_at_once_share_one_look_at_the_tables(api: Served) -> None:
    hub = EventHub(ApiParts(api.gateway))
    pages = [Listener(Caller("desk", PersonRole.OWNER), "-") for _ in range(5)]
    before = asyncio.all_tasks()
    await asyncio.gather(*map(hub.attach, pages))
    looking = [task for task in asyncio.all_tasks() - before if task.get_name() == "dashboard events"]
    await hub.end()
    assert len(looking) == 1
    assert looking[0].done()


@pytest.mark.one_python
async def test_eight_hours_of_listening_leave_nothing_behind(start: Start) -> None:
    """28,800 seconds at one look each ten: messages come, pages come and go, and nothing is kept of them."""
    clock = FakeClock()
    async with served(start, clock=clock) as api, asyncio.timeout(SECONDS * 3):
        hub = EventHub(ApiParts(api.gateway))
        owner = Caller("desk", PersonRole.OWNER)
        resting, slow = Listener(owner, "-"), Listener(owner, "-")
        await hub.attach(resting)
        await hub.attach(slow)
        tasks = len(asyncio.all_tasks())
        sizes = []
        for number in range(2880):
            clock.advance(10)
            if number % 10 == 0:
                await api.gateway.db.write(_arrive, f"ev_{number}", now=clock.now())
            guest = Listener(owner, "-")
            await hub.attach(guest)
            await hub.look()
            hub.detach(guest)
            resting.waiting.clear()  # it reads all; the slow one reads nothing
            sizes.append(hub.size)
        assert hub.listeners == {resting, slow}
        assert max(sizes[200:]) <= max(sizes[:200]) + MAX_REMEMBERED
        assert len(slow.waiting) <= MAX_WAITING
        assert len(asyncio.all_tasks()) <= tasks + 1
        await hub.end()


def _arrive(tx: Tx, event_id: str, *, now: float) -> None:
    key = "agent:main:telegram:dm:7"
    row = Incoming(event_id, (event_id,), key, "telegram", "main", "message", "7", "{}", InboxState.REFUSED, now)
    inbox.accept(tx, [row], now=now)


async def test_the_overview_shows_the_gateway_of_another_machine(start: Start) -> None:
    async with served(start) as other:
        base = other.url.rstrip("/")
        async with served(start, folder="b", GATEWAY_HEALTH_URL=f"{base}/health") as api, asyncio.timeout(SECONDS):
            shown = (await api.get("/api/overview")).json["remote"]
            assert shown["state"] in ("running", "degraded")
            assert (shown["url"], shown["sentence"].partition(base)[0][:16]) == (base, "Running (remote)")
            assert "运行中（远程）" in (await api.get("/api/overview?language=zh")).json["remote"]["sentence"]
            bob = await api.new_key("bob", "user")
            async with api.stranger.get("/api/overview", headers=bob) as answer:
                assert (await answer.json())["remote"] is None


async def test_an_overview_does_not_wait_for_a_gateway_that_does_not_answer(start: Start) -> None:
    async with asyncio.timeout(SECONDS), silent_server() as port:
        url = f"http://127.0.0.1:{port}"
        async with served(start, GATEWAY_HEALTH_URL=url, GATEWAY_HEALTH_TIMEOUT="1.5") as api:
            first = (await api.get("/api/overview")).json["remote"]
            assert (first["url"], first["state"]) == (url, "asking")
            while (shown := (await api.get("/api/overview")).json["remote"])["state"] == "asking":
                assert shown["url"] == url
            assert shown["state"] == "unreachable"
            assert "timed out" in shown["sentence"]
