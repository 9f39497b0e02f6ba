"""Sizes and forms of messages that clients send: long texts, files, pictures, prefill, tools of other types."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from hermes.store.db import Tx
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.pdf import pdf
from tests.integration.api.serving import Served, served
from tests.integration.conftest import Start

Json = dict[str, Any]
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
LARGE_PICTURE = f"data:image/png;base64,{base64.b64encode(bytes(300_000)).decode()}"


def data_url(kind: str, raw: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(raw).decode()}"


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def said(body: Json) -> str:
    return str(body["choices"][0]["message"]["content"])


# Long texts and large bodies


async def test_text_of_ten_megabytes_reaches_the_model_whole(start: Start, model: FakeModel) -> None:
    text = "x" * (10 * 1024 * 1024)
    model.says("long")
    async with served(start) as api, asyncio.timeout(60):
        assert said((await api.post(CHAT, {"messages": [user(text)]})).json) == "long"
        assert model.last_request["messages"][-1]["content"] == text
        answer = await api.post(CHAT, {"messages": [user(text + "x")]})
        assert (answer.status, answer.error["code"]) == (400, "content_too_long")


def count_pictures(tx: Tx) -> tuple[int, int]:
    rows = int(tx.value("SELECT count(*) FROM pictures") or 0)
    return rows, int(tx.value("SELECT max(length(body)) FROM inbox") or 0)


async def test_picture_that_is_sent_again_and_again_is_stored_once(start: Start, model: FakeModel) -> None:
    part = {"type": "image_url", "image_url": {"url": LARGE_PICTURE}}
    talk = [user([{"type": "text", "text": "what is it?"}, part])]
    async with served(start) as api, asyncio.timeout(60):
        for number in range(3):
            answer = said((await api.post(CHAT, {"messages": talk})).json)
            talk += [{"role": "assistant", "content": answer}, user(f"and {number}?")]
        rows, longest = await api.gateway.db.read(count_pictures)
        assert rows == 1
        assert longest < 10_000
        shown = model.last_request["messages"][1]["content"][1]
        assert shown == {"type": "image_url", "image_url": {"url": LARGE_PICTURE, "detail": "auto"}}

        first = await api.post(CHAT, {"messages": talk[:1]}, X_Hermes_Session_Id="album")
        assert first.status == 200
        await api.post(CHAT, {"messages": [user("and now?")]}, X_Hermes_Session_Id="album")
        assert model.last_request["messages"][1]["content"][1] == shown  # from the session's own transcript
        lines = (await api.get("/api/sessions/album/messages")).json["data"]
        assert lines[0]["content"][1]["omitted_characters"] == len(LARGE_PICTURE)
        made = (
            await api.post(RESPONSES, {"input": [user([{"type": "input_image", "image_url": LARGE_PICTURE}])]})
        ).json
        items = (await api.get(f"{RESPONSES}/{made['id']}/input_items")).json["data"]
        assert items[0]["content"][0]["image_url"] == LARGE_PICTURE


# Files


FILES = {
    "text": ("notes.txt", data_url("text/plain", b"Buy bread."), "Buy bread."),
    "markdown without a type": ("notes.md", base64.b64encode(b"# Buy bread").decode(), "# Buy bread"),
    "pdf": ("list.pdf", data_url("application/pdf", pdf(["Buy bread and milk"])), "Buy bread and milk"),
}


@pytest.mark.parametrize("name, data, words", FILES.values(), ids=FILES)
async def test_file_with_its_data_is_read(start: Start, model: FakeModel, name: str, data: str, words: str) -> None:
    chat = [{"type": "file", "file": {"filename": name, "file_data": data}}, {"type": "text", "text": "What to buy?"}]
    flat = [{"type": "input_file", "filename": name, "file_data": data}, {"type": "input_text", "text": "What to buy?"}]
    async with served(start) as api, asyncio.timeout(60):
        first = await api.post(CHAT, {"messages": [user(chat)]})
        assert first.status == 200, first.json
        told = model.last_request["messages"][-1]["content"]
        assert f"[file: {name}]" in told
        assert words in told
        assert told.endswith("What to buy?")
        assert (await api.post(RESPONSES, {"input": [user(flat)]})).status == 200
        assert model.last_request["messages"][-1]["content"] == told  # the same words, so that providers cache them


async def test_picture_sent_as_a_file_is_shown(start: Start, model: FakeModel) -> None:
    part = {"type": "file", "file": {"filename": "a.png", "file_data": LARGE_PICTURE}}
    async with served(start) as api, asyncio.timeout(20):
        assert (await api.post(CHAT, {"messages": [user([part])]})).status == 200
        assert model.last_request["messages"][-1]["content"][0]["image_url"]["url"] == LARGE_PICTURE


@pytest.mark.parametrize(
    "part, code",
    [
        ({"type": "file", "file": {"file_id": "file-1"}}, "unsupported_content_type"),
        ({"type": "input_file", "file_id": "file-1"}, "unsupported_content_type"),
        ({"type": "input_file", "file_url": "https://example.org/a.pdf"}, "unsupported_content_type"),
        ({"type": "file", "file": {"file_data": data_url("audio/wav", b"RIFF")}}, "unsupported_content_type"),
        ({"type": "file", "file": {"file_data": data_url("application/zip", b"PK\0\0\0")}}, "unsupported_content_type"),
        ({"type": "file", "file": {"file_data": "data:text/plain;base64,%%%"}}, "invalid_file"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, "unsupported_content_type"),
    ],
)
async def test_file_that_cannot_be_read_is_refused(start: Start, model: FakeModel, part: Json, code: str) -> None:
    async with served(start) as api, asyncio.timeout(20):
        for path, field in ((CHAT, "messages"), (RESPONSES, "input")):
            answer = await api.post(path, {field: [user([part])]})
            assert (answer.status, answer.error["code"]) == (400, code)
            assert answer.error["param"].startswith(f"{field}[0].content[0]")
            assert part["type"] != "input_audio" or answer.error["message"].startswith("Audio is not taken")
        assert model.requests == []


# Forms of conversations


async def test_beginning_of_an_answer_is_continued(start: Start, model: FakeModel) -> None:
    talk = [user("A story!"), {"role": "assistant", "content": "Once"}]
    async with served(start) as api, asyncio.timeout(20):
        model.script([" upon a time. "])
        assert said((await api.post(CHAT, {"messages": talk})).json) == " upon a time."
        assert model.last_request["messages"][-1] == {"role": "assistant", "content": "Once"}
        model.script([" upon a time. "])
        async with api.streaming(CHAT, {"messages": talk, "stream": True}) as (_, events):
            chunks = [event.data async for event in events if isinstance(event.data, dict)]
        words = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
        assert words == " upon a time."

        await api.post(CHAT, {"messages": talk[:1]}, X_Hermes_Session_Id="story")
        model.script(["upon a time."])
        assert said((await api.post(CHAT, {"messages": talk}, X_Hermes_Session_Id="story")).json) == "upon a time."
        assert [message["role"] for message in model.last_request["messages"]] == [
            "system",
            "user",
            "assistant",
            "user",
        ]


async def test_system_messages_alone_are_answered(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        answer = await api.post(CHAT, {"messages": [{"role": "system", "content": "Say hello."}]})
        assert said(answer.json) == "echo: Say hello."
        made = await api.post(RESPONSES, {"input": [{"role": "developer", "content": "Say hello."}]})
        assert made.json["output"][0]["content"][0]["text"] == "echo: Say hello."


async def test_picture_in_the_result_of_a_tool_is_shown(start: Start, model: FakeModel) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "shot", "arguments": "{}"}}
    result = [{"type": "text", "text": "taken"}, {"type": "image_url", "image_url": {"url": LARGE_PICTURE}}]
    talk = [
        user("Take a picture."),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": result},
    ]
    model.when_told("", "seen")
    async with served(start) as api, asyncio.timeout(20):
        assert (await api.post(CHAT, {"messages": talk})).status == 200
        *_, told, shown = model.last_request["messages"]
        assert (told["role"], told["content"]) == ("tool", "taken")
        assert shown["content"][1]["image_url"]["url"] == LARGE_PICTURE
        output = [{"type": "input_text", "text": "taken"}, {"type": "input_image", "image_url": LARGE_PICTURE}]
        items = [
            user("Take a picture."),
            {"type": "function_call", "call_id": "call_1", "name": "shot", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": output},
        ]
        assert (await api.post(RESPONSES, {"input": items})).status == 200
        assert model.last_request["messages"][-1]["content"][1]["image_url"]["url"] == LARGE_PICTURE


# Tools


async def test_tools_of_other_types_are_left_out_with_a_warning(start: Start, model: FakeModel) -> None:
    look = {"type": "function", "name": "look", "parameters": {"type": "object"}}
    others = [{"type": "custom", "name": "apply_patch"}, {"type": "mcp", "server_label": "wiki"}]
    async with served(start, BRAVE_API_KEY="brave-0123456789") as api, asyncio.timeout(20):
        for path, body in ((CHAT, {"messages": [user("hi")]}), (RESPONSES, {"input": "hi"})):
            answer = await api.post(path, {**body, "tools": [look, *others, {"type": "web_search"}]})
            assert answer.status == 200, answer.json
            assert answer.headers["X-Hermes-Warning"] == "tools left out: custom apply_patch, mcp wiki"
            names = [tool["function"]["name"] for tool in model.last_request["tools"]]
            assert "look" in names
            assert "web_search" in names
            assert "apply_patch" not in names


def names_of(model: FakeModel) -> list[str]:
    return [tool["function"]["name"] for tool in model.last_request.get("tools", ())]


async def asked_with(api: Served, **headers: str) -> None:
    assert (await api.post(CHAT, {"messages": [user("hi")]}, **headers)).status == 200


async def test_request_says_which_of_the_gateways_tools_it_uses(start: Start, model: FakeModel) -> None:
    look = {"type": "function", "name": "look", "parameters": {"type": "object"}}
    async with served(start) as api, asyncio.timeout(20):
        await asked_with(api)
        assert "read_file" in names_of(model)
        await asked_with(api, X_Hermes_Tools="none")
        assert names_of(model) == []
        await asked_with(api, X_Hermes_Tools="web, read_file")
        assert set(names_of(model)) == {"read_file", "web_extract"}
        await api.post(RESPONSES, {"input": "hi", "tools": [look]}, X_Hermes_Tools="none")
        assert names_of(model) == ["look"]
        await api.post("/v1/runs", {"input": "hi"}, X_Hermes_Tools="none")
        answer = await api.post(CHAT, {"messages": [user("hi")]}, X_Hermes_Tools="a b;c")
        assert (answer.status, answer.error["param"]) == (400, "X-Hermes-Tools")


async def test_tool_that_was_not_offered_does_not_run(start: Start, model: FakeModel) -> None:
    model.script([calls_tools(("danger", {"text": "bang"})), "I could not."])
    async with served(start) as api, asyncio.timeout(20):
        answer = await api.post(CHAT, {"messages": [user("hi")]}, X_Hermes_Tools="none")
        assert said(answer.json) == "I could not."  # without a question, since there is nothing to allow
        assert "not offered in this request" in model.last_request["messages"][-1]["content"]


async def test_key_carries_its_tools_and_a_header_counts_more(start: Start, model: FakeModel) -> None:
    async with served(start) as api, asyncio.timeout(20):
        made = await api.keys.create({"name": "codex", "role": "admin", "tools": "none"}, None)  # type: ignore[arg-type]
        shown = {"Authorization": f"Bearer {made['key']}"}
        await asked_with(api, **shown)
        assert names_of(model) == []
        await asked_with(api, **shown, X_Hermes_Tools="all")
        assert "read_file" in names_of(model)
        assert [key["tools"] for key in await api.keys.listed({}, None)] == ["none"]  # type: ignore[arg-type]


# Background tasks of chat clients


def sessions_and_events(tx: Tx) -> tuple[int, int]:
    found = (tx.value("SELECT count(*) FROM sessions"), tx.value("SELECT count(*) FROM inbox"))
    return int(found[0] or 0), int(found[1] or 0)


async def test_one_message_of_open_webui_makes_one_session(start: Start, model: FakeModel) -> None:
    template = (
        "### Task:\nGenerate a concise, 3-5 word title.\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"
    )
    async with served(start) as api, asyncio.timeout(20):
        await api.post(CHAT, {"messages": [user("hi")]}, X_Hermes_Session_Id="chat-1")
        model.says('{"title": "Greeting"}')
        titled = await api.post(CHAT, {"messages": [user(template)], "max_tokens": 50}, X_Hermes_Session_Id="chat-1")
        assert said(titled.json) == '{"title": "Greeting"}'
        assert (model.last_request["max_tokens"], model.last_request.get("tools")) == (50, None)
        assert len(model.last_request["messages"]) == 1  # no persona: the client asks the model, not the agent
        streamed = await api.post(CHAT, {"messages": [user("Tags?")], "task": "tags_generation", "stream": True})
        assert b"echo: Tags?" in streamed.body
        assert streamed.body.endswith(b"data: [DONE]\n\n")
        assert await api.gateway.db.read(sessions_and_events) == (1, 1)
        await api.post(CHAT, {"messages": [user("bye")]}, X_Hermes_Session_Id="chat-1")
        told = [message["content"] for message in model.last_request["messages"][1:]]
        assert told == ["hi", "echo: hi", "bye"]
        model.fails_next(401, "wrong key")
        assert (await api.post(CHAT, {"messages": [user(template)]})).error["code"] == "auth"
