from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.config.dotenv import parse_dotenv


def values(text: str | bytes) -> dict[str, str]:
    lines, _ = parse_dotenv(text if isinstance(text, bytes) else text.encode(), ".env")
    return {name: line.value for name, line in lines.items()}


@pytest.mark.parametrize(
    "line,value",
    [
        ("A=plain", "plain"),
        ("A = spaced out ", "spaced out"),
        ("export A=exported", "exported"),
        ("A=a=b==", "a=b=="),
        ("A='single # $HOME'", "single # $HOME"),
        ('A="two\\nlines \\"quoted\\" \\$x"', 'two\nlines "quoted" $x'),
        ('A="c:\\temp\\dir"', "c:\\temp\\dir"),
        ("A=value # a comment", "value"),
        ("A=pass#word", "pass#word"),
        ("A='quoted' # a comment", "quoted"),
        ("A=", ""),
        ("A=# nothing but a comment", ""),
        ("A=中文", "中文"),
    ],
)
def test_a_line_is_read_as_people_write_it(line: str, value: str) -> None:
    assert values(line) == {"A": value}


def test_comments_blank_lines_bom_and_windows_line_ends_do_not_disturb() -> None:
    assert values(b"\xef\xbb\xbf# first\r\n\r\nA=1\r\n  # indented\rB=2") == {"A": "1", "B": "2"}


def test_a_line_that_cannot_be_read_is_named_by_its_number_without_its_text() -> None:
    lines, problems = parse_dotenv(b"A=1\nsecret-without-name\nB='open secret\nC='x' y\nD=4", ".env")
    assert {name: line.value for name, line in lines.items()} == {"A": "1", "D": "4"}
    assert [problem.where for problem in problems] == [".env line 2", ".env line 3", ".env line 4"]
    assert "secret" not in " ".join(map(str, problems))


def test_of_a_name_given_twice_the_last_counts_and_the_owner_is_told() -> None:
    lines, problems = parse_dotenv(b"A=1\nA=2", ".env")
    assert lines["A"].value == "2"
    assert "already set in line 1" in str(problems[0])


def test_a_byte_that_is_not_utf8_is_told_with_its_line_and_the_rest_is_read() -> None:
    lines, problems = parse_dotenv(b"A=1\nB=\xff\xfe\nC=3", ".env")
    assert lines["C"].value == "3"
    assert problems[0].where == ".env line 2"


@given(st.binary(max_size=300))
def test_no_content_whatever_raises(content: bytes) -> None:
    _, problems = parse_dotenv(content, ".env")
    assert all(problem.where.startswith(".env") for problem in problems)
