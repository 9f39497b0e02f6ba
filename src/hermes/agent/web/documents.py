"""Extract the beginning of a document for the model, and where to read on."""

from __future__ import annotations

from pathlib import PurePath

from hermes.agent.programs import StartedGroup
from hermes.agent.web.reader import WORD, DocumentReader
from hermes.agent.web.safe_http import Fetched
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError

MAX_SHOWN_CHARS = 6000
MAX_BYTES = 20_000_000
_TYPES = {
    ".pdf": "application/pdf",
    ".docx": WORD,
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
}
_TEXT_ENDINGS = (
    ".txt .md .markdown .rst .csv .tsv .json .jsonl .ndjson .yaml .yml .toml .ini .cfg .conf .log .xml .svg .tex .srt "
    ".py .js .ts .tsx .jsx .c .h .cpp .hpp .cc .java .go .rs .rb .php .sh .bash .sql .css .diff .patch .eml .ics .vcf"
)
_TEXTS = frozenset(_TEXT_ENDINGS.split())


@dataclass(frozen=True, slots=True)
class Excerpt:
    """``whole``: the full text where the file is no text; ``next_line``: the first line not shown whole, or 0."""

    shown: str
    whole: str = ""
    next_line: int = 0
    note: str = ""


def is_document(name: str, mime: str) -> bool:
    """Tell whether it may be read as text at all, by what it is called."""
    ending = PurePath(name.lower()).suffix
    return ending in _TYPES or ending in _TEXTS or mime.startswith("text/") or mime in (*_TYPES.values(), _JSON)


_JSON = "application/json"


async def excerpt(
    reader: DocumentReader,
    data: bytes,
    name: str,
    mime: str,
    *,
    most: int = MAX_SHOWN_CHARS,
    started_group: StartedGroup = None,
) -> Excerpt:
    """Return the beginning of a document; ToolError when it is none that can be read."""
    if len(data) > MAX_BYTES:
        raise ToolError(f"it is too large to be read ({len(data):,} bytes)")
    ending = PurePath(name.lower()).suffix
    mime_type = _TYPES.get(ending) or ("text/plain" if ending in _TEXTS or mime.startswith("text/") else mime)
    if mime_type == "text/plain" and b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolError("it is no text, whatever it is called")
    readable = await reader.read(Fetched(f"file:{name}", mime_type, "", data), started_group)
    text = readable.text.strip("\n")
    shown, next_line = text, 0
    if len(text) > most:  # whole lines up to the limit; one very long line is cut
        cut = text[:most]
        shown = cut.rpartition("\n")[0] or cut
        next_line = shown.count("\n") + (2 if "\n" in cut else 1)
    is_its_own = mime_type == "text/plain" and not data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return Excerpt(shown, "" if is_its_own else text, next_line, readable.note)
