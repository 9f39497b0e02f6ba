"""`hermes slack manifest`: what Slack makes the app from."""

from __future__ import annotations

import json

import pytest
import yaml

from hermes.cli.main import main
from hermes.cli.platforms.slack import NAME_LIMIT


def printed(capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert main(["slack", "manifest", *more]) == 0
    return capsys.readouterr().out


def test_yaml_and_json_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert yaml.safe_load(printed(capsys)) == json.loads(printed(capsys, "--json"))


def test_it_asks_for_socket_mode_events_buttons_the_command_and_every_scope_that_is_used(
    capsys: pytest.CaptureFixture[str],
) -> None:
    manifest = json.loads(printed(capsys, "--json", "--name", "Jarvis"))
    settings, features = manifest["settings"], manifest["features"]
    assert settings["socket_mode_enabled"]
    assert settings["interactivity"]["is_enabled"]
    assert set(settings["event_subscriptions"]["bot_events"]) >= {"app_mention", "message.im", "message.channels"}
    assert [each["command"] for each in features["slash_commands"]] == ["/hermes"]
    assert features["bot_user"]["display_name"] == manifest["display_information"]["name"] == "Jarvis"
    assert not features["app_home"]["messages_tab_read_only_enabled"], "people can write to it"
    scopes = set(manifest["oauth_config"]["scopes"]["bot"])
    assert scopes >= {"chat:write", "commands", "files:read", "files:write", "im:history", "channels:history"}
    assert "url" not in json.dumps(manifest), "nothing has to be reachable from outside"


@pytest.mark.parametrize("name", ["", " ", "x" * (NAME_LIMIT + 1)])
def test_a_name_that_slack_would_refuse_is_refused(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["slack", "manifest", "--name", name]) == 2
    assert str(NAME_LIMIT) in capsys.readouterr().err
