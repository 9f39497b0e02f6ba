"""Every field of every answer and event, as the official SDK and the published documents declare them.

SDKs check none of this by themselves: a field that is missing breaks a program when it is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from llm_comply.schema import SSE_EVENT_TO_SCHEMA  # type: ignore[import-untyped]
from openai.types import CreateEmbeddingResponse, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.conversations import Conversation, ConversationDeletedResource, ConversationItem, ConversationItemList
from openai.types.responses import (
    CompactedResponse,
    InputTokenCountResponse,
    Response,
    ResponseItemList,
    ResponseStreamEvent,
)

from tests.e2e.api.conftest import Sdk
from tests.e2e.api.schemas import check_type, open_responses, openai
from tests.fakes.model import FakeModel, Refusal, Reply, calls_tools

CHAT, RESPONSES, CONVERSATIONS = "/v1/chat/completions", "/v1/responses", "/v1/conversations"
TALK = [{"role": "user", "content": "hello"}]
LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": True}
FLAT = {"type": "function", **LOOK}
READS = calls_tools(("read_file", {"path": "notes.txt"}), text="Wait.")
OURS_ALONE = ("mcp_call", "mcp_approval_request")
"""Items that OpenAI has and Open Responses has not."""
PROGRESS = ("event", "tool", "emoji", "label", "toolCallId", "status")
"""Fields of the event `hermes.tool.progress`, which has the frame of a chunk."""


def data_of(body: bytes) -> list[Any]:
    return [orjson.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: {")]


def check_response(body: Any) -> Any:
    if not any(item["type"] in OURS_ALONE for item in body["output"]):
        open_responses().check("ResponseResource", body)
    return check_type(Response, body)


def check_event(event: Any) -> None:
    check_type(ResponseStreamEvent, event)
    title = SSE_EVENT_TO_SCHEMA.get(event["type"]) if event["type"] != "error" else None  # nested there, flat here
    if title is not None and not any(name.encode() in orjson.dumps(event) for name in OURS_ALONE):
        open_responses().check(title, event)


def check_chunks(body: bytes) -> list[Any]:
    chunks = data_of(body)
    for chunk in chunks:
        for name in PROGRESS if "toolCallId" in chunk else ():
            del chunk[name]
        check_type(ChatCompletionChunk, chunk)
        openai().check("CreateChatCompletionStreamResponse", chunk)
    return chunks


def write_notes(tmp_path: Path) -> None:
    (tmp_path / "work" / "notes.txt").write_text("Bread.", encoding="utf-8")


async def test_every_event_of_a_streamed_response(sdk: Sdk, model: FakeModel, tmp_path: Path) -> None:
    write_notes(tmp_path)
    chosen = {"tools": [FLAT], "tool_choice": {"type": "function", "name": "look"}, "metadata": {"a": "b"}}
    as_functions = {"X_Hermes_Tool_Items": "function_call"}
    cases: tuple[tuple[list[Any], dict[str, Any], dict[str, str], str], ...] = (
        ([], {**chosen, "temperature": 1, "max_output_tokens": 20, "conversation": "ours"}, {}, "response.completed"),
        ([], {"background": True}, {}, "response.completed"),
        ([calls_tools(("look", {}))], {"tools": [FLAT]}, {}, "response.completed"),
        ([READS, "Bread."], {}, {}, "response.completed"),
        ([READS, "Bread."], {}, as_functions, "response.completed"),
        ([calls_tools(("boom", {})), "It broke."], {}, {}, "response.completed"),
        ([Reply("42", reasoning="Six by seven.")], {"store": False}, {}, "response.completed"),
        ([Reply(text="cut", finish="length")], {}, {}, "response.incomplete"),
        ([calls_tools(("danger", {"text": "bang"}))], {}, {}, "response.completed"),
        ([Refusal(401, "wrong key")], {}, {}, "response.failed"),
    )
    for script, more, headers, last in cases:
        model.script(script)
        asked = {"input": "hello", "stream": True, **more}
        events = data_of((await sdk.api.post(RESPONSES, asked, **headers)).body)
        for event in events:
            check_event(event)
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert events[-1]["type"] == last
    response_id = events[0]["response"]["id"]
    for event in data_of((await sdk.api.get(f"{RESPONSES}/{response_id}?stream=true")).body):
        check_event(event)


async def test_every_response_that_comes_whole(sdk: Sdk, model: FakeModel, tmp_path: Path) -> None:
    write_notes(tmp_path)
    api = sdk.api
    model.script([READS, "Bread."])
    first = (await api.post(RESPONSES, {"input": "hello"})).json
    assert [item.type for item in check_response(first).output] == ["message", "mcp_call", "message"]
    cases: tuple[tuple[list[Any], dict[str, Any]], ...] = (
        ([], {"previous_response_id": first["id"], "temperature": 0.5, "top_p": 0.5, "metadata": {"a": "b"}}),
        ([READS, "Bread."], {}),
        ([calls_tools(("look", {}))], {"tools": [FLAT]}),
        ([Reply("42", reasoning="Six by seven.")], {"reasoning": {"effort": "low", "summary": "auto"}}),
        (["{}"], {"text": {"format": {"type": "json_object"}}}),
        ([Reply(text="cut", finish="length")], {"max_output_tokens": 20}),
        ([], {"background": True}),
        ([], {"store": False, "instructions": "Be brief."}),
    )
    for script, more in cases:
        model.script(script)
        check_response((await api.post(RESPONSES, {"input": "hello", **more})).json)
    model.script([READS, "Bread."])
    check_response((await api.post(RESPONSES, {"input": "hello"}, X_Hermes_Tool_Items="function_call")).json)
    model.script([calls_tools(("danger", {"text": "bang"}))])
    waiting = (await api.post(RESPONSES, {"input": "hello"})).json
    assert check_response(waiting).output[0].type == "mcp_approval_request"
    check_response((await api.get(f"{RESPONSES}/{first['id']}")).json)
    check_response((await api.post(f"{RESPONSES}/{first['id']}/cancel", {})).json)
    items = (await api.get(f"{RESPONSES}/{first['id']}/input_items")).json
    assert len(check_type(ResponseItemList, items).data) == 1
    check_type(InputTokenCountResponse, (await api.post(f"{RESPONSES}/input_tokens", {"input": "hello"})).json)
    compacted = (await api.post(f"{RESPONSES}/compact", {"input": TALK})).json
    summaries = [item for item in compacted["output"] if item["type"] == "compaction"]
    check_type(CompactedResponse, {**compacted, "output": summaries})  # its type has no place for a user's message
    open_responses().check("CompactResource", compacted)
    deleted = (await sdk.api.http.delete(f"{RESPONSES}/{first['id']}")).status
    assert deleted == 200


async def test_every_answer_about_conversations(sdk: Sdk, model: FakeModel) -> None:
    api = sdk.api
    made = (await api.post(CONVERSATIONS, {"metadata": {"a": "b"}, "items": TALK})).json
    path = f"{CONVERSATIONS}/{made['id']}"
    check_type(Conversation, made)
    check_type(Conversation, (await api.get(path)).json)
    check_type(Conversation, (await api.post(path, {"metadata": {"a": "c"}})).json)
    check_type(ConversationItemList, (await api.post(f"{path}/items", {"items": TALK})).json)
    model.script([Reply("42", reasoning="Six by seven.")])
    check_response((await api.post(RESPONSES, {"input": "and now?", "conversation": made["id"]})).json)
    listed = check_type(ConversationItemList, (await api.get(f"{path}/items")).json)
    assert len(listed.data) >= 4
    check_type(ConversationItem, (await api.get(f"{path}/items/{listed.data[0].id}")).json)
    async with api.http.delete(path) as answer:
        check_type(ConversationDeletedResource, await answer.json())


async def test_every_chat_completion(sdk: Sdk, model: FakeModel, tmp_path: Path) -> None:
    write_notes(tmp_path)
    tools = [{"type": "function", "function": LOOK}]
    cases: tuple[tuple[list[Any], dict[str, Any], str], ...] = (
        ([], {}, "stop"),
        ([READS, "Bread."], {}, "stop"),
        ([calls_tools(("look", {}))], {"tools": tools}, "tool_calls"),
        ([Reply("42", reasoning="Six by seven.")], {}, "stop"),
        ([Reply(text="cut", finish="length")], {}, "length"),
        ([calls_tools(("danger", {"text": "bang"}))], {"stop": None}, "stop"),
    )
    for number, (script, more, finish) in enumerate(cases):
        asked = {"messages": [*TALK, {"role": "user", "content": str(number)}], **more}
        model.script(script)
        whole = (await sdk.api.post(CHAT, asked)).json
        openai().check("CreateChatCompletionResponse", whole)
        assert check_type(ChatCompletion, whole).choices[0].finish_reason == finish
        if "danger" in str(script):
            continue  # its stream would wait for a person
        model.script(script)
        usage = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = check_chunks((await sdk.api.post(CHAT, {**asked, **usage})).body)
        assert chunks[-1]["usage"]["total_tokens"] >= 19
        assert chunks[-2]["choices"][0]["finish_reason"] == finish


async def test_models_embeddings_and_errors(sdk: Sdk, model: FakeModel) -> None:
    api = sdk.api
    listed = (await api.get("/v1/models")).json
    openai().check("ListModelsResponse", listed)
    for told in (*listed["data"], (await api.get("/v1/models/hermes")).json):
        check_type(Model, told)
    embedded = (await api.post("/v1/embeddings", {"model": "embed-1", "input": "abc"})).json
    check_type(CreateEmbeddingResponse, embedded)
    openai().check("CreateEmbeddingResponse", embedded)
    model.script(
        [Refusal(401, "wrong key"), Refusal(429, "slow down", {"Retry-After": "60"}), Refusal(401, "wrong key")]
    )
    refused = [
        await api.post(CHAT, {"messages": TALK}),
        await api.post(CHAT, {"messages": [{"role": "user", "content": "once more"}]}),
        await api.post(RESPONSES, {"input": "hello"}),
        await api.post(CHAT, {"messages": []}),
        await api.post(RESPONSES, {"input": 5}),
        await api.get(f"{RESPONSES}/resp_none"),
        await api.get(f"{CONVERSATIONS}/conv_none"),
        await api.get("/v1/nothing"),
        await api.post(CHAT, {"messages": TALK}, Authorization="Bearer wrong"),
    ]
    assert [answer.status for answer in refused] == [502, 429, 502, 400, 400, 404, 404, 404, 401]
    for answer in refused:
        openai().check("ErrorResponse", answer.json)
