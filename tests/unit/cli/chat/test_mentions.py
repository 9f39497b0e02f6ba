"""Files behind @: read into the message, within bounds."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.cli.chat.mentions import MAX_FILE_BYTES, read_mentions


def test_a_mentioned_file_is_read_into_the_message(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("content of a\n")
    found = read_mentions("look at @a.txt, please", tmp_path)
    assert found.text == "look at @a.txt, please\n\na.txt:\n```\ncontent of a\n```"
    assert found.added == (("a.txt", 13),)


def test_a_name_with_blanks_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("x")
    assert read_mentions('@"a b.txt"', tmp_path).added == (("a b.txt", 1),)


def test_a_word_with_an_at_sign_that_names_no_file_stays_a_word(tmp_path: Path) -> None:
    assert read_mentions("mail ana@example.org or @ana", tmp_path).text == "mail ana@example.org or @ana"


def test_what_is_no_regular_text_file_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\x00\x9f")
    (tmp_path / "big").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    found = read_mentions("@pipe @folder @binary @big @/dev/zero", tmp_path)
    assert found.added == ()
    assert [name for name, _ in found.left_out] == ["pipe", "folder", "binary", "big", "/dev/zero"]


def test_ticks_in_a_file_do_not_end_its_block(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("```\ncode\n```\n")
    assert "````\n```\ncode\n```\n````" in read_mentions("@a.md", tmp_path).text


def test_a_file_that_is_mentioned_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert len(read_mentions("@a @a @./a", tmp_path).added) == 1
