"""Requests as Open WebUI sends them: its models page, a chat with tools of its own, and the work it does behind it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from openai.types.responses import Response, ResponseStreamEvent

from tests.e2e.api.schemas import check_type
from tests.fakes.model import FakeModel
from tests.integration.api.serving import Served, served
from tests.integration.conftest import Start

CHAT = "/v1/chat/completions"
TOOL = {
    "type": "function",
    "function": {
        "type": "function",  # it says so twice
        "name": "get_current_timestamp",
        "description": "Get the current Unix timestamp in seconds.",
        "parameters": {"type": "object", "properties": {}, "required": []},
    },
}
HEADERS = {
    "X_OpenWebUI_User_Name": "Ana",
    "X_OpenWebUI_User_Id": "5b1c",
    "X_OpenWebUI_User_Email": "ana@example.org",
    "X_OpenWebUI_User_Role": "admin",
    "X_OpenWebUI_Chat_Id": "0b2a",
}


def asked(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"stream": True, "model": "hermes", "messages": list(messages), **more}


async def streamed(api: Served, body: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await api.post(CHAT, body, **HEADERS)
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    lines = [line for line in answer.body.decode().split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    return [orjson.loads(line.removeprefix("data: ")) for line in lines[:-1]]


async def test_its_models_page(start: Start) -> None:
    async with served(start) as api:
        listed = (await api.get("/v1/models", **HEADERS)).json
    assert {"id", "object", "created", "owned_by"} <= set(listed["data"][0])


async def test_a_chat_with_a_tool_of_its_own_and_usage(start: Start, model: FakeModel) -> None:
    system = {"role": "system", "content": "User Context:\n\nname: Ana"}
    question = {"role": "user", "content": [{"type": "text", "text": "What time is it?"}]}
    extras = {"stream_options": {"include_usage": True}, "tools": [TOOL], "params": {}, "metadata": {"chat_id": "0b2a"}}
    async with served(start) as api:
        model.calls_tools([("get_current_timestamp", {})])
        chunks = await streamed(api, asked(system, question, **extras))
        (call,) = [
            call for chunk in chunks for choice in chunk["choices"] for call in choice["delta"].get("tool_calls", ())
        ]
        assert (call["index"], call["function"]["name"]) == (0, "get_current_timestamp")
        assert chunks[-1]["choices"] == []
        assert chunks[-1]["usage"]["total_tokens"] == 19

        called = {"role": "assistant", "content": "", "tool_calls": [call]}
        result = {"role": "tool", "tool_call_id": call["id"], "content": "1794713462"}
        model.says("A quarter to four.")
        chunks = await streamed(api, asked(system, question, called, result, **extras))
    words = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]]
    assert "".join(words) == "A quarter to four."
    assert "name: Ana" in model.last_request["messages"][0]["content"]


async def test_the_title_it_asks_for_behind_the_chat(start: Start, model: FakeModel) -> None:
    model.says('{"title": "Time of day"}')
    prompt = {"role": "user", "content": "### Task:\nGenerate a concise title for the chat history."}
    body = {**asked(prompt, max_completion_tokens=1000, metadata={"task": "title_generation"}), "stream": False}
    async with served(start) as api:
        answer = await api.post(CHAT, body, **HEADERS)
    assert answer.json["choices"][0]["message"]["content"] == '{"title": "Time of day"}'


@pytest.mark.parametrize("streams", [False, True])
async def test_a_task_by_responses_is_answered_by_the_model_alone(
    start: Start, model: FakeModel, streams: bool
) -> None:
    template = "### Task:\nGenerate a concise title.\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"
    model.says('{"title": "Greeting"}')
    async with served(start) as api:
        asked = {"model": "hermes", "instructions": "Be brief.", "input": template, "stream": streams}
        answer = await api.post("/v1/responses", asked, **HEADERS)
        events = [orjson.loads(line[6:]) for line in answer.body.split(b"\n") if line.startswith(b"data: {")]
        whole = events[-1]["response"] if streams else answer.json
        for event in events:
            check_type(ResponseStreamEvent, event)
        assert check_type(Response, whole).output_text == '{"title": "Greeting"}'
        assert (whole["status"], whole["store"]) == ("completed", False)
        assert (await api.get(f"/v1/responses/{whole['id']}")).status == 404
        assert (await api.get("/api/sessions")).json["data"] == []
    assert [message["role"] for message in model.last_request["messages"]] == ["system", "user"]
    assert "tools" not in model.last_request
