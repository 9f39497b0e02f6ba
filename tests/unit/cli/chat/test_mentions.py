"""Files behind @: read into the message, within bounds."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from hermes.cli.chat.mentions import MAX_FILE_BYTES, as_mention, read_mentions
from hermes.core.messages import MAX_PICTURE_BYTES

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 10


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


@pytest.mark.parametrize(
    "text",
    [
        "what is in @{name}?",
        'look: @"{path}"',
        "look at {path}",
        "look at {path}.",
        "look at '{path}', please",
        'look at "{path}"',
        "look at file://{path}",
        "{escaped}",
        "./{name} shows what?",
    ],
)
def test_a_picture_goes_with_the_message_however_its_path_is_written(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.PNG"
    path.write_bytes(PNG)
    said = text.format(name=path.name, path=path, escaped=str(path).replace("-", "\\-"))
    found = read_mentions(said, tmp_path)
    assert found.text == said
    assert [(one["name"], one["path"]) for one in found.pictures] == [("a.PNG", str(path))]
    assert base64.b64decode(found.pictures[0]["data"]) == PNG
    assert found.added == (("a.PNG", len(PNG)),)


def test_a_picture_is_sent_once_though_it_is_named_twice(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    assert len(read_mentions("@a.png and ./a.png", tmp_path).pictures) == 1


def test_what_only_looks_like_a_picture_is_left_out_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("no picture")
    (tmp_path / "b.jpg").write_bytes(b"\xff\xd8\xff" + b"x" * MAX_PICTURE_BYTES)
    for number in range(5):
        (tmp_path / f"c{number}.gif").write_bytes(b"GIF89a")
    found = read_mentions("@a.png @b.jpg @c0.gif @c1.gif @c2.gif @c3.gif @c4.gif", tmp_path)
    assert [one["name"] for one in found.pictures] == [f"c{number}.gif" for number in range(4)]
    assert dict(found.left_out) == {
        "a.png": "not a picture that a model can see (PNG, JPEG, GIF, WebP)",
        "b.jpg": "larger than 5 MB",
        "c4.gif": "at most 4 pictures",
    }


@pytest.mark.parametrize(
    "text", ["see a.png", "https://example.org/a.png", "'a b'", "~nobody-here/a.png", "/nowhere/a.png"]
)
def test_words_that_name_no_picture_here_stay_words(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    found = read_mentions(text, tmp_path)
    assert (found.text, found.pictures, found.left_out) == (text, (), ())


def test_a_pasted_path_of_a_picture_becomes_a_mention(tmp_path: Path) -> None:
    path = tmp_path / "my pic.png"
    path.write_bytes(PNG)
    for pasted in (str(path), f"'{path}'", str(path).replace(" ", "\\ "), f"file://{str(path).replace(' ', '%20')} \n"):
        assert as_mention(pasted, tmp_path) == f'@"{path}"'
    assert as_mention("some words.png", tmp_path) == ""
    assert as_mention(f"{path}\n{path}", tmp_path) == ""
