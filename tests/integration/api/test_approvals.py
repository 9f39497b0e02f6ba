"""Approvals over HTTP: who sees them, who may answer, and what an answer that comes too late is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.core.roles import PersonRole
from hermes.servers.api import approvals, runs
from hermes.servers.api.context import Caller
from hermes.store import people
from hermes.store.api.api_keys import DEFAULT_NAME
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.api.conftest import Api, Families, StartApi
from tests.integration.api.others import another, run_is
from tests.integration.api.test_runs import dangers

BOB = Caller("bob", PersonRole.USER)
BO = Caller("bo", PersonRole.USER)
ANN = Caller("ann", PersonRole.ADMIN)
GUEST = Caller("guest", PersonRole.GUEST)
DANGER = calls_tools(("danger", {"text": "bang"}))
SCRIBBLE = calls_tools(("scribble", {"text": "milk"}))
NOTE = calls_tools(("note", {"text": "milk"}))


@pytest.fixture
def families() -> Families:
    return (approvals.routes, runs.routes)


async def ask(api: Api, model: FakeModel, call: Any = DANGER) -> tuple[str, str]:
    """A run that waits, and the approval it waits for."""
    model.script([call])
    run_id = (await api.post("/v1/runs", {"input": "do it", "session_id": "talk"})).json["run_id"]
    run = await run_is(api, run_id, "waiting_approval")
    return run_id, run["approval"]["id"]


async def waiting(api: Api, query: str = "") -> list[str]:
    return [approval["id"] for approval in (await api.get(f"/api/approvals{query}")).json["data"]]


async def test_what_waits_is_listed_read_and_answered(api: Api, model: FakeModel, tmp_path: Path) -> None:
    run_id, approval_id = await ask(api, model)
    [approval] = (await api.get("/api/approvals")).json["data"]
    assert approval == (await api.get(f"/api/approvals/{approval_id}")).json
    assert (approval["id"], approval["run_id"], approval["session_id"]) == (approval_id, run_id, "talk")
    assert (approval["tool"], approval["arguments"]) == ("danger", '{"text":"bang"}')
    assert (approval["status"], approval["touches_host"], approval["may_answer"]) == ("pending", True, True)
    assert approval["expires_at"] == pytest.approx(approval["created_at"] + 300)
    assert await waiting(api, "?session_id=talk") == [approval_id]
    assert await waiting(api, "?session_id=other") == []
    answer = await api.post(f"/api/approvals/{approval_id}", {"decision": "approve"})
    assert answer.status == 200
    assert (answer.json["status"], answer.json["answered_by"]) == ("allowed", "key:desk")
    await run_is(api, run_id, "completed")
    assert dangers(tmp_path) == ["bang"]
    assert await waiting(api) == []
    told = (await api.get(f"/api/approvals/{approval_id}")).json
    assert (told["status"], told["answered_by"], told["may_answer"]) == ("allowed", "key:desk", False)


async def link_to_owner(api: Api, key: Caller) -> None:
    """Make the account of a key one of the person behind the owner's key."""
    await api.gateway.requests.meet(key.sender_id, key.role)
    owner = await api.gateway.db.read(lambda tx: tx.value("SELECT id FROM people WHERE role = 'owner'"))
    assert await api.gateway.db.write(people.link, "api", key.sender_id, str(owner))


async def test_a_key_linked_to_the_owner_answers_with_its_own_role(
    api: Api, model: FakeModel, families: Families, tmp_path: Path
) -> None:
    _, approval_id = await ask(api, model)
    await link_to_owner(api, BOB)
    async with another(api, BOB, families) as bob:
        assert (await bob.get(f"/api/approvals/{approval_id}")).json["may_answer"] is False
        answer = await bob.post(f"/api/approvals/{approval_id}", {"decision": "approve"})
        assert (answer.status, answer.error["code"]) == (403, "approval_not_yours")
    assert await waiting(api) == [approval_id]
    assert dangers(tmp_path) == []


async def test_a_turn_of_a_key_linked_to_the_owner_has_the_role_of_the_key(
    api: Api, model: FakeModel, families: Families
) -> None:
    await ask(api, model)
    await link_to_owner(api, BOB)
    async with another(api, BOB, families) as bob:
        run_id = (await bob.post("/v1/runs", {"input": "hi", "session_id": "bobs"})).json["run_id"]
        await run_is(bob, run_id, "completed")
    found = "SELECT role FROM turns WHERE lane LIKE '%bobs%'"
    assert await api.gateway.db.read(lambda tx: tx.all(found, str)) == ["user"]


