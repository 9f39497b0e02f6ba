"""Nothing blocks the event loop for more than 50 ms, and nothing on it waits for a file, a database or a process."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path

from tests.fakes.model import FakeModel, Reply, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.loop_watch import watched
from tests.integration.watching import SECONDS

CHATS = range(100, 130)
EACH = 3
LONG = "\n\n".join(
    f"**Part {number}** of `a long answer`, with [a link](https://example.org). " * 20 for number in range(60)
)


async def test_a_busy_gateway_never_blocks_its_loop(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    """Thirty chats, three messages each, every other answer preceded by a tool call; one answer is very long."""
    count = len(CHATS) * EACH
    model.script(
        answer
        for number in range(count)
        for answer in (
            calls_tools(("read_file", {"path": f"{number % 7}.txt", "first_line": number + 1})),
            f"A{number}",
        )
    )
    async with start(TELEGRAM_ALLOW_ALL_USERS="true", HERMES_BUSY_MODE="queue"):
        for number in range(7):
            (tmp_path / "work" / f"{number}.txt").write_text("line\n" * 500)
        await telegram.wait_for(lambda: telegram.polls > 0, SECONDS)
        with watched(tmp_path / "home") as watch:
            for number in range(EACH):
                for chat in CHATS:
                    telegram.private_chat(chat)
                    telegram.user_says(f"message {number}", chat=chat, user=chat)
            await telegram.wait_for(lambda: len(telegram.sent) >= count, 25)
            model.script([Reply(text=LONG)])
            telegram.user_says("a long one, please", chat=CHATS[0], user=CHATS[0])
            await telegram.wait_for(lambda: "Part 59" in telegram.texts()[-1], SECONDS)
            telegram.user_says("/status", chat=CHATS[0], user=CHATS[0])
            await telegram.wait_for(lambda: "Chats: telegram" in telegram.texts()[-1], SECONDS)
    assert watch.callbacks > 1000
    assert watch.slow == []
    assert watch.waits == []


async def test_the_watch_sees_what_it_is_there_to_see(tmp_path: Path) -> None:
    def compute() -> None:
        until = time.thread_time() + 0.06
        while time.thread_time() < until:
            pass

    def wait() -> None:
        time.sleep(0.001)
        (tmp_path / "file").write_text("x")
        sqlite3.connect(tmp_path / "x.db").close()

    with watched(tmp_path) as watch:
        asyncio.get_running_loop().call_soon(compute)
        await asyncio.to_thread(wait)  # off the loop: nobody minds
        assert watch.waits == []
        await asyncio.sleep(0.01)
        wait()
    assert len(watch.slow) == 1
    assert [seen.split()[0].partition("(")[0] for seen in watch.waits] == ["time.sleep", "open", "sqlite3.connect"]
