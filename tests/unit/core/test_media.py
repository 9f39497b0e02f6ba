"""Which lines of an answer send files, and what a file is."""

from __future__ import annotations

import pytest

from hermes.core.media import TextPart, WantedFile, kind_of, pieces, without_files
from hermes.core.messages import AttachmentKind
from tests.fakes.files import OPUS, png, wav


@pytest.mark.parametrize(
    "line,path",
    [
        ("MEDIA:report.pdf", "report.pdf"),
        ("MEDIA: out/my report.pdf  ", "out/my report.pdf"),
        ("- MEDIA:/tmp/a.png", "/tmp/a.png"),
        ("`MEDIA:a.png`", "a.png"),
        ("MEDIA:`a.png`", "a.png"),
        ("**MEDIA:a.png**", "a.png"),
        ('MEDIA:"a b.png"', "a b.png"),
        ("MEDIA:file:///tmp/a.png", "/tmp/a.png"),
        ("MEDIA:a (1).png", "a (1).png"),
    ],
)
def test_a_line_names_a_file_however_a_model_writes_it(line: str, path: str) -> None:
    assert pieces(line) == [WantedFile(path)]


def test_a_line_of_blanks_costs_no_time() -> None:
    text = "MEDIA:a" + " " * 200_000 + "b"
    assert pieces(text) == [WantedFile(text.removeprefix("MEDIA:"))]


def test_text_and_files_keep_their_order() -> None:
    text = "Here it is:\n\nMEDIA:a.pdf\nand the picture\nMEDIA:b.png\n\nDone."
    assert pieces(text) == [
        TextPart("Here it is:"),
        WantedFile("a.pdf"),
        TextPart("and the picture"),
        WantedFile("b.png"),
        TextPart("Done."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Write MEDIA:a.png on a line of its own.",
        "```\nMEDIA:a.png\n[[as_document]]\n```",
        "~~~text\nMEDIA:a.png\n~~~",
        "MULTIMEDIA:a.png",
        "MEDIA:",
        "media:a.png",
    ],
)
def test_words_about_files_send_none(text: str) -> None:
    assert pieces(text) == [TextPart(text)]


def test_a_tag_counts_for_its_line_and_on_a_line_of_its_own_for_all() -> None:
    text = "MEDIA:a.png [[as_document]]\nMEDIA:b.ogg\n[[audio_as_voice]]"
    assert pieces(text) == [WantedFile("a.png", as_voice=True, as_document=True), WantedFile("b.ogg", as_voice=True)]
    assert pieces("[[audio_as_voice]] Listen:\nMEDIA:b.ogg") == [
        TextPart(" Listen:"),
        WantedFile("b.ogg", as_voice=True),
    ]


def test_a_preview_shows_no_path() -> None:
    assert without_files("Look:\nMEDIA:/home/ana/a.png\n[[as_document]]\nNice, isn't it?\nMEDIA:/ho") == (
        "Look:\n\nNice, isn't it?"
    )


@pytest.mark.parametrize(
    "data,name,kind,mime",
    [
        (png(), "a.txt", AttachmentKind.IMAGE, "image/png"),
        (b"\xff\xd8\xff\xe0", "a", AttachmentKind.IMAGE, "image/jpeg"),
        (b"RIFF\0\0\0\0WEBP", "a", AttachmentKind.IMAGE, "image/webp"),
        (wav(), "a", AttachmentKind.AUDIO, "audio/wav"),
        (OPUS, "a", AttachmentKind.AUDIO, "audio/ogg"),
        (b"ID3\4", "a", AttachmentKind.AUDIO, "audio/mpeg"),
        (b"\xff\xfb\x90\x00", "a", AttachmentKind.AUDIO, "audio/mpeg"),
        (b"\0\0\0\x20ftypisom", "a", AttachmentKind.VIDEO, "video/mp4"),
        (b"\0\0\0\x20ftypM4A ", "a", AttachmentKind.AUDIO, "audio/mp4"),
        (b"\x1aE\xdf\xa3", "a", AttachmentKind.VIDEO, "video/webm"),
        (b"<html>", "a.png", AttachmentKind.DOCUMENT, "application/octet-stream"),
        (b"%PDF-1.4", "a.pdf", AttachmentKind.DOCUMENT, "application/pdf"),
        (b"\xff\xfe\x00", "a.unknown", AttachmentKind.DOCUMENT, "application/octet-stream"),
    ],
)
def test_a_file_is_what_its_bytes_say(data: bytes, name: str, kind: AttachmentKind, mime: str) -> None:
    assert kind_of(data, name) == (kind, mime)
