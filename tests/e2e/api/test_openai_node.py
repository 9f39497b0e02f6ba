"""The official `openai` package for Node, where Node is. It is installed once, beside the packages of the tests."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.clients import npm
from tests.e2e.api.conftest import Sdk
from tests.fakes.model import FakeModel, Json, Refusal, calls_tools

PACKAGE = "openai@6.30.1"  # the newest that runs on Node 20
SCRIPT = Path(__file__).with_name("openai_node.mjs")
RUN_SECONDS = 30.0


@pytest.mark.timeout(120)
async def test_the_package_for_node_meets_everything_as_it_expects(sdk: Sdk, model: FakeModel) -> None:
    folder = await npm.installed(PACKAGE)
    model.when("weather", calls_tools(("get_weather", {"town": "Bern"})))
    model.when("look", calls_tools(("search_files", {"pattern": "needle"})))
    model.when_told("", "Nothing there.")
    model.when("fail", Refusal(401, "wrong key"))
    told = {"OPENAI_BASE_URL": sdk.base_url, "OPENAI_API_KEY": sdk.key}
    met: Json = orjson.loads(await npm.run_script(SCRIPT, folder, told, RUN_SECONDS))
    assert (met["chat"], met["streamed"], met["usage"]) == ("echo: hi", "echo: hi", 19)
    assert met["worked"] == "Nothing there."  # as its own examples read a stream, with a tool of ours at work in it
    assert met["tool"] == {"name": "get_weather", "arguments": '{"town":"Bern"}'}
    assert (met["response"], met["chained"], met["gathered"]) == ("echo: first", "echo: second", "echo: fourth")
    assert (met["events"][0], met["events"][-1]) == ("response.created", "response.completed")
    assert met["retrieved"] == "completed"
    assert met["deleted"][:2] == ["NotFoundError", 404]
    assert "hermes" in met["models"]
    assert met["wrongKey"] == ["AuthenticationError", 401, "invalid_api_key"]
    assert met["nonsense"][:2] == ["BadRequestError", 400]
    assert met["failure"] == ["InternalServerError", 502, "auth"]
