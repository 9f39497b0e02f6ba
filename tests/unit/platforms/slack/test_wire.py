"""What goes out fits into what Slack takes, and each of its refusals says who acts."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hermes.core.errors import (
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
)
from hermes.core.keys import Target
from hermes.core.messages import Button, OutboundMessage
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


def test_however_many_buttons_there_are_the_question_stands_above_them_and_slack_takes_it() -> None:
    many = tuple((Button(f"{number}", f"d{number}"),) for number in range(80))
    made = wire.blocks("Which?", many)
    assert len(made) == 50
    assert made[0]["text"]["text"] == "Which?"
    long = wire.blocks("word\n" * 40_000, (many[0], many[1]))
    assert (len(long), [each["type"] for each in long[-2:]]) == (50, ["actions", "actions"])


def test_a_question_longer_than_a_section_keeps_its_code_as_code_and_every_sign_whole() -> None:
    command = "\n".join(f"make part{number} && echo '<done> {number}' >> log" for number in range(60))
    made = wire.blocks(f"May I run this?\n```\n{command}\n```\nSay so.", ((Button("Yes", "y"),),))
    sections = [each["text"]["text"] for each in made if each["type"] == "section"]
    assert len(sections) > 1
    assert all(len(each) <= wire.SECTION_LIMIT and each.count("```") % 2 == 0 for each in sections)
    shown = "\n".join(sections).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert [line for line in shown.split("\n") if line.startswith("make")] == command.split("\n")


@pytest.mark.parametrize("letter", ["&", "<", "👩‍👧", "é", "字"])
def test_a_question_without_a_place_to_cut_is_cut_between_letters(letter: str) -> None:
    made = wire.blocks(letter * (3900 // len(letter)), ((Button("Yes", "y"),),))
    sections = [each["text"]["text"] for each in made if each["type"] == "section"]
    plain = [each.replace("&lt;", "<").replace("&amp;", "&") for each in sections]
    assert all(len(each) <= wire.SECTION_LIMIT for each in sections)
    assert all(each.strip(letter) == "" and len(each) % len(letter) == 0 for each in plain)


@pytest.mark.parametrize("buttons", [(), ((Button("Yes", "y"),),)])
def test_a_table_that_would_grow_beyond_all_reason_is_shown_as_it_was_written(
    buttons: tuple[tuple[Button, ...], ...],
) -> None:
    table = f"|{'wide ' * 300}|b|\n|-|-|\n" + "|a|b|\n" * 350
    _, body = wire.post(OutboundMessage(Target("slack", "D1"), table, buttons=buttons))
    assert len(body["text"]) <= 40_000
    assert sum(len(block["text"]["text"]) for block in body.get("blocks", ())[:-1]) <= 40_000
    assert body["text"].count("|a|b|") == 350


def test_a_repeat_carries_the_mark_and_a_repeated_edit_does_not() -> None:
    message = OutboundMessage(Target("slack", "D1"), "hello", is_repeat=True, buttons=((Button("Yes", "y"),),))
    _, body = wire.post(message)
    assert (body["text"], body["blocks"][0]["text"]["text"]) == ("↻ hello", "↻ hello")
    _, body = wire.post(replace(message, replaces="1700000000.000100"))
    assert (body["text"], body["blocks"][0]["text"]["text"]) == ("hello", "hello")


@pytest.mark.parametrize("letters", ["字" * 3900, "a&<>b " * 650, "**words & more** and so on. " * 140])
def test_a_change_that_is_too_long_for_its_text_stands_in_blocks(letters: str) -> None:
    method, body = wire.post(OutboundMessage(Target("slack", "D1"), letters, replaces="1700000000.000100"))
    sections = [block["text"]["text"] for block in body["blocks"]]
    assert method == "chat.update"
    assert len(body["text"].encode()) <= 4000
    assert not re.search(r"&(?!(amp|lt|gt);)", body["text"])
    assert all(len(section) <= wire.SECTION_LIMIT for section in sections)
    whole = wire.post(OutboundMessage(Target("slack", "D1"), letters))[1]["text"]
    assert "".join("".join(sections).split()) == "".join(whole.split())


def test_a_change_that_fits_stands_in_its_text_alone() -> None:
    _, body = wire.post(OutboundMessage(Target("slack", "D1"), "字" * 1333, replaces="1700000000.000100"))
    assert (body["text"], body["blocks"]) == ("字" * 1333, [])
