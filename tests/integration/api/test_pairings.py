"""Letting people in over HTTP: by an admin or the owner, at once, and never by guessing."""

from __future__ import annotations

from functools import partial

import pytest

from hermes.core.people import pairing as rules
from hermes.core.roles import PersonRole
from hermes.servers.api import models
from hermes.servers.api.context import Caller
from hermes.servers.api.lazy_routes import lazy_routes
from hermes.store import people
from hermes.store.api.api_keys import DEFAULT_NAME
from tests.fakes.clock import FakeClock
from tests.fakes.telegram import FakeTelegram
from tests.integration.api.conftest import Api, Families, StartApi
from tests.integration.api.others import another
from tests.integration.test_pairing import ANA, code_of, said_to
from tests.integration.watching import SECONDS, answered

ADMIN = Caller("ann", PersonRole.ADMIN)
PATH = "/api/pairings"


@pytest.fixture
def families() -> Families:
    return (partial(lazy_routes, "manage.pairings.PairingRoutes"), models.routes)


def said(decision: str, **more: str) -> dict[str, str]:
    return {"platform": "telegram", "decision": decision, **more}


async def test_a_stranger_is_listed_let_in_answered_and_made_a_stranger_again(
    start_api: StartApi, telegram: FakeTelegram
) -> None:
    async with start_api(caller=ADMIN) as api:
        assert (await api.get("/v1/capabilities")).json["features"]["pairings"]
        code = await code_of(telegram, ANA)
        [waiting] = (await api.get(PATH)).json["data"]
        assert (waiting["user_id"], waiting["name"], waiting["status"]) == (str(ANA), "Ana", "pending")
        assert (waiting["code"], waiting["expires_at"]) == (code, waiting["asked_at"] + rules.LIVE_SECONDS)
        approved = await api.post(PATH, said("approve", code=code))
        assert (approved.status, approved.json["status"], approved.json["decided_by"]) == (200, "approved", "key:ann")
        assert approved.json["role"] == "user", "an owner is made at the machine alone"
        telegram.user_says("hello", chat=ANA)
        await answered(telegram, "echo: hello")
        assert (await api.get(f"{PATH}?status=pending")).json["data"] == []
        revoked = await api.post(PATH, said("revoke", user_id=str(ANA)))
        assert revoked.json["status"] == "revoked"
        telegram.user_says("still there?", chat=ANA)
        await telegram.wait_for(lambda: "pairing code" in said_to(telegram, ANA)[-1], SECONDS)
        assert [one["status"] for one in (await api.get(f"{PATH}?platform=telegram")).json["data"]] == ["pending"]


async def test_whoever_is_sent_away_hears_nothing(start_api: StartApi, telegram: FakeTelegram) -> None:
    async with start_api(caller=ADMIN) as api:
        code = await code_of(telegram, ANA)
        refused = await api.post(PATH, said("refuse", code=code))
        assert (refused.status, refused.json["status"]) == (200, "refused")
        assert (await api.post(PATH, said("approve", code=code))).error["code"] == "pairing_not_found"
        assert len(said_to(telegram, ANA)) == 1


async def test_five_guesses_lock_the_door_whatever_they_ask_for(start_api: StartApi, telegram: FakeTelegram) -> None:
    clock = FakeClock()
    async with start_api(caller=ADMIN, clock=clock) as api:
        code = await code_of(telegram, ANA)
        for number in range(rules.WRONG_CODES):
            guess = await api.post(PATH, said("refuse" if number % 2 else "approve", code=f"GUESS{number:03}"))
            assert (guess.status, guess.error["code"]) == (404, "pairing_not_found")
            assert code not in guess.error["message"]
        for decision in ("approve", "refuse"):
            locked = await api.post(PATH, said(decision, code=code))
            assert (locked.status, locked.error["code"]) == (429, "pairing_locked")
            assert 0 < int(locked.headers["Retry-After"]) <= rules.LOCK_SECONDS
        assert not api.gateway.pairings.is_paired("telegram", str(ANA))
        clock.advance(rules.LOCK_SECONDS + 1)
        assert (await api.post(PATH, said("approve", code=code))).status == 200


@pytest.mark.parametrize("role", [PersonRole.USER, PersonRole.GUEST])
async def test_a_key_of_less_than_an_admin_sees_and_decides_nothing(
    api: Api, families: Families, telegram: FakeTelegram, role: PersonRole
) -> None:
    code = await code_of(telegram, ANA)
    async with another(api, Caller("bob", role), families) as bob:
        for answer in (await bob.get(PATH), await bob.post(PATH, said("approve", code=code))):
            assert (answer.status, answer.error["code"]) == (403, "role_not_enough")
            assert code.encode() not in answer.body


async def test_the_default_key_lets_nobody_in_and_may_send_away(
    api: Api, families: Families, telegram: FakeTelegram
) -> None:
    code = await code_of(telegram, ANA)
    async with another(api, Caller(DEFAULT_NAME, PersonRole.OWNER), families) as default:
        answer = await default.post(PATH, said("approve", code=code))
        assert (answer.status, answer.error["code"]) == (403, "key_in_a_file")
        assert not api.gateway.pairings.is_paired("telegram", str(ANA))
        assert (await default.post(PATH, said("refuse", code=code))).status == 200


@pytest.mark.parametrize(
    "body, param",
    [
        (said("approve"), "code"),
        (said("revoke"), "user_id"),
        (said("let in", code="K7QPM3XW"), "decision"),
        ({"decision": "approve", "code": "K7QPM3XW"}, "platform"),
        (said("approve", code="x" * 300), "code"),
    ],
)
async def test_what_cannot_be_understood_is_refused_by_name(api: Api, body: dict[str, str], param: str) -> None:
    answer = await api.post(PATH, body)
    assert (answer.status, answer.error["param"]) == (400, param)
    assert (await api.get(f"{PATH}?status=friends")).status == 400


async def test_an_admin_who_is_revoked_is_no_admin_any_more_and_a_linked_account_keeps_its_role(
    start_api: StartApi, telegram: FakeTelegram
) -> None:
    async with start_api() as api:
        db = api.gateway.db
        for user in (ANA, 99):
            await api.post(PATH, said("approve", code=await code_of(telegram, user)))
            await db.write(people.set_role, f"p_telegram_{user}", PersonRole.ADMIN.value)
        assert await db.write(people.link, "telegram", "99", f"p_telegram_{ANA}")
        await api.post(PATH, said("revoke", user_id="99"))
        roles = [await db.read(people.find, "telegram", str(user)) for user in (ANA, 99)]
        assert [person.role for person in roles if person is not None] == ["admin", "user"]
        await api.post(PATH, said("revoke", user_id=str(ANA)))
        person = await db.read(people.find, "telegram", str(ANA))
        assert person is not None
        assert person.role == "user"
