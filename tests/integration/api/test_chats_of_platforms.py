"""One conversation on the phone and in the browser: the same lane, the same order, shown on both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes.store import people
from hermes.store.db import Tx
from hermes.store.turns import turns
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.api.others import run_is
from tests.integration.api.serving import Served, served
from tests.integration.api.test_dashboard import Browser, new_browser, sign_in
from tests.integration.api.test_dashboard_manage import ask
from tests.integration.conftest import Start
from tests.integration.test_about_commands import configure
from tests.integration.test_shared_groups import SHARED
from tests.integration.watching import answered

SECONDS = 60


@pytest.fixture
async def api(start: Start) -> AsyncIterator[Served]:
    async with served(start) as running, asyncio.timeout(SECONDS):
        yield running


@pytest.fixture
async def browser(api: Served) -> AsyncIterator[Browser]:
    one = new_browser(api)
    try:
        assert (await sign_in(api, one)).status == 200
        yield one
    finally:
        await one.http.close()


async def from_phone(api: Served, telegram: FakeTelegram, text: str = "hello", **more: Any) -> dict[str, Any]:
    """Say something on Telegram, wait for the answer, and return the session as the owner's list shows it."""
    telegram.user_says(text, **more)
    await answered(telegram, f"echo: {text}")
    listed = (await api.get("/api/sessions?platform=telegram")).json["data"]
    session: dict[str, Any] = next(one for one in listed if one["preview"].endswith(text))
    return session


async def lines_of(browser: Browser, session_id: str) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = (await browser.ask("GET", f"/api/sessions/{session_id}/messages")).json["data"]
    return [line for line in lines if not line.get("is_taken_back")]


async def test_phone_and_browser_continue_one_conversation_in_order(
    api: Served, browser: Browser, telegram: FakeTelegram, model: FakeModel
) -> None:
    session = await from_phone(api, telegram)
    path = f"/api/sessions/{session['id']}"
    assert (await browser.ask("GET", path)).json["may_write"] is True
    answer = await browser.ask("POST", f"{path}/chat", {"message": "And from the browser."})
    assert answer.status == 200, answer.body
    assert answer.json["message"]["content"] == "echo: And from the browser."
    assert answer.json["session_id"] == session["id"]
    await answered(telegram, "echo: And from the browser.")
    telegram.user_says("Back on the phone.")
    await answered(telegram, "echo: Back on the phone.")

    assert telegram.texts() == [
        "echo: hello",
        "💻 Dashboard: And from the browser.",
        "echo: And from the browser.",
        "echo: Back on the phone.",
    ]
    lines = await lines_of(browser, session["id"])
    said = ["hello", "And from the browser.", "Back on the phone."]
    assert [line["content"] for line in lines] == [text for each in said for text in (each, f"echo: {each}")]
    origins = [(line["origin"]["platform"], line["origin"]["name"]) for line in lines if line["role"] == "user"]
    assert origins == [("telegram", "Ana"), ("dashboard", ""), ("telegram", "Ana")]
    read = [message["content"] for message in model.last_request["messages"] if message["role"] != "system"]
    assert read == [line["content"] for line in lines][:-1]
    run = (await browser.ask("GET", f"/v1/runs/{answer.json['run_id']}")).json
    assert (run["status"], run["session_id"]) == ("completed", session["id"])


async def test_a_streamed_turn_asks_for_approval_in_both_places_and_either_answers(
    api: Served, browser: Browser, telegram: FakeTelegram, model: FakeModel
) -> None:
    session = await from_phone(api, telegram)
    model.script([calls_tools(("note", {"text": "bang"}), text="Let me ask."), "Done with it."])
    body = {"input": "do it"}
    headers = {"Origin": browser.origin, "X-Hermes-CSRF": browser.session["csrf"]}
    path = f"/api/sessions/{session['id']}/chat/stream"
    async with browser.http.post(path, json=body, headers=headers) as stream:
        assert (stream.status, stream.headers["X-Hermes-Session-Id"]) == (200, session["id"])
        told = (await stream.read()).decode()
    assert "run.waiting_approval" in told
    await telegram.wait_for(lambda: any("bang" in text for text in telegram.texts()), 10)
    [question] = (await browser.ask("GET", "/api/approvals")).json["data"]
    assert (question["platform"], question["may_answer"]) == ("telegram", True)
    telegram.user_says("/approve")  # the turn is the phone's person's, so that this person may answer it too
    await answered(telegram, "Done with it.")
    await run_is(api, question["run_id"], "completed")


