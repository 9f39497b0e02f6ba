"""Tables as a terminal shows them."""

from __future__ import annotations

from hermes.cli.support.tables import display_width, fit, table


def test_columns_line_up_whatever_is_written_in_them() -> None:
    rows = [("Ana", "✓ answered", "“hi”"), ("王小明", "✗ failed", "“你好”")]
    lines = table(("person", "outcome", "text"), rows, 60)
    assert lines == [
        "person  outcome     text",
        "Ana     ✓ answered  “hi”",
        "王小明  ✗ failed    “你好”",
    ]
    # Each line's last cell begins in the same column of the screen.
    assert {display_width(line[: line.index(last)]) for line, last in zip(lines, ["text", "“", "“"], strict=True)} == {
        20
    }


def test_the_last_column_is_cut_at_the_windows_edge() -> None:
    lines = table(("id", "text"), [("ev_1", "x" * 100), ("ev_2", "字" * 100)], 30)
    assert [display_width(line) for line in lines[1:]] == [30, 29]  # half of a wide character is not shown
    assert all(line.endswith("…") for line in lines[1:])


def test_a_window_without_room_for_the_last_column_shows_the_others_whole() -> None:
    assert table(("id", "text"), [("ev_1k4m9x2c7qf4b", "hello")], 24) == ["id", "ev_1k4m9x2c7qf4b"]


def test_a_text_is_cut_only_where_it_does_not_fit() -> None:
    assert fit("exactly", 7) == "exactly"
    assert fit("exactly", 6) == "exact…"
    assert display_width("é") == display_width("e\u0301") == 1
