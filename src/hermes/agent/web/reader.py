"""Read fetched bytes as text; pages and PDFs in a child process."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from hermes.agent.programs import StartedGroup, TooMuchError, run_program
from hermes.agent.web import child
from hermes.agent.web.charsets import known_charset
from hermes.agent.web.safe_http import Fetched
from hermes.agent.web.untrusted import without_unseen
from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError

TYPES = (
    "text/",
    "application/json",
    "application/xhtml+xml",
    "application/xml",
    "application/pdf",
    "application/x-pdf",
    "application/javascript",
    "application/yaml",
    "application/toml",
    "application/x-ndjson",
    "application/ld+json",
    "application/feed+json",
    "application/rss+xml",
    "application/atom+xml",
    "application/octet-stream",  # what servers say when they do not know; its first bytes tell
    "binary/octet-stream",
)
AT_ONCE = 2
CHILD_SECONDS = 30.0
PRETTY_BYTES = 200_000
KEPT_TEXTS = 4
KEPT_SECONDS = 300.0

Kind = Literal["html", "pdf", "docx", "text"]
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MAX_PRINTED_BYTES = 200_000_000  # by the child: more than the longest text with every character escaped


@dataclass(frozen=True, slots=True)
class Readable:
    """``text`` holds nothing unseen. ``note`` is a sentence about what is missing, or nothing."""

    title: str
    text: str
    note: str = ""


class ReadingCache:
    """Keep a few long texts for minutes, so that the pieces of a reading fit. ``key`` names session and text."""

    def __init__(self, *, most: int = KEPT_TEXTS, seconds: float = KEPT_SECONDS) -> None:
        self._texts = BoundedDict[tuple[str, str], tuple[Fetched, Readable]](most)
        self._seconds = seconds

    def put(self, key: tuple[str, str], fetched: Fetched, readable: Readable) -> None:
        kept = (replace(fetched, body=b""), readable)
        self._texts[key] = kept
        asyncio.get_running_loop().call_later(self._seconds, self._drop, key, kept)

    def get(self, key: tuple[str, str]) -> tuple[Fetched, Readable] | None:
        return self._texts.get(key)

    def _drop(self, key: tuple[str, str], kept: tuple[Fetched, Readable]) -> None:
        if self._texts.get(key) is kept:
            del self._texts[key]


class DocumentReader:
    """Reads what was fetched. A document that takes too long or too much memory costs its own process, nothing else."""

    def __init__(self, *, python: str = sys.executable, seconds: float = CHILD_SECONDS) -> None:
        self.kept = ReadingCache()
        self._command = (python, "-I", str(Path(child.__file__)))
        self._seconds = seconds
        self._room = asyncio.Semaphore(AT_ONCE)

    async def read(self, fetched: Fetched, started_group: StartedGroup = None) -> Readable:
        """Read a document as text; ``started_group`` is called with the child's process group."""
        kind = kind_of(fetched)
        if kind == "text":
            readable = await asyncio.to_thread(_plain, fetched)
        elif kind in ("pdf", "docx") and fetched.is_cut:
            size = f"{len(fetched.body):,}"
            raise ToolError(
                f"The document is larger than {size} bytes, which is as much as is fetched. It cannot be read."
            )
        else:
            async with self._room:
                readable = await self._apart(kind, fetched, started_group)
        if not fetched.is_cut:
            return readable
        note = f"Only the first {len(fetched.body):,} bytes were fetched. {readable.note}".strip()
        return Readable(readable.title, readable.text, note)

    async def _apart(self, kind: Kind, fetched: Fetched, started_group: StartedGroup) -> Readable:
        try:
            _, out, _ = await run_program(
                (*self._command, kind, fetched.charset, fetched.url),
                stdin=fetched.body,
                seconds=self._seconds,
                max_bytes=MAX_PRINTED_BYTES,
                env={},  # it needs none of ours
                started_group=started_group,
            )
        except TimeoutError:
            raise ToolError(f"The document took longer than {self._seconds:g} s to read and was given up.") from None
        except TooMuchError:
            raise ToolError(
                f"The document cannot be read: its text is larger than {MAX_PRINTED_BYTES // 1_000_000} MB."
            ) from None
        return await asyncio.to_thread(_parse_output, out)


def kind_of(fetched: Fetched) -> Kind:
    """By the first bytes where they are sure, else by what the server says, else by how it looks."""
    body, content_type = fetched.body, fetched.content_type
    if body[:1024].lstrip().startswith(b"%PDF-"):
        return "pdf"
    if content_type == WORD:
        return "docx"
    if content_type in ("text/html", "application/xhtml+xml"):
        return "html"
    if content_type.endswith("pdf"):
        return "pdf"
    if content_type in ("", "application/octet-stream", "binary/octet-stream", "text/plain"):
        if content_type != "text/plain" and re.match(rb"\s*(?:<!doctype html|<html)", body[:1024], re.I):
            return "html"
        if b"\0" in body[:8192] and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ToolError("What is at this address is no text but some other kind of file, which cannot be read.")
    return "text"


def _plain(fetched: Fetched) -> Readable:
    body = fetched.body
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = body.decode("utf-16", "replace")
    else:
        try:
            text = body.decode(known_charset(fetched.charset) or "utf-8-sig", "replace")
        except (LookupError, ValueError):  # an encoding, but none of text
            text = body.decode("utf-8-sig", "replace")
    if fetched.content_type.endswith("json") and len(body) <= PRETTY_BYTES and not fetched.is_cut:
        with suppress(ValueError, RecursionError):  # not JSON after all: shown as it came
            text = json.dumps(json.loads(text), ensure_ascii=False, indent=1)
    return Readable("", without_unseen(text.replace("\r\n", "\n")))


def _parse_output(out: bytes) -> Readable:
    try:
        result = json.loads(out)
    except ValueError:  # it was ended by one of its bounds before it could say anything
        raise ToolError(
            "The document cannot be read: it is broken, or takes more time or memory than allowed."
        ) from None
    if "trouble" in result:
        raise ToolError(result["trouble"])
    return Readable(result["title"], without_unseen(result["text"]), result["note"])
