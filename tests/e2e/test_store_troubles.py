"""N-08 in a real process: a log cut short by a crash, and a disk that is really full."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.hosting import heartbeat, paths
from tests.chaos import store_troubles
from tests.chaos.store_troubles import HOME_CHANNEL, PENDING, expected_answers, heard, plant
from tests.chaos.world import Victim, World, opened, until
from tests.e2e.test_process_gateway import free_port

SECONDS = 20.0


def health(port: int) -> object:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=60) as answer:
        return json.load(answer)


def troubles(world: World) -> str:
    return " ".join(world.gateway.status()["troubles"])


async def is_answered(world: World, text: str, *, chat: int = 7) -> None:
    world.telegram.user_says(text, chat=chat)
    await world.telegram.wait_for(lambda: world.telegram.has_answered(chat, f"echo: {text}"), SECONDS)


async def test_a_log_cut_short_by_a_crash_costs_its_end_and_every_waiting_message_is_answered_once(
    tmp_path: Path,
) -> None:
    port = free_port()
    async with opened(
        tmp_path / "world", 1, API_SERVER_PORT=str(port), TELEGRAM_HOME_CHANNEL=str(HOME_CHANNEL)
    ) as world:
        await world.gateway.stop()
        planted = await plant(world.gateway.home, world.telegram)
        world.model.hold()
        world.gateway.start()
        await world.gateway.ready()
        await until(lambda: len(world.gateway.status()["running"]) == len(PENDING), SECONDS)
        await world.gateway.kill(Victim.BOTH)
        state = world.gateway.home / "state.db"
        cut(state.with_name("state.db-wal"))
        world.model.release()
        world.gateway.start()
        worker = await world.gateway.ready()
        wanted = {chat: texts for chat, texts in expected_answers().items() if int(chat) in PENDING}
        await world.telegram.wait_for(lambda: wanted.keys() <= heard(world.telegram).keys(), SECONDS)
        await is_answered(world, "and now?")
        assert {chat: heard(world.telegram)[chat] for chat in wanted} == wanted
        assert "state.db was damaged (its write-ahead log is damaged). Recovered" in troubles(world)
        assert health(port) == {"status": "ok"}
        await world.telegram.wait_for(
            lambda: any("write-ahead log is damaged" in text for text in world.telegram.texts(HOME_CHANNEL)), SECONDS
        )
        assert world.telegram.texts(int(planted.answered.chat)) == []
        assert world.gateway.worker() == worker
        assert "write-ahead log is damaged" in log_of(world)


def cut(log: Path) -> None:
    os.truncate(log, log.stat().st_size * 2 // 3)


def log_of(world: World) -> str:
    return Path(paths.log(str(world.gateway.home))).read_text(encoding="utf-8")


@pytest.fixture
async def small_disk(tmp_path: Path) -> AsyncIterator[Path]:
    """A folder of a world whose home is a disk of its own, of a few megabytes."""
    async with store_troubles.small_disk(tmp_path / "world" / "home") as trouble:
        if trouble:
            pytest.skip(f"a small disk cannot be mounted here: {trouble}")
        yield tmp_path / "world"


async def test_on_a_disk_that_is_full_the_gateway_stays_up_and_messages_wait_with_telegram(small_disk: Path) -> None:
    port = free_port()
    async with opened(small_disk, 1, API_SERVER_PORT=str(port), TELEGRAM_HOME_CHANNEL=str(HOME_CHANNEL)) as world:
        await world.gateway.stop()
        planted = await plant(world.gateway.home, world.telegram)
        world.gateway.start()
        worker = await world.gateway.ready()
        await world.telegram.wait_for(lambda: heard(world.telegram) == expected_answers(), SECONDS)
        ballast = small_disk / "home" / "ballast"
        await store_troubles.fill_disk(ballast)
        for chat in range(3000, 3010):
            world.telegram.user_says("still there?", chat=chat)
        await until(lambda: "is full, so state.db cannot grow" in troubles(world), SECONDS)
        assert world.telegram.unconfirmed > 0
        assert health(port) == {"status": "ok"}
        full_at = heartbeat.read(paths.heartbeat(str(world.gateway.home)))
        assert full_at is not None
        await until(lambda: heart_beats_since(world, full_at), 5)
        ballast.unlink()
        await world.telegram.wait_for(lambda: world.telegram.texts().count("echo: still there?") >= 10, SECONDS)
        await is_answered(world, "and now?")
        await until(lambda: not troubles(world), SECONDS)
        assert world.gateway.worker() == worker
        assert [world.telegram.texts(chat) for chat in range(3000, 3010)] == [["echo: still there?"]] * 10
        assert world.telegram.texts(int(planted.answered.chat)) == []
        await world.telegram.wait_for(
            lambda: any("state.db works again" in text for text in world.telegram.texts(HOME_CHANNEL)), SECONDS
        )


def heart_beats_since(world: World, before: heartbeat.Beat) -> bool:
    now = heartbeat.read(paths.heartbeat(str(world.gateway.home)))
    return now is not None and now.at > before.at
