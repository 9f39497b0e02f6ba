"""Markdown on a screen: what is shown, how wide it is, and that a stream looks like the whole."""

from __future__ import annotations

import random

import pytest

from hermes.cli.chat.lines import Line, StyledText, line_width, text_of, wrap
from hermes.cli.chat.markdown import MarkdownStream, render
from tests.fakes.hostile import HOSTILE, raw_in

DOCUMENT = """\
# Plans for *May*

Some **bold** words, `code`, ~~gone~~ and [a link](https://example.org/a?b=c).

| Name | What it does | Costs |
|------|:------------:|------:|
| one  | **first** of a long row of words that does not fit | 1 |
| 二号  | 中文说明，应当按两列计算宽度 | 22 |

- an item whose words go on and on until the window is full and then some
  - [x] below it
1. first
   continued
2. second

> quoted words that are long enough to be wrapped in a narrow window, twice
> > nested

```python
def add(a: int, b: int) -> int:
    \"\"\"Add.\"\"\"
    return a + b  # done
```

---
结束语：这是一个没有空格的长句子，需要在任意两个字之间换行，但标点不能在行首。
👨‍👩‍👧 emoji 🎉 end
"""


def shown(lines: list[Line]) -> list[str]:
    return [text_of(line) for line in lines]


def streamed(pieces: list[str], width: int) -> list[Line]:
    stream = MarkdownStream(width)
    lines: list[Line] = []
    for piece in pieces:
        stream.feed(piece)
        stream.live()
        lines += stream.take()
    return lines + stream.end()


def is_code(line: Line) -> bool:
    return any("block" in piece.style.split() for piece in line)


def styles_of(lines: list[Line], text: str) -> set[str]:
    return {name for line in lines for piece in line if text in piece.text for name in piece.style.split()}


def test_no_mark_of_markdown_is_left_on_the_screen() -> None:
    text = "\n".join(shown([line for line in render(DOCUMENT, 80) if not is_code(line)]))
    assert not any(mark in text for mark in ("**", "`", "~~", "|--", "](", "# ", "> "))


@pytest.mark.parametrize("width", [24, 40, 80, 120])
def test_no_row_is_wider_than_the_window(width: int) -> None:
    lines = render(DOCUMENT, width)
    assert max(line_width(line) for line in lines if not is_code(line)) <= width


@pytest.mark.parametrize("seed", range(40))
def test_a_stream_cut_anywhere_looks_like_the_whole(seed: int) -> None:
    cuts = random.Random(seed)
    width = cuts.choice([20, 33, 80, 132])
    pieces, rest = [], DOCUMENT
    while rest:
        size = cuts.randint(1, 30)
        pieces.append(rest[:size])
        rest = rest[size:]
    whole = render(DOCUMENT, width)
    assert shown(streamed(pieces, width)) == shown(whole)


def test_words_are_wrapped_between_words() -> None:
    assert shown(render("one two three four", 9)) == ["one two", "three", "four"]


def test_a_word_longer_than_the_window_is_cut() -> None:
    assert shown(render("a 0123456789 b", 4)) == ["a", "0123", "4567", "89 b"]


def test_chinese_is_wrapped_between_characters_and_no_row_begins_with_a_full_stop() -> None:
    assert shown(render("一二三四五。六七", 10)) == ["一二三四", "五。六七"]


def test_styles_within_a_word_do_not_break_it() -> None:
    assert shown(render("abc **de**f ghi", 6)) == ["abc", "def", "ghi"]


def test_columns_of_a_table_stand_below_each_other_with_wide_characters() -> None:
    lines = render("| 名字 | n |\n|---|---|\n| ab | 1 |\n| 中文字 | 2 |", 80)
    assert shown(lines) == ["名字   │ n", "───────┼──", "ab     │ 1", "中文字 │ 2"]


def test_a_table_wider_than_the_window_wraps_its_widest_column() -> None:
    lines = render("| a | b |\n|---|---|\n| x | one two three four five |", 16)
    assert shown(lines) == ["a │ b", "──┼─────────────", "x │ one two", "  │ three four", "  │ five"]


