"""Two nodes on one PostgreSQL: what is asked of one reaches the turn that another one runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, Role
from hermes.core.requests import AgentRequest, RequestKind
from hermes.core.roles import PersonRole
from hermes.servers.api import chat, health, runs
from hermes.servers.api.watch import metrics
from hermes.services.cluster.calls import NodeCalls, NodeUnreachableError
from hermes.services.gateway import Gateway
from hermes.services.turns import StopReason
from hermes.store.cluster import report
from hermes.store.db import Tx
from tests.contract.store.servers import PostgresForTests
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.tools import DEPLOYED, GO_ON
from tests.integration.api.conftest import Api, Event, Families, StartApi, events_of
from tests.integration.test_cluster import freeze, so
from tests.integration.watching import turn_is, until

SESSION = {"X_Hermes_Session_Id": "one"}


@pytest.fixture
def families() -> Families:
    return (chat.routes, runs.routes, health.routes, lambda parts: metrics.routes(metrics.Metrics(parts)))


@pytest.fixture
def database_url(postgres: PostgresForTests) -> Iterator[str]:
    with postgres.schema() as url:
        yield url


@asynccontextmanager
async def two_nodes(start_api: StartApi, url: str) -> AsyncIterator[tuple[Api, Api]]:
    async with (
        start_api(HERMES_DATABASE_URL=url, folder="a") as first,
        start_api(HERMES_DATABASE_URL=url, folder="b") as second,
    ):
        yield first, second


def lane_of(gateway: Gateway) -> str:
    [(lane, _turn)] = gateway.lanes.running()
    return lane


async def run_on(api: Api, model: FakeModel, text: str = "work") -> str:
    """Begin a run that waits for its model, and return its id."""
    model.hold()
    answer = await api.post("/v1/runs", {"input": text}, **SESSION)
    assert answer.status == 202, answer.body
    await model.is_holding()
    await so(lambda: bool(api.gateway.lanes.running()))
    return str(answer.json["run_id"])


def text_of(events: list[Event]) -> str:
    choices = (choice for event in events if isinstance(event.data, dict) for choice in event.data.get("choices", ()))
    return "".join(choice["delta"].get("content") or "" for choice in choices)


async def test_stop_at_one_node_ends_the_turn_of_another_within_a_second(
    start_api: StartApi, model: FakeModel, database_url: str
) -> None:
    async with two_nodes(start_api, database_url) as (first, second):
        run = await run_on(second, model)
        began = time.monotonic()
        answer = await first.post(f"/v1/runs/{run}/stop", {})
        assert answer.status in (200, 202)
        await turn_is(first.gateway, "stopped", within=10)
        assert time.monotonic() - began < 1.0
        assert second.gateway.lanes.running() == []
        assert (await first.get(f"/v1/runs/{run}")).json["status"] == "cancelled"


async def test_stop_command_at_one_node_ends_the_turn_of_another_and_waits_for_it(
    start_api: StartApi, model: FakeModel, database_url: str
) -> None:
    async with two_nodes(start_api, database_url) as (first, second):
        await run_on(second, model)
        lane = lane_of(second.gateway)
        began = time.monotonic()
        stopped = await first.gateway.lanes.stop(lane, StopReason.STOPPED, up_to=100)
        assert time.monotonic() - began < 1.0
        assert stopped.turn_id
        assert (await turn_is(first.gateway, "stopped")).id == stopped.turn_id


async def test_interrupting_at_one_node_reaches_the_turn_of_another(
    start_api: StartApi, model: FakeModel, database_url: str
) -> None:
    async with two_nodes(start_api, database_url) as (first, second):
        await run_on(second, model)
        [(lane, turn)] = second.gateway.lanes.running()
        first.gateway.lanes.interrupt(lane, turn)
        await turn_is(first.gateway, "interrupted", within=10)
        assert second.gateway.lanes.running() == []


async def test_stop_of_a_turn_whose_node_died_is_not_lost(
    start_api: StartApi, model: FakeModel, database_url: str
) -> None:
    async with two_nodes(start_api, database_url) as (first, second):
        await run_on(second, model)
        lane = lane_of(second.gateway)
        await freeze(second.gateway)  # it neither answers nor beats any more
        second_calls = second.gateway.lanes
        assert second_calls.running()
        await first.gateway.lanes.stop(lane, StopReason.STOPPED, up_to=100)
        await turn_is(first.gateway, "stopped", within=30)
        model.release()


async def test_stream_at_one_node_shows_the_turn_of_another_to_its_end(
    start_api: StartApi, model: FakeModel, database_url: str
) -> None:
    async with two_nodes(start_api, database_url) as (first, second):
        await run_on(second, model)  # the lane is the second node's now
        body = {"messages": [{"role": "user", "content": "second"}], "stream": True}
        async with first.streaming("/v1/chat/completions", body, **SESSION) as (answer, events):
            assert answer.status == 200
            await until(lambda: _is_queued(first.gateway))
            model.streams(["one ", "two ", "three ", "four"], tokens_per_second=4)
            model.release()
            seen = [event async for event in events]
        assert first.gateway.lanes.running() == []
        assert text_of(seen) == "one two three four"
        assert seen[-1].data == "[DONE]"
        texts = [event for event in seen if isinstance(event.data, dict) and text_of([event])]
        assert len(texts) > 1, "piece by piece, and not only at the end"
        finish = [
            choice["finish_reason"]
            for event in seen
            if isinstance(event.data, dict)
            for choice in event.data["choices"]
        ]
        assert finish[-1] == "stop"


async def _is_queued(gateway: Gateway) -> bool:
    return bool(await gateway.db.read(lambda tx: tx.value("SELECT 1 FROM inbox WHERE state = 'queued'")))


async def test_stream_goes_on_through_the_death_of_the_node_that_runs_its_turn(
    start_api: StartApi, model: FakeModel, database_url: str
) -> None:
    async with two_nodes(start_api, database_url) as (first, second):
        await run_on(second, model)
        body = {"messages": [{"role": "user", "content": "second"}], "stream": True}
        async with first.streaming("/v1/chat/completions", body, **SESSION) as (_, events):
            await until(lambda: _is_queued(first.gateway))
            words = [f"w{number} " for number in range(40)]
            model.streams(words, tokens_per_second=4)
            model.release()
            seen: list[Event] = []
            async for event in events:
                seen.append(event)
                if "w3" in text_of(seen):
                    break
            await freeze(second.gateway)  # in the middle of the answer: nobody hears of it any more
            model.streams(words, tokens_per_second=100)
            async with asyncio.timeout(60):
                seen += [event async for event in events]
        assert seen[-1].data == "[DONE]"
        assert text_of(seen) == "".join(words).strip()  # as an answer in one piece has it
        assert [turn.state for turn in [await turn_is(first.gateway, "done")]] == ["done"]


async def test_retry_at_another_node_goes_on_with_the_turn_of_a_node_that_died(
    start_api: StartApi, model: FakeModel, database_url: str, tmp_path: Path
) -> None:
    body = {"messages": [{"role": "user", "content": "deploy"}]}
    async with two_nodes(start_api, database_url) as (first, second), asyncio.timeout(60):
        model.script([calls_tools(("deploy", {"name": "once"})), calls_tools(("linger", {}))])
        asking = asyncio.create_task(second.post("/v1/chat/completions", body))
        deployed = tmp_path / "work" / DEPLOYED
        await so(lambda: deployed.exists() and len(model.requests) == 2)
        await freeze(second.gateway)
        asking.cancel()
        model.when_told("", "It is out.")
        (tmp_path / "work" / GO_ON).touch()  # the tool is one that may run again, and does
        done = await first.post("/v1/chat/completions", body, X_Stainless_Retry_Count="1")
        assert done.json["choices"][0]["message"]["content"] == "It is out."
        assert deployed.read_text() == "once\n"


async def test_events_of_a_run_are_told_by_the_node_that_does_not_run_it(
    start_api: StartApi, model: FakeModel, database_url: str
) -> None:
    async with two_nodes(start_api, database_url) as (first, second):
        run = await run_on(second, model)
        async with first.http.get(f"/v1/runs/{run}/events") as answer:
            events = events_of(answer.content)
            seen = [await anext(events)]
            model.release()
            seen += [event async for event in events]
        names = [event.name for event in seen if event.name != ":"]
        assert names[-1] == "run.completed"
        assert seen[-1].data["output"] == "echo: work"


async def test_end_of_a_turn_of_another_node_is_told_although_nobody_wrote_its_progress(
    start_api: StartApi, model: FakeModel, database_url: str
) -> None:
    """The other node cannot say a word: the end is found in the store."""
    async with two_nodes(start_api, database_url) as (first, second):
        await run_on(second, model)
        request = AgentRequest(
            RequestKind.CHAT,
            SessionKey.parse(lane_of(second.gateway)),
            "key:desk",
            (ChatMessage(Role.USER, "second"),),
        )
        await second.gateway.db.write(_store_no_progress)
        async with first.gateway.requests.ask(request, role=PersonRole.OWNER) as handle:
            model.release()
            async with asyncio.timeout(20):
                result = await handle.result()
        assert (result.state, result.text) == ("done", "echo: second")


def _store_no_progress(tx: Tx) -> None:
    tx.run("CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
    tx.run("CREATE TRIGGER none BEFORE INSERT ON turn_progress FOR EACH ROW EXECUTE FUNCTION nothing()")


async def test_status_health_and_metrics_of_one_node_show_every_node(start_api: StartApi, database_url: str) -> None:
    async with two_nodes(start_api, database_url) as (first, second):
        assert first.gateway.node is not None
        assert second.gateway.node is not None
        names = {first.gateway.node.name, second.gateway.node.name}
        for api in (first, second):
            told = (await api.get("/health/detailed")).json
            assert {node["name"] for node in told["nodes"]} == names
            assert {node["state"] for node in told["nodes"]} == {"living"}
            page = (await api.get("/metrics")).body.decode()
            for name in names:
                assert f'hermes_node_up{{node="{name}"' in page
        status = await first.gateway.db.read(report.report)
        duties = [duty for node in status["nodes"] for duty in node["duties"]]
        assert duties.count("account:telegram") == 1
        await until(lambda: _has_facts(first.gateway))


async def _has_facts(gateway: Gateway) -> bool:
    told = await gateway.db.read(report.report)
    return all(
        abs(node["facts"].get("clock_ahead", 99)) <= 1 and node["facts"].get("accounts") for node in told["nodes"]
    )


async def test_call_to_a_node_that_is_gone_or_does_not_know_the_verb_is_answered_so(
    start_api: StartApi, database_url: str
) -> None:
    async with two_nodes(start_api, database_url) as (first, second):
        assert first.gateway.node is not None
        assert second.gateway.node is not None
        calls = NodeCalls(first.gateway.db, first.gateway.node.id)
        with pytest.raises(Exception, match=r"does not know .no\.such."):
            await calls.ask(second.gateway.node.id, "no.such", {}, seconds=20)
        with pytest.raises(NodeUnreachableError, match="is gone"):
            await calls.ask("inc_nobody", "turn.watch", {}, seconds=20)
        assert await first.gateway.db.read(lambda tx: tx.value("SELECT COUNT(*) FROM node_calls")) == 0
