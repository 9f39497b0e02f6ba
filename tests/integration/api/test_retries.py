"""A retry is not a second order: requests sent again without an `Idempotency-Key` act once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hermes.store.db import Tx
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, Refusal, ToolUse, calls_tools
from tests.fakes.tools import GO_ON, REVEALED
from tests.integration.api.serving import Served, served
from tests.integration.conftest import Start, crash

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
RETRY = {"X_Stainless_Retry_Count": "1"}
DEPLOY = calls_tools(("reveal", {"text": "deployed"}))
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "deploy"}]},
    RESPONSES: {"input": "deploy"},
}
EVERY_DOOR = pytest.mark.parametrize("path", [CHAT, RESPONSES])
STREAMED = pytest.mark.parametrize("streams", [False, True])


def effects(tmp_path: Path) -> int:
    """How often the tool ran."""
    file = tmp_path / "work" / REVEALED
    return len(file.read_text().splitlines()) if file.exists() else 0


def running(tx: Tx) -> int:
    return int(tx.value("SELECT COUNT(*) FROM turns WHERE state = 'running'"))


def only_state(tx: Tx) -> str:
    return str(tx.value("SELECT state FROM turns"))


def lingers(tx: Tx) -> bool:
    """Whether the tool behind the one with the effect is at work."""
    return bool(tx.value("SELECT 1 FROM tool_calls WHERE name = 'linger' AND state = 'started'"))


def words(body: dict[str, Any]) -> str:
    if "choices" in body:
        return str(body["choices"][0]["message"]["content"])
    return "".join(part["text"] for item in body["output"] if item["type"] == "message" for part in item["content"])


async def leave(api: Served, model: FakeModel, path: str, body: dict[str, Any], **headers: str) -> None:
    """Ask, and close the connection when the model is at work."""
    asking = asyncio.create_task(api.post(path, body, **headers))
    await model.is_holding()
    asking.cancel()
    await asyncio.wait([asking])


@EVERY_DOOR
@STREAMED
async def test_a_model_that_fails_after_a_tool_is_asked_again_and_the_tool_is_not(
    start: Start, model: FakeModel, tmp_path: Path, path: str, streams: bool
) -> None:
    model.script([DEPLOY, *[Refusal(401, "wrong key")] * 3])
    body = {**BODIES[path], "stream": streams}
    async with served(start) as api, asyncio.timeout(30):
        for headers in ({}, RETRY, {}):  # an SDK, and a loop around it that counts from zero
            failed = await api.post(path, body, **headers)
            if not streams:
                assert (failed.status, failed.headers["x-should-retry"]) == (502, "false")
        model.says("It is out.")
        done = await api.post(path, body)
        assert b"It is out." in done.body
        assert done.headers["Idempotent-Replayed"] == "true"
        again = await api.post(path, {**body, "stream": False})  # answered: the same words are a new request
        assert "Idempotent-Replayed" not in again.headers
    assert effects(tmp_path) == 1
    roles = [message["role"] for message in model.requests[4]["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]


async def test_a_client_of_the_messages_api_retries_without_a_second_order(
    start: Start, model: FakeModel, tmp_path: Path
) -> None:
    body = {"messages": [{"role": "user", "content": "deploy"}], "max_tokens": 100}
    model.script([DEPLOY, Refusal(401, "wrong key"), "It is out."])
    async with served(start) as api, asyncio.timeout(30):
        failed = await api.post("/v1/messages", body)
        assert (failed.status, failed.headers["x-should-retry"]) == (502, "false")
        done = await api.post("/v1/messages", body, **RETRY)
        assert (done.status, done.headers["Idempotent-Replayed"]) == (200, "true")
        assert done.json["content"][-1]["text"] == "It is out."
    assert effects(tmp_path) == 1


@EVERY_DOOR
async def test_a_retry_with_its_fields_in_another_order_goes_on_with_the_turn(
    start: Start, model: FakeModel, tmp_path: Path, path: str
) -> None:
    first = {**BODIES[path], "metadata": {"a": "1", "b": "2"}, "model": "hermes"}
    again = {"model": "hermes", "metadata": {"b": "2", "a": "1"}, **BODIES[path]}
    model.script([DEPLOY, Refusal(401, "wrong key"), "It is out."])
    async with served(start) as api, asyncio.timeout(30):
        assert (await api.post(path, first)).status == 502
        done = await api.post(path, again)
        assert (words(done.json), done.headers["Idempotent-Replayed"]) == ("It is out.", "true")
    assert effects(tmp_path) == 1


async def test_a_loop_that_waits_long_between_its_tries_goes_on_with_the_turn(
    start: Start, model: FakeModel, tmp_path: Path, clock: FakeClock
) -> None:
    failed = Refusal(401, "wrong key")
    model.script([DEPLOY, failed, failed, "It is out.", DEPLOY, failed, DEPLOY, failed])
    async with served(start, clock=clock) as api, asyncio.timeout(30):
        assert (await api.post(CHAT, BODIES[CHAT])).status == 502
        clock.advance(32)
        assert (await api.post(CHAT, BODIES[CHAT])).status == 502
        clock.advance(80)
        assert words((await api.post(CHAT, BODIES[CHAT])).json) == "It is out."
        assert effects(tmp_path) == 1
        assert (await api.post(CHAT, BODIES[CHAT])).status == 502
        clock.advance(100)
        assert (await api.post(CHAT, BODIES[CHAT])).status == 502
    assert effects(tmp_path) == 3


@EVERY_DOOR
async def test_a_failure_before_any_step_may_be_retried(start: Start, model: FakeModel, path: str) -> None:
    async with served(start) as api, asyncio.timeout(30):
        model.fails_next(401, "wrong key")
        failed = await api.post(path, BODIES[path])
        assert failed.status == 502
        assert "x-should-retry" not in failed.headers
        done = await api.post(path, BODIES[path], **RETRY)
        assert (done.status, words(done.json)) == (200, "echo: deploy")


@EVERY_DOOR
@pytest.mark.parametrize("headers", [{}, RETRY])
async def test_the_same_body_after_a_lost_connection_joins_the_turn(
    start: Start, model: FakeModel, tmp_path: Path, path: str, headers: dict[str, str]
) -> None:
    model.script([DEPLOY])
    model.when_told("", "It is out.")
    async with served(start) as api, asyncio.timeout(30):
        model.hold(silently=True)
        await leave(api, model, path, BODIES[path])
        joining = asyncio.create_task(api.post(path, BODIES[path], **headers))
        await asyncio.sleep(0.1)
        model.release()
        done = await joining
        assert (words(done.json), done.headers["Idempotent-Replayed"]) == ("It is out.", "true")
    assert (effects(tmp_path), len(model.requests)) == (1, 2)


@EVERY_DOOR
@STREAMED
async def test_an_answer_that_nobody_received_is_given_to_the_retry(
    start: Start, model: FakeModel, tmp_path: Path, path: str, streams: bool
) -> None:
    model.script([DEPLOY])
    model.when_told("", "It is out.")
    async with served(start) as api, asyncio.timeout(30):
        model.hold(silently=True)
        await leave(api, model, path, BODIES[path])
        model.release()
        while await api.gateway.db.read(running):  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # until its handler has seen that nobody reads
        done = await api.post(path, BODIES[path], **RETRY)
        assert (words(done.json), done.headers["Idempotent-Replayed"]) == ("It is out.", "true")
    assert (effects(tmp_path), len(model.requests)) == (1, 2)


async def test_equal_requests_of_two_clients_are_two_requests(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(30):
        model.hold()
        both = [asyncio.create_task(api.post(CHAT, BODIES[CHAT])) for _ in range(2)]
        while model.open_now < 2:  # noqa: ASYNC110 - the fake counts, and tells nobody
            await asyncio.sleep(0.01)
        model.release()
        ids = {(await one).json["id"] for one in both}
        third = await api.post(CHAT, BODIES[CHAT])
    assert len(ids | {third.json["id"]}) == 3


async def test_a_retry_of_another_key_is_another_request(start: Start, model: FakeModel, tmp_path: Path) -> None:
    model.script([DEPLOY, Refusal(401, "wrong key")])
    async with served(start) as api, asyncio.timeout(30):
        await api.post(CHAT, BODIES[CHAT])
        phone = await api.new_key("phone", "user")
        other = await api.post(CHAT, BODIES[CHAT], **RETRY, **phone)
        assert "Idempotent-Replayed" not in other.headers
        assert words(other.json) == "echo: deploy"
    assert effects(tmp_path) == 1


@pytest.mark.parametrize("header", ["X_Hermes_Session_Key", "X_Hermes_Tools"])
async def test_a_retry_for_another_memory_or_with_other_tools_is_another_request(
    start: Start, model: FakeModel, tmp_path: Path, header: str
) -> None:
    model.script([DEPLOY, Refusal(401, "wrong key")])
    async with served(start) as api, asyncio.timeout(30):
        await api.post(CHAT, BODIES[CHAT])
        other = await api.post(CHAT, BODIES[CHAT], **RETRY, **{header: "none"})
        assert "Idempotent-Replayed" not in other.headers
        assert words(other.json) == "echo: deploy"
    assert effects(tmp_path) == 1


@EVERY_DOOR
@pytest.mark.parametrize("headers", [{}, RETRY, {"Idempotency_Key": "one"}])
async def test_after_the_gateway_died_the_retry_goes_on_from_the_last_step(
    start: Start, model: FakeModel, tmp_path: Path, path: str, headers: dict[str, str]
) -> None:
    first = {name: value for name, value in headers.items() if name == "Idempotency_Key"}
    model.script([DEPLOY, calls_tools(("linger", {}))])
    async with served(start) as api, asyncio.timeout(30):
        asking = asyncio.create_task(api.post(path, BODIES[path], **first))
        while not await api.gateway.db.read(lingers):  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.005)
        await crash(api.gateway)
        asking.cancel()
        await asyncio.wait([asking])
    (tmp_path / "work" / GO_ON).touch()
    model.when_told("", "It is out.")
    async with served(start) as api, asyncio.timeout(30):
        done = await api.post(path, BODIES[path], **headers)
        assert (done.status, words(done.json)) == (200, "It is out.")
    assert effects(tmp_path) == 1


async def test_a_stream_that_was_stopped_goes_on_from_its_steps_when_it_is_asked_for_again(
    start: Start, model: FakeModel, tmp_path: Path
) -> None:
    model.script([DEPLOY, calls_tools(("linger", {}))])
    body = {**BODIES[CHAT], "stream": True}
    async with served(start) as api, asyncio.timeout(30):
        async with api.streaming(CHAT, body) as (_, events):
            async for _ in events:
                if await api.gateway.db.read(lingers):
                    break
        while await api.gateway.db.read(running):  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # until its handler has ended, too
        model.when_told("", "It is out.")
        done = await api.post(CHAT, body)
        assert b"It is out." in done.body
    assert effects(tmp_path) == 1


@EVERY_DOOR
async def test_a_retry_that_comes_as_the_client_leaves_gets_the_whole_answer(
    start: Start, model: FakeModel, path: str
) -> None:
    model.streams(["one ", "two"])
    body = {**BODIES[path], "stream": True, "store": False}
    async with served(start) as api, asyncio.timeout(30):
        for pause in (0.0, 0.15, 0.19, 0.2, 0.21, 0.3):  # around the moment in which the server looks for its client
            model.hold()
            async with api.streaming(path, body) as (_, events):
                await anext(events)
                await model.is_holding()
            await asyncio.sleep(pause)
            retried = asyncio.create_task(api.post(path, body))
            await asyncio.sleep(0.5)  # longer than the first client's turn would take to be stopped
            model.release()
            answer = await retried
            assert b"one" in answer.body
            assert b'"stopped"' not in answer.body
            assert b'"incomplete"' not in answer.body


@pytest.mark.parametrize("headers", [{}, {"X_Hermes_On_Disconnect": "continue"}])
async def test_leaving_a_streamed_response_that_is_not_stored_stops_its_turn(
    start: Start, model: FakeModel, headers: dict[str, str]
) -> None:
    model.streams(["one ", "two"])
    model.hold()
    async with served(start) as api, asyncio.timeout(30):
        body = {"input": "hi", "stream": True, "store": False}
        async with api.streaming(RESPONSES, body, **headers) as (_, events):
            await anext(events)
            await model.is_holding()
        if headers:
            await asyncio.sleep(0.5)  # longer than the server takes to see who left
            model.release()
        while await api.gateway.db.read(running):  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.01)
        assert await api.gateway.db.read(only_state) == ("done" if headers else "stopped")


@EVERY_DOOR
async def test_several_retries_at_once_go_on_with_one_turn(
    start: Start, model: FakeModel, tmp_path: Path, path: str
) -> None:
    model.script([DEPLOY, Refusal(401, "wrong key")])
    model.when_told("", "It is out.")
    async with served(start) as api, asyncio.timeout(30):
        assert (await api.post(path, BODIES[path])).status == 502
        model.hold(silently=True)
        retries = [asyncio.create_task(api.post(path, BODIES[path], **RETRY)) for _ in range(5)]
        await model.is_holding()
        model.release()
        assert {words((await one).json) for one in retries} == {"It is out."}
    assert (effects(tmp_path), len(model.requests)) == (1, 3)


# Steps between the legs of a client's tool loop


WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}


@pytest.mark.parametrize("is_mixed", [False, True])
async def test_steps_of_the_gateway_stay_in_the_next_leg_of_a_chat(
    start: Start, model: FakeModel, tmp_path: Path, is_mixed: bool
) -> None:
    ours: ToolUse = ("reveal", {"text": "deployed"})
    theirs: ToolUse = ("get_weather", {})
    model.script([calls_tools(ours, theirs)] if is_mixed else [calls_tools(ours), calls_tools(theirs)])
    body: dict[str, Any] = {**BODIES[CHAT], "tools": [WEATHER]}
    async with served(start) as api, asyncio.timeout(30):
        message = (await api.post(CHAT, body)).json["choices"][0]["message"]
        [call] = message["tool_calls"]
        assert call["function"]["name"] == "get_weather"
        result = {"role": "tool", "tool_call_id": call["id"], "content": "rain"}
        model.says("Out, and it rains.")
        body["messages"] = [*body["messages"], message, result]
        assert words((await api.post(CHAT, body)).json) == "Out, and it rains."
        told = [(one["role"], str(one["content"])) for one in model.last_request["messages"][1:]]
        assert ("tool", "Revealed.") in told
        assert told[-1] == ("tool", "rain")
        bob = await api.new_key("bob", "user")
        assert (await api.post(CHAT, body, **bob)).status == 200  # the ids of another key's calls tell it nothing
        assert "Revealed." not in str(model.last_request["messages"])
    assert effects(tmp_path) == 1


async def test_steps_of_the_gateway_stay_in_a_leg_that_is_not_stored(
    start: Start, model: FakeModel, tmp_path: Path
) -> None:
    model.script([calls_tools(("reveal", {"text": "deployed"}), ("get_weather", {}))])
    tools = [{"type": "function", "name": "get_weather", "parameters": {"type": "object"}}]
    body: dict[str, Any] = {"input": [{"role": "user", "content": "deploy"}], "tools": tools, "store": False}
    async with served(start) as api, asyncio.timeout(30):
        output = (await api.post(RESPONSES, body)).json["output"]
        assert [item["type"] for item in output] == ["mcp_call", "function_call"]
        result = {"type": "function_call_output", "call_id": output[1]["call_id"], "output": "rain"}
        for sent in (output, output[1:]):  # with what it was shown of our call, and without
            model.says("Out, and it rains.")
            await api.post(RESPONSES, {**body, "input": [*body["input"], *sent, result]})
            roles = [one["role"] for one in model.last_request["messages"]]
            assert roles == ["system", "user", "assistant", "tool", "tool"]
    assert effects(tmp_path) == 1
