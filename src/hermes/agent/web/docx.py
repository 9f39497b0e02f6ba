"""Extract text from Word documents, in the child process (``child``)."""

from __future__ import annotations

import io
import zipfile
from xml.etree import ElementTree

from hermes.core.i18n.failures import describe_failure

MAX_BYTES = 50_000_000
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


class UnreadableDocxError(Exception):
    """The text is a sentence for the model."""


def docx_of(body: bytes) -> str:
    """Its paragraphs, one line each, cells of a table apart by tabs; UnreadableDocxError where there are none."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive, archive.open("word/document.xml") as file:
            written = file.read(MAX_BYTES + 1)
    except (zipfile.BadZipFile, KeyError, OSError, ValueError, NotImplementedError, RuntimeError, EOFError) as error:
        raise UnreadableDocxError(
            f"The Word document is broken and cannot be read ({describe_failure(error)})."
        ) from error
    if len(written) > MAX_BYTES:
        raise UnreadableDocxError("The Word document is far larger than it looks. It is not read.")
    if b"<!DOCTYPE" in written or b"<!ENTITY" in written:  # no word processor writes one; entities can grow for ever
        raise UnreadableDocxError("The Word document holds definitions that no document needs. It is not read.")
    try:
        root = ElementTree.fromstring(written)  # noqa: S314 - without a DTD there is nothing that could grow
    except ElementTree.ParseError as error:
        raise UnreadableDocxError("The Word document is broken and cannot be read (its XML is damaged).") from error
    text = "\n".join(_lines(root)).strip()
    if not text:
        raise UnreadableDocxError("There is no text in the Word document.")
    return text


def _lines(root: ElementTree.Element) -> list[str]:
    body = root.find(f"{_W}body")
    lines: list[str] = []
    for block in body if body is not None else ():
        if block.tag == f"{_W}tbl":
            for row in block.iter(f"{_W}tr"):
                lines.append("\t".join(_text(cell) for cell in row.iter(f"{_W}tc")))
        else:
            lines += [_text(paragraph) for paragraph in block.iter(f"{_W}p")]
    return lines


def _text(block: ElementTree.Element) -> str:
    parts = []
    for item in block.iter():
        if item.tag == f"{_W}t":
            parts.append(item.text or "")
        elif item.tag in (f"{_W}tab", f"{_W}br"):
            parts.append(" ")
    return "".join(parts)
