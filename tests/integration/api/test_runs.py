"""Runs over HTTP: asked for now, followed or looked up later, true after a restart too."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from hermes.core.keys import ChatKind, SessionKey
from hermes.core.roles import PersonRole
from hermes.servers.api import runs
from hermes.servers.api.context import Caller
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, calls_tools
from tests.integration.api.conftest import Api, Families, StartApi, events_of
from tests.integration.api.others import all_events, another, following, kinds, run_is, until_kind
from tests.integration.conftest import crash

DANGER = calls_tools(("danger", {"text": "bang"}), text="Let me ask.")
USER = Caller("bob", PersonRole.USER)
ADMIN = Caller("ann", PersonRole.ADMIN)


@pytest.fixture
def families() -> Families:
    return (runs.routes,)


async def begin(api: Api, text: str = "hello", **more: object) -> str:
    answer = await api.post("/v1/runs", {"input": text, **more})
    assert answer.status == 202, answer.body
    run_id: str = answer.json["run_id"]
    return run_id


async def begin_waiting(api: Api, model: FakeModel) -> str:
    """A run that waits for an approval of `danger`."""
    model.script([DANGER, "All done."])
    run_id = await begin(api, "do it")
    await run_is(api, run_id, "waiting_approval")
    return run_id


def dangers(tmp_path: Path) -> list[str]:
    file = tmp_path / "work" / "danger.txt"
    return file.read_text().splitlines() if file.exists() else []


# Asking and looking up


async def test_a_run_is_accepted_at_once_and_looked_up_later(api: Api) -> None:
    answer = await api.post("/v1/runs", {"input": "hello", "session_id": "talk"}, X_Hermes_Session_Id="header")
    run_id = answer.json["run_id"]
    assert (answer.status, answer.json) == (202, {"run_id": run_id, "status": "queued", "session_id": "talk"})
    assert run_id.startswith("run_ev_")
    assert answer.headers["X-Hermes-Session-Id"] == "talk"
    assert answer.headers["Location"] == f"/v1/runs/{run_id}"
    run = await run_is(api, run_id, "completed")
    assert run["output"] == "echo: hello"
    assert run["usage"] == {
        "prompt_tokens": 12,
        "completion_tokens": 7,
        "total_tokens": 19,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert (run["session_id"], run["error"], run["approval"]) == ("talk", None, None)
    assert run["created_at"] <= run["started_at"] <= run["ended_at"]


async def test_a_session_goes_on_in_the_next_run_and_instructions_stand_beside_the_persona(
    api: Api, model: FakeModel
) -> None:
    await run_is(api, await begin(api, "one", session_id="talk"), "completed")
    again = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": [{"type": "text", "text": "two"}]}]
    body = {"input": again, "session_id": "talk", "instructions": "Be brief."}
    await run_is(api, (await api.post("/v1/runs", body)).json["run_id"], "completed")
    system, *talk = model.last_request["messages"]
    assert [message["content"] for message in talk] == ["one", "echo: one", "two"]
    assert system["content"].endswith("Be brief.\n\nBe kind.")


@pytest.mark.parametrize(
    "body, code, param",
    [
        (b"{", "invalid_json", None),
        ({}, "invalid_input", "input"),
        ({"input": 7}, "invalid_input", "input"),
        ({"input": ""}, "empty_message", "input[-1]"),
        ({"input": []}, "empty_messages", "input"),
        ({"input": "hi", "session_id": 7}, "invalid_value", "session_id"),
        ({"input": "hi", "session_id": "a\tb"}, "invalid_value", "session_id"),
        ({"input": "hi", "instructions": ["x"]}, "invalid_value", "instructions"),
        ({"input": "hi", "conversation_history": "x"}, "invalid_input", "conversation_history"),
        ({"input": [{"role": "tool", "tool_call_id": "c1", "content": "x"}]}, "invalid_tool_result", "input"),
    ],
)
async def test_what_cannot_be_read_is_refused_and_nothing_is_stored(
    api: Api, body: object, code: str, param: str | None
) -> None:
    answer = await api.post("/v1/runs", body)
    assert (answer.status, answer.error["code"], answer.error["param"]) == (400, code, param)
    assert (await api.gateway.status())["waiting"]["messages"] == 0


async def test_a_previous_response_that_is_not_there_is_refused(api: Api) -> None:
    answer = await api.post("/v1/runs", {"input": "hi", "previous_response_id": "resp_1"})
    assert (answer.status, answer.error["code"]) == (404, "previous_response_not_found")


async def test_a_run_goes_on_in_the_session_of_a_previous_response(start_api: StartApi, model: FakeModel) -> None:
    async def place_of(response_id: str, caller: Caller) -> SessionKey | None:
        is_theirs = (response_id, caller.name) == ("resp_1", "desk")
        return SessionKey("api", ChatKind.DM, "chained") if is_theirs else None

    async with start_api() as api:
        chained = (lambda parts: runs.routes(parts, place_of_response=place_of),)
        async with another(api, Caller("desk", PersonRole.OWNER), chained) as same:
            body = {"input": "hi", "previous_response_id": "resp_1"}
            assert (await same.post("/v1/runs", body)).json["session_id"] == "chained"
            assert (await same.post("/v1/runs", {**body, "session_id": "mine"})).json["session_id"] == "mine"


async def test_one_idempotency_key_makes_one_run(api: Api, model: FakeModel) -> None:
    first = await api.post("/v1/runs", {"input": "hello"}, Idempotency_Key="k1")
    again = await api.post("/v1/runs", {"input": "hello"}, Idempotency_Key="k1")
    assert again.status == 202
    assert (again.json["run_id"], again.json["session_id"]) == (first.json["run_id"], first.json["session_id"])
    other = await api.post("/v1/runs", {"input": "goodbye"}, Idempotency_Key="k1")
    assert (other.status, other.error["code"]) == (422, "idempotency_key_reused")
    await run_is(api, first.json["run_id"], "completed")
    assert len(model.requests) == 1


async def test_the_clients_own_tools_are_handed_back(api: Api, model: FakeModel) -> None:
    model.calls_tools([("weather", {"city": "Oslo"})])
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    run = await run_is(api, await begin(api, "how is it?", tools=tools, session_id="talk"), "completed")
    [call] = run["tool_calls"]
    assert call["function"] == {"name": "weather", "arguments": '{"city":"Oslo"}'}
    model.says("Rain.")
    result = [{"role": "tool", "tool_call_id": call["id"], "content": "rain"}]
    body = {"input": result, "session_id": "talk", "tools": tools}
    run = await run_is(api, (await api.post("/v1/runs", body)).json["run_id"], "completed")
    assert (run["output"], run["tool_calls"]) == ("Rain.", None)


async def test_a_run_that_failed_says_why(api: Api, model: FakeModel) -> None:
    model.fails_next(401, "Incorrect API key provided")
    run_id = await begin(api)
    run = await run_is(api, run_id, "failed")
    assert (run["output"], run["error"]["code"]) == (None, "auth")
    events = await all_events(api, run_id)
    assert kinds(events)[-1] == "run.failed"
    assert "run.completed" not in kinds(events)
    assert events[-1].data["error"] == run["error"]


@pytest.mark.parametrize("name", ["run_ev_0", "ev_0", "run_", "run_%00", "x" * 300])
async def test_a_run_that_is_not_there_is_not_found(api: Api, name: str) -> None:
    for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/stop")):
        answer = await api.call(method, f"/v1/runs/{name}{path}")
        assert (answer.status, answer.error["code"]) == (404, "run_not_found")


# Following


async def test_events_tell_the_whole_run_in_order_with_one_id_for_each_message(api: Api, model: FakeModel) -> None:
    model.script([calls_tools(("search_files", {"pattern": "x"}), text="I look."), "Nothing there."])
    run_id = await begin(api, "find x", session_id="talk")
    events = await all_events(api, run_id)
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
    data = [event.data for event in events]
    assert [each["type"] for each in data] == kinds(events)
    assert [each["sequence"] for each in data] == list(range(1, 10))
    assert {(each["run_id"], each["session_id"]) for each in data} == {(run_id, "talk")}
    turn = data[-1]["turn_id"]
    assert [each["turn_id"] for each in data] == [None] + [turn] * 8
    one, two = f"msg_{turn}_1", f"msg_{turn}_2"
    assert [each["message_id"] for each in data] == [None, None, one, one, one, one, two, two, None]
    assert all(isinstance(each["time"], float) for each in data)
    assert (data[2]["delta"], data[3]["text"], data[7]["text"]) == ("I look.", "I look.", "Nothing there.")
    assert (data[4]["tool"], data[4]["arguments"], data[5]["outcome"]) == ("search_files", '{"pattern":"x"}', "ok")
    assert data[4]["call_id"] == data[5]["call_id"]
    said, result, last = data[-1]["transcript"]
    assert (said["message_id"], said["role"], said["content"]) == (one, "assistant", "I look.")
    assert said["tool_calls"][0]["id"] == result["tool_call_id"] == data[4]["call_id"]
    assert (result["role"], result["name"]) == ("tool", "search_files")
    assert last == {"message_id": two, "role": "assistant", "content": "Nothing there."}
    assert (data[-1]["output"], data[-1]["usage"]["total_tokens"]) == ("Nothing there.", 38)


async def test_many_tokens_become_few_events_and_the_first_goes_at_once(api: Api, model: FakeModel) -> None:
    model.hold()
    model.streams([f"{number} " for number in range(500)])
    run_id = await begin(api)
    async with following(api, run_id) as events:
        assert (await until_kind(events, "assistant.delta"))[-1].data["delta"] == "0 "
        model.release()
        rest = [event async for event in events]
    deltas = [event.data["delta"] for event in rest if event.name == "assistant.delta"]
    assert 1 <= len(deltas) <= 10
    assert "0 " + "".join(deltas) == "".join(f"{number} " for number in range(500))


async def test_late_and_returning_clients_get_what_they_have_not_seen(api: Api, model: FakeModel) -> None:
    model.hold()
    run_id = await begin(api)
    async with following(api, run_id) as events:
        first = await until_kind(events, "assistant.delta")
    model.release()
    whole = await all_events(api, run_id)
    assert kinds(whole) == [*kinds(first), "assistant.completed", "run.completed"]
    raw = (await api.get(f"/v1/runs/{run_id}/events")).body.decode()
    ids = [line.removeprefix("id: ") for line in raw.splitlines() if line.startswith("id: ")]
    assert kinds(await all_events(api, run_id, ids[2])) == ["assistant.completed", "run.completed"]
    assert await all_events(api, run_id, ids[-1]) == []
    assert kinds(await all_events(api, run_id, "another-7")) == kinds(whole)


async def test_a_client_that_leaves_does_not_stop_the_run(api: Api, model: FakeModel) -> None:
    model.hold()
    run_id = await begin(api)
    async with following(api, run_id) as events:
        await until_kind(events, "assistant.delta")
    model.release()
    assert (await run_is(api, run_id, "completed"))["output"] == "echo: hello"


async def test_after_a_restart_a_snapshot_tells_what_was_and_the_rest_is_live(
    start_api: StartApi, model: FakeModel
) -> None:
    async with start_api() as api:
        ended = await begin(api, "hello")
        await run_is(api, ended, "completed")
        model.hold(silently=True)
        run_id = await begin(api, "find x")
        await model.is_holding()
        await crash(api.gateway)
    async with start_api() as api:
        async with following(api, run_id) as events:
            [snapshot] = await until_kind(events, "run.snapshot")
            assert (snapshot.data["status"], snapshot.data["transcript"]) == ("running", [])
            model.release()
            rest = await until_kind(events, "run.completed")
        assert rest[-1].data["output"] == "echo: find x"
        told = await all_events(api, ended)
        assert kinds(told) == ["run.snapshot", "assistant.completed", "run.completed"]
        assert told[1].data["message_id"] == told[0].data["transcript"][0]["message_id"]  # one message, one id
        assert (await run_is(api, ended, "completed"))["output"] == "echo: hello"


async def test_a_server_that_closes_ends_its_streams_properly_and_the_run_goes_on(
    api: Api, model: FakeModel, families: Families
) -> None:
    model.hold()
    run_id = await begin(api)
    async with aiohttp.ClientSession() as client:
        async with another(api, Caller("desk", PersonRole.OWNER), families) as closing:
            answer = await client.get(f"{closing.url}/v1/runs/{run_id}/events")
            await until_kind(events_of(answer.content), "run.snapshot")
        await answer.read()  # a broken encoding would raise
    model.release()
    assert (await run_is(api, run_id, "completed"))["status"] == "completed"


async def test_every_run_that_was_in_hand_at_a_crash_goes_on_to_its_end(start_api: StartApi, model: FakeModel) -> None:
    async with start_api() as api:
        model.hold(silently=True)
        names = [await begin(api, f"work {number}", session_id=f"s{number % 7}") for number in range(20)]
        await model.is_holding()
        await crash(api.gateway)
    model.release()
    async with start_api() as api:
        ended = [await run_is(api, name, "completed") for name in names]
    assert [run["output"] for run in ended] == [f"echo: work {number}" for number in range(20)]


# Approvals


async def test_a_run_that_waits_says_so_and_goes_on_when_it_is_approved(
    api: Api, model: FakeModel, tmp_path: Path
) -> None:
    run_id = await begin_waiting(api, model)
    run = (await api.get(f"/v1/runs/{run_id}")).json
    assert run["approval"]["question"] == "May I write 'bang' into danger.txt?"
    assert (run["output"], run["usage"]) == (None, None)
    async with following(api, run_id) as events:
        waiting = await until_kind(events, "run.waiting_approval")
        assert waiting[-1].data["approval"]["id"] == run["approval"]["id"]
        assert dangers(tmp_path) == []
        answer = await api.post(f"/v1/runs/{run_id}/approval", {"approve": True})
        assert answer.status == 200
        assert (answer.json["approval_id"], answer.json["decision"]) == (run["approval"]["id"], "approve")
        rest = await until_kind(events, "run.completed")
    assert kinds(rest) == [
        "run.started",
        "tool.started",
        "tool.completed",
        "assistant.delta",
        "assistant.completed",
        "run.completed",
    ]
    assert rest[0].data["resumed"] is True
    assert dangers(tmp_path) == ["bang"]


async def test_a_denial_and_its_reason_are_told_to_the_model(api: Api, model: FakeModel, tmp_path: Path) -> None:
    run_id = await begin_waiting(api, model)
    answer = await api.post(f"/v1/runs/{run_id}/approval", {"decision": "deny", "reason": "not on a Sunday"})
    assert (answer.status, answer.json["decision"]) == (200, "deny")
    assert (await run_is(api, run_id, "completed"))["output"] == "All done."
    assert "not on a Sunday" in model.last_request["messages"][-1]["content"]
    assert dangers(tmp_path) == []


async def test_each_answer_that_comes_too_late_or_too_early_has_its_own_code(api: Api, model: FakeModel) -> None:
    model.hold(silently=True)
    early = await begin(api, "hello")
    await model.is_holding()
    answer = await api.post(f"/v1/runs/{early}/approval", {"approve": True})
    assert (answer.status, answer.error["code"]) == (409, "approval_not_pending")
    model.release()
    await run_is(api, early, "completed")
    answer = await api.post(f"/v1/runs/{early}/approval", {"approve": True})
    assert (answer.status, answer.error["code"]) == (409, "run_already_ended")
    run_id = await begin_waiting(api, model)
    approval_id = (await api.get(f"/v1/runs/{run_id}")).json["approval"]["id"]
    body = {"approve": True, "approval_id": approval_id}
    assert (await api.post(f"/v1/runs/{run_id}/approval", body)).status == 200
    answer = await api.post(f"/v1/runs/{run_id}/approval", {**body, "approve": False})
    assert (answer.status, answer.error["code"]) == (409, "approval_already_answered")
    assert answer.error["message"] == "It was already allowed by key:desk."
    await run_is(api, run_id, "completed")
    answer = await api.post(f"/v1/runs/{run_id}/approval", {**body, "approval_id": "ap_0"})
    assert (answer.status, answer.error["code"]) == (404, "approval_not_found")


async def test_an_approval_expires(start_api: StartApi, model: FakeModel, tmp_path: Path) -> None:
    clock = FakeClock()
    async with start_api(clock=clock) as api:
        run_id = await begin_waiting(api, model)
        clock.advance(301)
        answer = await api.post(f"/v1/runs/{run_id}/approval", {"approve": True})
        assert (answer.status, answer.error["code"]) == (409, "approval_expired")
        assert (await run_is(api, run_id, "completed"))["output"] == "All done."
    assert dangers(tmp_path) == []


@pytest.mark.parametrize("body", [{}, {"approve": "yes"}, {"decision": "maybe"}, {"approve": True, "decision": "deny"}])
async def test_an_answer_that_says_neither_yes_nor_no_changes_nothing(api: Api, model: FakeModel, body: object) -> None:
    run_id = await begin_waiting(api, model)
    answer = await api.post(f"/v1/runs/{run_id}/approval", body)
    assert (answer.status, answer.error["code"]) == (400, "invalid_decision")
    assert (await api.get(f"/v1/runs/{run_id}")).json["status"] == "waiting_approval"


async def test_of_several_questions_the_one_that_is_meant_has_to_be_named(api: Api, model: FakeModel) -> None:
    model.script([calls_tools(("danger", {"text": "one"}), ("danger", {"text": "two"})), "All done."])
    run_id = await begin(api)
    run = await run_is(api, run_id, "waiting_approval")
    ids = [asked["id"] for asked in run["approvals"]]
    answer = await api.post(f"/v1/runs/{run_id}/approval", {"approve": True})
    assert (answer.status, answer.error["code"], answer.error["approvals"]) == (400, "approval_id_required", ids)
    for approval_id in ids:
        body = {"approve": True, "approval_id": approval_id}
        assert (await api.post(f"/v1/runs/{run_id}/approval", body)).status == 200
    await run_is(api, run_id, "completed")


@pytest.mark.parametrize("dies", [False, True], ids=["clean stop", "crash"])
async def test_a_waiting_run_outlives_a_restart(
    start_api: StartApi, model: FakeModel, tmp_path: Path, dies: bool
) -> None:
    async with start_api() as api:
        run_id = await begin_waiting(api, model)
        if dies:
            await crash(api.gateway)
    async with start_api() as api:
        run = (await api.get(f"/v1/runs/{run_id}")).json
        assert run["status"] == "waiting_approval"
        async with following(api, run_id) as events:
            [snapshot] = await until_kind(events, "run.snapshot")
            assert snapshot.data["approvals"] == run["approvals"]
            assert [line["content"] for line in snapshot.data["transcript"]] == ["Let me ask."]
            await api.post(f"/v1/runs/{run_id}/approval", {"approve": True})
            rest = await until_kind(events, "run.completed")
        turn = run["turn_id"]
        assert [event.data["message_id"] for event in rest] == [
            None,
            *[f"msg_{turn}_1"] * 2,
            *[f"msg_{turn}_2"] * 2,
            None,
        ]
    assert dangers(tmp_path) == ["bang"]


# Stopping


async def test_a_stop_is_answered_at_once_wherever_the_run_is(api: Api, model: FakeModel) -> None:
    model.hold()
    running = await begin(api, "one", session_id="talk")
    queued = await begin(api, "two", session_id="talk")
    await model.is_holding()
    async with following(api, queued) as events:
        await until_kind(events, "run.queued")
        stopped = await api.call("POST", f"/v1/runs/{queued}/stop")
        assert (stopped.status, stopped.json["status"]) == (200, "cancelled")
        assert (await until_kind(events, "run.cancelled"))[-1].data["reason"] == "stopped"
    stopped = await api.call("POST", f"/v1/runs/{running}/stop")
    shown = stopped.json
    assert shown.pop("status") in ("stopping", "cancelled")  # the turn may end before the answer is written
    assert shown == {"run_id": running, "session_id": "talk"}
    assert (await run_is(api, running, "cancelled"))["reason"] == "stopped"
    assert kinds(await all_events(api, running))[-1] == "run.cancelled"
    again = await api.call("POST", f"/v1/runs/{running}/stop")
    assert again.json["status"] == "cancelled"


async def test_a_waiting_run_is_stopped_and_what_waited_behind_it_goes_on(
    api: Api, model: FakeModel, tmp_path: Path
) -> None:
    model.script([DANGER])
    waiting = await begin(api, "do it", session_id="talk")
    await run_is(api, waiting, "waiting_approval")
    behind = await begin(api, "next", session_id="talk")
    async with following(api, waiting) as events:
        stopped = await api.call("POST", f"/v1/runs/{waiting}/stop")
        assert stopped.json["status"] == "cancelled"
        await until_kind(events, "run.cancelled")
    answer = await api.post(f"/v1/runs/{waiting}/approval", {"approve": True})
    assert (answer.status, answer.error["code"]) == (409, "run_already_ended")
    assert (await run_is(api, behind, "completed"))["output"] == "echo: next"
    assert dangers(tmp_path) == []


# Whose


async def test_a_user_sees_answers_and_stops_only_its_own_runs(api: Api, model: FakeModel, families: Families) -> None:
    run_id = await begin_waiting(api, model)
    async with another(api, USER, families) as bob, another(api, ADMIN, families) as ann:
        for method, path, body in (
            ("GET", "", None),
            ("GET", "/events", None),
            ("POST", "/approval", {"approve": True}),
            ("POST", "/stop", None),
        ):
            answer = await bob.call(method, f"/v1/runs/{run_id}{path}", body)
            assert (answer.status, answer.error["code"]) == (404, "run_not_found")
        assert (await ann.get(f"/v1/runs/{run_id}")).json["status"] == "waiting_approval"
        assert (await ann.post(f"/v1/runs/{run_id}/approval", {"approve": True})).json["answered_by"] == "key:ann"
        await run_is(api, run_id, "completed")


async def test_users_who_choose_the_same_session_id_do_not_meet(api: Api, model: FakeModel, families: Families) -> None:
    await run_is(api, await begin(api, "the owner's secret", session_id="work"), "completed")
    async with another(api, USER, families) as bob:
        await run_is(bob, await begin(bob, "what was said?", session_id="work"), "completed")
    assert [message["content"] for message in model.last_request["messages"][1:]] == ["what was said?"]


async def test_a_user_approves_its_own_but_not_what_touches_the_host(
    api: Api, model: FakeModel, families: Families
) -> None:
    async with another(api, USER, families) as bob:
        model.script([calls_tools(("note", {"text": "milk"})), DANGER, "All done."])
        run_id = await begin(bob, "do it")
        await run_is(bob, run_id, "waiting_approval")
        answer = await bob.post(f"/v1/runs/{run_id}/approval", {"approve": True})
        assert (answer.status, answer.json["answered_by"]) == (200, "key:bob")
        await run_is(bob, run_id, "waiting_approval")
        answer = await bob.post(f"/v1/runs/{run_id}/approval", {"approve": True})
        assert (answer.status, answer.error["code"]) == (403, "approval_not_yours")
        assert (await api.post(f"/v1/runs/{run_id}/approval", {"approve": True})).status == 200
        await run_is(bob, run_id, "completed")
