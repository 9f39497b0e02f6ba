"""What a terminal would obey is spelled out; what people write stays as it is."""

from __future__ import annotations

import json
import sys

import pytest

from hermes.core.printable import printable, printable_json, printable_line
from hermes.core.text import visible


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "two\nlines",
        "a\ttab",
        "你好",
        "Zürich",
        "👨‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ✌️",
        "שלום",
        "می‌خواهم",
        "e\u0301",
        "non\u00a0breaking",
    ],
)
def test_what_people_write_stays(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    "text, shown",
    [
        ("\x1b[2J", "‹U+001B›[2J"),
        ("\x9b2J", "‹U+009B›2J"),
        ("\x07\x08\x7f\x00", "‹U+0007›‹U+0008›‹U+007F›‹U+0000›"),
        ("a\u202egpj.exe", "a‹U+202E›gpj.exe"),
        ("one\r\ntwo", "one\ntwo"),
        ("one\rtwo", "one‹U+000D›two"),
        ("\u2028\u2029\x85", "‹U+2028›‹U+2029›‹U+0085›"),
        ("\ud83d", "‹U+D83D›"),
    ],
)
def test_what_a_terminal_obeys_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_no_control_character_at_all_is_left() -> None:
    text = "".join(map(chr, range(sys.maxunicode + 1)))
    shown = printable(text)
    assert not {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"} & set(shown)
    assert not {*"\u061c\u200e\u200f", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))} & set(shown)
    shown.encode("utf-8")


def test_a_line_stays_one_line_for_every_reader() -> None:
    breaks = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
    assert printable_line(f"a{breaks}b\tc").splitlines() == [
        "a\\n\\r‹U+000B›‹U+000C›‹U+001C›‹U+001D›‹U+001E›‹U+0085›‹U+2028›‹U+2029›b\\tc"
    ]


def test_json_is_escaped_and_still_says_the_same() -> None:
    value = "".join(map(chr, range(0x300))) + "\u202e\u2066\u2028\ud800"
    encoded = printable_json(json.dumps(value, ensure_ascii=False))
    assert printable(encoded) == encoded
    assert json.loads(encoded) == value


def test_what_a_person_judges_shows_at_least_as_much() -> None:
    for code in range(0x3000):
        if printable(chr(code)) != chr(code):
            assert visible(chr(code)) != chr(code)
