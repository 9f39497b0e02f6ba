"""The key a request shows."""

from __future__ import annotations

import pytest
from aiohttp.test_utils import make_mocked_request

from hermes.servers.api.auth import bearer, unauthorized


@pytest.mark.parametrize(
    "shown, token",
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("BEARER   abc ", "abc"),
        ("Bearer", ""),
        ("Bearer ", ""),
        ("Basic abc", ""),
        ("abc", ""),
        ("", ""),
    ],
)
def test_only_a_bearer_key_counts(shown: str, token: str) -> None:
    assert bearer(make_mocked_request("GET", "/", headers={"Authorization": shown})) == token


def test_a_refusal_says_what_to_send_and_repeats_no_key() -> None:
    missing, wrong = unauthorized(""), unauthorized("hk_something")
    assert (missing.code, wrong.code) == ("missing_api_key", "invalid_api_key")
    assert "hermes api-key show" in missing.message
    assert "hk_something" not in str(wrong.body())
