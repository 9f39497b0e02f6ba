"""Fields and headers that clients send and read, over the API as it is really served."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.fakes.model import FakeModel, Recorded, Refusal, Reply, calls_tools
from tests.integration.api.conftest import Answer, Event
from tests.integration.api.serving import Served, served
from tests.integration.conftest import Start

Json = dict[str, Any]
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}, "strict": True}}
DIALECTS = ("chat_completions", "responses", "anthropic_messages")


def speak(folder: Path, dialect: str) -> None:
    """Let the gateway's model speak another dialect from its next start on."""
    home = folder / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.yaml").write_text(f"model: {{api_mode: {dialect}}}\n", "utf-8")


def chat(text: str = "hello", **fields: Any) -> Json:
    return {"model": "hermes", "messages": [{"role": "user", "content": text}], **fields}


async def stream(api: Served, path: str, body: Json, **headers: str) -> list[Event]:
    async with api.streaming(path, {**body, "stream": True}, **headers) as (answer, events):
        assert answer.status == 200
        return [event async for event in events if event.name != ":"]


def deltas(events: list[Event], field: str) -> str:
    chunks = [event.data for event in events if isinstance(event.data, dict)]
    return "".join(choice["delta"].get(field) or "" for chunk in chunks for choice in chunk.get("choices", ()))


# Sampling


