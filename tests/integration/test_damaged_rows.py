"""A row that cannot be read costs at most what it holds: the gateway starts, and every other chat is answered."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.core.requests import RequestKind
from hermes.store.db import Tx
from hermes.store.turns import lanes
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start, crash
from tests.integration.test_configuration_is_live import until as comes_true
from tests.integration.test_door import request, until


def damage_request(tx: Tx, event_id: str) -> None:
    tx.run("UPDATE inbox SET body = '{\"kind\": 7' WHERE id = :id", id=event_id)


def lose_turn(tx: Tx, event_id: str) -> None:
    """As after a recovery that brought back the lane and not the row of its turn."""
    tx.run("DELETE FROM turns WHERE id = (SELECT turn_id FROM inbox WHERE id = :id)", id=event_id)


def spoil_lane_of_chat(tx: Tx, chat: int) -> None:
    key = f"agent:main:telegram:dm:{chat}"
    tx.run("UPDATE sessions SET updated_at = 'yesterday' WHERE key = :key", key=key)


def spoil_name_of_lane(tx: Tx) -> None:
    tx.run("UPDATE people SET role = 'admin'")
    tx.run("UPDATE turns SET lane = 'agent:main:telegram:no kind:at all'")


async def test_a_request_that_cannot_be_read_does_not_keep_the_gateway_from_starting(
    start: Start, model: FakeModel
) -> None:
    model.hold(silently=True)
    async with start() as gateway, asyncio.timeout(10):
        await gateway.requests.submit(request("one", kind=RequestKind.RUN))
        await model.is_holding()
        queued = await gateway.requests.submit(request("two", kind=RequestKind.RUN))
        await gateway.db.write(damage_request, queued)
        await crash(gateway)
    model.release()
    async with start() as gateway, asyncio.timeout(10):
        failed = await until(gateway.requests, queued, "failed")
        assert failed.row.reason.startswith("unreadable")


async def test_a_lane_whose_turn_is_gone_begins_its_message_anew(start: Start, model: FakeModel) -> None:
    model.hold(silently=True)
    async with start() as gateway, asyncio.timeout(10):
        lost = await gateway.requests.submit(request("lost", kind=RequestKind.RUN))
        await model.is_holding()
        await gateway.db.write(lose_turn, lost)
        await crash(gateway)
    model.release()
    async with start() as gateway, asyncio.timeout(10):
        async with gateway.requests.ask(request("next", kind=RequestKind.RUN)) as ticket:
            assert (await ticket.result()).text == "echo: next"
        await until(gateway.requests, lost, "completed")


async def test_a_busy_mode_of_a_newer_version_is_passed_over(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway, asyncio.timeout(10):
        telegram.user_says("hello")
        await telegram.wait_for(lambda: telegram.texts(7) == ["echo: hello"])
        await gateway.db.write(lanes.set_busy_mode, "agent:main:telegram:dm:7", "telepathy")
        telegram.user_says("still there?")
        await telegram.wait_for(lambda: telegram.texts(7)[-1] == "echo: still there?")
        assert telegram.texts(7) == ["echo: hello", "echo: still there?"]


async def test_a_chat_that_cannot_begin_holds_up_no_other_chat_of_its_batch(
    start: Start, telegram: FakeTelegram
) -> None:
    async with start(TELEGRAM_ALLOW_ALL_USERS="true") as gateway, asyncio.timeout(10):
        telegram.user_says("hello", chat=7)
        await telegram.wait_for(lambda: "echo: hello" in telegram.texts(7))
        await gateway.db.write(spoil_lane_of_chat, 7)
        telegram.user_says("spoilt", chat=7)
        telegram.user_says("sound", chat=8)
        await telegram.wait_for(lambda: "echo: sound" in telegram.texts(8))
        assert (await gateway.status())["waiting"]["messages"] == 1


async def test_a_part_that_a_row_breaks_is_named_in_status_and_everybody_is_answered(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with start() as gateway, asyncio.timeout(30):
        telegram.user_says("hello")
        await telegram.wait_for(lambda: telegram.texts(7) == ["echo: hello"])
        await gateway.db.write(spoil_name_of_lane)
        (tmp_path / "home" / "config.yaml").write_text("language: zh\n")  # the menus are looked at anew
        await comes_true(lambda: any(text.startswith("menus failed and starts again") for text in gateway.troubles), 20)
        telegram.user_says("still there?")
        await telegram.wait_for(lambda: telegram.texts(7)[-1] == "echo: still there?")
        assert telegram.texts(7) == ["echo: hello", "echo: still there?"]
