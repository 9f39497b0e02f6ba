"""`hermes config set`: one setting changes, and nothing else in the file."""

from __future__ import annotations

import fcntl
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from hermes.config import edit, explain, keys_under
from hermes.config.edit import set_value, unset_value
from hermes.core.errors import ConfigError
from hermes.core.secret import Secret
from tests.unit.config.samples import TOKEN, Home

YAML = """# mine
agent:
    # as patient as I am
    max_iterations: 7  # was 60
platforms:
  telegram:
    allowed_users:
      - 1
"""


def put(home: Home, key: str, value: str) -> str:
    return set_value(home.load(), key, value).note


def yaml_of(home: Home) -> str:
    return (home.path / "config.yaml").read_text()


def test_a_value_in_the_file_is_replaced_and_its_comments_stay(home: Home) -> None:
    home.write(yaml=YAML)
    put(home, "agent.max_iterations", "8")
    assert yaml_of(home) == YAML.replace("7  # was", "8  # was")


def test_a_new_value_joins_the_section_that_is_there(home: Home) -> None:
    home.write(yaml=YAML)
    put(home, "agent.busy_mode", "queue")
    put(home, "platforms.telegram.accounts.work.dm_policy", "open")
    put(home, "providers.relay.base_url", "https://relay.example/v1")
    put(home, "sessions.reset.mode", "none")
    config = home.config
    assert (config.agent.busy_mode, config.agent.max_iterations) == ("queue", 7)
    assert config.platforms["telegram"]["work"].access.dm_policy == "open"
    assert config.platforms["telegram"]["main"].access.allowed_users == {"1"}
    assert config.providers["relay"].base_url == "https://relay.example/v1"
    assert config.sessions.reset.mode == "none"
    assert "# as patient as I am" in yaml_of(home)


def test_a_home_without_files_gets_them_readable_by_their_owner_alone(home: Home) -> None:
    put(home, "language", "zh")
    put(home, "TELEGRAM_BOT_TOKEN", TOKEN)
    assert home.config.language == "zh"
    assert home.telegram.is_ready
    assert TOKEN not in yaml_of(home)
    for name in (".env", "config.yaml"):
        assert stat.S_IMODE((home.path / name).stat().st_mode) == 0o600
    assert not list(home.path.glob("*.tmp"))


def test_a_value_that_stands_in_env_is_changed_there(home: Home) -> None:
    home.write(env="# mine\nHERMES_MAX_ITERATIONS=2 # few\nA=1\n")
    put(home, "agent.max_iterations", "3")
    assert (home.path / ".env").read_text() == "# mine\nHERMES_MAX_ITERATIONS=3\nA=1\n"


@pytest.mark.parametrize("value", ["plain", "with blank", "it's", 'a "b" $c \\d', "# no comment", "a=b"])
def test_a_secret_comes_back_as_it_was_given(home: Home, value: str) -> None:
    put(home, "api.key", value)
    assert home.config.api.key == Secret(value)


@pytest.mark.parametrize("value", ["yes", "it's: me", "- x", "# no", "null", "1,5", "{a}", "&x", "你好", "'"])
def test_a_text_comes_back_as_it_was_given(home: Home, value: str) -> None:
    put(home, "agent.persona", value)
    assert home.config.agent.persona == value


def test_a_list_is_written_as_a_list(home: Home) -> None:
    home.write(yaml="platforms:\n  telegram:\n    allowed_users: [1]\n")
    put(home, "platforms.telegram.allowed_users", "2, +49")
    assert home.telegram.access.allowed_users == {"2", "+49"}


@pytest.mark.parametrize(
    "key,value,words",
    [
        ("agent.max_iterations", "many", "should be a whole number"),
        ("agent.max_iteration", "5", "Did you mean agent.max_iterations"),
        ("TELEGRAM_BOT_TOKEN", "<token>", "an example"),
        ("platforms.telegram.accounts.a@b.dm_policy", "open", "There is no setting"),
        ("model.default", "", "an empty text is not a value. `hermes config explain model.default`"),
    ],
)
def test_what_cannot_be_used_is_not_written(home: Home, key: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        put(home, key, value)
    assert not (home.path / "config.yaml").exists()
    assert not (home.path / ".env").exists()


@pytest.mark.parametrize(
    "yaml", ["agent: {max_iterations: 7}\n", "platforms: {telegram: {allowed_users: [1]}}\n", "a: [\n"]
)
def test_a_file_that_cannot_be_edited_safely_stays_as_it_is(home: Home, yaml: str) -> None:
    home.write(yaml=yaml)
    key = "platforms.telegram.allowed_users" if "telegram" in yaml else "agent.max_iterations"
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        put(home, key, "8")
    assert yaml_of(home) == yaml


def test_a_value_that_something_else_hides_says_so(home: Home) -> None:
    home.set(HERMES_MAX_ITERATIONS="3")
    assert put(home, "agent.max_iterations", "4") == "environment sets HERMES_MAX_ITERATIONS and is heard first."


def test_the_keys_of_a_section_can_be_asked_for(home: Home) -> None:
    home.write(yaml=YAML)
    assert "platforms.telegram.token" in keys_under(home.load(), "platforms.telegram")
    assert explain(home.load(), "providers.relay.api_key").env == ("RELAY_API_KEY",)


def test_changes_that_come_at_once_are_all_kept(home: Home) -> None:
    home.write(yaml=YAML)
    names = ("agent.max_iterations", "api.port", "retention.days", "backup.every_hours")
    with ThreadPoolExecutor(len(names)) as threads:
        for value in range(11, 15):
            list(threads.map(lambda name, text=str(value): set_value(home.load(), name, text), names))
            config = home.load().config
            told = (config.agent.max_iterations, config.api.port, config.retention.days, config.backup.every_hours)
            assert told == (value,) * 4


def test_a_setting_that_was_cleared_can_be_set_again(home: Home) -> None:
    home.write(yaml=YAML)
    unset_value(home.load(), "agent.max_iterations")
    put(home, "agent.max_iterations", "8")
    assert home.load().config.agent.max_iterations == 8
    assert "# as patient as I am" in yaml_of(home)


def test_a_change_that_another_process_holds_up_says_so(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write(yaml=YAML)
    monkeypatch.setattr(edit, "LOCK_SECONDS", 0.05)
    folder = os.open(home.path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="Another process is changing"):
            put(home, "agent.max_iterations", "8")
    finally:
        os.close(folder)
    assert yaml_of(home) == YAML
