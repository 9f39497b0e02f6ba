"""Set-up in a real terminal, from an empty home to a gateway that answers on Telegram; and again, while it runs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.agent.backends import bubblewrap, landlock
from hermes.cli.support.program_name import command_name
from hermes.hosting.control import client as control
from tests.e2e.keeping import until
from tests.e2e.panes import COLUMNS, HAS_TMUX, Pane
from tests.e2e.terminal import Terminal
from tests.fakes.telegram import FakeTelegram

pytestmark = pytest.mark.skipif(not HAS_TMUX, reason="tmux is not installed: apt-get install tmux")

ANA = 5550142
TOKEN = "123456:abcdefghijklmnopqrstuvwxyz-x7Q"
KEY = "sk-wizard-0123456789-k9Z"


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram(token=TOKEN, username="ana_home_bot") as fake:
        yield fake


def environ_of(terminal: Terminal, telegram: FakeTelegram) -> dict[str, str]:
    kept = {name: value for name, value in terminal.environ.items() if not name.startswith("OPENAI_")}
    return {**kept, "TELEGRAM_BASE_URL": telegram.url}


def is_readable(lines: list[str]) -> bool:
    """Whether all fits in 80 columns, where the command is called hermes."""
    typed = f"{sys.executable} -m hermes"
    shown = [line.replace(typed, "hermes").replace(command_name(), "hermes") for line in lines]
    assert [line for line in shown if len(line) > COLUMNS] == []
    return True


@pytest.mark.timeout(180)
async def test_from_an_empty_home_to_a_chat_and_once_more_while_it_runs(tmp_path: Path, telegram: FakeTelegram) -> None:
    with Terminal(tmp_path) as terminal, Pane(tmp_path, environ_of(terminal, telegram)) as pane:
        hermes = f"{sys.executable} -m hermes"
        home = terminal.home
        try:
            pane.types(f"{hermes} setup")
            await pane.shows("Choose [7]:")
            pane.types("6")
            await pane.shows("Address, such as")
            pane.types("127.0.0.1:9")
            await pane.shows("Keep it anyway?")
            pane.types("n")
            await pane.shows("Address [http://127.0.0.1:9]:")
            pane.types(terminal.model_url)
            await pane.shows("without a key and offers 1 model")
            await pane.shows("Key (not shown")
            pane.types(KEY)
            await pane.shows("   1  fake-1")
            await pane.shows("Model [fake-1]:")
            pane.types("1")
            await pane.shows("✓ custom / fake-1, answered in")
            if not (bubblewrap.why_not() and landlock.why_not()):
                await pane.shows("in a sandbox")
                pane.types("2")
            await pane.shows("Reach it from a chat")
            pane.presses("Enter")

            await pane.shows("Numbers, for example 1 or 1,3:")
            assert re.search(r"configure:\n +1  Telegram", pane.text)
            pane.types("1")
            await pane.shows("@BotFather")
            await pane.shows("Bot token (not shown")
            pane.types("99:this-is-not-it")
            await pane.shows("✗ Telegram refused getMe")
            await pane.shows("Bot token [Enter keeps …-it]:")
            pane.types(TOKEN)
            await pane.shows("✓ @ana_home_bot, answered in")
            await pane.shows("(recommended)")
            pane.presses("Enter")
            await pane.shows("Does it answer in groups?")
            assert not (home / ".env").read_text().count("TELEGRAM"), "nothing of a page is written before its end"
            pane.presses("Enter")
            await pane.shows("Start the gateway now?")
            assert f"TELEGRAM_BOT_TOKEN={TOKEN}" in (home / ".env").read_text()
            assert (home / ".env").stat().st_mode & 0o777 == 0o600
            pane.presses("Enter")

            await pane.shows("Now say hello to it from your phone: https://t.me/ana_home_bot")
            telegram.user_says("hi", chat=ANA, name="Ana")
            await pane.shows("Code on your phone")
            await telegram.wait_for(lambda: bool(telegram.texts(ANA)), 10)
            code = re.search(r"pairing code: `?(\w{8})", telegram.texts(ANA)[0])
            assert code is not None
            pane.types(code[1])
            await pane.shows("may talk now, and is the owner here.")
            await pane.shows("Welcome to Hermes Agent!")
            pane.types("hello from the terminal")
            await pane.shows("echo: hello from the terminal")
            pane.types("/exit")
            telegram.user_says("hello from the phone", chat=ANA, name="Ana")
            await telegram.wait_for(lambda: "echo: hello from the phone" in telegram.texts(ANA), 10)

            shown = pane.lines()
            with Pane(tmp_path, environ_of(terminal, telegram)) as again:
                shown += await _changes_the_policy(again, hermes)
            policy = control.call(home, "doctor.user", {"user": f"telegram:{ANA}"})[0]
            assert (policy["dm_policy"], policy["why"]) == ("allowlist", "listed")
            assert is_readable(shown)
            assert not [line for line in shown if TOKEN in line or KEY in line]
        finally:
            if control.is_running(home):
                terminal.here("gateway", "stop")
                until(lambda: not control.is_running(home), 10)


async def _changes_the_policy(pane: Pane, hermes: str) -> list[str]:
    pane.types(f"{hermes} gateway setup")
    await pane.shows("set up, …x7Q, direct messages: pairing")
    pane.types("1")
    await pane.shows("Bot token [Enter keeps …x7Q]:")
    pane.presses("Enter")
    await pane.shows("Choose [1]:")
    pane.types("3")
    await pane.shows("Ids, with commas")
    pane.types(str(ANA))
    await pane.shows("Does it answer in groups?")
    pane.presses("Enter")
    await pane.shows(f"Is {ANA} you, the owner?")
    pane.types("y")
    await pane.shows("✓ telegram is connected")
    return pane.lines()


async def test_leaving_in_the_middle_writes_nothing(tmp_path: Path, telegram: FakeTelegram) -> None:
    with Terminal(tmp_path) as terminal, Pane(tmp_path, environ_of(terminal, telegram)) as pane:
        pane.types(f"{sys.executable} -m hermes gateway setup telegram; echo left with $?")
        await pane.shows("Bot token")
        pane.types(TOKEN)
        await pane.shows("Who may write to it?")
        pane.presses("C-c")
        shown = await pane.shows("left with 130")
        assert "Setup ended. Nothing was written." in shown
        assert not terminal.home.exists() or os.listdir(terminal.home) == []


# Stands before the real pip, and hides slack_sdk from Python until somebody has it installed.
HIDDEN = """
import sys
from pathlib import Path