def test_a_table_with_too_many_columns_becomes_a_list() -> None:
    lines = render("| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |", 12)
    assert shown(lines) == ["a: 1", "b: 2", "c: 3"]


def test_items_hang_below_their_words() -> None:
    assert shown(render("- one two three\n10. four five six", 10)) == [
        "• one two",
        "  three",
        "10. four",
        "    five",
        "    six",
    ]


def test_code_is_coloured_and_its_blanks_stay() -> None:
    lines = render("```python\nif x:\n\n    return 1  # why\n```", 80)
    assert shown(lines) == ["  if x:", "", "      return 1  # why"]
    assert "keyword" in styles_of(lines, "return")
    assert "comment" in styles_of(lines, "# why")


def test_code_in_an_unknown_language_is_shown_as_it_is() -> None:
    assert shown(render("```brainduck\n a  b\n```", 80)) == ["   a  b"]


def test_code_below_an_item_is_code() -> None:
    assert shown(render("1. do\n    ```sh\n    ls\n    ```\n2. be", 80)) == ["1. do", "      ls", "2. be"]


def test_a_line_of_code_is_finished_with_its_line_feed() -> None:
    stream = MarkdownStream(80)
    stream.feed("```python\na = 1\nb = ")
    assert shown(stream.take()) == ["  a = 1"]
    assert shown(stream.live()) == ["  b = "]


def test_half_a_mark_is_not_shown_while_it_streams() -> None:
    stream = MarkdownStream(80)
    stream.feed("some **bold")
    assert shown(stream.live()) == ["some bold"]
    assert "strong" in styles_of(stream.live(), "bold")
    stream.feed("** and [a li")
    assert shown(stream.live()) == ["some bold and"]


def test_a_table_grows_below_the_finished_lines() -> None:
    stream = MarkdownStream(80)
    stream.feed("text\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3")
    assert shown(stream.take()) == ["text"]
    assert shown(stream.live()) == ["a │ b", "──┼──", "1 │ 2"]
    stream.feed(" | 4 |\n\nend")
    assert shown(stream.take()) == ["a │ b", "──┼──", "1 │ 2", "3 │ 4"]
    assert shown(stream.end()) == ["", "end"]


def test_the_live_part_is_wrapped_at_the_width_of_now() -> None:
    stream = MarkdownStream(40)
    stream.feed("one two three four")
    assert len(stream.live()) == 1
    stream.width = 9
    assert shown(stream.live()) == ["one two", "three", "four"]


def test_only_web_and_mail_addresses_become_links() -> None:
    for address in ("javascript:alert(1)", "file:///etc/passwd", "ssh://host", "data:text/html,x"):
        assert all(piece.link == "" for line in render(f"[click]({address})", 80) for piece in line)
    (line,) = render("[click](https://example.org)", 80, has_links=True)
    assert line == (StyledText("click", "link", "https://example.org"),)


def test_a_link_that_could_mislead_shows_its_address() -> None:
    (line,) = render("[https://bank.example](https://evil.example)", 80, has_links=True)
    assert text_of(line) == "https://bank.example (https://evil.example)"


def test_where_links_are_not_shown_the_address_is() -> None:
    assert shown(render("[docs](https://example.org/d)", 80)) == ["docs (https://example.org/d)"]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_terminal_would_obey_is_spelled_out(text: str) -> None:
    lines = streamed(list(text), 80)
    assert raw_in("\n".join(shown(lines))) == []


def test_a_thousand_quotes_in_quotes_are_shown() -> None:
    assert render(">" * 3000 + " deep", 40)


def test_a_long_text_takes_linear_time() -> None:
    stream = MarkdownStream(80)
    for _ in range(2000):
        stream.feed("word **and** more ")
    assert len(stream.end()) > 100


def test_wrapping_an_empty_line_gives_one_empty_row() -> None:
    assert wrap((), 10) == [()]
