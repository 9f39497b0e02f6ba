"""Extract text from PDFs page by page, in the child process (``child``)."""

from __future__ import annotations

import io
import logging

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from hermes.core.i18n.failures import describe_failure

MAX_PAGES = 1000
MAX_CHARS = 2_000_000


class UnreadablePdfError(Exception):
    """The text is a sentence for the model."""


def pdf_of(body: bytes) -> tuple[str, str, str]:
    """Title, text, and a note on what is missing; UnreadablePdfError where nothing can be read."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it grumbles about most files, to nobody
    try:
        return _read(PdfReader(io.BytesIO(body), strict=False))
    except UnreadablePdfError:
        raise
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, OSError, AssertionError) as error:
        # A broken file breaks the reader in any of these ways; MemoryError and the rest have their own words.
        raise UnreadablePdfError(f"The PDF is broken and cannot be read ({describe_failure(error)}).") from error


def _read(reader: PdfReader) -> tuple[str, str, str]:
    if reader.is_encrypted:
        _unlock(reader)
    parts: list[str] = []
    size = 0
    skipped: list[int] = []
    count = len(reader.pages)
    for number in range(1, min(count, MAX_PAGES) + 1):
        text = ""
        try:
            text = reader.pages[number - 1].extract_text().strip()
        except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError):
            skipped.append(number)  # one broken page does not spoil the others
        parts.append(f"[page {number}]\n{text or '(Nothing can be read here.)'}")
        size += len(text)
        if size > MAX_CHARS:
            return _title(reader), "\n\n".join(parts), f"The PDF has {count} pages; only the first {number} were read."
    if not size:
        if skipped or not count:
            raise UnreadablePdfError("The PDF is broken and cannot be read: none of its pages can.")
        pages = "1 page" if count == 1 else f"{count} pages"
        raise UnreadablePdfError(
            f"The PDF has {pages} and no text: probably scanned pictures. It cannot be read; vision needs images."
        )
    note = f"The PDF has {count} pages; only the first {MAX_PAGES} were read." if count > MAX_PAGES else ""
    if skipped:
        note = f"{note} Pages that could not be read: {', '.join(map(str, skipped[:20]))}.".strip()
    return _title(reader), "\n\n".join(parts), note


def _unlock(reader: PdfReader) -> None:
    """Many PDFs are encrypted with an empty password, only to forbid printing."""
    try:
        is_open = bool(reader.decrypt(""))
    except (PyPdfError, NotImplementedError, ImportError):
        is_open = False
    if not is_open:
        raise UnreadablePdfError("The PDF is encrypted and cannot be opened without its password.")


def _title(reader: PdfReader) -> str:
    try:
        found = reader.metadata.title if reader.metadata is not None else None
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return " ".join(str(found or "").split())[:300]
