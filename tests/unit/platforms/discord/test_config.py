"""What is typed into the settings of Discord, and what is said about it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hermes.config import load
from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.core.secret import Secret
from hermes.platforms.discord import MANIFEST
from hermes.platforms.discord.config import DEFAULT_BASE_URL, DEFAULT_GATEWAY_URL, DiscordConfig
from tests.unit.platforms.starting import why_not_configured

TOKEN = "MTA5OTk5OTk5OTk5.GabcDE.secretsecretsecretsecret"


def config(**values: Any) -> DiscordConfig:
    return DiscordConfig.of(AdapterParts("main", {"token": Secret(TOKEN), **values}, None, lambda: None, {}))


def test_a_token_is_enough() -> None:
    known = config()
    assert (known.base_url, known.gateway_url) == (DEFAULT_BASE_URL, DEFAULT_GATEWAY_URL)
    assert (known.allowed_channels, known.auto_thread) == (frozenset(), True)
    assert config(token=f" Bot {TOKEN} ").token.reveal() == TOKEN, "as it is pasted from examples"


@pytest.mark.parametrize(
    "values, words",
    [
        ({"token": ""}, "DISCORD_BOT_TOKEN"),
        ({"token": None}, "DISCORD_BOT_TOKEN"),
        ({"token": Secret("secretsecret")}, "three parts"),
        ({"base_url": "discord.com"}, "DISCORD_BASE_URL"),
        ({"gateway_url": "https://gateway.discord.gg"}, "DISCORD_GATEWAY_URL"),
        ({"allowed_channels": ("general",)}, "DISCORD_ALLOWED_CHANNELS"),
        ({"ignored_channels": ("#x",)}, "Copy Channel ID"),
        ({"free_response_channels": ("1", "x")}, "DISCORD_FREE_RESPONSE_CHANNELS"),
    ],
)
def test_what_cannot_be_right_is_told_with_the_setting_to_change(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as told:
        config(**values)
    assert "secret" not in str(told.value)


def test_the_environment_names_every_setting(tmp_path: Path) -> None:
    environ = {
        "DISCORD_BOT_TOKEN": TOKEN,
        "DISCORD_BASE_URL": "http://127.0.0.1:1/api",
        "DISCORD_GATEWAY_URL": "ws://127.0.0.1:2/",
        "DISCORD_ALLOWED_CHANNELS": "1, 2",
        "DISCORD_IGNORED_CHANNELS": "3",
        "DISCORD_FREE_RESPONSE_CHANNELS": "4",
        "DISCORD_AUTO_THREAD": "false",
    }
    loaded = load(tmp_path, environ, tmp_path, (MANIFEST,))
    assert loaded.problems == ()
    account = loaded.config.account("discord")
    assert account is not None
    known = config(**account.values)
    assert (known.base_url, known.gateway_url) == ("http://127.0.0.1:1/api", "ws://127.0.0.1:2")
    assert (known.allowed_channels, known.ignored_channels) == (frozenset({"1", "2"}), frozenset({"3"}))
    assert (known.free_response_channels, known.auto_thread) == (frozenset({"4"}), False)


def test_an_address_of_the_gateway_that_is_none_is_told_when_it_is_read(tmp_path: Path) -> None:
    environ = {"DISCORD_BOT_TOKEN": TOKEN, "DISCORD_GATEWAY_URL": "https://gateway.discord.gg"}
    [problem] = load(tmp_path, environ, tmp_path, (MANIFEST,)).problems
    assert "wss://" in str(problem)


def test_the_manifest_imports_no_sdk() -> None:
    code = (
        "import sys, hermes.platforms.discord; assert 'discord' not in sys.modules; assert 'aiohttp' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60, env={"PYTHONPATH": "src"})
    assert done.returncode == 0


async def test_without_the_sdk_it_is_one_line_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = [f"hermes.platforms.discord.{name}" for name in ("adapter", "api", "connection", "sending", "answering")]
    for name in [name for name in sys.modules if name.split(".")[0] == "discord" or name in users]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "discord", None)
    note = await why_not_configured(MANIFEST, {"DISCORD_BOT_TOKEN": TOKEN}, tmp_path)
    assert "\n" not in note
    assert note.startswith("Discord needs a package that is missing (discord")
    assert note.endswith(f"Install it: {sys.executable} -m pip install 'discord.py>=2.7,<2.8'")
