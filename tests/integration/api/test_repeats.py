"""`Idempotency-Key`: one request sent twice is one turn and one answer. And limits, over real HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermes.servers.api.watch.metrics import snapshot_of
from tests.fakes.model import FakeModel
from tests.integration.api.serving import Served, served
from tests.integration.conftest import Start, crash


def chat(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "hermes", "messages": [{"role": "user", "content": text}], **more}


PATH, RESPONSES = "/v1/chat/completions", "/v1/responses"


async def test_the_same_request_again_gets_the_same_answer_also_after_a_restart(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(10):
        first = await api.post(PATH, chat("hello"), Idempotency_Key="one")
        again = await api.post(PATH, chat("hello"), Idempotency_Key="one")
        assert (first.status, again.status) == (200, 200)
        assert again.body == first.body
        assert again.headers["Idempotent-Replayed"] == "true"
        assert again.headers["X-Hermes-Session-Id"] == first.headers["X-Hermes-Session-Id"]
        assert again.headers["X-Hermes-Completed"] == first.headers["X-Hermes-Completed"]
    async with served(start) as api, asyncio.timeout(10):
        assert (await api.post(PATH, chat("hello"), Idempotency_Key="one")).body == first.body
    assert len(model.requests) == 1


async def test_a_stream_is_repeated_whole(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(10):
        first = await api.post(PATH, chat("hello", stream=True), Idempotency_Key="one")
        again = await api.post(PATH, chat("hello", stream=True), Idempotency_Key="one")
        assert again.body == first.body
        assert again.body.endswith(b"data: [DONE]\n\n")
        assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert len(model.requests) == 1


async def test_another_request_under_the_same_key_is_refused(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(10):
        await api.post(PATH, chat("hello"), Idempotency_Key="one")
        other = await api.post(PATH, chat("goodbye"), Idempotency_Key="one")
        assert (other.status, other.error["code"]) == (422, "idempotency_key_reused")
        for bad in ("", " ", "x" * 256):
            refused = await api.post(PATH, chat("hello"), Idempotency_Key=bad)
            assert (refused.status, refused.error["code"]) == (400, "invalid_idempotency_key")


async def test_one_key_means_nothing_to_another_caller(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(10):
        await api.post(PATH, chat("hello"), Idempotency_Key="one")
        phone = await api.new_key("phone", "user")
        other = await api.post(PATH, chat("goodbye"), Idempotency_Key="one", **phone)
        assert other.json["choices"][0]["message"]["content"] == "echo: goodbye"


async def test_a_repeat_while_the_first_is_answered_waits_for_it(start: Start, model: FakeModel) -> None:
    model.hold()
    async with served(start) as api, asyncio.timeout(10):
        first = asyncio.create_task(api.post(PATH, chat("hello"), Idempotency_Key="one"))
        await model.is_holding()
        again = asyncio.create_task(api.post(PATH, chat("hello"), Idempotency_Key="one"))
        other = await api.post(PATH, chat("goodbye"), Idempotency_Key="one")
        assert other.status == 422
        model.release()
        assert (await first).body == (await again).body
    assert len(model.requests) == 1


async def test_over_the_limit_a_request_waits_and_is_then_told_when_to_come_again(
    start: Start, model: FakeModel
) -> None:
    model.hold()
    limits: dict[str, Any] = {"API_SERVER_MAX_CONCURRENT": "1"}
    async with served(start, **limits) as api, asyncio.timeout(10):
        first = asyncio.create_task(api.post(PATH, chat("one")))
        await model.is_holding()
        waiting = asyncio.create_task(api.post(PATH, chat("two")))
        phone = await api.new_key("phone", "user")
        others = asyncio.create_task(api.post(PATH, chat("three"), **phone))  # another key has its own
        assert (await api.get("/v1/models")).status == 200  # looking is not work
        model.release()
        assert [(await task).status for task in (first, waiting, others)] == [200, 200, 200]
    (api.gateway.home / "config.yaml").write_text("api:\n  queue_seconds: 0\n")
    model.hold()
    async with served(start, **limits) as api, asyncio.timeout(10):
        first = asyncio.create_task(api.post(PATH, chat("one")))
        await model.is_holding()
        refused = await api.post(PATH, chat("two"))
        assert (refused.status, refused.error["code"]) == (429, "rate_limit_exceeded")
        assert int(refused.headers["Retry-After"]) >= 1
        model.release()
        assert (await first).status == 200


async def test_a_key_that_asks_too_often_is_told_when_to_come_again(start: Start) -> None:
    async with served(start) as api:
        home = api.gateway.home
    (home / "config.yaml").write_text("api:\n  queue_seconds: 0\n  requests_per_minute: 6\n")
    async with served(start) as api, asyncio.timeout(10):
        assert (await api.get("/v1/models")).status == 200
        refused = await api.get("/v1/models")
        assert (refused.status, refused.error["type"]) == (429, "rate_limit_error")
        assert 1 <= int(refused.headers["Retry-After"]) <= 10
        async with api.stranger.get("/health") as answer:
            assert answer.status == 200


async def test_a_client_that_left_gets_its_answer_by_asking_again(start: Start, model: FakeModel) -> None:
    model.hold()
    async with served(start) as api, asyncio.timeout(10):
        left = asyncio.create_task(api.post(PATH, chat("hello"), Idempotency_Key="one"))
        await model.is_holding()
        left.cancel()
        await asyncio.wait([left])
        again = asyncio.create_task(api.post(PATH, chat("hello"), Idempotency_Key="one"))
        model.release()
        assert (await again).json["choices"][0]["message"]["content"] == "echo: hello"
    assert len(model.requests) == 1


async def test_a_client_that_left_a_stream_gets_it_whole_by_asking_again(start: Start, model: FakeModel) -> None:
    model.hold()
    async with served(start) as api, asyncio.timeout(20):
        async with api.streaming(PATH, chat("hello", stream=True), Idempotency_Key="one") as (_, events):
            assert (await anext(events)).data["choices"][0]["delta"]["role"] == "assistant"
            await model.is_holding()
        again = asyncio.create_task(api.post(PATH, chat("hello", stream=True), Idempotency_Key="one"))
        model.release()
        told = await again
        assert told.headers["Idempotent-Replayed"] == "true"
        assert b"echo: hello" in told.body
        assert told.body.endswith(b"data: [DONE]\n\n")
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "path, body",
    [(PATH, chat("hello", stream=True)), (RESPONSES, {"input": "hello", "stream": True})],
    ids=["chat", "responses"],
)
async def test_a_stream_that_failed_is_not_kept(start: Start, model: FakeModel, path: str, body: Any) -> None:
    async with served(start) as api, asyncio.timeout(20):
        model.fails_next(401, "wrong key")
        failed = await api.post(path, body, Idempotency_Key="one")
        assert b"does not accept the key" in failed.body
        again = await api.post(path, body, Idempotency_Key="one")
        assert "Idempotent-Replayed" not in again.headers
        assert b"echo: hello" in again.body


@pytest.mark.parametrize("streams", [False, True])
async def test_what_was_stopped_because_its_client_left_is_worked_on_anew(
    start: Start, model: FakeModel, streams: bool
) -> None:
    headers = {"Idempotency_Key": "one", "X_Hermes_On_Disconnect": "stop"}
    async with served(start) as api, asyncio.timeout(20):
        model.hold()
        left = asyncio.create_task(api.post(PATH, chat("hello", stream=streams), **headers))
        await model.is_holding()
        left.cancel()
        await asyncio.wait([left])
        await model.is_hung_up_on(10)
        model.release()
        again = await api.post(PATH, chat("hello", stream=streams), **headers)
        assert "Idempotent-Replayed" not in again.headers
        assert (b'"finish_reason":"stop"' in again.body, b"interrupted" in again.body) == (True, False)


async def test_a_stored_response_is_begun_once_also_across_a_restart(start: Start, model: FakeModel) -> None:
    body = {"input": "hello"}
    model.hold(silently=True)
    async with served(start) as api, asyncio.timeout(20):
        cut = asyncio.create_task(api.post(RESPONSES, body, Idempotency_Key="one"))
        await model.is_holding()
        await crash(api.gateway)
        cut.cancel()
        await asyncio.wait([cut])
    async with served(start) as api, asyncio.timeout(20):
        joining = asyncio.create_task(api.post(RESPONSES, body, Idempotency_Key="one"))
        model.release()
        again = await joining
        assert (again.status, again.headers["Idempotent-Replayed"]) == (200, "true")
        found = (await api.get(f"{RESPONSES}/{again.json['id']}")).json
        assert found == again.json
        last = await api.post(RESPONSES, body, Idempotency_Key="one")
        assert (last.status, last.json, last.headers["Idempotent-Replayed"]) == (200, found, "true")
        await api.gateway.db.write(lambda tx: tx.run("DELETE FROM idempotency"))  # as if this one had died, too
        assert (await api.post(RESPONSES, {"input": "goodbye"}, Idempotency_Key="one")).status == 422
    assert len(model.requests) == 2  # the call that was cut, and the one that answered


async def test_a_stored_response_that_failed_is_begun_anew(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        model.fails_next(401, "wrong key")
        assert (await api.post(RESPONSES, {"input": "hello"}, Idempotency_Key="one")).status == 502
        for replayed in (None, "true"):
            again = await api.post(RESPONSES, {"input": "hello"}, Idempotency_Key="one")
            assert (again.status, again.headers.get("Idempotent-Replayed")) == (200, replayed)


async def test_who_left_while_waiting_for_its_turn_is_not_worked_for(start: Start, model: FakeModel) -> None:
    model.hold()
    async with served(start, API_SERVER_MAX_CONCURRENT="1") as api, asyncio.timeout(10):
        first = asyncio.create_task(api.post(PATH, chat("one")))
        await model.is_holding()
        waiting = asyncio.create_task(api.post(PATH, chat("two")))
        await until_open(api, 2)
        waiting.cancel()
        await asyncio.wait([waiting])
        model.release()
        assert (await first).status == 200
        assert (await api.post(PATH, chat("three"))).status == 200
    assert [request["messages"][-1]["content"] for request in model.requests] == ["one", "three"]


async def until_open(api: Served, count: int) -> None:
    """Until so many requests are with the server, besides the one that asks."""
    while snapshot_of((await api.get("/metrics")).body.decode())["hermes_http_requests_open"] <= count:
        continue