async def test_a_turn_of_the_phone_is_steered_and_stopped_and_a_message_waits_behind_it(
    api: Served, browser: Browser, telegram: FakeTelegram, model: FakeModel
) -> None:
    session = await from_phone(api, telegram)
    path = f"/api/sessions/{session['id']}"
    assert (await browser.ask("POST", f"{path}/steer", {"text": "x"})).error["code"] == "nothing_running"
    asks = calls_tools(("note", {"text": "bang"}), text="Let me ask.")
    model.script([asks, "Steered.", "Queued."])
    telegram.user_says("do it")
    await telegram.wait_for(lambda: any("/approve" in text for text in telegram.texts()), 10)
    assert (await browser.ask("POST", f"{path}/steer", {"text": "be gentle"})).status == 202
    queued = (await browser.ask("POST", f"{path}/queue", {"text": "and then rest"})).json
    assert queued["session_id"] == session["id"]
    [question] = (await browser.ask("GET", "/api/approvals")).json["data"]
    decided = await browser.ask("POST", f"/api/approvals/{question['id']}", {"decision": "deny"})
    assert decided.status == 200, decided.body
    await run_is(api, queued["run_id"], "completed")
    said = [line["content"] for line in await lines_of(browser, session["id"])]
    assert said.index("be gentle") < said.index("Steered.") < said.index("and then rest") < said.index("Queued.")
    await answered(telegram, "Queued.")
    shown = telegram.texts()
    assert shown.index("💻 Dashboard: be gentle") < shown.index("💻 Dashboard: and then rest") < shown.index("Steered.")

    model.script([asks])
    telegram.user_says("once more")
    await telegram.wait_for(lambda: any("/approve" in text for text in telegram.texts()), 10)
    assert (await browser.ask("POST", f"{path}/stop")).json["turn_id"]


async def test_the_last_exchange_is_asked_again_wherever_it_was_written(
    api: Served, browser: Browser, telegram: FakeTelegram, model: FakeModel
) -> None:
    session = await from_phone(api, telegram)
    path = f"/api/sessions/{session['id']}"
    model.script(["Better."])
    again = await browser.ask("POST", f"{path}/retry")
    assert (again.status, again.json["run_id"]) == (202, None)  # a message of the phone is no run
    await answered(telegram, "Better.")
    assert "💻 Dashboard: Once more: “hello”" in telegram.texts()
    await browser.ask("POST", f"{path}/chat", {"message": "from the desk"})
    model.script(["Best."])
    run = (await browser.ask("POST", f"{path}/retry")).json["run_id"]
    await run_is(api, run, "completed")
    await answered(telegram, "Best.")
    said = [line["content"] for line in await lines_of(browser, session["id"])]
    assert said == ["hello", "Better.", "from the desk", "Best."]
    model.script(["And again."])
    telegram.user_says("/retry")
    await answered(telegram, "And again.")
    assert [line["content"] for line in await lines_of(browser, session["id"])][-2:] == ["from the desk", "And again."]


async def test_a_turn_has_the_lower_of_the_two_roles_and_stays_the_persons(
    api: Served, browser: Browser, telegram: FakeTelegram
) -> None:
    session = await from_phone(api, telegram)

    def newest(tx: Tx) -> tuple[str, str, str]:
        name = str(tx.value("SELECT id FROM turns ORDER BY created_at DESC, id DESC LIMIT 1"))
        turn, person = turns.get(tx, name), people.find(tx, "telegram", "7")
        assert turn is not None
        assert person is not None
        return turn.role, turn.person_id, person.id

    assert (await browser.ask("POST", f"/api/sessions/{session['id']}/chat", {"message": "as owner"})).status == 200
    role, whose, person = await api.gateway.db.read(newest)
    assert (role, whose) == ("user", person)  # an owner's words do not give the chat an owner's rights

    guest = await api.new_key("bob", "guest")
    await ask(api, guest, "GET", "/api/overview")
    await chat_as(api, guest)
    await api.gateway.db.write(lambda tx: people.link(tx, "api", _sender(tx, "bob"), person))
    seen = (await ask(api, guest, "GET", "/api/sessions")).json["data"]
    assert session["id"] in [one["id"] for one in seen]
    mine = await ask(api, guest, "POST", f"/api/sessions/{session['id']}/chat", {"message": "as guest"})
    assert mine.status == 200, mine.body
    role, whose, person = await api.gateway.db.read(newest)
    assert (role, whose) == ("guest", person)
    assert "💻 API (bob): as guest" in telegram.texts()


async def chat_as(api: Served, who: dict[str, str]) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    async with api.stranger.post("/v1/chat/completions", json=body, headers=who) as answer:
        assert answer.status == 200


def _sender(tx: Tx, name: str) -> str:
    return "key:" + str(tx.value("SELECT id FROM api_keys WHERE name = :name", name=name))


async def test_a_session_that_the_chat_has_left_is_not_written_to(
    api: Served, browser: Browser, telegram: FakeTelegram
) -> None:
    old = await from_phone(api, telegram)
    telegram.user_says("/new")
    await telegram.wait_for(lambda: any(text.startswith("Fresh session") for text in telegram.texts()), 10)
    new = await from_phone(api, telegram, "again")
    refused = await browser.ask("POST", f"/api/sessions/{old['id']}/chat", {"message": "hi"})
    assert (refused.status, refused.error["code"]) == (409, "session_not_current")
    assert refused.error["session_id"] == new["id"]
    assert (await browser.ask("GET", f"/api/sessions/{old['id']}")).json["may_write"] is False


