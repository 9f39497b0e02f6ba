"""The scripted provider itself: others build their tests on what it does."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.model import FakeModel, calls_tools

USER = {"role": "user", "content": "What is the weather?"}
CALL = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
CALLS: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALL]}


async def post(model: FakeModel, *messages: dict[str, Any]) -> tuple[int, Any]:
    body = {"model": "m", "messages": messages or [USER]}
    async with aiohttp.ClientSession() as http, http.post(f"{model.url}/chat/completions", json=body) as response:
        return response.status, await response.json()


async def text_of(model: FakeModel) -> str:
    status, body = await post(model)
    assert status == 200, body
    return str(body["choices"][0]["message"]["content"])


async def test_script_counts_before_rules_and_rules_before_the_echo(model: FakeModel) -> None:
    assert await text_of(model) == "echo: What is the weather?"
    model.when("weather", "Rain.")
    model.script(["one", "two"])
    assert [await text_of(model) for _ in range(4)] == ["one", "two", "Rain.", "Rain."]
    assert len(model.requests) == 5


async def test_tool_calls_never_have_the_same_id_twice(model: FakeModel) -> None:
    model.when("weather", calls_tools(("now", {}), ("now", {})))
    ids = [call["id"] for _ in range(2) for call in (await post(model))[1]["choices"][0]["message"]["tool_calls"]]
    assert len(set(ids)) == 4


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([USER, CALLS, USER], id="a call that was not answered"),
        pytest.param([USER, CALLS], id="a call that is last"),
        pytest.param([USER, {"role": "tool", "tool_call_id": "c1", "content": "x"}], id="an answer without a call"),
        pytest.param([{"role": "robot", "content": "x"}], id="an unknown role"),
        pytest.param([{"role": "user", "content": None}], id="no content"),
    ],
)
async def test_conversation_that_a_strict_provider_refuses_is_refused(
    model: FakeModel, messages: list[dict[str, Any]]
) -> None:
    assert (await post(model, *messages))[0] == 400


async def test_models_are_listed(model: FakeModel) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{model.url}/models") as response:
        assert [entry["id"] for entry in (await response.json())["data"]] == ["fake-1"]


async def test_runs_as_a_process_of_its_own() -> None:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "tests.fakes.model", "--mode", "stream", "--tokens", "3"]
    process = await asyncio.create_subprocess_exec(*command, cwd=root, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(10):
            url = (await process.stdout.readline()).decode().strip()
            async with aiohttp.ClientSession() as http:
                body = {"model": "m", "messages": [USER], "stream": True}
                async with http.post(f"{url}/chat/completions", json=body) as response:
                    assert (await response.read()).count(b'"content":"w') == 3
    finally:
        process.terminate()
        await process.wait()
