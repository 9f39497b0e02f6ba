"""The window of `gateway run` in a real terminal, while a stranger knocks and the built-in model comes late."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.hosting.control import client as control
from tests.e2e.keeping import until
from tests.e2e.panes import HAS_TMUX, Pane
from tests.e2e.terminal import Terminal
from tests.fakes.embedded import write_engine
from tests.fakes.telegram import FakeTelegram

pytestmark = pytest.mark.skipif(not HAS_TMUX, reason="tmux is not installed: apt-get install tmux")

ANA = 5550142
TOKEN = "123456:abcdefghijklmnopqrstuvwxyz-x7Q"


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram(token=TOKEN, username="ana_home_bot") as fake:
        fake.hold("getMe")  # its network is slow
        yield fake


@pytest.mark.timeout(180)
async def test_the_window_tells_that_a_chat_connected_somebody_knocked_and_the_model_came(
    tmp_path: Path, telegram: FakeTelegram
) -> None:
    environ = {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_BASE_URL": telegram.url, "OPENAI_API_KEY": "", "TERM": "xterm"}
    environ |= {"OPENAI_BASE_URL": "", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    with Terminal(tmp_path, **environ) as terminal, Pane(tmp_path, terminal.environ) as pane:
        pane.types(f"{sys.executable} -m hermes gateway run; echo ended with $?")
        try:
            await pane.shows("Closing this window stops it.", 60)
            await pane.shows("Model     built-in, not here yet. The package server cannot be reached", 60)
            telegram.release("getMe")
            await pane.shows("Chats     telegram @ana_home_bot, connected")
            telegram.user_says("hi, are you there?", chat=ANA, name="Ana")
            shown = await pane.shows("Ana (telegram 5550142) asks for access. To approve:")
            code = re.search(r"pairing approve telegram (\w{8})", shown)
            assert code is not None, shown
            assert "✓ Ana" in terminal.here("pairing", "approve", "telegram", code[1]).stdout

            write_engine(terminal.home)
            assert terminal.hermes("-z", "hello").stdout == "Hello there!\n"
            await pane.shows("Model     built-in is here. Say hello: ")
            pane.presses("C-c")
            await pane.shows("ended with 0", 60)
        finally:
            if control.is_running(terminal.home):
                terminal.here("gateway", "stop")
                until(lambda: not control.is_running(terminal.home), 10)