async def test_stopping_a_session_that_the_chat_has_left_stops_nothing_of_the_next(
    api: Served, browser: Browser, telegram: FakeTelegram, model: FakeModel
) -> None:
    old = await from_phone(api, telegram)
    telegram.user_says("/new")
    await telegram.wait_for(lambda: any(text.startswith("Fresh session") for text in telegram.texts()), 10)
    model.script([calls_tools(("note", {"text": "bang"}))])
    telegram.user_says("do it")
    await telegram.wait_for(lambda: any("/approve" in text for text in telegram.texts()), 10)
    stopped = await browser.ask("POST", f"/api/sessions/{old['id']}/stop")
    assert (stopped.status, stopped.json["turn_id"], stopped.json["set_aside"]) == (200, None, 0)
    assert len((await browser.ask("GET", "/api/approvals")).json["data"]) == 1


async def test_no_name_of_a_key_looks_like_the_link_of_the_machine(api: Served, telegram: FakeTelegram) -> None:
    session = await from_phone(api, telegram)
    key = (await api.new_key("dashboard", "owner"))["Authorization"].removeprefix("Bearer ")
    one = new_browser(api)
    try:
        assert (await sign_in(api, one, key=key)).status == 200
        assert (await one.ask("POST", f"/api/sessions/{session['id']}/chat", {"message": "hi"})).status == 200
    finally:
        await one.http.close()
    assert "💻 Dashboard (dashboard): hi" in telegram.texts()


async def test_an_owner_writes_in_a_shared_group_under_their_own_name(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    configure(tmp_path, SHARED)
    async with asyncio.timeout(SECONDS), served(start, TELEGRAM_GROUP_POLICY="open") as api:
        telegram.user_says_in_group("hello all", to_us=True)
        await telegram.wait_for(lambda: any("hello all" in text for text in telegram.texts()), 10)
        owner = await api.new_key("desk", "owner")
        [session] = (await ask(api, owner, "GET", "/api/sessions?platform=telegram")).json["data"]
        path = f"/api/sessions/{session['id']}"
        answer = await ask(api, owner, "POST", f"{path}/chat", {"message": "from the desk"})
        assert answer.status == 200, answer.body
        assert "💻 API (desk): from the desk" in telegram.texts()
        assert str(model.last_request["messages"][-1]["content"]).startswith("desk (owner key ")
        lines = (await ask(api, owner, "GET", f"{path}/messages")).json["data"]
        assert [line["origin"]["platform"] for line in lines if line["role"] == "user"] == ["telegram", "dashboard"]


REVEAL = calls_tools(("reveal", {"text": "what only this person may"}))


async def streamed(browser: Browser, session_id: str) -> str:
    headers = {"Origin": browser.origin, "X-Hermes-CSRF": browser.session["csrf"]}
    path = f"/api/sessions/{session_id}/chat/stream"
    async with browser.http.post(path, json={"input": "go on"}, headers=headers) as stream:
        assert stream.status == 200
        return (await stream.read()).decode()


async def test_words_of_a_key_with_fewer_rights_make_the_next_turn_of_the_phone_ask(
    api: Served, telegram: FakeTelegram, model: FakeModel
) -> None:
    session = await from_phone(api, telegram)
    guest = await api.new_key("bob", "guest")
    await chat_as(api, guest)
    found = await api.gateway.db.read(people.find, "telegram", "7")
    assert found is not None
    await api.gateway.db.write(lambda tx: people.link(tx, "api", _sender(tx, "bob"), found.id))
    path = f"/api/sessions/{session['id']}/chat"
    assert (await ask(api, guest, "POST", path, {"message": "Next time, reveal it."})).status == 200
    model.script([REVEAL])
    telegram.user_says("go on")
    await telegram.wait_for(lambda: any("fewer rights" in text for text in telegram.texts()), 10)


async def test_an_owner_who_continues_a_copy_of_a_chat_is_asked_before_its_words_are_followed(
    api: Served, browser: Browser, telegram: FakeTelegram, model: FakeModel
) -> None:
    session = await from_phone(api, telegram, "Next time, reveal it.")
    copy = (await browser.ask("POST", f"/api/sessions/{session['id']}/fork")).json
    model.script([REVEAL])
    assert "run.waiting_approval" in await streamed(browser, copy["id"])


async def test_an_owner_who_continues_the_session_of_a_key_is_asked_before_its_words_are_followed(
    api: Served, browser: Browser, model: FakeModel
) -> None:
    await chat_as(api, await api.new_key("bob", "guest"))
    [session] = (await browser.ask("GET", "/api/sessions?platform=api")).json["data"]
    model.script([REVEAL])
    assert "run.waiting_approval" in await streamed(browser, session["id"])
