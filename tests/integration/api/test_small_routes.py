"""What there is to ask, told truly: models, capabilities, skills, toolsets, metrics."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path

import aiohttp
from aiohttp import web

from hermes.core.errors import StoreIsDownError
from hermes.servers.api.api import adders
from hermes.servers.api.context import ApiParts
from hermes.servers.api.models import plain_path, routes_of
from hermes.servers.api.watch.metrics import snapshot_of
from hermes.servers.app import HttpServer, make_app
from hermes.servers.dashboard.lazy import SIGN_IN_ROUTES
from tests.fakes.model import FakeModel, calls_tools
from tests.integration.api.serving import served
from tests.integration.conftest import Start

CHAT = {"messages": [{"role": "user", "content": "hello"}]}


async def test_models_are_the_agent_and_the_routes(start: Start) -> None:
    async with served(start) as api:
        home = api.gateway.home
        assert [model["id"] for model in (await api.get("/v1/models")).json["data"]] == ["hermes"]
    (home / "config.yaml").write_text("model_routes:\n  fast: openai/gpt-4o-mini\n  qwen/qwen3:8b: openai/big\n")
    async with served(start) as api, asyncio.timeout(10):
        listed = (await api.get("/v1/models")).json
        assert listed["object"] == "list"
        assert [model["id"] for model in listed["data"]] == ["hermes", "fast", "qwen/qwen3:8b"]
        for model in listed["data"]:
            assert (await api.get(f"/v1/models/{model['id']}")).json == model
            assert (model["object"], model["owned_by"]) == ("model", "hermes")
            assert isinstance(model["created"], int)
        missing = await api.get("/v1/models/gpt-9")
        assert (missing.status, missing.error["code"]) == (404, "model_not_found")


async def test_a_model_name_leads_where_its_route_says_and_others_to_the_default(
    start: Start, model: FakeModel
) -> None:
    async with served(start) as api:
        home = api.gateway.home
    (home / "config.yaml").write_text("model:\n  default: usual\nmodel_routes:\n  fast: openai/quick-one\n")
    async with served(start) as api, asyncio.timeout(10):
        for name, asked in (("fast", "quick-one"), ("hermes", "usual"), ("never-heard-of", "usual")):
            answer = await api.post("/v1/chat/completions", {**CHAT, "model": name})
            assert answer.status == 200
            assert model.last_request["model"] == asked


async def test_capabilities_name_what_is_served_and_nothing_else(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(10):
        told = (await api.get("/v1/capabilities")).json
        app = make_app(adders(ApiParts(api.gateway)))
        there = routes_of(app) | {("GET", "/metrics")}
        for name, endpoint in told["endpoints"].items():
            assert (endpoint["method"], endpoint["path"]) in there, name
            assert told["features"][name] is True
        assert told["features"]["session_key_header"] == "X-Hermes-Session-Key"
        assert told["features"]["kanban"] is False
        for path in ("/v1/skills", "/v1/toolsets"):
            assert (await api.get(path)).status == 200


async def test_skills_and_toolsets_are_what_exists(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(10):
        await api.gateway.skills.is_synced.wait()
        assert "git-work" in {skill["name"] for skill in (await api.get("/v1/skills")).json["data"]}
        toolsets = {found["name"]: found for found in (await api.get("/v1/toolsets")).json["data"]}
        files = toolsets["files"]
        assert (files["enabled"], files["configured"]) == (True, True)
        assert {tool["name"] for tool in files["tools"]} >= {"read_file", "search_files"}
        assert all(tool["description"] for tool in files["tools"])
        assert toolsets["talk"]["enabled"] is False, "as resolved for the API"
        assert toolsets["talk"]["tools"] == []
        assert toolsets["web"]["configured"] is False, "no search provider has a key"


async def test_metrics_count_turns_and_requests(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(10):
        for _ in range(2):
            assert (await api.post("/v1/chat/completions", {**CHAT, "model": "hermes"})).status == 200
        await api.get("/nowhere")
        page = await api.get("/metrics")
        assert page.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        numbers = snapshot_of(page.body.decode())
    assert numbers['hermes_turns_total{state="done"}'] == 2
    assert numbers['hermes_http_requests_total{method="POST",route="/v1/chat/completions",status="200"}'] == 2
    assert numbers['hermes_http_requests_total{method="other",route="other",status="404"}'] == 1
    assert numbers['hermes_queue_depth{queue="messages"}'] == 0
    assert numbers["hermes_turns_running"] == 0
    assert numbers["process_resident_memory_bytes"] > 1_000_000
    assert numbers["hermes_tasks"] > 5
    assert numbers["process_cpu_seconds_total"] > 0
    assert any(name.startswith('hermes_adapter_connected{account="telegram"') for name in numbers)
    assert any(name.startswith('hermes_events_in_total{account="telegram"') for name in numbers)


async def test_metrics_time_turns_models_and_tools_and_hold_all_that_dashboard_and_alerts_use(
    start: Start, model: FakeModel
) -> None:
    async with served(start) as api, asyncio.timeout(20):
        model.script([calls_tools(("todo", {"items": []})), "Done."])
        assert (await api.post("/v1/chat/completions", {**CHAT, "model": "hermes"})).status == 200
        logging.getLogger("hermes.test").warning("Quince found", extra={"reason": "7"})
        page = (await api.get("/metrics")).body.decode()
        numbers = snapshot_of(page)
    assert numbers['hermes_turn_seconds_count{platform="api",state="done"}'] == 1
    assert numbers['hermes_turn_seconds_bucket{platform="api",state="done",le="+Inf"}'] == 1
    assert numbers['hermes_tool_seconds_count{tool="todo",outcome="ok"}'] == 1
    [asked] = [value for name, value in numbers.items() if name.startswith("hermes_model_seconds_count{")]
    assert asked == 2
    assert numbers['hermes_errors_total{level="warning",kind="Quince found"}'] == 1
    assert numbers['hermes_queue_oldest_seconds{queue="messages"}'] == 0
    assert numbers["hermes_store_up"] == 1
    assert numbers["hermes_store_bytes"] > 4096
    assert numbers["hermes_disk_free_bytes"] > 0
    types = dict(re.findall(r"# TYPE (\S+) (\S+)", page))
    assert types["hermes_turn_seconds"] == "histogram"
    monitoring = Path(__file__).parents[3] / "docs" / "monitoring"
    told = (monitoring / "alerts.yml").read_text() + (monitoring / "dashboard.json").read_text()
    used = {re.sub("_(bucket|sum|count)$", "", name) for name in re.findall(r"\b(?:hermes|process)_[a-z_]+", told)}
    assert used - set(types) == {"hermes_node_up"}, "nodes are told of in a cluster only"


async def test_the_store_being_down_is_told_as_such() -> None:
    async def broken(_request: web.Request) -> web.Response:
        raise StoreIsDownError("no space left")

    def add(app: web.Application) -> None:
        app.router.add_get("/broken", broken)

    server = HttpServer(make_app([add]), "127.0.0.1", 0)
    async with asyncio.timeout(20), server.listening(), aiohttp.request("GET", f"{server.url}/broken") as answer:
        assert answer.status == 503
        assert (await answer.json())["error"]["code"] == "store_is_down"
        assert answer.headers["Retry-After"] == "5"


async def test_the_contract_names_every_route_and_no_other(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(10):
        document = (await api.get("/openapi.json")).json
        told = {(method.upper(), plain_path(path)) for path, methods in document["paths"].items() for method in methods}
        app = make_app(adders(ApiParts(api.gateway)))
        signing = {(method, plain_path(path)) for method, path, _ in SIGN_IN_ROUTES}
        assert told == routes_of(app) | signing | {("GET", "/metrics")}
