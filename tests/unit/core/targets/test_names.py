"""Where a message goes, in the words people use for it."""

from __future__ import annotations

import re

import pytest

from hermes.core.keys import AccountKey, Target
from hermes.core.targets.names import recipients

HERE = Target("telegram", "7")
HOMES = {AccountKey("telegram"): "42", AccountKey("telegram", "work"): "", AccountKey("slack"): "C1"}
WRITTEN_WHOLE = {**HOMES, AccountKey("discord"): "discord:9:8"}


@pytest.mark.parametrize(
    "text, found",
    [
        ("origin", ["telegram:7"]),
        ("local", ["local:cli"]),
        ("telegram", ["telegram:42"]),
        ("telegram:9", ["telegram:9"]),
        ("telegram@work:9:3", ["telegram@work:9:3"]),
        ("all", ["telegram:42", "slack:C1"]),
        ("slack, origin,slack:C1", ["slack:C1", "telegram:7"]),
        ("slack:#alerts", ["slack:#alerts"]),
        ("discord", ["discord:9:8"]),
    ],
)
def test_each_form_names_its_targets_and_each_of_them_once(text: str, found: list[str]) -> None:
    homes = WRITTEN_WHOLE if text == "discord" else HOMES
    assert [str(target) for target in recipients(text, origin=HERE, homes=homes)] == found


@pytest.mark.parametrize(
    "text, told",
    [
        ("", "empty place"),
        ("telegram,,slack", "empty place"),
        ("discord", "There is no account 'discord'. Known: slack, telegram, telegram@work."),
        ("telegram@work", "telegram@work has no home channel yet. Name a chat: telegram@work:<chat>, or write /set"),
        ("telegram:", "is not a target"),
    ],
)
def test_what_names_nobody_is_told_in_a_sentence(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        recipients(text, origin=HERE, homes=HOMES)


def test_there_is_no_way_back_where_nobody_asked() -> None:
    with pytest.raises(ValueError, match="no chat to send back to"):
        recipients("origin", origin=None, homes=HOMES)
    with pytest.raises(ValueError, match="'all' reaches nobody"):
        recipients("all", origin=HERE, homes={AccountKey("telegram"): ""})
