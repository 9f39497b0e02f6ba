"""Approvals from a chat client: the question is text with its code, and `/approve CODE` typed there answers it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from hermes.hosting.tool_processes import TOOL, ToolProcesses
from tests.fakes.model import FakeModel, Reply, calls_tools
from tests.integration.api.conftest import Event
from tests.integration.api.serving import Served, served
from tests.integration.conftest import Start, crash
from tests.integration.watching import dangers

CHAT = "/v1/chat/completions"
DANGER = calls_tools(("danger", {"text": "boo"}))
GENTLE = calls_tools(("note", {"text": "boo"}))


def ask(*said: str, **more: Any) -> dict[str, Any]:
    """A talk of user and assistant in turn."""
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)], **more}


def text_in(events: list[Event]) -> str:
    chunks = [event.data for event in events if isinstance(event.data, dict)]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk.get("choices", ()))


def code_in(text: str) -> str:
    found = re.search(r"/approve (\w{6})", text)
    assert found is not None, text
    return found[1]


async def admin(api: Served) -> dict[str, str]:
    return await api.new_key("desk", "owner")


async def said(api: Served, body: dict[str, Any], **headers: str) -> str:
    """The words of an answer, streamed or not."""
    if body.get("stream"):
        async with api.streaming(CHAT, body, **headers) as (answer, events):
            assert answer.status == 200
            return text_in([event async for event in events])
    whole = await api.post(CHAT, body, **headers)
    assert whole.status == 200, whole.body
    return str(whole.json["choices"][0]["message"]["content"])


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("session", [{}, {"X_Hermes_Session_Id": "talk"}])
async def test_a_code_typed_as_the_next_message_answers_the_question(
    start: Start, model: FakeModel, tmp_path: Path, streams: bool, session: dict[str, str]
) -> None:
    model.script([DANGER, "Done it."])
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.yaml").write_text("api:\n  approval_wait_seconds: 0\n")
    async with served(start) as api, asyncio.timeout(30):
        headers = {**await admin(api), **session}
        question = await said(api, ask("go", stream=streams), **headers)
        code = code_in(question)
        assert dangers(tmp_path) == []
        answer = ask("go", question, f"/approve {code}", stream=streams)
        assert await said(api, answer, **headers) == "Done it."
        assert await said(api, answer, **headers) == "Done it."  # sent again, it is no second order
    assert dangers(tmp_path) == ["boo"]
    assert len(model.requests) == 2


@pytest.mark.parametrize("door", ["chat", "api"])
async def test_the_answer_of_the_approved_turn_comes_into_the_stream_that_is_still_open(
    start: Start, model: FakeModel, tmp_path: Path, door: str
) -> None:
    model.script([calls_tools(("danger", {"text": "boo"}), text="I begin."), "Done it."])
    async with served(start) as api, asyncio.timeout(30):
        headers = await admin(api)
        async with api.streaming(CHAT, ask("go", stream=True), **headers) as (_, events):
            seen: list[Event] = []
            while "/approve" not in text_in(seen):
                seen.append(await anext(events))
            code = code_in(text_in(seen))
            if door == "chat":
                assert await said(api, ask("go", "?", f"/approve {code}"), **headers) == "Done it."
            else:
                waiting = (await api.get("/api/approvals", **headers)).json["data"][0]["id"]
                await api.post(f"/api/approvals/{waiting}", {"approve": True}, **headers)
            seen += [event async for event in events]
    assert text_in(seen).startswith("I begin.\n\nMay I run")
    assert text_in(seen).endswith("\n\nDone it.")
    assert seen[-1].data == "[DONE]"
    assert dangers(tmp_path) == ["boo"]


async def test_a_stream_that_nobody_answers_ends_and_its_question_waits(
    start: Start, model: FakeModel, tmp_path: Path
) -> None:
    model.script([DANGER, "Then not."])
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.yaml").write_text("api:\n  approval_wait_seconds: 0.2\n")
    async with served(start) as api, asyncio.timeout(30):
        headers = await admin(api)
        async with api.streaming(CHAT, ask("go", stream=True), **headers) as (_, stream):
            events = [event async for event in stream]
        last = events[-2].data
        assert last["choices"][0]["finish_reason"] == "stop"
        assert last["hermes"]["approvals"][0]["approval_code"] == code_in(text_in(events))
        code = code_in(text_in(events))
        assert await said(api, ask("go", "?", f"/deny {code} too risky"), **headers) == "Then not."
        assert "too risky" in str(model.last_request["messages"])
    assert dangers(tmp_path) == []


async def test_leaving_a_stream_that_asks_leaves_the_question_and_a_restart_does_too(
    start: Start, model: FakeModel, tmp_path: Path
) -> None:
    model.script([DANGER, "Done it."])
    async with served(start) as api, asyncio.timeout(30):
        headers = await admin(api)
        async with api.streaming(CHAT, ask("go", stream=True), **headers) as (_, events):
            seen: list[Event] = []
            while "/approve" not in text_in(seen):
                seen.append(await anext(events))
        await asyncio.sleep(0.5)  # longer than the server takes to see who left
        await crash(api.gateway)
    code = code_in(text_in(seen))
    async with served(start) as api, asyncio.timeout(30):
        assert await said(api, ask("go", "?", f"/approve {code}"), **headers) == "Done it."
    assert dangers(tmp_path) == ["boo"]


async def test_of_two_questions_the_second_is_shown_after_the_first_is_answered(
    start: Start, model: FakeModel, tmp_path: Path
) -> None:
    model.script([calls_tools(("danger", {"text": "one"}), ("danger", {"text": "two"})), "Both done."])
    async with served(start) as api, asyncio.timeout(30):
        headers = await admin(api)
        question = await said(api, ask("go"), **headers)
        first, second = re.findall(r"/approve (\w{6}) or", question)
        rest = await said(api, ask("go", "?", f"/approve {first}"), **headers)
        assert code_in(rest) == second
        assert await said(api, ask("go", "?", f"/approve {second}"), **headers) == "Both done."
    assert sorted(dangers(tmp_path)) == ["one", "two"]


async def test_the_default_key_is_told_why_it_cannot_approve_what_touches_the_machine(
    start: Start, model: FakeModel, tmp_path: Path
) -> None:
    model.script([DANGER, GENTLE, "Noted."])
    async with served(start) as api, asyncio.timeout(30):
        question = await said(api, ask("go"))
        assert "named key" in question
        assert "default key cannot approve" in await said(api, ask("go", "?", f"/approve {code_in(question)}"))
        assert dangers(tmp_path) == []
        assert await said(api, ask("go", "?", f"/deny {code_in(question)}")) != ""
        assert await said(api, ask("x", "?", "/approve NOSUCH")) == "There is no such question here."
        assert "do not know" in await said(api, ask("x", "?", "/approve A B"))
    assert dangers(tmp_path) == []


async def test_a_code_of_another_key_answers_nothing(start: Start, model: FakeModel, tmp_path: Path) -> None:
    model.script([DANGER, "Done it."])
    async with served(start) as api, asyncio.timeout(30):
        headers = await admin(api)
        code = code_in(await said(api, ask("go"), **headers))
        bob = await api.new_key("bob", "user")
        assert await said(api, ask("x", "?", f"/approve {code}"), **bob) == "There is no such question here."
    assert dangers(tmp_path) == []


async def test_a_form_that_was_asked_for_gets_the_question_as_a_refusal(start: Start, model: FakeModel) -> None:
    model.script([DANGER, Reply('{"ok":true}')])
    form = {"type": "json_object"}
    async with served(start) as api, asyncio.timeout(30):
        headers = await admin(api)
        message = (await api.post(CHAT, ask("go", response_format=form), **headers)).json["choices"][0]["message"]
        assert message["content"] is None
        code = code_in(message["refusal"])
        assert await said(api, ask("go", "?", f"/approve {code}", response_format=form), **headers) == '{"ok":true}'


class AllTools(ToolProcesses):
    """Every connection comes from a process that a tool started."""

    def origin_of_connection(self, theirs: tuple[str, int], ours: tuple[str, int]) -> str:
        del theirs, ours
        return TOOL


@pytest.mark.parametrize("path", [CHAT, "/v1/responses"])
async def test_a_command_of_the_agent_answers_no_question_by_any_door(
    start: Start, model: FakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    model.script([DANGER, "Done it."])
    monkeypatch.setattr("tests.integration.api.serving.NO_TOOLS", AllTools(roots=()))
    async with served(start) as api, asyncio.timeout(30):
        headers = await admin(api)
        asked = (await api.post("/v1/responses", {"input": "go"}, **headers)).json
        request = next(item for item in asked["output"] if item["type"] == "mcp_approval_request")
        bodies: list[dict[str, Any]] = [
            {"input": f"/approve {request['approval_code']}"},
            {"input": [{"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}]},
        ]
        if path == CHAT:
            bodies = [ask(f"/approve {request['approval_code']}")]
        for body in bodies:
            refused = await api.post(path, body, **headers)
            assert (refused.status, refused.error["code"]) == (403, "agents_own_process")
    assert dangers(tmp_path) == []


@pytest.mark.parametrize("streams", [False, True])
async def test_a_client_of_the_messages_api_answers_the_question_in_the_same_way(
    start: Start, model: FakeModel, tmp_path: Path, streams: bool
) -> None:
    model.script([DANGER, "Done it."])
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.yaml").write_text("api:\n  approval_wait_seconds: 0\n")
    async with served(start) as api, asyncio.timeout(30):
        headers = await admin(api)
        question = await message(api, ask("go", max_tokens=100, stream=streams), headers)
        typed = f"/approve {code_in(question)}"
        answer = ask("go", question, typed, max_tokens=100, stream=streams)
        assert await message(api, answer, headers) == "Done it."
    assert dangers(tmp_path) == ["boo"]


async def message(api: Served, body: dict[str, Any], headers: dict[str, str]) -> str:
    """The text of an answer of the Messages API that ended in the usual way."""
    if not body["stream"]:
        whole = await api.post("/v1/messages", body, **headers)
        assert (whole.status, whole.json["stop_reason"]) == (200, "end_turn"), whole.body
        return "".join(block["text"] for block in whole.json["content"])
    async with api.streaming("/v1/messages", body, **headers) as (answer, events):
        assert answer.status == 200
        told = [event.data async for event in events]
    assert [event["type"] for event in told[-2:]] == ["message_delta", "message_stop"]
    assert told[-2]["delta"]["stop_reason"] == "end_turn"
    return "".join(event["delta"]["text"] for event in told if event["type"] == "content_block_delta")


async def test_a_call_too_long_for_a_message_is_shown_whole_and_approved_by_the_word_at_its_end(
    start: Start, model: FakeModel, tmp_path: Path
) -> None:
    long = "b" + "o" * 6000
    model.script([calls_tools(("danger", {"text": long})), "Done it."])
    async with served(start) as api, asyncio.timeout(30):
        headers = await admin(api)
        question = await said(api, ask("go"), **headers)
        assert long in question.replace("\n", "")
        assert "To approve: /approve " in question
        proof = question.rsplit("/approve ", 1)[-1].split()[0].rstrip(",")
        assert await said(api, ask("go", question, f"/approve {proof}"), **headers) == "Done it."
    assert dangers(tmp_path) == [long]
