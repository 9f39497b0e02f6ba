"""Traces of turns reach a collector, without a word of anybody; a collector that is down holds up nobody."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from hermes.servers.app import HttpServer, make_app
from hermes.services.tracing import parse_headers, trace_id_of
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.silent import silent_server
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import answered, turn_is


class Collector:
    """Takes OTLP over HTTP, and remembers it."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    def add(self, app: web.Application) -> None:
        app.router.add_post("/v1/traces", self._take)

    async def _take(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/json"
        self.headers.append(dict(request.headers))
        self.bodies.append(await request.json())
        return web.json_response({"partialSuccess": {}})

    @property
    def spans(self) -> list[dict[str, Any]]:
        scopes = [scope for body in self.bodies for part in body["resourceSpans"] for scope in part["scopeSpans"]]
        return [span for scope in scopes for span in scope["spans"]]


def about(span: dict[str, Any]) -> dict[str, str]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


async def test_a_turn_is_one_trace_with_its_models_and_tools_and_no_words(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    collector = Collector()
    server = HttpServer(make_app([collector.add]), "127.0.0.1", 0)
    model.script([calls_tools(("todo", {"items": [{"text": "quince", "state": "pending"}]})), "Quince it is."])
    async with server.listening():
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": server.url, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=opensesame-123"}
        async with start(**environ) as gateway:
            await asyncio.sleep(0)
            telegram.user_says("buy quince")
            await answered(telegram, "Quince it is.")
            turn = await turn_is(gateway, "done")
    root, *calls = sorted(collector.spans, key=lambda span: span.get("parentSpanId", ""))
    assert root["name"] == "turn"
    assert about(root) | {"hermes.turn_id": ""} == {
        "hermes.turn_id": "",
        "hermes.platform": "telegram",
        "hermes.state": "done",
    }
    assert about(root)["hermes.turn_id"] == turn.id
    assert {span["traceId"] for span in collector.spans} == {trace_id_of(turn.id)}
    assert {span["parentSpanId"] for span in calls} == {root["spanId"]}
    assert sorted(span["name"].partition(" ")[0] for span in calls) == ["chat", "chat", "execute_tool"]
    assert all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in collector.spans)
    assert all(len(span["spanId"]) == 16 and len(span["traceId"]) == 32 for span in collector.spans)
    assert "quince" not in json.dumps(collector.bodies).lower()
    assert collector.headers[0]["x-key"] == "opensesame-123"


async def test_a_collector_that_is_down_holds_up_no_turn_and_is_told_of_once(
    start: Start, telegram: FakeTelegram, caplog: pytest.LogCaptureFixture
) -> None:
    async with start(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9"):
        telegram.user_says("hello")
        await answered(telegram, "echo: hello")
    assert [record.message for record in caplog.records].count("Traces not sent") == 1


async def test_a_collector_that_never_answers_does_not_hold_up_the_end(start: Start, telegram: FakeTelegram) -> None:
    clock = asyncio.get_running_loop().time
    async with silent_server() as port:
        async with start(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}"):
            telegram.user_says("hello")
            await answered(telegram, "echo: hello")
            began = clock()
        assert clock() - began < 8, "the supervisor kills a worker that takes longer"


def test_headers_are_read_as_opentelemetry_writes_them() -> None:
    assert parse_headers("a=1, b = two=2,,nothing") == {"a": "1", "b": "two=2"}
