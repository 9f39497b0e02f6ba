"""The doors are open before tools and skills are there: what asks meanwhile waits, and holds up nobody else."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from hermes.app.lifespan import GatewayOptions, open_gateway
from hermes.app.serve import serve
from hermes.hosting.control import client as control
from hermes.hosting.heartbeat_writer import Heartbeat
from hermes.hosting.worker import StopRequest, WorkerOptions
from hermes.servers.api.context import ApiParts
from hermes.servers.api.models import routes
from hermes.servers.app import make_app
from hermes.services.requests.requests import Requests
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.test_door import request

NAME = "tools_that_take_long"
SLOW = f"""
import sys
sys.modules["{NAME}.gate"].wait(90)
from hermes.agent.toolkit.schema import tool
@tool(toolset="files")
async def late_tool(ctx) -> str:
    '''Came late.'''
    return "late"
"""


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Tools whose import ends when this is set."""
    (tmp_path / f"{NAME}.py").write_text(SLOW)
    event = threading.Event()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, f"{NAME}.gate", event)
    yield event
    event.set()
    sys.modules.pop(NAME, None)


def setting(tmp_path: Path, model: FakeModel) -> GatewayOptions:
    environ = {"OPENAI_API_KEY": "sk-test-0123456789", "OPENAI_BASE_URL": model.url}
    return GatewayOptions(tmp_path / "home", environ, tmp_path, tools=(NAME,), doors_first=True)


@pytest.mark.timeout(100)
async def test_a_request_before_the_tools_are_there_waits_for_them_and_holds_up_nobody(
    tmp_path: Path, model: FakeModel, gate: threading.Event
) -> None:
    async with asyncio.timeout(40), open_gateway(setting(tmp_path, model)) as gateway:
        gateway.begin()
        asked = [asyncio.create_task(_ask(gateway.requests, str(number))) for number in range(8)]
        while len(gateway.lanes.running()) < len(asked):
            await gateway.status()
        for _ in range(5):  # neither the loop nor its threads are taken
            await asyncio.to_thread((await gateway.status()).get, "waiting")
        assert model.requests == []
        gate.set()
        assert await asyncio.gather(*asked) == ["echo: hello"] * 8
    assert [tool["function"]["name"] for tool in model.requests[0]["tools"]] == ["late_tool"]


async def _ask(door: Requests, session: str) -> str:
    async with door.ask(request("hello", session=session)) as ticket:
        return (await ticket.result()).text


@pytest.mark.timeout(100)
async def test_a_list_of_what_there_is_waits_until_it_is_there(
    tmp_path: Path, model: FakeModel, gate: threading.Event
) -> None:
    async with asyncio.timeout(40), open_gateway(setting(tmp_path, model)) as gateway:
        app = make_app([routes(ApiParts(gateway))])
        async with TestClient(TestServer(app)) as client:
            listed = [asyncio.create_task(_names(client, path)) for path in ("/v1/skills", "/v1/toolsets")]
            assert (await client.get("/v1/models")).status == 200
            gateway.begin()
            assert (await client.get("/v1/models")).status == 200
            gate.set()
            skills, toolsets = await asyncio.gather(*listed)
    assert "git-work" in skills
    assert toolsets == ["files"]


async def _names(client: TestClient[web.Request, web.Application], path: str) -> list[str]:
    async with client.get(path) as response:
        return [each["name"] for each in (await response.json())["data"]]


@pytest.mark.timeout(100)
async def test_a_door_that_takes_long_to_open_keeps_no_account_waiting(
    tmp_path: Path, telegram: FakeTelegram, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a host that is a name, and a name server that is silent."""
    answer, resolve = threading.Event(), socket.getaddrinfo

    def slow(host: Any, *args: Any, **more: Any) -> Any:
        if host == "slow.test":
            answer.wait(80)
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return resolve(host, *args, **more)

    environ = {"OPENAI_API_KEY": "sk-test-0123456789", "OPENAI_BASE_URL": model.url, "API_SERVER_HOST": "slow.test"}
    for name, value in {**telegram.environ, **environ, "API_SERVER_KEY": "a-key-of-twenty-letters"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    stop, home = StopRequest(), tmp_path / "home"
    heart = Heartbeat(str(home))
    options = WorkerOptions(home, stop, heart)
    serving = asyncio.create_task(_serve_alone(options))
    try:
        await telegram.wait_for(lambda: telegram.polls > 0, 30)
        assert not serving.done()
        told = await _status(home)
        assert [trouble for trouble in told["troubles"] if "slow.test" in trouble and "is not open yet" in trouble]
        answer.set()
        while "is not open yet" in str(told["troubles"]):
            told = await _status(home)
        assert "cannot be used" in str(told["troubles"])
    finally:
        answer.set()
        stop.ask()
        await asyncio.wait({serving}, timeout=30)
    assert serving.result() == 0


async def _status(home: Path) -> dict[str, Any]:
    """What the control socket tells, as soon as there is one."""
    while True:
        with suppress(control.GatewayIsDownError, control.GatewayIsStalledError):
            told: dict[str, Any] = await asyncio.to_thread(control.call, home, "status")
            return told
        await asyncio.sleep(0.05)


async def _serve_alone(options: WorkerOptions) -> int:
    return await serve(options, lambda: None)