async def test_a_denial_is_told_to_the_model(api: Api, model: FakeModel, tmp_path: Path) -> None:
    run_id, approval_id = await ask(api, model)
    answer = await api.post(f"/api/approvals/{approval_id}", {"decision": "deny", "reason": "not now"})
    assert (answer.json["status"], answer.json["reason"]) == ("denied", "not now")
    await run_is(api, run_id, "completed")
    assert "not now" in model.last_request["messages"][-1]["content"]
    assert dangers(tmp_path) == []


@pytest.mark.parametrize("way", ["/api/approvals/{approval_id}", "/v1/runs/{run_id}/approval"])
async def test_an_answer_with_a_scope_asks_no_more(api: Api, model: FakeModel, tmp_path: Path, way: str) -> None:
    run_id, approval_id = await ask(api, model, SCRIBBLE)
    seen = (await api.get(f"/api/approvals/{approval_id}")).json
    assert (seen["scopes"], seen["where"]) == (["once", "session", "always"], "on local in the workspace")
    body = {"decision": "approve", "scope": "session"}
    answer = await api.post(way.format(approval_id=approval_id, run_id=run_id), body)
    assert (answer.status, answer.json["scope"]) == (200, "session")
    await run_is(api, run_id, "completed")
    model.script([SCRIBBLE])
    again = (await api.post("/v1/runs", {"input": "again", "session_id": "talk"})).json["run_id"]
    await run_is(api, again, "completed")
    assert dangers(tmp_path) == ["milk", "milk"]
    model.script([SCRIBBLE])
    elsewhere = (await api.post("/v1/runs", {"input": "again", "session_id": "other"})).json["run_id"]
    await run_is(api, elsewhere, "waiting_approval")


async def test_what_cannot_be_granted_is_allowed_once(api: Api, model: FakeModel) -> None:
    _, approval_id = await ask(api, model)
    assert (await api.get(f"/api/approvals/{approval_id}")).json["scopes"] == ["once"]
    answer = await api.post(f"/api/approvals/{approval_id}", {"decision": "approve", "scope": "always"})
    assert (answer.status, answer.json["scope"]) == (200, "once")


@pytest.mark.parametrize(
    "body", [{"decision": "approve", "scope": "for ever"}, {"decision": "deny", "scope": "always"}]
)
async def test_a_scope_nobody_knows_is_refused(api: Api, model: FakeModel, body: dict[str, str]) -> None:
    _, approval_id = await ask(api, model)
    answer = await api.post(f"/api/approvals/{approval_id}", body)
    assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "invalid_scope", "scope")
    assert await waiting(api) == [approval_id]


async def test_a_second_answer_is_told_who_was_first(api: Api, model: FakeModel) -> None:
    _, approval_id = await ask(api, model)
    await api.post(f"/api/approvals/{approval_id}", {"approve": True})
    answer = await api.post(f"/api/approvals/{approval_id}", {"approve": False})
    assert (answer.status, answer.error["code"]) == (409, "approval_already_answered")
    assert answer.error["message"] == "It was already allowed by key:desk."


async def test_an_answer_after_its_time_or_after_the_run_is_refused(
    start_api: StartApi, model: FakeModel, tmp_path: Path
) -> None:
    clock = FakeClock()
    async with start_api(clock=clock) as api:
        run_id, approval_id = await ask(api, model)
        await api.call("POST", f"/v1/runs/{run_id}/stop")
        answer = await api.post(f"/api/approvals/{approval_id}", {"approve": True})
        assert (answer.status, answer.error["code"]) == (409, "run_already_ended")
        _, approval_id = await ask(api, model)
        clock.advance(301)
        assert await waiting(api) == []
        answer = await api.post(f"/api/approvals/{approval_id}", {"approve": True})
        assert (answer.status, answer.error["code"]) == (409, "approval_expired")
    assert dangers(tmp_path) == []


