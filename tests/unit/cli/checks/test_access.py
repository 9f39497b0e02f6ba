"""Why somebody is or is not answered, in words that end in what to type."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.cli.checks.access import lines
from hermes.cli.support.program_name import command_name
from hermes.services.people.access_report import AccessReport, Why

NOW = 1_000_000.0
HERMES = command_name()


def told(why: Why, **more: Any) -> list[str]:
    facts = {"dm_policy": "pairing", "group_policy": "disabled", "is_answered_in_groups": False, **more}
    is_answered = why in (Why.OPEN, Why.LISTED, Why.PAIRED)
    standing = AccessReport("telegram", "42", is_answered, why.value, **facts)
    shown = lines({name: getattr(standing, name) for name in AccessReport.__slots__}, NOW)
    return [line.replace(HERMES, "hermes") for line in shown]


@pytest.mark.parametrize("why", Why)
def test_every_reason_has_words_and_those_that_keep_somebody_out_name_a_cure(why: Why) -> None:
    shown = told(why, asked_at=NOW - 60, decided_at=NOW - 7200, decided_by="Ana", code="K7QPM3XW")
    is_answered = why in (Why.OPEN, Why.LISTED, Why.PAIRED)
    assert shown[0] == f"{'✓' if is_answered else '✗'} telegram 42: {'answered' if is_answered else 'not answered'}"
    assert shown[1].startswith("  ")
    assert any(line.startswith("  → ") for line in shown) == (not is_answered)


def test_the_words_say_who_decided_when_and_with_which_code() -> None:
    decided = {"decided_at": NOW - 7200, "decided_by": "the command line"}
    assert told(Why.PAIRED, **decided)[1] == "  approved by pairing, 2 h ago by the command line"
    assert told(Why.REVOKED, **decided)[1] == "  was approved, and revoked 2 h ago by the command line"
    waiting = told(Why.WAITING, asked_at=NOW - 180, code="K7QPM3XW", name="Ana", role="")
    assert waiting[:3] == [
        "✗ telegram 42 (Ana): not answered",
        "  waits for approval since 3 min, with the code K7QPM3XW",
        "  → hermes pairing approve telegram K7QPM3XW",
    ]
    assert "TELEGRAM_ALLOWED_USERS does not name this one" in told(Why.NOT_LISTED, dm_policy="allowlist")[1]


def test_what_else_is_known_is_told_beside_it() -> None:
    shown = told(
        Why.LISTED,
        name="Ana",
        role="admin",
        accounts=("weixin:wxid_7",),
        wrote_at=NOW - 60,
        wrote_state="set_aside",
        wrote_reason="stopped",
        group_policy="open",
        is_answered_in_groups=True,
    )
    assert shown[0] == "✓ telegram 42 (Ana, admin): answered"
    assert "  the same person as weixin:wxid_7" in shown
    assert "  last wrote 1 min ago: set aside (stopped)" in shown
    assert shown[-1] == "  in groups: answered, when the bot is addressed (policy open)"
    by_chat = told(Why.NEVER_ASKED, person_here="99")
    assert "  ! 42 is the id of a chat; the person who writes there is 99" in by_chat
    assert "  → hermes doctor --user telegram:99" in by_chat
