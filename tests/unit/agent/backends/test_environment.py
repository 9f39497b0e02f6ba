"""What a command gets of our environment."""

from __future__ import annotations

import logging

import pytest

from hermes.agent.backends.environment import let_through, scrubbed

OURS = {
    "PATH": "/usr/bin",
    "HOME": "/home/ana",
    "LC_ALL": "de_DE.UTF-8",
    "HERMES_HOME": "/home/ana/.hermes",
    "HERMES_PROFILE": "work",
    "HERMES_CONFIG": "/etc/hermes.yaml",
    "HERMES_ENV": "/etc/hermes.env",
    "HERMES_BASE_URL": "http://127.0.0.1",
    "HERMES_KANBAN_DB": "/x",
    "HERMES_ALERT_WEBHOOK": "http://hook",
    "OPENAI_API_KEY": "sk-1",
    "TELEGRAM_BOT_TOKEN": "1:2",
    "GITHUB_TOKEN": "gh",
    "LD_PRELOAD": "/evil.so",
    "BASH_ENV": "/evil.sh",
}


def test_only_harmless_variables_pass() -> None:
    kept = scrubbed(OURS)
    assert {name for name in kept if name.startswith("HERMES_")} == {
        "HERMES_HOME",
        "HERMES_PROFILE",
        "HERMES_CONFIG",
        "HERMES_ENV",
    }
    assert kept.keys() - OURS.keys() == {"LANG", "TERM"}
    assert not {"sk-1", "1:2", "gh", "/evil.so", "/evil.sh", "http://hook"} & set(kept.values())


def test_what_was_dropped_is_named_once_and_without_its_value(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        scrubbed(OURS)
    [record] = caplog.records
    assert record.levelno == logging.DEBUG
    dropped = vars(record)["dropped"]
    assert "HERMES_KANBAN_DB" in dropped
    assert "GITHUB_TOKEN" in dropped
    assert "sk-1" not in dropped


def test_what_the_owner_names_passes() -> None:
    files = {"FROM_FILE": "in .env"}
    kept = scrubbed(OURS, passed=("GITHUB_TOKEN", "FROM_FILE", "NOWHERE"), look_up=files.get)
    assert kept["GITHUB_TOKEN"] == "gh"
    assert kept["FROM_FILE"] == "in .env"
    assert "NOWHERE" not in kept
    assert let_through(kept) == {"GITHUB_TOKEN": "gh", "FROM_FILE": "in .env"}
