"""The catalogue: no sentence is missing in any language, and each asks for the same things."""

from __future__ import annotations

import inspect
import itertools
import string

import pytest

from hermes.agent.toolkit.toolsets import GROUPS
from hermes.app.tools import COMMANDS
from hermes.core.errors import GatewayError
from hermes.core.i18n import zh
from hermes.core.i18n.catalogue import CATALOGUE, CHINESE, ENGLISH, LocalizedText, localize, words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import LANGUAGES
from hermes.core.roles import PersonRole
from hermes.services.adapters.account import Link
from hermes.services.commands.base import collect
from hermes.services.turns import StopReason

SENTENCES = sorted(name for name in vars(Texts) if not name.startswith("_"))
CAPITALS = [name for name in SENTENCES if name.isupper()]


def placeholders(sentence: str) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(sentence) if field is not None}


def test_every_language_has_its_words() -> None:
    assert set(CATALOGUE) == set(LANGUAGES)
    assert words_of("zh") is CHINESE
    assert words_of("en") is ENGLISH
    assert words_of("fr") is ENGLISH


def test_no_sentence_is_missing_in_chinese() -> None:
    assert set(SENTENCES) == {name for name in vars(type(CHINESE)) if not name.startswith("_")}


def test_a_sentence_asks_for_the_same_things_in_both() -> None:
    for name in CAPITALS:
        english, chinese = getattr(ENGLISH, name), getattr(CHINESE, name)
        assert isinstance(english, str), name
        assert isinstance(chinese, str), name
        assert placeholders(english) == placeholders(chinese), name
        assert "" not in placeholders(english), f"{name}: placeholders have names"
        assert english != chinese, name


def test_chinese_is_written_with_its_own_punctuation() -> None:
    for name in CAPITALS:
        text = getattr(CHINESE, name)
        for before, mark in itertools.pairwise(text):
            assert not (mark in ",;:?!()" and "\u4e00" <= before <= "\u9fff"), f"{name}: {before}{mark} in {text!r}"


def test_methods_take_the_same_in_both() -> None:
    for name in set(SENTENCES) - set(CAPITALS):
        english, chinese = inspect.signature(getattr(Texts, name)), inspect.signature(getattr(type(CHINESE), name))
        assert [str(each).lstrip("_") for each in english.parameters.values()] == [
            str(each) for each in chinese.parameters.values()
        ], name


@pytest.mark.parametrize(
    "seconds, english, chinese",
    [
        (0.2, "1 second", "1 秒"),
        (45, "45 seconds", "45 秒"),
        (60, "1 minute", "1 分钟"),
        (300, "5 minutes", "5 分钟"),
        (7200, "2 hours", "2 小时"),
        (86400, "1 day", "1 天"),
    ],
)
def test_a_length_of_time_reads_as_people_say_it(seconds: float, english: str, chinese: str) -> None:
    assert ENGLISH.span(seconds) == english
    assert CHINESE.span(seconds) == chinese


def test_every_command_group_and_role_is_told_in_chinese() -> None:
    commands = set(collect(COMMANDS).values())
    assert {command.name for command in commands} == set(zh.SUMMARIES)
    assert set(GROUPS) == set(zh.GROUPS)
    assert set(PersonRole) == set(zh.ROLES)
    assert set(Link) == set(zh.STATES)
    assert {reason.value for reason in StopReason} - {StopReason.DRAIN.value} <= set(zh.REASONS)
    for command in commands:
        assert ENGLISH.summary(command.name, command.summary) == command.summary
        assert CHINESE.summary(command.name, command.summary) == zh.SUMMARIES[command.name]
    assert ENGLISH.role("owner") == "owner"
    assert CHINESE.role("owner") == "主人"
    assert CHINESE.reason("no word of ours") == "no word of ours"


def test_a_sentence_is_told_to_each_in_their_own_words() -> None:
    error = GatewayError(LocalizedText(lambda words: words.ROLLBACK_ALREADY.format(number=3)))
    assert str(error) == "Change 3 has been taken back already."
    assert localize(error, CHINESE) == "第 3 处改动已经撤回过了。"
    assert localize(error, ENGLISH) == str(error)
    assert localize(GatewayError("plain"), CHINESE) == "plain"
    assert localize(GatewayError(), CHINESE) == ""
    assert type(localize("text", CHINESE)) is str
