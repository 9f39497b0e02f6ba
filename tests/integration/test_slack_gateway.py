"""Slack through the whole gateway: answered once and where it was asked, across outages, restarts and presses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hermes.services.gateway import Gateway
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, Reply, calls_tools
from tests.fakes.slack import GROUP, FakeSlack, member
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import SECONDS


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as fake:
        yield fake


def environ(slack: FakeSlack) -> dict[str, str]:
    people = f"{member(7)},{member(42)}"
    return {**slack.environ, "SLACK_ALLOWED_USERS": people, "SLACK_GROUP_POLICY": "open"}


def link(gateway: Gateway) -> dict[str, object]:
    return next(each for each in gateway.supervisor.status() if each["account"] == "slack")


async def test_a_direct_message_is_answered_below_it(start: Start, slack: FakeSlack) -> None:
    async with start(**environ(slack)):
        slack.user_says("hello")
        await slack.wait_for(lambda: slack.texts(7) == ["echo: hello"], SECONDS)
    assert slack.sent[0].thread == ""
    assert slack.late_acks == []


async def test_a_mention_that_slack_tells_twice_is_answered_once_in_its_thread_and_the_talk_goes_on_there(
    start: Start, slack: FakeSlack
) -> None:
    async with start(**environ(slack)):
        await slack.wait_for(lambda: slack.sockets == 1, SECONDS)
        slack.user_says("lunch?", chat=GROUP)
        asked = slack.user_mentions("hello")
        slack.redeliver(asked)
        await slack.wait_for(lambda: len(slack.sent) >= 1, SECONDS)
        slack.user_answers(slack.sent[0], "and more")
        await slack.wait_for(lambda: len(slack.sent) >= 2, SECONDS)
        await slack.wait_for(lambda: slack.unacked == 0, SECONDS)
    assert [sent.text.endswith(words) for sent, words in zip(slack.sent, ("hello", "and more"), strict=True)] == [
        True
    ] * 2
    assert {sent.thread for sent in slack.sent} == {asked.message_id}


async def test_what_was_written_while_it_was_down_is_answered_in_order(start: Start, slack: FakeSlack) -> None:
    async with start(**environ(slack)):
        slack.user_says("first")
        await slack.wait_for(lambda: len(slack.sent) >= 1, SECONDS)
    await slack.wait_for(lambda: slack.sockets == 0, SECONDS)
    slack.user_says("second")
    slack.user_says("from somebody new", chat=42)
    slack.user_says("<@U0BOT> in a channel", chat=GROUP)
    assert slack.nowhere == 3
    async with start(**environ(slack)):
        await slack.wait_for(lambda: len(slack.sent) >= 4, SECONDS)
    assert slack.texts(7) == ["echo: first", "echo: second"]
    assert slack.texts(42) == ["echo: from somebody new"]


async def test_an_approval_is_answered_by_its_button_across_a_restart(
    start: Start, slack: FakeSlack, model: FakeModel
) -> None:
    model.script([calls_tools(("note", {"text": "milk"})), Reply(text="Noted.")])
    async with start(**environ(slack)):
        slack.user_says("note milk")
        await slack.wait_for(lambda: any(sent.buttons for sent in slack.sent), SECONDS)
    asked = next(sent for sent in slack.sent if sent.buttons)
    async with start(**environ(slack)):
        await slack.wait_for(lambda: slack.sockets == 1, SECONDS)
        slack.user_presses(asked, asked.buttons[0][0].data)
        await slack.wait_for(lambda: "Noted." in slack.texts(7), SECONDS)
        await slack.wait_for(lambda: asked.buttons == (), SECONDS)
        assert slack.texts(7).count("Noted.") == 1


async def test_a_token_that_is_revoked_while_the_socket_stays_is_told_once_and_shown_until_it_is_taken_again(
    start: Start, slack: FakeSlack, telegram: FakeTelegram, clock: FakeClock
) -> None:
    telegram.any_chat = True
    slack.ping_seconds = 0.5
    async with start(clock=clock, **environ(slack), TELEGRAM_HOME_CHANNEL="7") as gateway:
        await slack.wait_for(lambda: link(gateway)["state"] == "connected", SECONDS)
        slack.refuse_next("chat.postMessage", "token_revoked", times=2)
        slack.user_says("hello")
        await slack.wait_for(lambda: link(gateway)["state"] == "signed out", SECONDS)
        await telegram.wait_for(lambda: len(telegram.texts(7)) >= 1, SECONDS)
        for tries in (2, 3):
            age = link(gateway)["since"]
            assert isinstance(age, float)
            clock.advance(700)  # longer than an alert is kept from being told again
            gateway.delivery.wake(str(slack.target()))
            await slack.wait_for(lambda tries=tries: slack.counts["chat.postMessage"] == tries, SECONDS)  # type: ignore[misc]
            if tries == 2:
                await slack.wait_for(lambda: link(gateway)["last_frame_age"] == 0, SECONDS)  # a ping since then
                assert (link(gateway)["state"], link(gateway)["since"]) == ("signed out", age)
        await slack.wait_for(lambda: link(gateway)["state"] == "connected", SECONDS)
        assert slack.texts(7) == ["echo: hello"]
    [told] = telegram.texts(7)
    assert "SLACK_BOT_TOKEN" in told


async def test_refused_tokens_end_it_instead_of_being_tried_for_ever(start: Start, slack: FakeSlack) -> None:
    slack.refuse_credentials()
    async with start(**environ(slack)) as gateway:
        await slack.wait_for(lambda: link(gateway)["state"] == "signed out", SECONDS)
        await asyncio.sleep(0.7)  # longer than the first pause between two attempts
        note = str(link(gateway)["note"])
    assert slack.counts["auth.test"] == 1
    assert "SLACK_BOT_TOKEN" in note
