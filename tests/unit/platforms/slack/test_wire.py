"""What goes out fits into what Slack takes, and each of its refusals says who acts."""

from __future__ import annotations

import pytest

from hermes.core.errors import (
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
)
from hermes.core.messages import Button
from hermes.platforms.slack import wire


@pytest.mark.parametrize(
    "error, status, kind",
    [
        ("ratelimited", 200, RateLimitedError),
        ("rate_limited", 429, RateLimitedError),
        ("", 429, RateLimitedError),  # from a front that knows no words of Slack's
        ("token_revoked", 200, CredentialsError),
        ("org_login_required", 200, CredentialsError),
        ("service_unavailable", 200, OutcomeUnknownError),
        ("", 502, OutcomeUnknownError),
        ("", 404, OutcomeUnknownError),
        ("", 200, OutcomeUnknownError),
        ("channel_not_found", 200, RejectedError),
    ],
)
def test_each_refusal_says_who_acts(error: str, status: int, kind: type[PlatformError]) -> None:
    assert isinstance(wire.refusal("chat.postMessage", error, status, {}), kind)


def test_a_page_in_slacks_place_took_nothing() -> None:
    page = {"Content-Type": "text/html; charset=utf-8"}
    assert isinstance(wire.refusal("chat.postMessage", "", 200, page), UnreachableError)
    assert isinstance(wire.refusal("chat.postMessage", "", 502, page), OutcomeUnknownError)


@pytest.mark.parametrize("told, seconds", [("7", 7), ("1e9", 3600), ("-5", 0), ("soon", 30), ("nan", 30), (None, 30)])
def test_a_wait_is_as_long_as_slack_says_within_reason(told: str | None, seconds: float) -> None:
    refused = wire.refusal("chat.postMessage", "ratelimited", 429, {} if told is None else {"Retry-After": told})
    assert isinstance(refused, RateLimitedError)
    assert refused.retry_after == seconds


@pytest.mark.parametrize(
    "told, ahead",
    [
        ("Sun, 09 Sep 2001 01:46:40 GMT", 0.0),
        ("Sun, 09 Sep 2001 01:46:37 GMT", 0.0),  # whole seconds, and the way here
        ("Sun, 09 Sep 2001 02:46:40 GMT", 3600.0),
        ("Sun, 09 Sep 2001 00:46:40 GMT", -3600.0),
        ("soon", 0.0),
        ("", 0.0),
        (None, 0.0),
        ("Sun, 99 Sep 99999 01:46:40 GMT", 0.0),
    ],
)
def test_a_clock_is_wrong_when_it_is_off_by_more_than_some_seconds(told: str | None, ahead: float) -> None:
    assert wire.clock_ahead(told, 1_000_000_000.0) == ahead


def test_however_many_buttons_there_are_the_question_stands_above_them_and_slack_takes_it() -> None:
    many = tuple((Button(f"{number}", f"d{number}"),) for number in range(80))
    made = wire.blocks("Which?", many)
    assert len(made) == 50
    assert made[0]["text"]["text"] == "Which?"
    long = wire.blocks("word\n" * 40_000, (many[0], many[1]))
    assert (len(long), [each["type"] for each in long[-2:]]) == (50, ["actions", "actions"])