class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "slack_sdk" and not Path(__file__).with_name("installed").exists():
            raise ModuleNotFoundError(f"No module named {name!r}", name="slack_sdk")


sys.meta_path.insert(0, Hidden())
"""
PIP = """
import sys
from pathlib import Path

Path(__file__).parents[1].joinpath("installed").write_text(" ".join(sys.argv[1:]))
"""


async def test_a_missing_package_is_installed_when_asked_before_anything_is_typed(
    tmp_path: Path, telegram: FakeTelegram
) -> None:
    shadow = tmp_path / "shadow"
    (shadow / "pip").mkdir(parents=True)
    (shadow / "sitecustomize.py").write_text(HIDDEN)
    (shadow / "pip" / "__init__.py").touch()
    (shadow / "pip" / "__main__.py").write_text(PIP)
    with Terminal(tmp_path) as terminal:
        environ = environ_of(terminal, telegram)
        environ["PYTHONPATH"] = f"{shadow}:{environ['PYTHONPATH']}"
        with Pane(tmp_path, environ) as pane:
            pane.types(f"{sys.executable} -m hermes gateway setup slack")
            await pane.shows("Slack needs a package that is not installed yet (slack_sdk).")
            await pane.shows("Install it now? [Y/n]:")
            assert not (shadow / "installed").exists()
            pane.presses("Enter")
            await pane.shows("✓ Installed")
            shown = await pane.shows("Bot token (not shown")
            assert is_readable(shown.splitlines())
            pane.presses("C-c")
            await pane.shows("Setup ended. Nothing was written.")
    assert (shadow / "installed").read_text().startswith("install slack_sdk")
