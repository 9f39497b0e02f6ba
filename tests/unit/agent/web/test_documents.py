"""Documents that a person sends: their beginning as text, and the way to read on."""

from __future__ import annotations

import pytest

from hermes.agent.web.documents import MAX_BYTES, excerpt, is_document
from hermes.agent.web.reader import DocumentReader
from hermes.core.errors import ToolError
from tests.fakes.files import docx, png
from tests.fakes.pdf import pdf


async def test_a_text_is_shown_as_it_is() -> None:
    found = await excerpt(DocumentReader(), "dear diary\nü".encode(), "notes.txt", "text/plain")
    assert (found.shown, found.whole, found.next_line) == ("dear diary\nü", "", 0)


async def test_of_a_long_text_whole_lines_are_shown_and_the_next_one_is_named() -> None:
    text = "\n".join(f"line {number}" for number in range(1, 101))
    found = await excerpt(DocumentReader(), text.encode(), "notes.md", "", most=50)
    assert found.shown.splitlines()[-1] == "line 7"
    assert found.next_line == 8
    assert len((await excerpt(DocumentReader(), b"x" * 1000, "one.txt", "", most=50)).shown) == 50


async def test_pages_and_word_documents_have_a_text_of_their_own() -> None:
    read = DocumentReader()
    page = await excerpt(read, b"<html><body><p>Hello <b>there</b></p></body></html>", "page.html", "text/html")
    assert "Hello" in page.whole
    word = await excerpt(read, docx("Dear Ana,", "see &lt;you&gt;"), "letter.docx", "")
    assert word.shown == "Dear Ana,\nsee <you>"
    assert "the end" in (await excerpt(read, pdf(["the end"]), "book.pdf", "")).whole


@pytest.mark.parametrize(
    "data,name,told",
    [
        (png(), "notes.txt", "no text"),
        (b"PK\x03\x04 broken", "letter.docx", "broken"),
        (docx(), "letter.docx", "no text in the Word document"),
        (docx("&a;", more='<!DOCTYPE x [<!ENTITY a "b">]>'), "letter.docx", "definitions"),
        (b"%PDF-1.4 broken", "book.pdf", "broken"),
        (b"x" * (MAX_BYTES + 1), "huge.txt", "too large"),
    ],
)
async def test_what_cannot_be_read_is_told(data: bytes, name: str, told: str) -> None:
    with pytest.raises(ToolError, match=told):
        await excerpt(DocumentReader(), data, name, "")


def test_a_document_is_known_by_its_name_or_type() -> None:
    assert is_document("a.CSV", "")
    assert is_document("a", "text/x-thing")
    assert not is_document("a.zip", "application/zip")
