"""What is typed into the settings of Slack, and what is said about it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.core.secret import Secret
from hermes.platforms.slack import MANIFEST
from hermes.platforms.slack.config import DEFAULT_BASE_URL, SlackConfig
from tests.unit.platforms.starting import why_not_configured

GOOD = {"bot_token": Secret("xoxb-1-secret"), "app_token": Secret("xapp-1-secret")}


def config(**values: Any) -> SlackConfig:
    return SlackConfig.of(AdapterParts("main", {**GOOD, **values}, None, lambda: None, {}))


def test_two_tokens_are_enough() -> None:
    assert config().base_url == DEFAULT_BASE_URL
    assert config(base_url="http://127.0.0.1:1/api/").base_url == "http://127.0.0.1:1/api"


@pytest.mark.parametrize(
    "values, words",
    [
        ({"bot_token": ""}, "SLACK_BOT_TOKEN"),
        ({"app_token": None}, "SLACK_APP_TOKEN"),
        ({"bot_token": Secret("xapp-1-secret")}, "xoxb-"),
        ({"app_token": Secret("xoxb-1-secret")}, "xapp-"),
        ({"bot_token": Secret("xoxb-1-secret,xoxb-2-secret")}, "accounts"),
        ({"base_url": "slack.com"}, "SLACK_BASE_URL"),
    ],
)
def test_what_cannot_be_right_is_told_with_the_setting_to_change(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as told:
        config(**values)
    assert "secret" not in str(told.value)


async def test_without_the_sdk_it_is_one_line_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = ("hermes.platforms.slack.adapter", "hermes.platforms.slack.api")
    for name in [name for name in sys.modules if name.startswith("slack_sdk") or name in users]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "slack_sdk", None)
    environ = {"SLACK_BOT_TOKEN": "xoxb-1-secret", "SLACK_APP_TOKEN": "xapp-1-secret"}
    note = await why_not_configured(MANIFEST, environ, tmp_path)
    assert "\n" not in note
    assert note.startswith("Slack needs a package that is missing (slack_sdk")
    assert note.endswith(f"Install it: {sys.executable} -m pip install 'slack_sdk>=3.35,<4'")
