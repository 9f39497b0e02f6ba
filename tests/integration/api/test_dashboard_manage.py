"""What the dashboard changes: roles, settings, platforms, a turn that runs; each only by who may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from hermes.store import people
from hermes.store.db import Tx
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.api.conftest import Answer
from tests.integration.api.others import run_is
from tests.integration.api.serving import Served, served
from tests.integration.api.test_dashboard_watch import chat
from tests.integration.conftest import Start

SECONDS = 30


@pytest.fixture
async def api(start: Start) -> AsyncIterator[Served]:
    async with served(start) as running, asyncio.timeout(SECONDS):
        yield running


async def ask(api: Served, who: dict[str, str], method: str, path: str, body: Any = None) -> Answer:
    data = None if body is None else orjson.dumps(body)
    async with api.stranger.request(method, path, data=data, headers=who) as answer:
        return Answer(answer.status, dict(answer.headers), await answer.read())


async def test_a_role_is_given_by_who_stands_above_it(api: Served, telegram: FakeTelegram) -> None:
    telegram.user_says("hello")
    await telegram.wait_for(lambda: bool(telegram.sent), 10)
    owner, admin = await api.new_key("desk", "owner"), await api.new_key("helper", "admin")
    listed = (await ask(api, owner, "GET", "/api/people")).json["data"]
    [person] = [one for one in listed if any(each["platform"] == "telegram" for each in one["accounts"])]
    path = f"/api/people/{person['id']}"
    assert (await ask(api, admin, "PATCH", path, {"role": "guest"})).json["role"] == "guest"
    assert (await ask(api, admin, "PATCH", path, {"role": "admin"})).error["code"] == "role_not_enough"
    assert (await api.call("PATCH", path, {"role": "user"})).error["code"] == "key_in_a_file"
    assert (await ask(api, owner, "PATCH", path, {"role": "admin"})).json["role"] == "admin"
    assert (await ask(api, admin, "PATCH", path, {"role": "user"})).error["code"] == "role_not_enough"
    assert (await ask(api, owner, "PATCH", path, {"role": "king"})).status == 400
    assert (await ask(api, owner, "PATCH", "/api/people/p_none", {"role": "user"})).status == 404
    local = [one for one in listed if not one["may_change"]]
    for one in local:
        assert (await ask(api, owner, "PATCH", f"/api/people/{one['id']}", {"role": "guest"})).status == 409


async def test_an_account_is_linked_and_a_grant_ended(api: Served) -> None:
    def two(tx: Tx) -> None:
        for platform, user in (("telegram", "7"), ("qq", "8")):
            people.ensure(tx, f"p_{platform}_{user}", platform=platform, user_id=user, name=user, role="user", now=1.0)
        tx.run(
            "INSERT INTO grants (id, person_id, scope, subject, session_id, touches_host, granted_by, granted_at)"
            " VALUES ('gr_1', 'p_telegram_7', 'always', 'shell:ls', '', 0, 'p_telegram_7', 1)"
        )

    await api.gateway.db.write(two)
    owner, bob = await api.new_key("desk", "owner"), await api.new_key("bob", "user")
    everybody = (await ask(api, owner, "GET", "/api/people")).json["data"]
    mine = next(one for one in everybody if one["accounts"] and one["accounts"][0]["user_id"] == "7")
    linked = await ask(api, owner, "POST", f"/api/people/{mine['id']}/links", {"account": "qq:8"})
    assert [one["platform"] for one in linked.json["accounts"]] == ["qq", "telegram"]
    wrong = await ask(api, owner, "POST", f"/api/people/{mine['id']}/links", {"account": "qq:none"})
    assert (wrong.status, wrong.error["param"]) == (400, "account")
    assert [one["id"] for one in (await ask(api, owner, "GET", "/api/grants")).json["data"]] == ["gr_1"]
    assert (await ask(api, bob, "GET", "/api/grants")).json["data"] == []
    assert (await ask(api, bob, "DELETE", "/api/grants/gr_1")).status == 404
    assert (await ask(api, owner, "DELETE", "/api/grants/gr_1")).json["deleted"] is True
    assert (await ask(api, owner, "GET", "/api/grants")).json["data"] == []


async def test_a_setting_is_validated_written_and_counts_at_once(api: Served) -> None:
    owner = await api.new_key("desk", "owner")
    listed = {one["name"]: one for one in (await ask(api, owner, "GET", "/api/settings")).json["data"]}
    assert listed["agent.busy_mode"]["type"] == "choice"
    assert "sk-test-0123456789" not in orjson.dumps(listed).decode()
    assert listed["platforms.telegram.token"]["is_secret"] is True
    changed = await ask(api, owner, "PATCH", "/api/settings", {"settings": {"agent.busy_mode": "queue"}})
    assert changed.json["data"][0]["value"] == "queue"
    assert api.gateway.config.agent.busy_mode == "queue"
    assert "config.yaml" in changed.json["data"][0]["source"]
    for name, value in {"agent.busy_mode": "loud", "agent.busy_mood": "queue", "api.port": "many"}.items():
        refused = await ask(api, owner, "PATCH", "/api/settings", {"settings": {name: value, "language": "zh"}})
        assert (refused.status, refused.error["param"]) == (400, name)
    assert api.gateway.config.language == ""
    back = await ask(api, owner, "PATCH", "/api/settings", {"settings": {"agent.busy_mode": None}})
    assert (back.json["data"][0]["source"], back.json["data"][0]["is_set"]) == ("default", False)
    assert (await api.call("PATCH", "/api/settings", {"settings": {"language": "zh"}})).error["code"] == "key_in_a_file"
    found = (await ask(api, owner, "GET", "/api/settings?query=TELEGRAM_BOT_TOKEN")).json["data"]
    assert [one["name"] for one in found] == ["platforms.telegram.token"]
    chinese = (await ask(api, owner, "GET", "/api/settings?language=zh&query=端口")).json["data"]
    assert {one["name"]: one["help"] for one in chinese}["api.port"] == "监听的端口"
    shown = (await ask(api, owner, "GET", "/api/platforms/telegram?language=zh")).json["settings"]
    assert any("Telegram 等待新消息" in one["help"] for one in shown)


async def test_a_platform_is_tested_paused_and_its_wrong_token_named(api: Served, telegram: FakeTelegram) -> None:
    owner = await api.new_key("desk", "owner")
    listed = (await ask(api, owner, "GET", "/api/platforms?language=zh")).json["data"]
    [shown] = [one for one in listed if one["name"] == "telegram"]
    assert shown["is_set_up"] is True
    assert telegram.token not in orjson.dumps(shown).decode()
    good = await ask(api, owner, "POST", "/api/platforms/telegram/test", {})
    assert good.json["ok"] is True, good.body
    bad = await ask(api, owner, "POST", "/api/platforms/telegram/test", {"settings": {"token": "1:typo"}})
    assert bad.json["ok"] is False
    refused = await ask(api, owner, "PATCH", "/api/platforms/telegram", {"settings": {"token": ""}})
    assert (refused.status, refused.error["param"]) == (400, "token")
    refused = await ask(api, owner, "PATCH", "/api/platforms/telegram", {"settings": {"tokn": "x"}})
    assert (refused.status, refused.error["param"]) == (400, "tokn")
    paused = await ask(api, owner, "POST", "/api/platforms/telegram/pause")
    assert paused.status == 200, paused.body
    assert api.gateway.config.account("telegram").enabled is False  # type: ignore[union-attr]
    await ask(api, owner, "POST", "/api/platforms/telegram/resume")
    assert api.gateway.config.account("telegram").enabled is True  # type: ignore[union-attr]
    assert (await ask(api, owner, "POST", "/api/platforms/telegram/login")).error["code"] == "no_login"
    assert (await ask(api, owner, "POST", "/api/platforms/none/pause")).status == 404
    assert (await ask(api, owner, "POST", "/api/platforms/slack/pause")).error["code"] == "not_set_up"


async def test_a_model_is_tested_by_one_word(api: Served, model: FakeModel) -> None:
    owner = await api.new_key("desk", "owner")
    shown = (await ask(api, owner, "GET", "/api/models")).json
    assert shown["current"]["provider"] == "openai"
    assert "sk-test-0123456789" not in orjson.dumps(shown).decode()
    tried = await ask(api, owner, "POST", "/api/models/test", {})
    assert tried.json["ok"] is True, tried.body
    assert (await ask(api, owner, "POST", "/api/models/test", {"provider": "nobody"})).status == 400


async def test_a_session_is_exported_asked_again_and_searched(api: Served) -> None:
    await chat(api, "the tulips are blue")
    session = (await api.get("/api/sessions/talk")).json
    text = await api.get(f"/api/sessions/{session['id']}/export")
    assert "attachment" in text.headers["Content-Disposition"]
    assert b"the tulips are blue" in text.body
    lines = (await api.get("/api/sessions/talk/export?format=jsonl")).body.splitlines()
    assert [orjson.loads(line)["role"] for line in lines] == ["user", "assistant"]
    assert (await api.get("/api/sessions/talk/export?format=pdf")).status == 400
    again = await api.post("/api/sessions/talk/retry", None)
    assert again.status == 202, again.body
    await run_is(api, again.json["run_id"], "completed")
    assert len((await api.get("/api/sessions/talk/messages")).json["data"]) in (2, 4)
    [found] = (await api.get("/api/sessions?query=TULIPS")).json["data"]
    assert found["id"] == session["id"]
    assert "tulips" in found["snippet"]
    assert (await api.get("/api/sessions?query=roses")).json["data"] == []
    bob = await api.new_key("bob", "user")
    assert (await ask(api, bob, "GET", "/api/sessions?query=tulips")).json["data"] == []
    for verb in ("stop", "retry", "steer", "queue", "export"):
        method = "GET" if verb == "export" else "POST"
        assert (await ask(api, bob, method, f"/api/sessions/{session['id']}/{verb}", {"text": "x"})).status == 404


async def test_settings_that_are_written_at_once_are_all_kept(api: Served) -> None:
    """Each change reads the whole config.yaml, and writes it with one line changed."""
    owner = await api.new_key("desk", "owner")
    for number in range(5):
        wanted = {"retention.days": str(30 + number), "retention.max_mb": str(100 + number)}
        changes = [
            ask(api, owner, "PATCH", "/api/platforms/slack", {"settings": {"home_channel": f"C{number}"}}),
            *(ask(api, owner, "PATCH", "/api/settings", {"settings": {name: text}}) for name, text in wanted.items()),
        ]
        assert {answer.status for answer in await asyncio.gather(*changes)} == {200}
        limits = api.gateway.config.retention
        assert (limits.days, limits.max_mb) == (30 + number, 100 + number)
        assert f"home_channel: C{number}\n" in (api.gateway.home / "config.yaml").read_text()


async def test_a_running_turn_is_steered_followed_by_a_queued_one_and_stopped(api: Served, model: FakeModel) -> None:
    assert (await api.post("/api/sessions/talk/steer", {"text": "x"})).status == 404
    await chat(api, "begin")
    assert (await api.post("/api/sessions/talk/steer", {"text": "x"})).error["code"] == "nothing_running"
    asks = calls_tools(("danger", {"text": "bang"}), text="Let me ask.")
    model.script([asks, "Steered.", "Queued."])
    run = (await api.post("/v1/runs", {"input": "do it", "session_id": "talk"})).json["run_id"]
    await run_is(api, run, "waiting_approval")
    steered = await api.post("/api/sessions/talk/steer", {"text": "be gentle"})
    assert steered.status == 202, steered.body
    queued = (await api.post("/api/sessions/talk/queue", {"text": "and then rest"})).json["run_id"]
    [question] = (await api.get("/api/approvals")).json["data"]
    desk = await api.new_key("desk", "owner")
    await ask(api, desk, "POST", f"/api/approvals/{question['id']}", {"decision": "deny"})
    await run_is(api, run, "completed")
    await run_is(api, queued, "completed")
    said = [line["content"] for line in (await api.get("/api/sessions/talk/messages")).json["data"]]
    assert said.index("be gentle") < said.index("Steered.") < said.index("and then rest")
    model.script([asks])
    run = (await api.post("/v1/runs", {"input": "once more", "session_id": "talk"})).json["run_id"]
    await run_is(api, run, "waiting_approval")
    stopped = await api.post("/api/sessions/talk/stop", None)
    assert stopped.json["turn_id"], stopped.body
    await run_is(api, run, "cancelled")
