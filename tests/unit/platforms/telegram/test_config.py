"""A Telegram account that cannot work is told apart from one that can, in words that help."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.core.errors import ConfigError
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Rate, Rates
from hermes.core.secret import Secret
from hermes.platforms.telegram import MANIFEST, wire
from hermes.platforms.telegram.config import TelegramConfig


def config(**values: Any) -> TelegramConfig:
    settings = {"token": Secret("123:abcDEF"), **values}
    return TelegramConfig.of(AdapterParts("main", settings, None, lambda: None, {}))


def test_a_token_is_all_it_needs() -> None:
    made = config()
    assert (made.base_url, made.poll_seconds, made.bot_id) == ("https://api.telegram.org", 20, "123")


@pytest.mark.parametrize(
    "token", ["hello", "<your token>", "changeme", "123:", ":abc", "12 3:abc", "123:a/../b", "your-token"]
)
def test_what_does_not_look_like_a_token_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(ConfigError, match="TELEGRAM_BOT_TOKEN") as refused:
        config(token=Secret(token))
    assert token == ":abc" or token not in str(refused.value)


@pytest.mark.parametrize("token", [None, "", Secret(""), Secret("  ")])
def test_no_token_is_told_with_where_to_put_it(token: object) -> None:
    with pytest.raises(ConfigError, match="has no token"):
        config(token=token)


def test_a_hung_poll_is_noticed_within_half_a_minute() -> None:
    assert config().poll_seconds + wire.POLL_GRACE_SECONDS < 30


@pytest.mark.parametrize("seconds", [1, 20, 30, 50])
def test_a_poll_that_is_held_for_long_is_no_silence(seconds: int) -> None:
    settings = {"token": Secret("123:abcDEF"), "poll_seconds": seconds}
    adapter = MANIFEST.build(AdapterParts("main", settings, None, lambda: None, {}))
    assert adapter.capabilities.silence_seconds == max(25, seconds + 5)


def test_spaces_around_a_token_are_forgiven() -> None:
    assert config(token=Secret(" 123:abcDEF\n")).token == Secret("123:abcDEF")


@pytest.mark.parametrize(
    "given,root",
    [
        ("http://127.0.0.1:8081/", "http://127.0.0.1:8081"),
        ("http://127.0.0.1:8081/bot", "http://127.0.0.1:8081"),
        ("", "https://api.telegram.org"),
    ],
)
def test_the_root_is_taken_with_or_without_what_follows_it(given: str, root: str) -> None:
    assert config(base_url=given).base_url == root


@pytest.mark.parametrize(
    "values", [{"base_url": "api.telegram.org"}, {"poll_seconds": "soon"}, {"poll_seconds": 0}, {"poll_seconds": 90}]
)
def test_a_setting_that_cannot_work_names_itself(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"TELEGRAM_{next(iter(values)).upper()}"):
        config(**values)


def test_every_setting_is_explained() -> None:
    assert all(setting.help and setting.env.startswith("TELEGRAM_") for setting in MANIFEST.settings)
    assert [setting.key for setting in MANIFEST.settings if setting.required] == ["token"]


def test_nothing_of_it_prints_its_token() -> None:
    assert "abcDEF" not in repr(config())


def test_the_limits_of_telegram_are_kept_unless_told_otherwise() -> None:
    usual = config().rates
    assert usual == Rates(Rate(30, 1.0), Rate(1, 1.0), Rate(20, 60.0), ("-",))
    assert config(calls_per_second=0).rates is None
    own = config(calls_per_second="0.5", chat_calls_per_second=4, group_calls_per_minute=0).rates
    assert own == Rates(Rate(1, 2.0), Rate(1, 0.25), None, ("-",))


@pytest.mark.parametrize("value", [-1, "often", 10**9])
def test_a_limit_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match="TELEGRAM_CHAT_CALLS_PER_SECOND"):
        config(chat_calls_per_second=value)
