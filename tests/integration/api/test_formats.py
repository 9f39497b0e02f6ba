"""Answers in a form that the client asks for, from the request over the turn to the model and back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from hermes.core.requests import AgentRequest
from hermes.store import chat_settings, codec
from hermes.store.db import Tx
from hermes.store.sessions import sessions
from tests.fakes.model import FakeModel, Refusal, Reply, calls_tools
from tests.fakes.tools import GO_ON
from tests.integration.api.conftest import Answer, Api
from tests.integration.api.serving import served
from tests.integration.conftest import Start, crash

Json = dict[str, Any]

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
SCHEMA: Json = {
    "type": "object",
    "properties": {"town": {"type": "string"}},
    "required": ["town"],
    "additionalProperties": False,
}
ANSWER = '{"town":"Bern"}'
NAMED: Json = {"name": "place", "schema": SCHEMA, "strict": True}
FORM: Json = {"type": "json_schema", "json_schema": NAMED}
FLAT: Json = {"type": "json_schema", **NAMED}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def chat(text: str = "where?", form: Any = FORM, **more: Any) -> Json:
    return {"messages": [{"role": "user", "content": text}], "response_format": form, **more}


def response(text: str = "where?", form: Any = FLAT, **more: Any) -> Json:
    return {"input": text, "text": {"format": form}, **more}


def content(answer: Answer) -> Any:
    assert answer.status == 200, answer.json
    return answer.json["choices"][0]["message"]["content"]


def texts(body: Json) -> list[str]:
    return [item["content"][0]["text"] for item in body["output"] if item["type"] == "message"]


async def stream(api: Api, path: str, body: Json) -> list[Any]:
    async with api.streaming(path, {**body, "stream": True}) as (answer, events):
        assert answer.status == 200
        return [event.data async for event in events if event.name != ":"]


def streamed_content(events: list[Any]) -> str:
    chunks = [event for event in events if isinstance(event, dict)]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


# The way there and back


async def test_the_form_holds_for_every_call_of_the_turn_and_nothing_but_the_answer_is_told(
    start: Start, model: FakeModel
) -> None:
    """Our tools run before it, and what the model says beside their calls would not be JSON."""
    async with served(start) as api, asyncio.timeout(20):
        turn = [calls_tools(("search_files", {"pattern": "x"}), text="One moment."), Reply(ANSWER)]
        model.script(turn)
        assert content(await api.post(CHAT, chat())) == ANSWER
        model.script(turn)
        assert streamed_content(await stream(api, CHAT, chat())) == ANSWER
        assert [request["response_format"] for request in model.requests] == [FORM] * 4

        model.script(turn)
        made = (await api.post(RESPONSES, response())).json
        assert [item["type"] for item in made["output"]] == ["mcp_call", "message"]
        assert texts(made) == [ANSWER]
        model.script(turn)
        events = await stream(api, RESPONSES, response())
        assert [event["delta"] for event in events if event["type"] == "response.output_text.delta"] == [ANSWER]
        assert texts(events[-1]["response"]) == [ANSWER]
        assert [request["response_format"] for request in model.requests] == [FORM] * 8


async def test_any_json_is_asked_for_too(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        await api.post(CHAT, chat(form={"type": "json_object"}))
        await api.post(RESPONSES, response(form={"type": "json_object"}))
        assert [request["response_format"] for request in model.requests] == [{"type": "json_object"}] * 2


@pytest.mark.parametrize("form", [None, {"type": "text"}])
async def test_plain_text_is_asked_for_as_ever(start: Start, model: FakeModel, form: Any) -> None:
    async with served(start) as api, asyncio.timeout(20):
        assert content(await api.post(CHAT, chat("hi", form))) == "echo: hi"
        made = (await api.post(RESPONSES, response("hi", form))).json
        assert (texts(made), made["text"]) == (["echo: hi"], {"format": {"type": "text"}})
        assert not any("response_format" in request for request in model.requests)


async def test_the_response_repeats_its_form_and_the_next_one_of_its_chain_has_none(
    start: Start, model: FakeModel
) -> None:
    model.script([ANSWER, "Bern is nice."])
    async with served(start) as api, asyncio.timeout(20):
        made = (await api.post(RESPONSES, response())).json
        assert made["text"] == {"format": {**FLAT, "description": None}}
        assert (await api.get(f"{RESPONSES}/{made['id']}")).json == made
        following = (await api.post(RESPONSES, {"input": "and?", "previous_response_id": made["id"]})).json
        assert (texts(following), following["text"]) == (["Bern is nice."], {"format": {"type": "text"}})
        assert "response_format" not in model.last_request


async def test_words_beside_a_call_of_the_client_are_no_answer(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        model.script([calls_tools(("weather", {}), text="Let me see.")])
        answer = await api.post(CHAT, chat(tools=[WEATHER]))
        assert (content(answer), answer.json["choices"][0]["finish_reason"]) == (None, "tool_calls")
        model.script([calls_tools(("weather", {}), text="Let me see.")])
        made = (await api.post(RESPONSES, response(tools=[WEATHER]))).json
        assert [item["type"] for item in made["output"]] == ["function_call"]


async def test_an_answer_that_was_cut_off_says_so(start: Start, model: FakeModel) -> None:
    model.script([Reply('{"town":"Be', finish="length")] * 2)
    async with served(start) as api, asyncio.timeout(20):
        assert (await api.post(CHAT, chat())).json["choices"][0]["finish_reason"] == "length"
        assert (await api.post(RESPONSES, response())).json["status"] == "incomplete"


async def test_a_fallback_keeps_to_the_form_and_puts_no_word_before_it(
    start: Start, model: FakeModel, home: Path
) -> None:
    (home / "config.yaml").write_text("model: {provider: openai, default: m-1, fallbacks: [openai/m-2]}\n")
    model.script([Refusal(404, "no such model", code="model_not_found"), ANSWER])
    async with served(start) as api, asyncio.timeout(20):
        assert content(await api.post(CHAT, chat())) == ANSWER
        assert [(request["model"], request["response_format"]) for request in model.requests] == [
            ("m-1", FORM),
            ("m-2", FORM),
        ]


async def test_a_refusal_of_the_provider_reaches_the_client_in_its_words(start: Start, model: FakeModel) -> None:
    model.fails_next(400, "Invalid schema for response_format 'place': no such thing.")
    async with served(start) as api, asyncio.timeout(20):
        answer = await api.post(CHAT, chat())
        assert (answer.status, answer.error["code"]) == (502, "request")
        assert "Invalid schema for response_format 'place'" in answer.error["message"]
        assert len(model.requests) == 1


# Restarts


async def test_a_response_that_goes_on_after_a_crash_still_has_its_form(start: Start, model: FakeModel) -> None:
    model.script([calls_tools(("linger", {}), text="One moment."), ANSWER])
    async with served(start) as api, asyncio.timeout(20):
        made = (await api.post(RESPONSES, response(background=True))).json
        while "One moment." not in str(await api.gateway.db.read(lines)):  # noqa: ASYNC110 - it is stored, not told
            await asyncio.sleep(0.01)
        await crash(api.gateway)
        (api.gateway.home.parent / "work" / GO_ON).touch()
    async with served(start) as api, asyncio.timeout(20):
        while (body := (await api.get(f"{RESPONSES}/{made['id']}")).json)["status"] != "completed":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert texts(body) == [ANSWER]
    assert [request["response_format"] for request in model.requests] == [FORM, FORM]


def lines(tx: Tx) -> list[str]:
    return tx.all("SELECT body FROM transcript", str)


async def test_a_request_that_was_stored_before_there_were_forms_is_still_read(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        await api.post(CHAT, chat(form=None))
        (stored,) = await api.gateway.db.read(requests)
    older = orjson.loads(stored)
    del older["options"]["format"]
    read: AgentRequest = codec.load_request(orjson.dumps(older).decode())
    assert read == codec.load_request(stored)


def requests(tx: Tx) -> list[str]:
    return tx.all("SELECT body FROM inbox WHERE kind = 'request'", str)


# What is refused


async def test_what_cannot_be_understood_is_refused_before_anything_is_stored(start: Start, model: FakeModel) -> None:
    """One gateway for them all: what is stored for any of them would show at the end."""
    deep: Json = {}
    for _ in range(80):
        deep = {"items": deep}
    wrong: list[tuple[Json, str, str]] = [
        ({"name": 7}, "invalid_response_format", ".name"),
        ({"schema": None}, "invalid_response_format", ".schema"),
        ({"strict": "yes"}, "invalid_response_format", ".strict"),
        ({"description": []}, "invalid_response_format", ".description"),
        ({"schema": deep}, "content_too_deep", ".schema"),
        ({"schema": {"description": "x" * 300_000}}, "content_too_long", ".schema"),
    ]
    async with served(start) as api, asyncio.timeout(20):
        for change, code, place in wrong:
            boxed = {"type": "json_schema", "json_schema": {**NAMED, **change}}
            for streams in (False, True):
                answer = await api.post(CHAT, chat(form=boxed, stream=streams))
                where = f"response_format.json_schema{place}"
                assert (answer.status, answer.error["code"], answer.error["param"]) == (400, code, where)
                answer = await api.post(RESPONSES, response(form={**FLAT, **change}, stream=streams))
                assert (answer.status, answer.error["code"], answer.error["param"]) == (
                    400,
                    code,
                    f"text.format{place}",
                )
                assert answer.error["type"] == "invalid_request_error"
        assert model.requests == []
        assert await api.gateway.db.read(sessions.newest) == []


@pytest.mark.parametrize("path, body", [(CHAT, chat()), (RESPONSES, response())])
async def test_the_built_in_model_takes_no_form_and_says_so_by_its_name(
    start: Start, model: FakeModel, home: Path, path: str, body: Json
) -> None:
    """Unless the session chose another model, which then answers."""
    (home / "config.yaml").write_text("model: {provider: embedded}\n")
    async with served(start) as api, asyncio.timeout(20):
        answer = await api.post(path, body)
        param = "response_format" if path == CHAT else "text.format"
        assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "unsupported_parameter", param)
        assert "The built-in model" in answer.error["message"]
        assert await api.gateway.db.read(sessions.newest) == []

        lane = "agent:main:api:dm:chosen"
        await api.gateway.db.write(chat_settings.choose, lane, "model", "openai/m-1")
        model.says(ANSWER)
        assert (await api.post(path, body, X_Hermes_Session_Id="chosen")).status == 200
        assert (model.last_request["model"], model.last_request["response_format"]) == ("m-1", FORM)
