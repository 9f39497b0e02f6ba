"""Text is measured, split and trimmed as platforms count it, and nothing of it is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.messages import TextUnit
from hermes.core.text import length, one_line, split, storable, trim, visible, without_name

UNITS = st.sampled_from(list(TextUnit))
LIMITS = st.integers(min_value=4, max_value=300)
WORDS = st.text(alphabet="ab .\n\t!é漢🙂👍🏽🇫🇷\u200d\u0301", max_size=600)
LINES = st.lists(
    st.sampled_from(["```python", "```", "~~~", "````", "x = 1", "", "    indented", "One. Two! Three?", "word " * 30]),
    max_size=60,
).map("\n".join)


def without_space(text: str) -> str:
    return "".join(text.split())


def is_subsequence(short: str, long: str) -> bool:
    rest = iter(long)
    return all(character in rest for character in short)


def test_length_counts_as_the_platform_does() -> None:
    assert [length("a🙂é", unit) for unit in (TextUnit.CHARACTERS, TextUnit.UTF16, TextUnit.BYTES)] == [3, 4, 7]


@given(text=WORDS, limit=LIMITS, unit=UNITS)
def test_every_part_fits_and_nothing_but_space_is_lost(text: str, limit: int, unit: TextUnit) -> None:
    parts = split(text, limit, unit)
    assert all(length(part, unit) <= limit for part in parts)
    assert without_space("".join(parts)) == without_space(text)


@given(text=LINES, limit=st.integers(min_value=4, max_value=400), unit=UNITS)
def test_parts_with_code_fit_too_and_keep_all_code(text: str, limit: int, unit: TextUnit) -> None:
    parts = split(text, limit, unit)
    assert all(length(part, unit) <= limit for part in parts)
    kept = without_space(text.replace("`", "").replace("~", ""))
    assert is_subsequence(kept, without_space("".join(parts)))


@given(text=st.text(max_size=300), limit=LIMITS, unit=UNITS)
def test_any_text_at_all_can_be_split_and_trimmed(text: str, limit: int, unit: TextUnit) -> None:
    assert all(length(part, unit) <= limit for part in split(text, limit, unit))
    assert length(trim(text, limit, unit), unit) <= limit


def test_a_text_that_fits_is_left_alone() -> None:
    assert split("  hello\n", 10, TextUnit.UTF16) == ["  hello\n"]


def test_blank_text_has_no_parts() -> None:
    assert split(" \n ", 10, TextUnit.UTF16) == []


def test_a_cut_falls_between_paragraphs_then_lines_then_sentences_then_words() -> None:
    assert split("first one\n\nsecond one", 14, TextUnit.CHARACTERS) == ["first one", "second one"]
    assert split("first one\nsecond one", 14, TextUnit.CHARACTERS) == ["first one", "second one"]
    assert split("First one. Second", 14, TextUnit.CHARACTERS) == ["First one.", "Second"]
    assert split("first second third", 14, TextUnit.CHARACTERS) == ["first second", "third"]
    assert split("abcdefghij", 4, TextUnit.CHARACTERS) == ["abcd", "efgh", "ij"]


def test_code_that_is_cut_is_closed_and_opened_again_with_its_language() -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(30))
    parts = split(f"Look:\n\n```python\n{code}\n```\nDone.", 200, TextUnit.UTF16)
    assert len(parts) > 2
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert all(part.startswith("```python\n") for part in parts[1:-1])
    assert parts[0].startswith("Look:")
    assert parts[-1].endswith("Done.")


def test_indentation_of_code_survives_a_cut() -> None:
    body = "\n".join(f"    return {number}" for number in range(20))
    parts = split(f"```\n{body}\n```", 150, TextUnit.UTF16)
    assert all(line.startswith(("    return", "```")) for part in parts for line in part.split("\n"))


def test_an_opening_fence_is_not_left_alone_at_the_end_of_a_part() -> None:
    text = "word " * 37 + "\n```python\n" + "x = 1\n" * 30 + "```"
    first = split(text, 200, TextUnit.UTF16)[0]
    assert "```" not in first


def test_one_emoji_is_never_torn_apart() -> None:
    family = "👩\u200d👩\u200d👧"
    parts = split(family * 5, 12, TextUnit.UTF16)
    assert all(part.replace(family, "") == "" for part in parts)
    assert all(len(part) % 2 == 0 for part in split("🇫🇷🇩🇪🇯🇵🇧🇷", 6, TextUnit.UTF16))


def test_a_limit_too_small_for_one_character_is_refused() -> None:
    with pytest.raises(ValueError, match="parts of 3"):
        split("hello", 3, TextUnit.BYTES)


@given(st.text(alphabet=st.characters(), max_size=100))
def test_storable_text_has_no_nul_and_encodes(text: str) -> None:
    safe = storable(text)
    assert "\0" not in safe
    assert storable(safe) == safe
    safe.encode("utf-8")


def test_storable_joins_halves_and_replaces_lonely_ones() -> None:
    assert storable("a\0b") == "a␀b"
    assert storable("\ud83d\ude42") == "🙂"
    assert storable("x\ud83dy\ude42") == "x\ufffdy\ufffd"


def test_storable_does_not_touch_what_is_already_fine() -> None:
    assert storable("héllo 🙂\n") == "héllo 🙂\n"


def test_what_hides_in_a_text_is_spelled_out() -> None:
    assert visible("rm \u202egpj.exe\u200b\x1b[0m") == "rm ‹U+202E›gpj.exe‹U+200B›‹U+001B›[0m"
    assert visible("plain\n\ttext 🙂") == "plain\n\ttext 🙂"


def test_one_line_is_one_short_line() -> None:
    assert one_line(" a\n\n b\t", 10) == "a b"
    assert one_line("x" * 10_000_000, 5) == "xxxx…"


def test_trim_ends_with_a_mark_only_where_something_was_cut() -> None:
    assert trim("hello", 5, TextUnit.CHARACTERS) == "hello"
    assert trim("hello world", 7, TextUnit.CHARACTERS) == "hello…"
    assert trim("hello", 2, TextUnit.BYTES) == ""


def test_ten_million_characters_are_split_in_one_pass() -> None:
    parts = split("word " * 200_000, 4096, TextUnit.UTF16)
    assert len(parts) == 245


@pytest.mark.parametrize(
    "said, meant",
    [
        ("<@1> hello", "hello"),
        (" <@1>, <@1>:hello", "hello"),
        ("hello <@1> <@1>\n", "hello"),
        ("<@1> hello, <@1> there <@1>", "hello, <@1> there"),
        ("hello ", "hello "),
        ("<@1>  <@1>", ""),
        ("<@12> hello <@1", "<@12> hello <@1"),
    ],
)
def test_a_name_at_an_end_is_no_part_of_what_is_said(said: str, meant: str) -> None:
    assert without_name(said, re.compile("<@1>")) == meant