async def test_sampling_reaches_a_provider_of_chat_completions(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        sampling: Json = {"top_p": 0.5, "presence_penalty": 1.0, "frequency_penalty": -1.0, "seed": 7, "stop": ["END"]}
        await api.post(CHAT, chat(**sampling, parallel_tool_calls=False, tools=[LOOK], reasoning_effort="minimal"))
        sent = model.last_request
        assert {name: sent[name] for name in sampling} == sampling
        assert sent["parallel_tool_calls"] is False
        assert sent["reasoning_effort"] == "low"
        assert LOOK["function"]["strict"] is True  # type: ignore[index]
        assert [tool["function"].get("strict") for tool in sent["tools"]].count(True) == 1
        await api.post(CHAT, chat())
        assert not {*sampling, "parallel_tool_calls", "logprobs"} & model.last_request.keys()


async def test_sampling_reaches_a_provider_of_messages_by_its_names(
    start: Start, model: FakeModel, tmp_path: Path
) -> None:
    speak(tmp_path, "anthropic_messages")
    async with served(start) as api, asyncio.timeout(20):
        answer = await api.post(CHAT, chat(stop="END", top_p=0.5, parallel_tool_calls=False, tools=[LOOK]))
        assert answer.status == 200, answer.json
        sent = model.last_request
        assert (sent["stop_sequences"], sent["top_p"]) == (["END"], 0.5)
        assert sent["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
        assert [tool["name"] for tool in sent["tools"] if tool.get("strict")] == ["look"]


@pytest.mark.parametrize(
    "dialect, fields, param",
    [("responses", {"stop": "END"}, "stop"), ("anthropic_messages", {"logprobs": True}, "logprobs")],
)
async def test_field_that_the_dialect_lacks_is_refused_by_name(
    start: Start, model: FakeModel, tmp_path: Path, dialect: str, fields: Json, param: str
) -> None:
    speak(tmp_path, dialect)
    async with served(start) as api, asyncio.timeout(20):
        answer = await api.post(CHAT, chat(**fields))
        assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "unsupported_parameter", param)
        assert model.requests == []


async def test_log_probabilities_come_back(start: Start, model: FakeModel) -> None:
    token = {"token": "hi", "logprob": -0.1, "bytes": [104, 105], "top_logprobs": []}
    first = {"index": 0, "delta": {"content": "hi"}, "logprobs": {"content": [token]}, "finish_reason": None}
    last = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
    lines = [b"data: %s\n\n" % orjson.dumps({"model": "m", "choices": [choice]}) for choice in (first, last)]
    said = Recorded((b"".join(lines) + b"data: [DONE]\n\n",))
    async with served(start) as api, asyncio.timeout(20):
        model.script([said, said, said])
        [choice] = (await api.post(CHAT, chat(logprobs=True, top_logprobs=2))).json["choices"]
        assert (model.last_request["logprobs"], model.last_request["top_logprobs"]) == (True, 2)
        assert (choice["message"]["content"], choice["logprobs"]["content"]) == ("hi", [token])
        events = await stream(api, CHAT, chat(logprobs=True))
        found = [event.data["choices"][0]["logprobs"] for event in events if isinstance(event.data, dict)]
        assert [item["content"] for item in found if item] == [[token]]
        made = (await api.post(RESPONSES, {"input": "hi", "include": ["message.output_text.logprobs"]})).json
        assert made["output"][0]["content"][0]["logprobs"] == [token]


async def test_numbers_of_a_response_are_numbers(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        made = (await api.post(RESPONSES, {"input": "hi"})).json
        names = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs")
        assert [made[name] for name in names] == [1.0, 1.0, 0.0, 0.0, 0]
        made = (await api.post(RESPONSES, {"input": "hi", "temperature": 0, "top_p": 0.5, "top_logprobs": 0})).json
        assert (made["temperature"], made["top_p"]) == (0, 0.5)


# Text, thinking and usage


async def test_streamed_text_is_that_of_the_answer_in_one_piece(start: Start, model: FakeModel) -> None:
    turn = [calls_tools(("search_files", {"pattern": "x"}), text=" One moment.\n"), Reply(" Found \n nothing. ")]
    async with served(start) as api, asyncio.timeout(20):
        model.script(turn)
        whole = (await api.post(CHAT, chat())).json["choices"][0]["message"]["content"]
        model.script(turn)
        events = await stream(api, CHAT, chat())
    assert deltas(events, "content") == whole == "One moment.\n\nFound \n nothing."


async def test_answer_that_breaks_off_and_is_begun_anew_is_told_whole(start: Start, model: FakeModel) -> None:
    piece = b'data: {"model":"m","choices":[{"index":0,"delta":{"content":"half a"},"finish_reason":null}]}\n\n'
    async with served(start) as api, asyncio.timeout(20):
        model.script([Recorded((piece,), cut=True), "a whole answer"])
        events = await stream(api, CHAT, chat())
        assert deltas(events, "content") == "half a\n\na whole answer"
        assert events[-2].data["hermes"]["notices"]
        model.script([Recorded((piece,), cut=True), "a whole answer"])
        answer = (await api.post(CHAT, chat())).json
        assert answer["choices"][0]["message"]["content"] == "a whole answer"
        assert answer["hermes"]["notices"]


async def test_every_chunk_has_a_choice_but_the_last_one_with_the_usage(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        model.script([calls_tools(("search_files", {"pattern": "x"})), "done"])
        events = await stream(api, CHAT, chat(stream_options={"include_usage": True}))
    chunks = [event.data for event in events if isinstance(event.data, dict)]
    assert [len(chunk["choices"]) for chunk in chunks] == [1] * (len(chunks) - 1) + [0]
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert chunks[-1]["usage"]["completion_tokens_details"] == {"reasoning_tokens": 0}
    shown = [event.data for event in events if event.name == "hermes.tool.progress"]
    assert [chunk["choices"][0]["delta"] for chunk in shown] == [{}, {}]
    assert [chunk["event"]["data"]["done"] for chunk in shown] == [False, True]
    assert shown[0]["event"]["type"] == "status"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_thinking_is_told_beside_the_answer(start: Start, model: FakeModel, tmp_path: Path, dialect: str) -> None:
    speak(tmp_path, dialect)
    model.default = Reply("42", reasoning="Six by seven.")
    async with served(start) as api, asyncio.timeout(20):
        message = (await api.post(CHAT, chat())).json["choices"][0]["message"]
        assert (message["content"], message["reasoning_content"]) == ("42", "Six by seven.")
        events = await stream(api, CHAT, chat())
        assert (deltas(events, "content"), deltas(events, "reasoning_content")) == ("42", "Six by seven.")
        made = (await api.post(RESPONSES, {"input": "hi"})).json
        thought, said = made["output"]
        assert (thought["type"], thought["summary"][0]["text"]) == ("reasoning", "Six by seven.")
        assert said["content"][0]["text"] == "42"
        told = [event.data for event in await stream(api, RESPONSES, {"input": "hi"})]
        summary = [event["delta"] for event in told if event["type"] == "response.reasoning_summary_text.delta"]
        assert "".join(summary) == "Six by seven."
        assert [item["type"] for item in told[-1]["response"]["output"]] == ["reasoning", "message"]


# Errors, headers and addresses


async def test_rate_limit_of_the_provider_stays_one(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        model.default = Refusal(429, "slow down", {"Retry-After": "60"})
        streamed = {"input": "hi", "stream": True}
        for path, body in (
            (CHAT, chat()),
            (CHAT, chat(stream=True)),
            (RESPONSES, {"input": "hi"}),
            (RESPONSES, streamed),
        ):
            answer = await api.post(path, body)
            assert (answer.status, answer.error["type"], answer.error["code"]) == (429, "rate_limit_error", "rate")
            assert answer.headers["Retry-After"] == "60"


def request_id(answer: Answer) -> str:
    return next(value for name, value in answer.headers.items() if name.lower() == "x-request-id")


async def test_every_answer_has_a_request_id(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        answer = await api.post(CHAT, chat())
        assert request_id(answer) == answer.json["id"].removeprefix("chatcmpl-")
        model.default = Refusal(401, "wrong key")
        answers = [
            await api.get("/health"),
            await api.get("/nowhere"),
            await api.get("/v1/models"),
            await api.post(CHAT, {}),
            await api.post(CHAT, chat()),
            await api.post(RESPONSES, {"input": "hi"}),
            await api.get("/v1/models", Authorization="Bearer wrong"),
        ]
        found = [request_id(answer) for answer in answers]
        assert all(found)
        assert len(set(found)) == len(found)
        async with api.streaming(CHAT, chat(stream=True)) as (streamed, _):
            assert streamed.headers["x-request-id"].startswith("ev_")


async def test_key_is_taken_from_the_headers_of_other_makers(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        key = api.http.headers["Authorization"].removeprefix("Bearer ")
        for header in ("api-key", "x-api-key"):
            async with api.stranger.get("/v1/models", headers={header: key}) as answer:
                assert answer.status == 200
            async with api.stranger.get("/v1/models", headers={header: "wrong"}) as answer:
                assert answer.status == 401


async def test_slash_at_the_end_of_an_address_means_nothing(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        assert (await api.get("/v1/models/")).json == (await api.get("/v1/models")).json
        assert (await api.get("/v1/models/hermes/")).json["id"] == "hermes"
        assert (await api.post(f"{CHAT}/", chat())).json["choices"][0]["message"]["content"] == "echo: hello"
        async with api.stranger.post(f"{CHAT}/", json=chat()) as answer:
            assert answer.status == 401


# Embeddings


async def test_embeddings_are_passed_on_to_the_provider(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        answer = await api.post("/v1/embeddings", {"model": "text-embedding-3-small", "input": ["a", "bc"], "x": 1})
        assert answer.status == 200, answer.json
        assert [item["embedding"] for item in answer.json["data"]] == [[1.0], [2.0]]
        assert model.last_request == {"model": "text-embedding-3-small", "input": ["a", "bc"]}
        model.fails_next(429, "slow down", {"Retry-After": "7"})
        answer = await api.post("/v1/embeddings", {"model": "text-embedding-3-small", "input": "a"})
        assert (answer.status, answer.headers["Retry-After"]) == (429, "7")


async def test_embeddings_that_nobody_makes_are_a_404(start: Start, tmp_path: Path) -> None:
    async with served(start) as api, asyncio.timeout(20):
        answer = await api.post("/v1/embeddings", {"model": "hermes", "input": "a"})
        assert (answer.status, answer.error["code"]) == (404, "model_not_found")
    speak(tmp_path, "anthropic_messages")
    async with served(start) as api, asyncio.timeout(20):
        assert (await api.post("/v1/embeddings", {"model": "text-embedding-3-small", "input": "a"})).status == 404
