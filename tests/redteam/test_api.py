"""Attack the API: reused names, floods of keys, smuggled headers, feeds without end. Sessions: test_api_sessions.py.

The gateway is real, its port is real, and the model does whatever the attacker's words say.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import make_mocked_request

from hermes.core.bounded import MOST_KEYS
from hermes.servers.api.auth import TRUSTED_SECONDS
from hermes.servers.api.limits import WRONG_KEYS_PER_MINUTE, WrongKeys, address_of
from hermes.servers.api.run_reader import FEEDS
from hermes.servers.api.streams.run_events import FeedLimits, RunFeed, RunFeeds
from hermes.services.events import EventBus, SegmentEnded, TextArrived, ToolStarted, TurnStarted
from hermes.store import grants, people
from hermes.store.db import Tx
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, calls_tools
from tests.integration.api.conftest import Answer
from tests.integration.api.others import run_is
from tests.integration.api.serving import Served, served
from tests.integration.conftest import Start
from tests.redteam.api_calls import SECRET, ask, chat, heard

SECONDS = 20


@pytest.fixture
async def api(start: Start) -> AsyncIterator[Served]:
    async with served(start) as running, asyncio.timeout(SECONDS):
        yield running


# A name that is used again


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/runs"])
async def test_the_answers_of_a_revoked_key_are_not_replayed_to_the_next_of_its_name(
    api: Served, model: FakeModel, path: str
) -> None:
    body = {"messages": [{"role": "user", "content": SECRET}]} if "chat" in path else {"input": SECRET}
    victim = await api.new_key("phone", "user")
    model.script(["your code is 4711"])
    first = await ask(api, victim, "POST", path, body, Idempotency_Key="k1")
    assert first.status in (200, 202)
    await api.revoke("phone")
    attacker = await api.new_key("phone", "user")
    model.script(["nothing"])
    again = await ask(api, attacker, "POST", path, body, Idempotency_Key="k1")
    assert "Idempotent-Replayed" not in again.headers
    assert "4711" not in again.body.decode()
    assert path != "/v1/runs" or again.json["run_id"] != first.json["run_id"]


async def test_the_grants_of_a_revoked_key_are_not_those_of_the_next_of_its_name(api: Served) -> None:
    async def person_of(headers: dict[str, str]) -> str:
        await chat(api, headers, "hello")
        accounts = await api.gateway.db.read(people.accounts)
        return [account for account in accounts if account.platform == "api"][-1].person_id

    victim = await person_of(await api.new_key("phone", "user"))
    await api.revoke("phone")
    attacker = await person_of(await api.new_key("phone", "user"))
    assert attacker != victim

    def grant_ids(tx: Tx) -> list[str]:
        return [grant.id for grant in grants.standing(tx, person_id=attacker)]

    assert await api.gateway.db.read(grant_ids) == []


async def test_the_files_of_a_revoked_key_are_not_those_of_the_next_of_its_name(start: Start, model: FakeModel) -> None:
    async with served(start, MESSAGING_CWD="") as api, asyncio.timeout(SECONDS):
        model.script([calls_tools(("write_file", {"path": "diary.txt", "content": SECRET})), "Written."])
        victim = await api.new_key("phone", "user")
        assert (await chat(api, victim, "keep a diary")).status == 200
        [written] = api.gateway.home.glob("workspaces/*/diary.txt")
        assert written.read_text() == SECRET
        await api.revoke("phone")
        attacker = await api.new_key("phone", "user")
        since = len(model.requests)
        reaching = [("read_file", {"path": path}) for path in ("diary.txt", f"../{written.parent.name}/diary.txt")]
        model.script([calls_tools(*reaching, ("search_files", {"pattern": "tulips"})), "Nothing."])
        assert (await chat(api, attacker, "read my diary")).status == 200
        assert SECRET not in heard(model, since)


async def test_a_key_named_like_the_id_of_another_is_another(api: Served, model: FakeModel) -> None:
    victim = await api.new_key("phone", "user")
    await chat(api, victim, SECRET, X_Hermes_Session_Id="work")
    [listed] = [key for key in await api.keys.listed({}, None) if key["name"] == "phone"]  # type: ignore[arg-type]
    attacker = await api.new_key(listed["id"], "user")
    since = len(model.requests)
    await chat(api, attacker, "what did I say?", X_Hermes_Session_Id="work")
    assert SECRET not in heard(model, since)
    assert (await ask(api, attacker, "GET", "/api/sessions")).json["data"][0]["message_count"] == 2


# Floods of wrong keys


async def flood(api: Served, **headers: str) -> list[Answer]:
    return [
        await ask(api, {"Authorization": f"Bearer hk_wrong_{number}"}, "GET", "/v1/models", **headers)
        for number in range(WRONG_KEYS_PER_MINUTE)
    ]


async def test_a_flood_of_wrong_keys_is_refused_for_a_while_and_a_right_key_always_works(api: Served) -> None:
    phone = await api.new_key("phone", "user")
    answers = await flood(api)
    assert answers[0].status == 401
    refused = [answer for answer in answers if answer.status == 429]
    assert len(refused) > WRONG_KEYS_PER_MINUTE / 2
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in refused)
    assert all("hk_wrong" not in answer.body.decode() for answer in answers)
    assert (await ask(api, phone, "GET", "/v1/models")).status == 200
    assert (await api.get("/v1/models")).status == 200
    assert (await ask(api, {}, "GET", "/v1/models")).status == 401


@pytest.mark.parametrize(
    "header", ["X_Forwarded_For", "X_Real_IP", "Forwarded", "X_Client_IP", "True_Client_IP", "CF_Connecting_IP"]
)
async def test_a_header_with_another_address_gives_no_new_allowance(api: Served, header: str) -> None:
    await flood(api)
    for number in range(5):
        value = f"for=198.51.100.{number}" if header == "Forwarded" else f"198.51.100.{number}"
        answer = await ask(api, {"Authorization": "Bearer hk_no"}, "GET", "/v1/models", **{header: value})
        assert answer.status == 429


async def test_wrong_keys_are_logged_once_a_minute_without_the_key(
    api: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await flood(api)
    lines = [record for record in caplog.records if record.getMessage() == "API key refused"]
    assert [line.__dict__["address"] for line in lines] == ["127.0.0.1"]
    assert not [record for record in caplog.records if "hk_wrong" in str(record.__dict__)]


def test_a_crowd_of_addresses_fills_neither_memory_nor_log(caplog: pytest.LogCaptureFixture) -> None:
    wrong_keys = WrongKeys(FakeClock())
    request = make_mocked_request("GET", "/")
    for number in range(MOST_KEYS + 500):
        wrong_keys.refuse(request.clone(remote=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"))
    assert len(wrong_keys._addresses) == MOST_KEYS
    assert len([record for record in caplog.records if record.getMessage() == "API key refused"]) < 100


@pytest.mark.parametrize(
    "one, other",
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::2%eth1"),
    ],
)
def test_one_client_does_not_count_as_many_addresses(one: str, other: str) -> None:
    assert address_of(one) == address_of(other)
    assert address_of("2001:db8:1:2::1") != address_of("2001:db8:1:3::1")


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Basic {key}"},
        {"Authorization": "{key}"},
        {"Authorization": "Bearer,{key}"},
        {"Authorization": 'Bearer "{key}"'},
        {"X-Api-Key": "Bearer {key}"},
        {"Cookie": "key={key}"},
        {"Proxy-Authorization": "Bearer {key}"},
    ],
    ids=str,
)
async def test_a_key_counts_only_as_a_bearer_key_of_its_header(api: Served, headers: dict[str, str]) -> None:
    key = api.http.headers["Authorization"].removeprefix("Bearer ")
    shown = {name: value.replace("{key}", key) for name, value in headers.items()}
    assert (await ask(api, shown, "GET", "/v1/models")).status == 401


# Keys that were revoked while the store is down


async def test_a_named_key_ends_soon_after_the_store_went_down_and_the_owners_does_not(start: Start) -> None:
    clock = FakeClock()
    async with served(start, clock=clock) as api, asyncio.timeout(SECONDS):
        phone = await api.new_key("phone", "user")
        assert (await ask(api, phone, "GET", "/v1/models")).status == 200
        await api.gateway.db.close()
        clock.advance(TRUSTED_SECONDS / 2)
        assert (await ask(api, phone, "GET", "/v1/models")).status == 200
        clock.advance(TRUSTED_SECONDS / 2)
        refused = await ask(api, phone, "GET", "/v1/models")
        assert (refused.status, refused.error["code"]) == (503, "store_is_down")
        assert (await api.get("/v1/models")).status == 200


async def test_a_key_that_was_just_revoked_does_not_come_back_with_a_store_that_goes_down(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(SECONDS):
        phone = await api.new_key("phone", "user")
        assert (await ask(api, phone, "GET", "/v1/models")).status == 200
        await api.revoke("phone")
        await api.gateway.db.close()
        assert (await ask(api, phone, "GET", "/v1/models")).status == 503


async def test_a_store_that_is_down_lets_nobody_fill_the_log(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    async with served(start) as api, asyncio.timeout(SECONDS):
        await api.gateway.db.close()
        for number in range(50):
            await ask(api, {"Authorization": f"Bearer hk_{number}"}, "GET", "/v1/models")
    about_keys = [record for record in caplog.records if "reading API keys" in str(record.__dict__)]
    assert len(about_keys) == 1


# What strangers are told


@pytest.mark.parametrize("shown", ["nothing", "a user's key", "a guest's key"])
async def test_the_state_of_the_gateway_names_no_account(start: Start, shown: str) -> None:
    async with served(start) as api, asyncio.timeout(SECONDS):
        role = "user" if shown == "a user's key" else "guest"
        who = {} if shown == "nothing" else await api.new_key("bob", role)
        answer = await ask(api, who, "GET", "/health/detailed")
        full = (await api.get("/health/detailed")).json
        assert answer.status == 200
        accounts = list(full["platforms"])
        assert accounts
        for name in (*accounts, str(api.gateway.home), full["version"], "bob"):
            assert name not in answer.body.decode()


@pytest.mark.parametrize("path", ["/health/detailed//", "/health/detailed/x", "/health/detailed/../../v1/models"])
async def test_a_path_that_looks_public_is_not(api: Served, path: str) -> None:
    async with api.stranger.get(path) as answer:
        assert answer.status in (401, 404)
        assert "telegram" not in await answer.text()


# Feeds without end

LIMITS = FeedLimits(events=50, event_bytes=20_000, feeds=20, ended=5, all_bytes=100_000)
LANE = "agent:main:api:dm:talk:p=key%3A{}"


def opened(feeds: RunFeeds, bus: EventBus, number: int, person: str, *, is_read: bool) -> RunFeed:
    lane = LANE.format(person)
    feed = feeds.open(f"ev_{number}", "talk", lane)
    feed.begin()
    feed.readers = int(is_read)
    bus.publish(TurnStarted(lane, f"t_{number}", False, (f"ev_{number}",)))
    return feed


@pytest.mark.parametrize("is_read", [False, True], ids=["unread", "read"])
@pytest.mark.parametrize("kind", ["texts", "segments", "calls", "one giant text"])
async def test_feeds_stay_within_their_limits_whatever_runs_say(is_read: bool, kind: str) -> None:
    bus = EventBus()
    feeds = RunFeeds(bus, FakeClock(), LIMITS)
    for number in range(60):
        opened(feeds, bus, number, "mallory", is_read=is_read)
        assert feeds.size <= LIMITS.all_bytes
        assert len(feeds._kept) <= LIMITS.feeds
    lane = LANE.format("mallory")
    for round_ in range(20):
        for number in range(60):
            turn = f"t_{number}"
            match kind:
                case "texts":
                    bus.publish(TextArrived(lane, turn, "x" * 3000))
                case "segments":
                    bus.publish(SegmentEnded(lane, turn, "x" * 3000))
                case "calls":
                    bus.publish(ToolStarted(lane, turn, f"c{round_}_{number}", "tool", "x" * 3000))
                case _:
                    bus.publish(SegmentEnded(lane, turn, "x" * 300_000))
            assert feeds.size <= LIMITS.all_bytes
        await asyncio.sleep(0)
    assert feeds.size == sum(kept.feed.size for kept in feeds._kept.values())
    feeds.close()
    assert feeds.size == 0


@pytest.mark.parametrize("left", [0, 300], ids=["nothing left", "the last event left"])
async def test_a_run_whose_events_had_to_make_room_is_told_to_its_end_all_the_same(api: Served, left: int) -> None:
    run = (await api.post("/v1/runs", {"input": SECRET})).json["run_id"]
    await run_is(api, run, "completed")
    first = await api.get(f"/v1/runs/{run}/events")
    assert b"event: run.completed" in first.body
    feed = api.server._app[FEEDS].find(run.removeprefix("run_"))
    assert feed is not None
    feed.shrink(left)
    again = (await api.get(f"/v1/runs/{run}/events")).body
    assert again.count(b"event: run.snapshot") == again.count(b"event: run.completed") == 1
    assert SECRET.encode() in again


async def test_what_is_held_back_for_a_snapshot_is_bounded_too() -> None:
    bus = EventBus()
    feeds = RunFeeds(bus, FakeClock(), LIMITS)
    feed = feeds.open("ev_1", "talk", LANE.format("mallory"))
    feed.hold("t_1")
    for _ in range(1000):
        bus.publish(TextArrived(LANE.format("mallory"), "t_1", "x" * 1000))
        assert feeds.size <= LIMITS.event_bytes + 2000
    feed.resume("t_1", {"status": "running"}, texts=[], calls=[])
    assert feeds.size == feed.size <= LIMITS.all_bytes


async def test_one_key_that_reads_very_many_runs_ends_no_feed_of_another() -> None:
    bus = EventBus()
    feeds = RunFeeds(bus, FakeClock(), LIMITS)
    owners = opened(feeds, bus, 0, "owner", is_read=True)
    for number in range(1, 100):
        opened(feeds, bus, number, "mallory", is_read=True)
    assert not owners.is_left
    assert feeds.find("ev_0") is owners
