"""Sessions that end by themselves: when they should, in the owner's time zone, and whoever was in them is told once."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hermes.services.gateway import Gateway
from hermes.store.sessions import sessions
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start, crash
from tests.integration.test_about_commands import configure
from tests.integration.test_session_commands import ask, heard, newest
from tests.integration.watching import SECONDS

BERLIN = ZoneInfo("Europe/Berlin")
IN_BERLIN = {"TZ": "Europe/Berlin"}
IDLE_NOTICE = "It was quiet here for 2 hours, so this is a fresh session. /resume last goes on with the one before."
DAILY_NOTICE = "A new day began at 4:00, so this is a fresh session. /resume last goes on with the one before."


class Berlin(FakeClock):
    """A clock that is set by what people in Berlin read on theirs; ``fold`` is the second of two equal hours."""

    def __init__(self, local: str) -> None:
        super().__init__(_utc(local))

    def until(self, local: str, fold: int = 0) -> None:
        self.advance(_utc(local, fold) - self.now())


def _utc(local: str, fold: int = 0) -> float:
    return datetime.fromisoformat(local).replace(tzinfo=BERLIN, fold=fold).timestamp()


async def talk(telegram: FakeTelegram, text: str) -> list[str]:
    """Write, and return all that is said to it: a notice perhaps, and the answer."""
    before = len(telegram.sent)
    telegram.user_says(text)
    await telegram.wait_for(lambda: f"echo: {text}" in telegram.texts()[before:], SECONDS)
    return telegram.texts()[before:]


async def count(gateway: Gateway) -> int:
    return len(await newest(gateway))


@pytest.mark.parametrize(
    "night, before, at",
    [
        ("an ordinary one", "2026-02-10T03:59", "2026-02-10T04:00"),
        ("the one that lacks an hour", "2026-03-29T03:59", "2026-03-29T04:00"),
        ("the one that has an hour twice", "2026-10-25T03:59", "2026-10-25T04:00"),
    ],
    ids=lambda value: value if value.startswith(("an", "the")) else "",
)
async def test_daily_begins_a_new_session_at_four_oclock_in_the_configured_zone(
    start: Start, telegram: FakeTelegram, model: FakeModel, night: str, before: str, at: str
) -> None:
    clock = Berlin(f"{at[:10]}T00:30")
    async with start(clock=clock, SESSION_RESET_MODE="daily", **IN_BERLIN) as gateway:
        await talk(telegram, "late")
        clock.until(before)
        assert await talk(telegram, "still up") == ["echo: still up"]
        clock.until(at)
        assert await talk(telegram, "good morning") == [DAILY_NOTICE, "echo: good morning"]
        assert heard(model) == ["good morning"]
        assert await talk(telegram, "again") == ["echo: again"]
        assert await count(gateway) == 2


async def test_an_hour_that_comes_twice_begins_one_day_and_one_that_never_comes_begins_it_with_the_next(
    start: Start, telegram: FakeTelegram
) -> None:
    clock = Berlin("2026-10-25T01:30")
    async with start(clock=clock, SESSION_RESET_MODE="daily", SESSION_RESET_HOUR="2", **IN_BERLIN) as gateway:
        await talk(telegram, "before")
        clock.until("2026-10-25T02:10")
        assert len(await talk(telegram, "the first time")) == 2
        clock.until("2026-10-25T02:10", fold=1)
        assert len(await talk(telegram, "the second time")) == 1
        clock.until("2027-03-28T01:50")
        await talk(telegram, "half a year later")
        clock.until("2027-03-28T03:00")  # at two it was three
        assert len(await talk(telegram, "in the gap")) == 2
        assert await count(gateway) == 4


async def test_idle_and_both_and_none(start: Start, telegram: FakeTelegram) -> None:
    clock = Berlin("2026-01-10T12:00")
    async with start(clock=clock, SESSION_RESET_MODE="idle", **IN_BERLIN) as gateway:
        await talk(telegram, "one")
        clock.advance(119 * 60)
        assert await talk(telegram, "two") == ["echo: two"]
        clock.advance(120 * 60)
        assert await talk(telegram, "three") == [IDLE_NOTICE, "echo: three"]
        assert await count(gateway) == 2
    clock.until("2026-01-11T03:30")
    async with start(clock=clock, **IN_BERLIN) as gateway:  # both is the default
        await talk(telegram, "late")
        clock.until("2026-01-11T04:01")
        assert await talk(telegram, "early") == [DAILY_NOTICE, "echo: early"]
        assert await count(gateway) == 4
    async with start(clock=clock, SESSION_RESET_MODE="none", **IN_BERLIN) as gateway:
        clock.advance(30 * 86400)
        assert await talk(telegram, "a month later") == ["echo: a month later"]
        assert await count(gateway) == 4


async def test_a_platform_a_kind_and_a_chat_have_policies_of_their_own(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    yaml = """
sessions:
  reset: {mode: none}
  reset_by_platform: {telegram: {mode: idle, idle_minutes: 30}}
chats:
  telegram:8: {reset: {mode: none}}
"""
    configure(tmp_path, yaml)
    clock = FakeClock()
    async with start(clock=clock, TELEGRAM_ALLOWED_USERS=f"{USER},8") as gateway:
        for chat in (USER, 8):
            await ask(telegram, "hello", user=chat)
        clock.advance(31 * 60)
        for chat in (USER, 8):
            await ask(telegram, "hello again", user=chat)
        keys = [session.key for session in await newest(gateway)]
        assert sorted(keys) == ["agent:main:telegram:dm:7", "agent:main:telegram:dm:7", "agent:main:telegram:dm:8"]


async def test_the_one_before_is_taken_up_again_as_the_notice_says(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    clock = FakeClock()
    async with start(clock=clock) as gateway:
        await talk(telegram, "about the boiler")
        clock.advance(3 * 3600)
        assert (await talk(telegram, "hello"))[0] == IDLE_NOTICE
        assert (await ask(telegram, "/resume last")).startswith("Continued here: s_")
        await talk(telegram, "where were we?")
        assert heard(model) == ["about the boiler", "where were we?"]
        clock.advance(3 * 3600)
        assert (await talk(telegram, "later"))[0] == IDLE_NOTICE  # it can be renewed again, and that is told again
        assert await count(gateway) == 3


async def test_the_notice_can_be_switched_off_and_is_not_told_for_what_a_person_did_themselves(
    start: Start, telegram: FakeTelegram
) -> None:
    clock = FakeClock()
    async with start(clock=clock) as gateway:
        await talk(telegram, "hello")
        await ask(telegram, "/new")
        assert await talk(telegram, "fresh") == ["echo: fresh"]
        assert await count(gateway) == 2
    async with start(clock=clock, SESSION_RESET_NOTICE="false"):
        clock.advance(3 * 3600)
        assert await talk(telegram, "quietly") == ["echo: quietly"]


async def test_a_crash_right_after_the_renewal_tells_it_once(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    clock = FakeClock()
    async with start(clock=clock) as gateway:
        await talk(telegram, "before")
        clock.advance(3 * 3600)
        model.hold()
        telegram.user_says("after")
        await model.is_holding()
        await crash(gateway)
    model.release()
    async with start(clock=clock) as gateway:
        await telegram.wait_for(lambda: "echo: after" in telegram.texts(), SECONDS)
        assert telegram.texts().count(IDLE_NOTICE) == 1
        assert len(await gateway.db.read(sessions.newest)) == 2
