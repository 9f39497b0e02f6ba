"""In which language somebody is spoken to."""

from __future__ import annotations

import pytest

from hermes.core.i18n.languages import guess, pick


def test_what_the_owner_set_holds_for_everybody() -> None:
    assert pick("zh", "en", hint="en", text="hello") == "zh"
    assert pick("en", "zh", hint="zh-hans", text="你好") == "en"


def test_a_person_keeps_their_own_language_whatever_they_write() -> None:
    assert pick("", "zh", hint="en", text="hello") == "zh"
    assert pick("", "en", hint="zh-hans", text="你好") == "en"


def test_whoever_wants_it_automatic_is_answered_as_they_write() -> None:
    assert pick("", "auto", text="你好") == "zh"
    assert pick("", "auto", text="hello") == "en"


def test_whoever_is_not_known_gets_english() -> None:
    assert pick("", "") == "en"
    assert pick("klingon", "") == "en"


@pytest.mark.parametrize(
    "hint, text, language",
    [
        ("", "hello", ""),
        ("", "", ""),
        ("", "42 :)", ""),
        ("", "你好", "zh"),
        ("", "帮我看一下 nginx 的 access log", "zh"),
        ("", "What does 你好 mean, and how do I say it?", ""),
        ("en", "你好", "zh"),  # what somebody writes counts more than their telephone
        ("zh-hans", "hello", "zh"),
        ("zh_CN", "", "zh"),
        ("ZH", "", "zh"),
        ("de", "hallo", "en"),
        ("", "こんにちは世界", ""),
        ("", "漢字とかな", ""),
        ("", "안녕하세요", ""),
        ("", "𠮷" * 10, "zh"),
        ("", "\x00\u200b\U000e0041", ""),
    ],
)
def test_a_message_shows_its_language(hint: str, text: str, language: str) -> None:
    assert guess(hint, text) == language
