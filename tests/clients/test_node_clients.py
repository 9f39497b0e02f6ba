"""Clients for Node as people use them, with their own retries: a side effect happens exactly once."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest

from tests.clients import npm
from tests.clients.cases import Client, Row
from tests.fakes.model import Json, Reply

Record = Callable[[str, object], None]
OPENAI = "openai@6.30.1"  # the newest that runs on Node 20
VERCEL = (
    "ai@6.0.326",
    "@ai-sdk/openai-compatible@2.0.87",
    "@ai-sdk/openai@3.0.139",
    "@ai-sdk/anthropic@3.0.138",
    "zod@4.6.7",
)
RUN_SECONDS = 90.0


async def run(client: Client, script: str, *packages: str) -> Json:
    folder = await npm.installed(*packages)
    words = await npm.run_script(script, folder, {**client.environ, "NODE_NO_WARNINGS": "1"}, RUN_SECONDS)
    print(words)  # shown where the test fails
    found: Json = orjson.loads(words.splitlines()[-1])
    return found


@pytest.mark.timeout(240)
async def test_openai(client: Client, record: Record) -> None:
    found = await run(client, "openai_node.mjs", OPENAI)
    row = Row("openai (Node)")
    await row.check(client, found)
    row.assert_passed(record)
    assert (found["usage"], found["chained"], found["retrieved"]) == (19, "echo: second", "completed")
    assert (found["events"][0], found["events"][-1]) == ("response.created", "response.completed")
    assert found["deleted"][:2] == ["NotFoundError", 404]
    assert "hermes" in found["models"]
    assert found["wrongKey"] == ["AuthenticationError", 401, "invalid_api_key"]
    assert found["nonsense"][:2] == ["BadRequestError", 400]


@pytest.mark.timeout(240)
async def test_vercel(client: Client, record: Record) -> None:
    client.model.when("^think", Reply("42", reasoning="Six by seven."))
    client.model.when("^object", Reply('{"town":"Bern"}'))
    found = await run(client, "vercel.mjs", *VERCEL)
    row = Row("Vercel AI SDK")
    await row.check(client, found)
    row.assert_passed(record)
    for variant, thought in found["thought"].items():
        assert (thought["text"], thought["finish"], thought["totalTokens"]) == ("42", "stop", 19), variant
    for variant in ("compatible", "responses"):
        assert found["thought"][variant]["reasoning"] == "Six by seven."
        assert found["thought"][variant]["parts"] >= 1
    assert (found["object"], found["embedding"]) == ({"town": "Bern"}, [3])
