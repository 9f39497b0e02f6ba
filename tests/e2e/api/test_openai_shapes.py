"""Every answer and every typed event has the shape that the official SDK declares. It checks none of them by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseItemList, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.e2e.api.conftest import Sdk
from tests.fakes.model import FakeModel, Reply, calls_tools

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
TALK = [{"role": "user", "content": "hello"}]
LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": True}
ANY_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def data_of(body: bytes) -> list[Any]:
    return [orjson.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: {")]


async def test_every_event_of_a_streamed_response(sdk: Sdk, model: FakeModel, tmp_path: Path) -> None:
    (tmp_path / "work" / "notes.txt").write_text("Bread.", encoding="utf-8")
    look = {"type": "function", **LOOK}
    chosen = {"tools": [look], "tool_choice": {"type": "function", "name": "look"}, "metadata": {"a": "b"}}
    cases: tuple[tuple[list[Any], dict[str, Any], str], ...] = (
        ([], {**chosen, "temperature": 1, "max_output_tokens": 20, "conversation": "ours"}, "response.completed"),
        ([], {"background": True}, "response.completed"),
        ([calls_tools(("look", {}))], {"tools": [look]}, "response.completed"),
        ([calls_tools(("read_file", {"path": "notes.txt"}), text="Wait."), "Bread."], {}, "response.completed"),
        ([Reply(text="cut", finish="length")], {}, "response.incomplete"),
        ([calls_tools(("danger", {"text": "bang"}))], {}, "response.completed"),
    )
    for script, more, last in cases:
        model.script(script)
        events = data_of((await sdk.api.post(RESPONSES, {"input": "hello", "stream": True, **more})).body)
        for event in events:
            ANY_EVENT.validate_python(event)
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert events[-1]["type"] == last
    model.fails_next(401, "wrong key")
    events = data_of((await sdk.api.post(RESPONSES, {"input": "hello", "stream": True})).body)
    assert ANY_EVENT.validate_python(events[-1]).type == "response.failed"


async def test_every_answer_that_comes_whole(sdk: Sdk, model: FakeModel, tmp_path: Path) -> None:
    (tmp_path / "work" / "notes.txt").write_text("Bread.", encoding="utf-8")
    reads: list[Any] = [calls_tools(("read_file", {"path": "notes.txt"})), "Bread."]
    model.script([*reads, calls_tools(("look", {})), *reads])
    response = (await sdk.api.post(RESPONSES, {"input": "hello"})).json
    assert [item.type for item in Response.model_validate(response).output] == ["mcp_call", "message"]
    items = (await sdk.api.get(f"{RESPONSES}/{response['id']}/input_items")).json
    assert len(ResponseItemList.model_validate(items).data) == 1
    tools = [{"type": "function", "function": LOOK}]
    called = ChatCompletion.model_validate((await sdk.api.post(CHAT, {"messages": TALK, "tools": tools})).json)
    assert called.choices[0].finish_reason == "tool_calls"
    asked = {"messages": TALK, "stream": True, "stream_options": {"include_usage": True}}
    for chunk in data_of((await sdk.api.post(CHAT, asked)).body):
        ChatCompletionChunk.model_validate(chunk)
    for told in (await sdk.api.get("/v1/models")).json["data"]:
        Model.model_validate(told)
