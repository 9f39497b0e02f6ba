"""llm-comply holds every field of every answer against the published schemas of three APIs."""

from __future__ import annotations

import asyncio
import sys

import orjson
import pytest

from tests.e2e.api.conftest import Sdk
from tests.fakes.model import FakeModel, Json, Reply, calls_tools

SECONDS = 60.0
NO_MODEL_NAMED = {"error-handling", "chat-error-handling", "compact-missing-model"}
"""They demand that a request without `model` is refused. Here the default model answers it."""
SUITES = {"openai-chat": "gpt-5", "open-responses": "gpt-5", "anthropic": "claude-sonnet-4"}
"""Each with a name of a model for which it also looks at thinking."""


async def run(sdk: Sdk, suite: str, model: str) -> list[Json]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "llm_comply.cli", "--base-url", sdk.base_url, "--api-key", sdk.key),
        *("--model", model, "--format", suite, "--json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(SECONDS):
        printed, _ = await process.communicate()
    found: Json = orjson.loads(printed[printed.index(b"{") :])
    results: list[Json] = found["results"]
    return results


@pytest.mark.timeout(120)
@pytest.mark.parametrize("suite, name", SUITES.items())
async def test_every_answer_complies(sdk: Sdk, model: FakeModel, suite: str, name: str) -> None:
    # Its table of events lacks those of thinking, which the SDK's types are held against elsewhere.
    model.when("reasoning|think|step", Reply("555.", reasoning="Fifteen by thirty-seven."))
    model.when("weather", calls_tools(("get_weather", {"location": "San Francisco, CA"})))
    results = await run(sdk, suite, name)
    assert len(results) >= 9
    served = (await sdk.api.get("/openapi.json")).json["paths"]
    not_served = {"compact-response"} if "/v1/responses/compact" not in served else set()
    failed = {
        result["id"]: result.get("errors")
        for result in results
        if result["status"] != "passed" and result["id"] not in NO_MODEL_NAMED | not_served
    }
    assert not failed