async def test_an_approval_that_is_not_there_is_not_found(api: Api) -> None:
    for method, body in (("GET", None), ("POST", {"approve": True})):
        answer = await api.call(method, "/api/approvals/ap_0%00", body)
        assert (answer.status, answer.error["code"]) == (404, "approval_not_found")
    answer = await api.post("/api/approvals/ap_0", {"approve": 1})
    assert (answer.status, answer.error["code"]) == (400, "invalid_decision")


async def test_everybody_sees_their_own_and_only_admin_and_owner_answer_for_the_host(
    api: Api, model: FakeModel, families: Families
) -> None:
    async with another(api, BOB, families) as bob, another(api, BO, families) as bo, another(api, ANN, families) as ann:
        _, owners = await ask(api, model)
        run_id, bobs = await ask(bob, model)
        assert (await waiting(bob), await waiting(bo), await waiting(ann)) == ([bobs], [], [owners, bobs])
        for who, approval_id in ((bo, bobs), (bob, owners)):
            for method, body in (("GET", None), ("POST", {"approve": True})):
                answer = await who.call(method, f"/api/approvals/{approval_id}", body)
                assert (answer.status, answer.error["code"]) == (404, "approval_not_found")
        assert (await bob.get(f"/api/approvals/{bobs}")).json["may_answer"] is False
        answer = await bob.post(f"/api/approvals/{bobs}", {"approve": True})
        assert (answer.status, answer.error["code"]) == (403, "approval_not_yours")
        answer = await ann.post(f"/api/approvals/{bobs}", {"approve": True})
        assert (answer.status, answer.json["answered_by"]) == (200, "key:ann")
        await run_is(bob, run_id, "completed")


async def test_a_user_answers_what_stays_its_own_and_a_guest_answers_nothing(
    api: Api, model: FakeModel, families: Families
) -> None:
    async with another(api, BOB, families) as bob, another(api, GUEST, families) as guest:
        run_id, bobs = await ask(bob, model, NOTE)
        assert (await bob.get(f"/api/approvals/{bobs}")).json["may_answer"] is True
        assert (await bob.post(f"/api/approvals/{bobs}", {"approve": True})).json["answered_by"] == "key:bob"
        await run_is(bob, run_id, "completed")
        _, guests = await ask(guest, model, NOTE)
        answer = await guest.post(f"/api/approvals/{guests}", {"approve": True})
        assert (answer.status, answer.error["code"]) == (403, "approval_not_yours")


async def test_a_question_asked_in_a_chat_is_answered_over_the_api(
    api: Api, model: FakeModel, telegram: FakeTelegram, tmp_path: Path
) -> None:
    model.script([DANGER, "All done."])
    telegram.user_says("do it")
    await telegram.wait_for(lambda: any(sent.buttons for sent in telegram.sent), 10)
    [approval] = (await api.get("/api/approvals")).json["data"]
    assert (approval["platform"], approval["session_id"], approval["run_id"]) == ("telegram", None, None)
    assert (await api.post(f"/api/approvals/{approval['id']}", {"approve": True})).status == 200
    await telegram.wait_for(lambda: any(sent.text == "All done." for sent in telegram.sent), 10)
    assert dangers(tmp_path) == ["bang"]


DEFAULT = Caller(DEFAULT_NAME, PersonRole.OWNER)


async def test_the_default_key_approves_what_stays_in_a_sandbox_and_only_denies_what_touches_the_machine(
    api: Api, model: FakeModel, families: Families, tmp_path: Path
) -> None:
    async with another(api, DEFAULT, families) as default:
        run_id, note = await ask(default, model, NOTE)
        assert (await default.get(f"/api/approvals/{note}")).json["may_answer"] is True
        assert (await default.post(f"/api/approvals/{note}", {"approve": True})).status == 200
        await run_is(default, run_id, "completed")
        run_id, danger = await ask(default, model)
        assert (await default.get(f"/api/approvals/{danger}")).json["may_answer"] is False
        for path in (f"/api/approvals/{danger}", f"/v1/runs/{run_id}/approval"):
            for scope in ("once", "always"):
                answer = await default.post(path, {"approve": True, "scope": scope})
                assert (answer.status, answer.error["code"]) == (403, "key_in_a_file")
                assert "hermes api-key create" in answer.error["message"]
        assert await waiting(default) == [danger]
        assert (await default.post(f"/api/approvals/{danger}", {"approve": False})).status == 200
    assert dangers(tmp_path) == []
