"""Words without marks, and addresses that cannot be followed."""

from __future__ import annotations

import time

import pytest

from hermes.platforms.qq.markdown import has_marks, plain, without_addresses


@pytest.mark.parametrize(
    "text, words",
    [
        ("just words", "just words"),
        ("a **bold** and *slanted* word, ~~gone~~", "a bold and slanted word, gone"),
        ("# Title\n\ntext", "Title\n\ntext"),
        ("- one\n- two", "• one\n• two"),
        ("> said", "said"),
        ("see [here](https://a.example/x)", "see here (https://a.example/x)"),
        ("`code *stays*` here", "code *stays* here"),
        ("```py\nx = '**'\n```", "x = '**'"),
        ("2 * 3 * 4 and snake_case_name", "2 * 3 * 4 and snake_case_name"),
        ("---", "———"),
        ("***both***", "both"),
    ],
)
def test_marks_are_taken_out_and_words_stay(text: str, words: str) -> None:
    assert plain(text) == words
    assert has_marks(text) == (text != words)


def test_an_address_is_spelled_out() -> None:
    text = "go to https://a.example.com/x?y=1 or b.example.org, version 1.5 of file.py"
    assert without_addresses(text) == "go to a[.]example[.]com/x?y=1 or b[.]example[.]org, version 1.5 of file[.]py"
    assert without_addresses("[here](https://a.example.com)") == "here (a[.]example[.]com)"
    assert without_addresses("no address at all.") == "no address at all."


@pytest.mark.parametrize("piece", ["**", "[", "](", "```\n", "`", "_a", "*a*", "> ", "a.b"])
def test_no_text_takes_long(piece: str) -> None:
    started = time.process_time()
    plain(piece * 5000)
    without_addresses(piece * 5000)
    assert time.process_time() - started < 5.0
