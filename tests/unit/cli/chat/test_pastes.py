"""Pastes: long ones are shown as their size and sent whole."""

from __future__ import annotations

from pathlib import Path

from hermes.cli.chat.pastes import Pastes

MARK = "[pasted {count} lines]"


def test_a_long_paste_is_a_mark_until_it_is_sent(tmp_path: Path) -> None:
    pastes = Pastes(MARK)
    text = "\n".join(map(str, range(200)))
    shown = f"before {pastes.add(text, tmp_path)} after"
    assert shown == "before [pasted 200 lines] after"
    assert pastes.unfold(shown) == f"before {text} after"
    assert pastes.unfold(shown) == shown  # typed by hand, the mark is only words


def test_two_pastes_of_one_size_stay_apart(tmp_path: Path) -> None:
    pastes = Pastes(MARK)
    shown = pastes.add("a\n" * 9, tmp_path) + pastes.add("b\n" * 9, tmp_path)
    assert pastes.unfold(shown) == "a\n" * 9 + "b\n" * 9


def test_a_short_paste_is_typed_as_it_is_with_the_line_ends_of_here(tmp_path: Path) -> None:
    assert Pastes(MARK).add("a\r\nb\rc", tmp_path) == "a\nb\nc"
