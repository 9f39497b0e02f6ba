"""The Vercel AI SDK with each of its providers that can talk to the gateway."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.clients import npm
from tests.e2e.api.conftest import Sdk
from tests.fakes.model import FakeModel, Json, Refusal, Reply, calls_tools

PACKAGES = (
    "ai@6.0.326",
    "@ai-sdk/openai-compatible@2.0.87",
    "@ai-sdk/openai@3.0.139",
    "@ai-sdk/anthropic@3.0.138",
    "zod@4.6.7",
)
SCRIPT = Path(__file__).with_name("vercel.mjs")
RUN_SECONDS = 60.0
CHATS = ("compatible", "chat", "messages")


def effects(folder: Path) -> list[str]:
    """What the gateway's tool wrote: one line for each time it ran."""
    log = folder / "work" / "effects.txt"
    return log.read_text("utf-8").split() if log.exists() else []


def script(model: FakeModel) -> None:
    model.when("^think", Reply("42", reasoning="Six by seven."))
    model.when("^weather", calls_tools(("weather", {"town": "Bern"})))
    model.when("^object", Reply('{"town":"Bern"}'))
    model.when("^fail", Refusal(401, "wrong key"))
    for name in CHATS:
        line = ("terminal", {"command": f"echo {name} >> effects.txt"})
        model.when(f"^write {name}", calls_tools(line, text="I write."))
        model.when(f"^both {name}", calls_tools(line, ("weather", {"town": "Bern"})))
    model.when_told("", "Written.")
    model.when_told("rain in", "It rains.")


@pytest.mark.timeout(200)
async def test_every_provider_of_the_sdk_meets_what_it_expects(sdk: Sdk, model: FakeModel, tmp_path: Path) -> None:
    folder = await npm.installed(*PACKAGES)
    script(model)
    told = {"HERMES_URL": sdk.api.url, "HERMES_KEY": sdk.key, "NODE_NO_WARNINGS": "1"}
    met: Json = orjson.loads((await npm.run_script(SCRIPT, folder, told, RUN_SECONDS)).splitlines()[-1])
    for name in (*CHATS, "responses"):
        seen = met[name]
        assert (seen["chat"], seen["streamed"], seen["finish"]) == ("echo: hi", "42", "stop"), name
        assert seen["loop"] == {"text": "It rains.", "steps": 2, "ran": ["Bern"]}, name
        assert seen["usage"] == 19, name
    for name in ("compatible", "responses"):
        assert met[name]["reasoning"] == "Six by seven."
        assert met[name]["parts"]["reasoning-delta"] >= 1
    for name in CHATS:
        assert met[name]["ours"] == "I write.\n\nWritten."
        assert met[name]["both"] == {"text": "It rains.", "ran": ["Bern"]}
    assert sorted(effects(tmp_path)) == sorted(CHATS * 2)
    assert met["object"] == {"town": "Bern"}
    assert met["embedding"] == [3]
    assert met["error"] == ["AI_APICallError", 502]
