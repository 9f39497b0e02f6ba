"""An answer asked for in a form: every dialect says so in its own words, and never leaves it out in silence."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from hermes.agent.models.anthropic_messages import ANY_JSON, AnthropicMessages
from hermes.agent.models.chat_completions import ChatCompletions
from hermes.agent.models.http_model import HttpModel
from hermes.agent.models.responses import Responses
from hermes.core.errors import ModelErrorKind
from hermes.core.messages import ChatMessage, OutputFormat, Role
from tests.contract.models.conftest import HELLO, TOOLS, ask, endpoint, failure_of, reply_of
from tests.fakes.model import FakeModel, Json

SCHEMA: Json = {
    "type": "object",
    "properties": {"temperature": {"type": "number"}},
    "required": ["temperature"],
    "additionalProperties": False,
}
BARE = OutputFormat(SCHEMA, "weather")
FULL = OutputFormat(SCHEMA, "weather", "What it is like outside.", True)
LOOSE = OutputFormat(SCHEMA, "weather", strict=False)
ANY = OutputFormat()
DIALECTS = [ChatCompletions, Responses, AnthropicMessages]
FIELDS = ("response_format", "text", "output_config")


def named(**more: Any) -> Json:
    return {"name": "weather", "schema": SCHEMA, **more}


DESCRIBED = {"description": "What it is like outside.", **SCHEMA}
SENT: list[tuple[type[HttpModel], OutputFormat, Json]] = [
    (ChatCompletions, ANY, {"response_format": {"type": "json_object"}}),
    (ChatCompletions, BARE, {"response_format": {"type": "json_schema", "json_schema": named()}}),
    (
        ChatCompletions,
        FULL,
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": named(description="What it is like outside.", strict=True),
            }
        },
    ),
    (ChatCompletions, LOOSE, {"response_format": {"type": "json_schema", "json_schema": named(strict=False)}}),
    (Responses, ANY, {"text": {"format": {"type": "json_object"}}}),
    (Responses, BARE, {"text": {"format": {"type": "json_schema", **named()}}}),
    (
        Responses,
        FULL,
        {"text": {"format": {"type": "json_schema", **named(description="What it is like outside.", strict=True)}}},
    ),
    (AnthropicMessages, ANY, {}),
    (AnthropicMessages, BARE, {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
    (AnthropicMessages, FULL, {"output_config": {"format": {"type": "json_schema", "schema": DESCRIBED}}}),
]


@pytest.mark.parametrize("dialect, form, sent", SENT)
async def test_form_is_sent_as_the_dialect_has_it(
    server: FakeModel, http: aiohttp.ClientSession, dialect: type[HttpModel], form: OutputFormat, sent: Json
) -> None:
    server.says('{"temperature":9}')
    model = dialect(endpoint(server), http)  # type: ignore[arg-type, call-arg]
    reply = await reply_of(model, ask(tools=TOOLS, format=form))
    assert reply.text == '{"temperature":9}'
    assert {name: server.last_request[name] for name in FIELDS if name in server.last_request} == sent
    assert server.last_request["tools"]


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.__name__)
def model(request: pytest.FixtureRequest, server: FakeModel, http: aiohttp.ClientSession) -> HttpModel:
    made: HttpModel = request.param(endpoint(server), http)
    return made


async def test_who_asks_for_no_form_sends_what_was_always_sent(server: FakeModel, model: HttpModel) -> None:
    await reply_of(model, ask())
    assert not set(FIELDS) & server.last_request.keys()


async def test_form_that_is_refused_is_told_and_never_left_out(server: FakeModel, model: HttpModel) -> None:
    """The provider names a property of the schema, and it has the name of an optional field of the request."""
    complaint = "Invalid schema for response_format 'weather': 'temperature' is not supported here."
    server.fails_next(400, complaint)
    error = await failure_of(model, ask(format=BARE, temperature=0.5))
    assert error.kind is ModelErrorKind.REQUEST
    assert "Invalid schema for response_format" in str(error)
    assert len(server.requests) == 1
    await reply_of(model, ask(format=BARE, temperature=0.5))
    assert server.last_request["temperature"] == 0.5


async def test_any_json_is_asked_of_anthropic_in_words(server: FakeModel, http: aiohttp.ClientSession) -> None:
    model = AnthropicMessages(endpoint(server), http)
    await reply_of(model, ask([ChatMessage(Role.SYSTEM, "Be kind."), *HELLO], format=ANY))
    first, last = server.last_request["system"]
    assert (first["text"], last["text"]) == ("Be kind.", ANY_JSON)
    assert ("cache_control" in first, "cache_control" in last) == (False, True)
    await reply_of(model, ask(format=ANY))
    assert [block["text"] for block in server.last_request["system"]] == [ANY_JSON]


async def test_form_stands_beside_the_effort_and_does_not_cost_it(
    server: FakeModel, http: aiohttp.ClientSession
) -> None:
    model = AnthropicMessages(endpoint(server, model="claude-opus-4-7"), http)
    wanted = {"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}}
    await reply_of(model, ask(format=BARE, reasoning="high"))
    assert server.last_request["output_config"] == wanted

    open_schema = OutputFormat({"type": "object"}, "anything")
    error = await failure_of(model, ask(format=open_schema, reasoning="high"))
    assert "additionalProperties" in str(error)
    await reply_of(model, ask(format=BARE, reasoning="high"))
    assert server.last_request["output_config"] == wanted
    assert server.last_request["thinking"] == {"type": "adaptive"}
