"""Sessions over HTTP: listed, read, renamed, deleted, forked and gone on with; everybody sees only their own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermes.core.roles import PersonRole
from hermes.servers.api import runs, sessions
from hermes.servers.api.context import Caller
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.api.conftest import Api, Families
from tests.integration.api.others import another, kinds, run_is, until_kind

BOB = Caller("bob", PersonRole.USER)
BO = Caller("bo", PersonRole.USER)
ANN = Caller("ann", PersonRole.ADMIN)
GUEST = Caller("guest", PersonRole.GUEST)
DANGER = calls_tools(("danger", {"text": "bang"}), text="Let me ask.")


@pytest.fixture
def families() -> Families:
    return (sessions.routes, runs.routes)


async def begin(api: Api, session_id: str = "talk", *texts: str) -> Any:
    """A session with these questions and their answers."""
    for text in texts or ("hello",):
        body = {"input": text, "session_id": session_id, "instructions": "Be kind."}
        await run_is(api, (await api.post("/v1/runs", body)).json["run_id"], "completed")
    return (await api.get(f"/api/sessions/{session_id}")).json


async def names(api: Api, query: str = "") -> list[str]:
    answer = await api.get(f"/api/sessions{query}")
    assert answer.status == 200, answer.body
    return [session["session_id"] or session["platform"] for session in answer.json["data"]]


async def texts(api: Api, session_id: str, query: str = "") -> list[str]:
    answer = await api.get(f"/api/sessions/{session_id}/messages{query}")
    return [message["content"] for message in answer.json["data"]]


async def from_telegram(api: Api, telegram: FakeTelegram) -> Any:
    telegram.user_says("hello from a chat")
    await telegram.wait_for(lambda: any(sent.text == "echo: hello from a chat" for sent in telegram.sent), 10)
    [session] = (await api.get("/api/sessions?platform=telegram")).json["data"]
    return session


# Reading


async def test_a_session_is_found_by_its_own_id_and_by_the_name_its_client_gave_it(api: Api) -> None:
    session = await begin(api, "talk", "hello", "again")
    assert session["id"].startswith("s_")
    assert (session["session_id"], session["platform"]) == ("talk", "api")
    assert session["key"] == "agent:main:api:dm:talk:p=key%3Adesk"  # every key has its own session names
    assert (session["title"], session["preview"], session["message_count"]) == ("", "hello", 4)
    assert (session["is_busy"], session["ended_at"]) == (False, None)
    assert (await api.get(f"/api/sessions/{session['id']}")).json == session
    missing = await api.get("/api/sessions/nobody")
    assert (missing.status, missing.error["code"]) == (404, "session_not_found")


async def test_sessions_that_begin_alike_have_one_label_and_stay_apart(api: Api) -> None:
    one, two, other = [await begin(api, name, text) for name, text in (("a", "hi"), ("b", "hi"), ("c", "ho"))]
    assert one["label"] == two["label"] != other["label"]
    assert len({one["id"], two["id"], other["id"]}) == 3


async def test_lists_are_paged_and_filtered(api: Api, telegram: FakeTelegram) -> None:
    for name in ("a", "b", "c"):
        await begin(api, name)
    await from_telegram(api, telegram)
    assert await names(api) == ["telegram", "c", "b", "a"]
    assert await names(api, "?platform=api") == ["c", "b", "a"]
    assert await names(api, "?key=agent:main:api:dm:b:p=key%253Adesk") == ["b"]
    assert await names(api, "?platform=ap") == []
    page = (await api.get("/api/sessions?limit=3")).json
    assert (len(page["data"]), page["has_more"]) == (3, True)
    rest = (await api.get(f"/api/sessions?limit=3&cursor={page['next_cursor']}")).json
    assert ([session["session_id"] for session in rest["data"]], rest["has_more"]) == (["a"], False)
    assert rest["next_cursor"] is None


@pytest.mark.parametrize("query", ["?limit=0", "?limit=x", "?limit=-1", "?cursor=x", "?limit=99999999999999999999"])
async def test_a_page_that_cannot_be_meant_is_refused(api: Api, query: str) -> None:
    answer = await api.get(f"/api/sessions{query}")
    assert (answer.status, answer.error["code"]) == (400, "invalid_value")


async def test_messages_are_paged_and_told_as_a_client_may_see_them(api: Api, model: FakeModel) -> None:
    model.script([calls_tools(("search_files", {"pattern": "x"}), text="I look."), "Nothing."])
    await begin(api, "talk", "find x")
    whole = (await api.get("/api/sessions/talk/messages")).json
    assert [(line["seq"], line["role"]) for line in whole["data"]] == [
        (1, "user"),
        (2, "assistant"),
        (3, "tool"),
        (4, "assistant"),
    ]
    asked, result = whole["data"][1], whole["data"][2]
    assert asked["tool_calls"][0]["function"] == {"name": "search_files", "arguments": '{"pattern":"x"}'}
    assert result["tool_call_id"] == asked["tool_calls"][0]["id"]
    page = (await api.get("/api/sessions/talk/messages?after=1&limit=2")).json
    assert ([line["seq"] for line in page["data"]], page["has_more"], page["next_after"]) == ([2, 3], True, 3)


# Changing


async def test_a_session_is_renamed(api: Api) -> None:
    await begin(api)
    answer = await api.call("PATCH", "/api/sessions/talk", {"title": "  About\n hello "})
    assert (answer.status, answer.json["title"]) == (200, "About hello")
    assert (await api.get("/api/sessions/talk")).json["title"] == "About hello"
    for body in ({}, {"title": 7}, {"title": "x" * 201}):
        answer = await api.call("PATCH", "/api/sessions/talk", body)
        assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "invalid_value", "title")


async def test_a_session_is_deleted_for_good_but_not_while_it_is_busy(api: Api, model: FakeModel) -> None:
    session = await begin(api)
    model.hold(silently=True)
    run_id = (await api.post("/v1/runs", {"input": "more", "session_id": "talk"})).json["run_id"]
    await model.is_holding()
    answer = await api.call("DELETE", "/api/sessions/talk")
    assert (answer.status, answer.error["code"]) == (409, "session_busy")
    model.release()
    await run_is(api, run_id, "completed")
    answer = await api.call("DELETE", "/api/sessions/talk")
    assert (answer.status, answer.json) == (200, {"id": session["id"], "object": "session", "deleted": True})
    assert (await api.get("/api/sessions/talk")).status == 404
    await begin(api, "talk", "anew")
    assert await texts(api, "talk") == ["anew", "echo: anew"]


async def test_a_fork_begins_with_the_transcript_up_to_a_line_and_goes_its_own_way(api: Api, model: FakeModel) -> None:
    session = await begin(api, "talk", "one", "two")
    answer = await api.post("/api/sessions/talk/fork", {"up_to": 2, "title": "Other way"})
    fork = answer.json
    assert (answer.status, fork["title"], fork["forked_from"]) == (201, "Other way", session["id"])
    assert (fork["message_count"], fork["is_busy"]) == (2, False)
    said = await api.post(f"/api/sessions/{fork['session_id']}/chat", {"message": "three"})
    assert said.json["message"]["content"] == "echo: three"
    assert await texts(api, fork["id"]) == ["one", "echo: one", "three", "echo: three"]
    assert await texts(api, "talk") == ["one", "echo: one", "two", "echo: two"]
    assert [message["content"] for message in model.last_request["messages"][1:]] == ["one", "echo: one", "three"]
    whole = await api.call("POST", "/api/sessions/talk/fork")
    assert not whole.json["session_id"].startswith("s_"), "pruned as the session of a single request"
    assert (whole.status, whole.json["message_count"]) == (201, 4)
    for up_to in (0, 5, "2", True):
        answer = await api.post("/api/sessions/talk/fork", {"up_to": up_to})
        assert (answer.status, answer.error["param"]) == (400, "up_to")


# Talking


async def test_a_message_goes_on_with_the_session(api: Api, model: FakeModel) -> None:
    session = await begin(api, "talk", "one")
    answer = await api.post(f"/api/sessions/{session['id']}/chat", {"message": "two"})
    assert answer.status == 200
    assert answer.headers["X-Hermes-Session-Id"] == "talk"
    assert answer.headers["X-Hermes-Completed"] == "true"
    body = answer.json
    message = {"message_id": f"msg_{body['turn_id']}_1", "role": "assistant", "content": "echo: two"}
    assert (body["message"], body["transcript"], body["finish_reason"]) == (message, [message], "stop")
    assert (body["session_id"], body["usage"]["total_tokens"]) == ("talk", 19)
    assert [message["content"] for message in model.last_request["messages"][1:]] == ["one", "echo: one", "two"]
    assert (await api.get(f"/v1/runs/{body['run_id']}")).json["status"] == "completed"


async def test_a_chat_of_another_platform_is_forked_and_takes_one_message_at_a_time(
    api: Api, telegram: FakeTelegram
) -> None:
    session = await from_telegram(api, telegram)
    two = [{"role": "user", "content": "hi"}, {"role": "user", "content": "again"}]
    tool = {"type": "function", "function": {"name": "dig", "parameters": {"type": "object"}}}
    for path in ("chat", "chat/stream"):
        for body in ({"messages": two}, {"message": "hi", "tools": [tool]}):
            answer = await api.post(f"/api/sessions/{session['id']}/{path}", body)
            assert (answer.status, answer.error["code"]) == (400, "invalid_value")
    fork = (await api.call("POST", f"/api/sessions/{session['id']}/fork")).json
    assert (fork["platform"], await texts(api, fork["id"])) == (
        "api",
        ["hello from a chat", "echo: hello from a chat"],
    )


async def test_a_failed_turn_is_an_error_and_a_waiting_one_ends_the_call(api: Api, model: FakeModel) -> None:
    await begin(api)
    model.fails_next(401, "Incorrect API key provided")
    answer = await api.post("/api/sessions/talk/chat", {"message": "hi"})
    assert (answer.status, answer.error["code"], answer.headers["X-Hermes-Completed"]) == (502, "auth", "false")
    model.script([DANGER])
    answer = await api.post("/api/sessions/talk/chat", {"message": "hi"})
    assert (answer.status, answer.error["code"]) == (409, "approval_required")
    assert answer.error["session_id"] == "talk"
    assert answer.error["approval_id"].startswith("ap_")


async def test_what_cannot_be_read_is_refused_before_a_turn_begins(api: Api, model: FakeModel) -> None:
    await begin(api)
    for path in ("chat", "chat/stream"):
        answer = await api.post(f"/api/sessions/talk/{path}", {"message": {"a": 1}})
        assert (answer.status, answer.error["code"]) == (400, "invalid_input")
        assert (await api.post(f"/api/sessions/nobody/{path}", {"message": "hi"})).status == 404
    assert len(model.requests) == 1


async def test_a_stream_tells_each_message_under_its_own_id_and_the_transcript_at_the_end(
    api: Api, model: FakeModel
) -> None:
    await begin(api)
    model.script([calls_tools(("search_files", {"pattern": "x"}), text="I look."), "Nothing."])
    async with api.streaming("/api/sessions/talk/chat/stream", {"message": "find x"}) as (answer, stream):
        events = [event async for event in stream]
    assert answer.headers["X-Hermes-Session-Id"] == "talk"
    assert kinds(events) == [
        "run.queued",
        "run.started",
        "assistant.delta",
        "assistant.completed",
        "tool.started",
        "tool.completed",
        "assistant.delta",
        "assistant.completed",
        "run.completed",
    ]
    turn = events[-1].data["turn_id"]
    assert [event.data["message_id"] for event in events if event.name == "assistant.completed"] == [
        f"msg_{turn}_1",
        f"msg_{turn}_2",
    ]
    assert [line["role"] for line in events[-1].data["transcript"]] == ["assistant", "tool", "assistant"]


async def test_a_stream_that_meets_an_approval_ends_there_and_goes_on_as_a_run(api: Api, model: FakeModel) -> None:
    await begin(api)
    model.script([DANGER, "All done."])
    async with api.streaming("/api/sessions/talk/chat/stream", {"message": "do it"}) as (_, stream):
        events = [event async for event in stream]
    assert kinds(events)[-1] == "run.waiting_approval"
    run_id = events[-1].data["run_id"]
    await run_is(api, run_id, "waiting_approval")
    assert (await api.post(f"/v1/runs/{run_id}/approval", {"approve": True})).status == 200
    assert (await run_is(api, run_id, "completed"))["output"] == "All done."


async def test_a_client_that_leaves_a_stream_leaves_a_turn_that_ends(api: Api, model: FakeModel) -> None:
    await begin(api)
    model.hold()
    async with api.streaming("/api/sessions/talk/chat/stream", {"message": "hi"}) as (_, stream):
        run_id = (await until_kind(stream, "assistant.delta"))[-1].data["run_id"]
    model.release()
    assert (await run_is(api, run_id, "completed"))["status"] == "completed"


# Whose


async def test_a_user_sees_and_changes_only_its_own_sessions(
    api: Api, families: Families, telegram: FakeTelegram
) -> None:
    owners = await begin(api, "owners")
    await from_telegram(api, telegram)
    async with another(api, BOB, families) as bob, another(api, BO, families) as bo, another(api, ANN, families) as ann:
        own = await begin(bob, "bobs")
        assert own["key"] == "agent:main:api:dm:bobs:p=key%3Abob"
        assert await names(bob) == ["bobs"]
        assert await names(bob, "?platform=telegram") == await names(bo) == []
        assert await names(bob, f"?key={owners['key']}") == []
        assert sorted(await names(ann)) == sorted(await names(api)) == ["bobs", "owners", "telegram"]
        for method, path, body in (
            ("GET", "", None),
            ("GET", "/messages", None),
            ("PATCH", "", {"title": "mine"}),
            ("DELETE", "", None),
            ("POST", "/fork", {}),
            ("POST", "/chat", {"message": "hi"}),
            ("POST", "/chat/stream", {"message": "hi"}),
        ):
            for who, session in ((bob, owners), (bo, own)):
                for name in (session["id"], session["session_id"]):
                    answer = await who.call(method, f"/api/sessions/{name}{path}", body)
                    assert (answer.status, answer.error["code"]) == (404, "session_not_found")
        fork = (await bob.call("POST", "/api/sessions/bobs/fork")).json
        assert fork["key"].endswith(":p=key%3Abob")
        assert (await ann.post(f"/api/sessions/{own['id']}/chat", {"message": "I help."})).status == 200
        assert (await texts(bob, "bobs"))[-1] == "echo: I help."


async def test_a_guest_reads_and_talks_but_changes_nothing(api: Api, families: Families) -> None:
    async with another(api, GUEST, families) as guest, asyncio.timeout(10):
        await begin(guest)
        assert (await guest.post("/api/sessions/talk/chat", {"message": "hi"})).status == 200
        for method, path, body in (("PATCH", "", {"title": "mine"}), ("DELETE", "", None), ("POST", "/fork", {})):
            answer = await guest.call(method, f"/api/sessions/talk{path}", body)
            assert (answer.status, answer.error["code"]) == (403, "role_not_enough")
