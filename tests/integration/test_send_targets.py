"""`hermes send`: every way to name where a message goes, through the whole gateway."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hermes.core.errors import GatewayError
from hermes.hosting.control.handlers.gateway import verbs_of
from hermes.services.gateway import Gateway
from tests.fakes.discord import GROUP, SERVER, FakeDiscord
from tests.fakes.slack import FakeSlack
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import SECONDS, until

HOME = 42


class Silent:
    async def event(self, told: Any) -> None:
        raise AssertionError(f"send tells nothing on the way: {told}")


async def send(gateway: Gateway, target: str, text: str = "The backup is done.") -> Any:
    async with asyncio.timeout(SECONDS):
        return await verbs_of(gateway)["send"]({"target": target, "text": text, "wait_seconds": 10.0}, Silent())


@pytest.fixture(autouse=True)
def chats_of_telegram(telegram: FakeTelegram) -> None:
    telegram.private_chat(HOME)
    telegram.private_chat(7)


async def connected(gateway: Gateway, account: str) -> None:
    async def look() -> bool:
        return any(one["account"] == account and one["state"] == "connected" for one in gateway.supervisor.status())

    await until(look)


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as fake:
        yield fake


@pytest.fixture
async def discord() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord(is_known=False) as fake:
        yield fake


async def test_a_platform_alone_means_its_home_channel(start: Start, telegram: FakeTelegram) -> None:
    async with start(TELEGRAM_HOME_CHANNEL=str(HOME)) as gateway:
        told = await send(gateway, "telegram")
    assert (told["target"], [letter["state"] for letter in told["letters"]]) == (f"telegram:{HOME}", ["sent"])
    assert telegram.texts(HOME) == ["The backup is done."]


async def test_a_list_reaches_each_chat_once(start: Start, telegram: FakeTelegram) -> None:
    async with start(TELEGRAM_HOME_CHANNEL=str(HOME)) as gateway, gateway.hub.listen("cli") as heard:
        told = await send(gateway, f"telegram, telegram:7 ,local,telegram:{HOME}")
        assert (await heard.get()).text == "The backup is done."
    assert told["target"] == f"telegram:{HOME},telegram:7,local:cli"
    assert telegram.texts(HOME) == telegram.texts(7) == ["The backup is done."]


async def test_all_means_every_home_channel(start: Start, telegram: FakeTelegram, slack: FakeSlack) -> None:
    environ = {**slack.environ, "SLACK_HOME_CHANNEL": "C0HOME", "TELEGRAM_HOME_CHANNEL": str(HOME)}
    async with start(**environ) as gateway:
        told = await send(gateway, "all")
    assert {letter["target"] for letter in told["letters"]} == {f"telegram:{HOME}", "slack:C0HOME"}
    assert telegram.texts(HOME) == [sent.text for sent in slack.sent] == ["The backup is done."]


async def test_a_home_channel_goes_by_its_name(start: Start, telegram: FakeTelegram) -> None:
    async with start(TELEGRAM_HOME_CHANNEL=str(HOME), TELEGRAM_HOME_CHANNEL_NAME="Family") as gateway:
        await connected(gateway, "telegram")
        assert (await send(gateway, "telegram:#family"))["target"] == f"telegram:{HOME}"
        with pytest.raises(GatewayError, match="telegram has no chat called #friends"):
            await send(gateway, "telegram:#friends")
    assert telegram.texts(HOME) == ["The backup is done."]


async def test_a_channel_of_slack_goes_by_its_name_however_many_there_are(start: Start, slack: FakeSlack) -> None:
    slack.names = {f"C{number:04}": f"room-{number}" for number in range(30)} | {"C0ALERTS": "alerts"}
    slack.page_size = 10
    async with start(**slack.environ) as gateway:
        await connected(gateway, "slack")
        assert (await send(gateway, "slack:#Alerts"))["target"] == "slack:C0ALERTS"
        with pytest.raises(GatewayError, match="slack has no chat called #alarms"):
            await send(gateway, "slack:#alarms")
    assert [sent.text for sent in slack.sent] == ["The backup is done."]


async def test_a_channel_of_discord_goes_by_its_name_unless_two_have_it(start: Start, discord: FakeDiscord) -> None:
    discord.channels["310"] = {"id": "310", "type": 4, "name": "general", "guild_id": SERVER}  # a heading
    async with start(**discord.environ) as gateway:
        await connected(gateway, "discord")
        assert (await send(gateway, "discord:#general"))["target"] == f"discord:{GROUP}"
        discord.channels["311"] = {"id": "311", "type": 0, "name": "general", "guild_id": SERVER}
        two = f"discord has 2 chats called #general: discord:{GROUP}, discord:311"
        with pytest.raises(GatewayError, match=re.escape(two)):
            await send(gateway, "discord:#general")
    assert [sent.text for sent in discord.sent] == ["The backup is done."]


@pytest.mark.parametrize(
    "target, told",
    [
        ("telegram", "telegram has no home channel yet. Name a chat: telegram:<chat>, or write /sethome in a chat"),
        ("telegram:7,slack:C1", "slack is not configured. Set it up: hermes gateway setup slack"),
        ("slack", "slack is not configured. Set it up: hermes gateway setup slack"),
        ("telegram@work:7", "telegram@work is not configured. Set it up: hermes gateway setup telegram"),
        ("nowhere:1", "There is no account 'nowhere'. Known: "),
        ("origin", "There is no chat to send back to here."),
        ("all", "No account has a home channel yet, so 'all' reaches nobody."),
        ("", "There is an empty place in the list of targets."),
    ],
)
async def test_a_target_that_cannot_be_reached_is_told_and_nothing_is_sent(
    start: Start, telegram: FakeTelegram, target: str, told: str
) -> None:
    async with start() as gateway:
        with pytest.raises(GatewayError, match=f"Nothing was sent. {re.escape(told)}"):
            await send(gateway, target)
    assert telegram.sent == []
