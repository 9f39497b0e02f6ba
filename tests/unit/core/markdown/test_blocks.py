"""Blocks that most platforms cannot show as they are."""

from __future__ import annotations

import pytest

from hermes.core.markdown.blocks import FENCE, Style, aligned, end_of_code, is_table, parse, render, table_rows

TABLE = ["| name | 城市 |", "|---|:-:|", "| `a` | 上海 |", r"| b\|c |", "after"]


def test_a_table_is_aligned_by_columns_and_chinese_takes_two() -> None:
    assert is_table(TABLE, 0)
    rows, end = table_rows(TABLE, 0, lambda cell: cell.strip("`"))
    assert (rows, end) == ([["name", "城市"], ["a", "上海"], ["b|c"]], 4)
    assert aligned(rows) == ["name  城市", "────  ────", "a     上海", "b|c"]


@pytest.mark.parametrize("lines", [["a | b"], ["a | b", "c | d"], ["a | b", "---"], ["no", "|---|"]])
def test_what_has_no_line_below_its_heads_is_no_table(lines: list[str]) -> None:
    assert not is_table(lines, 0)


@pytest.mark.parametrize(
    "lines,end", [(["```py", "x", "```", "y"], 2), (["````", "```", "````"], 2), (["~~~", "x"], 2)]
)
def test_code_ends_at_its_own_marker_or_with_the_text(lines: list[str], end: int) -> None:
    opening = FENCE.match(lines[0])
    assert opening is not None
    assert end_of_code(lines, 0, opening[1]) == end


def test_a_line_of_blanks_without_end_is_soon_known_to_be_no_table() -> None:
    assert not is_table(["a | b", " " * 300_000 + "x|"], 0)
    assert not is_table(["a | b", "|-" + " " * 300_000 + "x"], 0)
    assert is_table(["a | b", " \t |" + " " * 300_000 + "--- | :-: |\t "], 0)


@pytest.mark.parametrize(
    "text",
    [
        "a\n\n\n\nb",
        "  two\n    four\n\ttab",
        "[x]: https://a.example",
        "3. three\n7.  seven",
        "a <b> &amp; c",
        " \n",
        "",
    ],
)
def test_the_layout_of_the_model_stays(text: str) -> None:
    assert render(text, Style()) == text


@pytest.mark.parametrize("text", ["**你好：**世界", "请运行**“重启”**命令", "a**b**c", "(**b**)", "**b**."])
def test_bold_counts_beside_punctuation_and_letters_of_any_script(text: str) -> None:
    assert render(text, Style()) == text.replace("**", "")


@pytest.mark.parametrize(
    "text", ["snake_case_name", "2 * 3 * 4", "**a", "a ** b **", "<https://a.example", "[a] (b)", "`a"]
)
def test_a_mark_without_a_partner_is_text(text: str) -> None:
    assert [span.kind for span in parse(text, Style())[0].spans if span.kind != "text"] == []
    assert render(text, Style()) == text


def test_styles_nest_and_code_is_left_alone() -> None:
    kinds = [(span.kind, span.text) for span in parse("**a *b* `c*d`**", Style())[0].spans]
    assert kinds == [
        *(("mark", "**"), ("text", "a "), ("mark", "*"), ("text", "b"), ("mark", "*"), ("text", " ")),
        *(("code", "c*d"), ("mark", "**")),
    ]
