from __future__ import annotations

import pytest

from hermes.config import explain
from hermes.core.errors import ConfigError
from tests.unit.config.samples import TOKEN, Home


def test_the_winner_and_those_it_went_before_are_named_with_their_lines(home: Home) -> None:
    home.write(env="# a comment\nHERMES_MAX_ITERATIONS=2", yaml="agent:\n  max_iterations: 4\n")
    told = explain(home.load(), "agent.max_iterations")
    assert (told.value, told.winner, told.default) == ("2", ".env line 2", "60")
    assert [(one.where, one.value, one.note) for one in told.stated] == [
        (".env line 2", "2", ""),
        ("config.yaml line 2", "4", ".env line 2 is heard first"),
    ]
    assert "not config.yaml line 2: agent.max_iterations = 4" in str(told)


def test_an_environment_name_is_understood_too(home: Home) -> None:
    told = explain(home.set(TZ="Asia/Shanghai").load(), "TZ")
    assert (told.key, told.value, told.winner) == ("timezone", "Asia/Shanghai", "environment")


def test_a_secret_shows_its_last_letters_at_most(home: Home) -> None:
    home.write(env=f"TELEGRAM_BOT_TOKEN={TOKEN}", yaml="platforms: {telegram: {token: another-long-token}}")
    told = explain(home.load(), "platforms.telegram.token")
    assert told.value == "…bot"
    assert TOKEN not in str(told)
    assert "another-long-token" not in repr(told)


def test_a_password_in_an_address_is_hidden(home: Home) -> None:
    home.set(TELEGRAM_PROXY="socks5://me:open-sesame@127.0.0.1:1080")
    told = explain(home.load(), "TELEGRAM_PROXY")
    assert told.value == "socks5://me:[hidden]@127.0.0.1:1080"
    assert "open-sesame" not in repr(told)


def test_a_key_by_the_name_of_its_variable(home: Home) -> None:
    home.write(yaml="providers: {relay: {base_url: 'http://r', api_key_env: MY_KEY}}", env="MY_KEY=sk-0123456789abc")
    told = explain(home.load(), "providers.relay.api_key")
    assert (told.value, told.winner, told.env) == ("…abc", ".env line 1", ("MY_KEY",))


def test_a_value_that_is_not_used_says_why(home: Home) -> None:
    home.write(env="HERMES_MAX_ITERATIONS=many")
    told = explain(home.load(), "agent.max_iterations")
    assert (told.value, told.winner) == ("60", "default")
    assert told.stated[0].note == "not usable"


def test_a_value_nobody_set_comes_from_the_default(home: Home) -> None:
    assert explain(home.load(), "providers.openai.base_url").value == "https://api.openai.com/v1"
    assert explain(home.load(), "model.provider").value == "embedded"
    assert explain(home.load(), "api.port").winner == "default"


def test_a_setting_there_is_none_of_comes_with_the_nearest(home: Home) -> None:
    with pytest.raises(
        ConfigError, match=r"There is no setting 'agent.max_iteration'. Did you mean agent.max_iterations"
    ):
        explain(home.load(), "agent.max_iteration")


def test_a_section_in_the_place_of_a_setting_is_answered_with_its_settings(home: Home) -> None:
    with pytest.raises(ConfigError, match=r"'model', but model.default, .*, …. `hermes config explain model` lists"):
        explain(home.load(), "model")
    with pytest.raises(ConfigError, match=r"Did you mean model\?"):
        explain(home.load(), "modell")


def test_a_setting_like_no_other_is_answered_with_the_list(home: Home) -> None:
    with pytest.raises(ConfigError, match="`hermes config show --all` lists what there is"):
        explain(home.load(), "zzz")
