"""What a platform's settings may hold, and what is said of anything else."""

from __future__ import annotations

import pytest

from hermes.core.errors import ConfigError
from hermes.core.setting_checks import number, web_address

USUAL = "https://api.example.org"


@pytest.mark.parametrize("value", [None, "", USUAL, f" {USUAL}/ "])
def test_an_address_is_told_without_its_last_slash_and_has_a_usual_value(value: str | None) -> None:
    assert web_address("PAGER_BASE_URL", value, USUAL) == USUAL


@pytest.mark.parametrize("value", ["api.example.org", "ftp://api.example.org", "https://", "http://[", 5, "ws://a"])
def test_what_is_no_address_is_told_with_what_to_type(value: object) -> None:
    with pytest.raises(ConfigError) as told:
        web_address("PAGER_BASE_URL", value, USUAL)
    assert str(told.value) == f"PAGER_BASE_URL is {value!r}, which is not a web address.\n  Leave it out for {USUAL}."


def test_other_schemes_and_other_cures_are_said_as_such() -> None:
    assert web_address("PAGER_GATEWAY_URL", "wss://a/", scheme="ws") == "wss://a"
    with pytest.raises(ConfigError, match=r"begins with ws:// or wss://\.\n  Ask Ana"):
        web_address("PAGER_GATEWAY_URL", USUAL, scheme="ws", cure="Ask Ana.")


@pytest.mark.parametrize("value,found", [(None, 20), ("", 20), ("1", 1), (50, 50), ("2.5", 2.5)])
def test_a_number_within_its_bounds_is_taken(value: object, found: float) -> None:
    assert number({"poll": value}, "poll", "PAGER_POLL", 20, 1, 50) == found


@pytest.mark.parametrize("value", [0, 51, "-1", "many", "nan", "inf"])
def test_any_other_is_told_with_its_bounds(value: object) -> None:
    with pytest.raises(ConfigError) as told:
        number({"poll": value}, "poll", "PAGER_POLL", 20, 1, 50)
    assert str(told.value) == f"PAGER_POLL is {value!r}; it is a number from 1 to 50.\n  Leave it out for 20."


def test_what_zero_means_is_said() -> None:
    with pytest.raises(ConfigError, match=r"from 0 \(not limited\) to 9"):
        number({"calls": "x"}, "calls", "PAGER_CALLS", 3, 0, 9, zero="not limited")
