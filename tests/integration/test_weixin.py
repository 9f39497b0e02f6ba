"""Weixin through the whole gateway: what it does not let through waits, and comes with the person's next message."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.core.keys import Target
from hermes.core.messages import OutboundMessage
from hermes.core.roles import PersonRole
from hermes.services.gateway import Gateway
from hermes.store import outbox, people
from hermes.store.db import Tx
from hermes.store.outbox import OutboxKind
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.fakes.weixin import ANA, MOST_TEXT, FakeWeixin, Quota
from tests.integration.conftest import Start
from tests.integration.watching import SECONDS, dangers, outbox_rows, until

WEIXIN = f"weixin:{ANA}"
NO_MORE = "⏸ I can send no more here until you write again."
LATE = "⏳ This could not be sent earlier:"


@pytest.fixture
async def weixin() -> AsyncIterator[FakeWeixin]:
    async with FakeWeixin() as fake:
        yield fake


def environ(weixin: FakeWeixin, **more: str) -> dict[str, str]:
    return {**weixin.environ, "WEIXIN_ALLOWED_USERS": ANA, **more}


async def write(gateway: Gateway, *texts: str, kind: OutboxKind = OutboxKind.REPLY) -> None:
    for text in texts:
        rows = gateway.outbox_writer.rows(OutboundMessage(Target("weixin", ANA), text), kind)
        await gateway.db.write(outbox.enqueue, rows, now=gateway.clock.now())
    gateway.delivery.wake(WEIXIN)


async def states(gateway: Gateway) -> list[str]:
    return [row.state for row in await outbox_rows(gateway)]


async def rests(gateway: Gateway) -> None:
    """Until nothing is left to do for now: all is sent, parked, or told to wait."""

    async def look() -> bool:
        rows = [row for row in await outbox_rows(gateway) if row.state in ("ready", "unknown")]
        return all(row.state == "ready" for row in rows) and (not rows or rows[0].not_before > gateway.clock.now())

    gateway.delivery.wake(WEIXIN)
    await until(look)


def numbers(texts: list[str]) -> list[int]:
    return [int(found) for text in texts for found in re.findall(r"answer (\d+)", text)]


async def test_a_message_is_answered_with_the_context_it_came_with(start: Start, weixin: FakeWeixin) -> None:
    async with start(**environ(weixin)):
        weixin.user_says("hello")
        await weixin.wait_for(lambda: weixin.texts() == ["echo: hello"], SECONDS)
        weixin.user_says("and now")
        await weixin.wait_for(lambda: len(weixin.sent) >= 2, SECONDS)
    contexts = [body["msg"]["context_token"] for body in weixin.bodies["sendmessage"]]
    assert contexts == [f"CK-{ANA}-1", f"CK-{ANA}-2"]


async def test_after_a_restart_the_place_in_the_stream_and_the_context_are_known(
    start: Start, weixin: FakeWeixin
) -> None:
    async with start(**environ(weixin)):
        weixin.user_says("hello")
        await weixin.wait_for(lambda: len(weixin.sent) >= 1, SECONDS)
    polls = len(weixin.bodies["getupdates"])
    async with start(**environ(weixin)) as gateway:
        await write(gateway, "good morning")
        await weixin.wait_for(lambda: len(weixin.sent) >= 2, SECONDS)
    assert weixin.bodies["getupdates"][polls]["get_updates_buf"] == "Ck-1"
    assert weixin.bodies["sendmessage"][-1]["msg"]["context_token"] == f"CK-{ANA}-1"


async def test_a_text_that_is_handed_out_twice_is_answered_once(start: Start, weixin: FakeWeixin) -> None:
    async with start(**environ(weixin)) as gateway:
        said = weixin.user_says("hello")
        await weixin.wait_for(lambda: len(weixin.sent) >= 1, SECONDS)
        weixin.tells_twice(said)
        weixin.user_says("goodbye")
        await weixin.wait_for(lambda: weixin.texts() == ["echo: hello", "echo: goodbye"], SECONDS)
        await rests(gateway)
    assert len(weixin.sent) == 2


async def test_thirty_answers_behind_twenty_minutes_of_refusals_all_arrive_in_order_with_the_next_messages(
    start: Start, weixin: FakeWeixin, clock: FakeClock
) -> None:
    async with start(clock=clock, **environ(weixin)) as gateway:
        weixin.user_says("hello")
        await weixin.wait_for(lambda: len(weixin.sent) >= 1, SECONDS)
        await rests(gateway)
        weixin.is_throttled = True
        tries = weixin.counts["sendmessage"]
        for number in range(30):  # one every forty seconds
            await write(gateway, f"answer {number}: " + "word " * 180)
            await rests(gateway)
            clock.advance(40)
        tries = weixin.counts["sendmessage"] - tries
        await rests(gateway)
        assert set(await states(gateway)) == {"sent", "parked", "joined"}

        weixin.is_throttled = False
        weixin.quota = Quota(per_message=9, burst=0)
        before = len(weixin.sent)
        weixin.user_says("are you there?")
        clock.advance(3600)
        await weixin.wait_for(lambda: len(weixin.sent) >= before + 9, SECONDS)
        await rests(gateway)
        first = weixin.texts()[before:]
        weixin.user_says("go on")
        await weixin.wait_for(lambda: "echo: go on" in weixin.texts()[-1], SECONDS)
        await rests(gateway)
        rows = await outbox_rows(gateway)
    bubbles = weixin.texts()[before:]
    assert numbers(bubbles) == [*range(30)], "each once, and in order"
    assert len(first) == 9
    assert len(bubbles) - len(first) <= 9
    assert weixin.quota.refused == []
    assert max(map(len, bubbles)) <= MOST_TEXT
    assert all(len(numbers([bubble])) >= 2 for bubble in bubbles[:-1]), "texts that wait are joined"
    assert NO_MORE in first[-1]
    assert not [bubble for bubble in first[:-1] if NO_MORE in bubble]
    assert bubbles[0].startswith(LATE)
    assert "echo: are you there?" in "\n".join(bubbles)
    assert {row.state for row in rows} == {"sent"}
    assert tries <= 7, "a penalty is not made longer by knocking"


async def test_the_ninth_bubble_says_that_more_is_waiting_and_the_rest_comes_with_the_next_message(
    start: Start, weixin: FakeWeixin, model: FakeModel
) -> None:
    weixin.quota = Quota(per_message=9, burst=0)
    story = "\n\n".join(f"answer {number}: " + "word " * 370 for number in range(12))
    model.says(story)
    async with start(**environ(weixin)) as gateway:
        weixin.user_says("tell me")
        await weixin.wait_for(lambda: len(weixin.sent) >= 9, SECONDS)
        await rests(gateway)
        assert (await states(gateway))[9:] == ["parked"] * 3
        weixin.user_says("go on")
        await weixin.wait_for(lambda: "echo: go on" in "".join(weixin.texts()), SECONDS)
    assert numbers(weixin.texts()) == [*range(12)]
    assert [NO_MORE in text for text in weixin.texts()[:10]] == [*[False] * 8, True, False]
    assert not weixin.texts()[9].startswith(LATE), "that it waits was said already"
    assert weixin.quota.refused == []


async def test_a_refusal_that_was_only_a_burst_is_tried_again_after_half_a_minute(
    start: Start, weixin: FakeWeixin, clock: FakeClock
) -> None:
    async with start(clock=clock, **environ(weixin)) as gateway:
        weixin.user_says("hello")
        await weixin.wait_for(lambda: len(weixin.sent) >= 1, SECONDS)
        weixin.is_throttled = True
        await write(gateway, "answer 1")
        await rests(gateway)
        weixin.is_throttled = False
        clock.advance(29)
        await rests(gateway)
        assert weixin.texts() == ["echo: hello"]
        clock.advance(2)
        gateway.delivery.wake(WEIXIN)
        await weixin.wait_for(lambda: weixin.texts() == ["echo: hello", "answer 1"], SECONDS)


async def test_the_pause_after_a_refusal_outlives_a_restart(start: Start, weixin: FakeWeixin, clock: FakeClock) -> None:
    weixin.is_throttled = True
    async with start(clock=clock, **environ(weixin)) as gateway:
        await write(gateway, "answer 1")
        await rests(gateway)
    tries = weixin.counts["sendmessage"]
    async with start(clock=clock, **environ(weixin)) as gateway:
        await write(gateway, "answer 2")
        await rests(gateway)
        assert weixin.counts["sendmessage"] == tries
        weixin.is_throttled = False
        clock.advance(31)
        gateway.delivery.wake(WEIXIN)
        await weixin.wait_for(lambda: numbers(weixin.texts()) == [1, 2], SECONDS)


async def test_what_waited_goes_before_what_is_new_even_when_the_refusals_are_over(
    start: Start, weixin: FakeWeixin, clock: FakeClock
) -> None:
    weixin.is_throttled = True
    async with start(clock=clock, **environ(weixin)) as gateway:
        await write(gateway, "answer 1")
        await rests(gateway)
        clock.advance(31)
        await rests(gateway)
        assert await states(gateway) == ["parked"]
        weixin.is_throttled = False
        clock.advance(3600)
        await write(gateway, "answer 2")
        await rests(gateway)
        assert await states(gateway) == ["parked", "parked"]
        weixin.user_says("hello")
        await weixin.wait_for(lambda: "echo: hello" in "".join(weixin.texts()), SECONDS)
    assert numbers(weixin.texts()) == [1, 2]


async def test_a_dead_sign_in_is_told_in_another_chat_and_nothing_more_is_asked_with_it(
    start: Start, weixin: FakeWeixin, telegram: FakeTelegram
) -> None:
    telegram.any_chat = True
    async with start(**environ(weixin, TELEGRAM_HOME_CHANNEL="7", WEIXIN_HOME_CHANNEL=ANA)) as gateway:
        weixin.user_says("hello")
        await weixin.wait_for(lambda: len(weixin.sent) >= 1, SECONDS)
        weixin.refuse_credentials()
        await write(gateway, "answer 1")
        await telegram.wait_for(lambda: any("hermes weixin login" in text for text in telegram.texts(7)), SECONDS)
        calls = weixin.counts.total()
        await write(gateway, "answer 2")
        status = {one["account"]: one for one in (await gateway.status())["platforms"]}
        assert status["weixin"]["state"] == "signed out"
        assert "hermes weixin login" in status["weixin"]["cure"]
        await rests(gateway)
        assert weixin.counts.total() == calls
    assert not [text for text in weixin.texts() if "login" in text]


async def test_an_approval_is_answered_by_its_typed_code_and_by_whoever_was_asked(
    start: Start, weixin: FakeWeixin, model: FakeModel, tmp_path: Path
) -> None:
    model.script([calls_tools(("danger", {"text": "bang"})), "All done."])
    async with start(**environ(weixin, WEIXIN_ALLOWED_USERS=f"{ANA},o2@im.wechat")) as gateway:
        await gateway.db.write(_become_owner, now=gateway.clock.now())
        weixin.user_says("do it")
        await weixin.wait_for(lambda: any("/approve" in text for text in weixin.texts()), SECONDS)
        [code] = re.findall(r"/approve (\w+) or", weixin.texts()[-1]) or [""]
        weixin.user_says(f"/approve {code}", user="o2@im.wechat")
        await weixin.wait_for(lambda: bool(weixin.texts("o2@im.wechat")), SECONDS)
        assert dangers(tmp_path) == []
        weixin.user_says(f"/approve {code}")
        await weixin.wait_for(lambda: "All done." in "".join(weixin.texts()), SECONDS)
    assert dangers(tmp_path) == ["bang"]


def _become_owner(tx: Tx, *, now: float) -> None:
    name = f"p_weixin_{ANA}"
    people.ensure(tx, name, platform="weixin", user_id=ANA, name="Ana", role=PersonRole.OWNER.value, now=now)


STRANGER, FAMILY = "o2@im.wechat", "g1@chatroom"


@pytest.mark.parametrize(
    "settings, group, user, answer",
    [
        ({}, "", ANA, "echo: hello"),  # listed, whatever the rest says
        ({}, "", STRANGER, "hermes pairing approve weixin"),
        ({"WEIXIN_DM_POLICY": "allowlist"}, "", ANA, "echo: hello"),
        ({"WEIXIN_DM_POLICY": "allowlist"}, "", STRANGER, "WEIXIN_ALLOWED_USERS"),
        ({"WEIXIN_DM_POLICY": "open"}, "", STRANGER, "echo: hello"),
        ({"WEIXIN_DM_POLICY": "disabled"}, "", ANA, ""),
        ({}, FAMILY, ANA, ""),  # groups are off unless somebody says otherwise
        ({"WEIXIN_GROUP_POLICY": "open"}, FAMILY, STRANGER, "echo: hello"),
        ({"WEIXIN_GROUP_POLICY": "allowlist"}, FAMILY, STRANGER, ""),
        ({"WEIXIN_GROUP_POLICY": "allowlist"}, FAMILY, ANA, "echo: hello"),
        (
            {"WEIXIN_GROUP_POLICY": "allowlist", "WEIXIN_GROUP_ALLOWED_CHATS": FAMILY},
            FAMILY,
            STRANGER,
            "echo: hello",
        ),
        (
            {"WEIXIN_GROUP_POLICY": "allowlist", "WEIXIN_GROUP_ALLOWED_USERS": FAMILY},
            FAMILY,
            STRANGER,
            "echo: hello",
        ),
    ],
)
async def test_the_policies_say_who_is_answered(
    start: Start, weixin: FakeWeixin, settings: dict[str, str], group: str, user: str, answer: str
) -> None:
    async with start(**environ(weixin, **settings)) as gateway:
        weixin.user_says("hello", user=user, **({"group_id": group} if group else {}))
        where = group or user
        if answer:
            await weixin.wait_for(lambda: bool(weixin.texts(where)), SECONDS)
            assert answer in weixin.texts(where)[0]
            return

        async def is_refused() -> bool:
            return await gateway.db.read(_states) == ["refused"]

        await until(is_refused)
        assert weixin.sent == []


def _states(tx: Tx) -> list[str]:
    return tx.all("SELECT state FROM inbox", str)


async def test_files_come_and_go(start: Start, weixin: FakeWeixin, model: FakeModel, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / "report.txt").write_text("all is well", encoding="utf-8")
    model.says("Here it is.\nMEDIA:report.txt")
    async with start(**environ(weixin)):
        weixin.user_sends(b"Bread, milk.", "notes.txt", "look")
        await weixin.wait_for(lambda: any(sent.file for sent in weixin.sent), SECONDS)
    assert [(sent.text, sent.file, sent.file_name) for sent in weixin.sent] == [
        ("Here it is.", b"", ""),
        ("", b"all is well", "report.txt"),
    ]
