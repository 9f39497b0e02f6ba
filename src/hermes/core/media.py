"""Find the files an answer sends (``MEDIA:`` lines), and detect file types.

A line ``MEDIA:<path>`` sends that file. ``[[audio_as_voice]]`` and ``[[as_document]]`` say how: on the line of a file
for that one, on a line of their own for all of them. Inside a code block these are words like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from hermes.core.dataclasses import dataclass
from hermes.core.messages import AttachmentKind

HEAD_BYTES = 512
MARKER = "MEDIA:"
_AS_VOICE = "[[audio_as_voice]]"
_AS_DOCUMENT = "[[as_document]]"
_TAG = re.compile(r"\[\[(?:audio_as_voice|as_document)\]\]")
_FILE = re.compile(r"\s{0,3}(?:[-*•]\s{1,3})?(?P<opened>[`*\"'(]{0,3})MEDIA:(?P<path>.*)", re.DOTALL)
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_WRAPPING = "`*\"'"


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file that the agent wants sent. ``path`` is as it wrote it: not looked at, and not to be trusted."""

    path: str
    as_voice: bool = False
    as_document: bool = False

    @property
    def name(self) -> str:
        return re.split(r"[\\/]", self.path.rstrip("/"))[-1] or self.path


def pieces(text: str) -> list[TextPart | WantedFile]:
    """Return the text and the files in it, in their order; blank text between files is left out."""
    if MARKER not in text and "[[" not in text:
        return [TextPart(text)] if text.strip() else []
    for_all = WantedFile("")
    found: list[TextPart | WantedFile] = []
    lines: list[str] = []
    for line, is_code in _lines(text):
        tags, rest = ((), line) if is_code else _without_tags(line)
        file = None if is_code else _file_in(rest)
        if file is not None:
            found += [*_text_parts(lines), _tagged(file, tags)]
            lines = []
        elif tags:
            for_all = _tagged(for_all, tags)
            lines += [rest] if rest.strip() else []
        else:
            lines.append(line)
    found += _text_parts(lines)
    return [_with_all(piece, for_all) for piece in found]


def without_files(text: str) -> str:
    """Return the text without file lines, for previews."""
    if MARKER not in text and "[[" not in text:
        return text
    kept = [line if is_code else _without_tags(line)[1] for line, is_code in _lines(text)]
    return "\n".join(line for line in kept if not line.lstrip(" -*•`\"'(").startswith(MARKER))


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a code block."""
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
            yield line, True
        elif fence:
            yield line, True
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        else:
            yield line, False


def _without_tags(line: str) -> tuple[tuple[str, ...], str]:
    tags = tuple(_TAG.findall(line)) if "[[" in line else ()
    return (tags, _TAG.sub("", line)) if tags else ((), line)


def _file_in(line: str) -> WantedFile | None:
    found = _FILE.fullmatch(line) if MARKER in line else None
    if found is None:
        return None
    path = found["path"].strip()
    path = path.rstrip(_WRAPPING + ")") if found["opened"] else path
    if len(path) > 1 and path[0] == path[-1] and path[0] in _WRAPPING:
        path = path[1:-1]
    path = path.strip().removeprefix("file://")
    return WantedFile(path) if path else None


def _tagged(file: WantedFile, tags: tuple[str, ...]) -> WantedFile:
    return replace(
        file, as_voice=file.as_voice or _AS_VOICE in tags, as_document=file.as_document or _AS_DOCUMENT in tags
    )


def _with_all(piece: TextPart | WantedFile, for_all: WantedFile) -> TextPart | WantedFile:
    if isinstance(piece, TextPart):
        return piece
    return replace(
        piece, as_voice=piece.as_voice or for_all.as_voice, as_document=piece.as_document or for_all.as_document
    )


def _text_parts(lines: list[str]) -> list[TextPart]:
    text = "\n".join(lines).strip("\n")
    return [TextPart(text)] if text.strip() else []


# What a file is


def is_opus(head: bytes) -> bool:
    return head.startswith(b"OggS") and b"OpusHead" in head


def kind_of(head: bytes, name: str) -> tuple[AttachmentKind, str]:
    """Kind and type by the first bytes; only where these say nothing, the type (never the kind) by the name."""
    for start, kind, mime in _STARTS:
        if head.startswith(start):
            return kind, mime
    if head[:4] == b"RIFF" and head[8:12] in _RIFF:
        return _RIFF[head[8:12]]
    if head[4:8] == b"ftyp":
        is_sound = head[8:11] in (b"M4A", b"M4B")
        return (AttachmentKind.AUDIO, "audio/mp4") if is_sound else (AttachmentKind.VIDEO, "video/mp4")
    if head.startswith(b"OggS"):
        is_film = b"theora" in head
        return (AttachmentKind.VIDEO, "video/ogg") if is_film else (AttachmentKind.AUDIO, "audio/ogg")
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2:  # a frame of MPEG layer III
        return AttachmentKind.AUDIO, "audio/mpeg"
    return AttachmentKind.DOCUMENT, _TYPES.get(name.lower().rpartition(".")[2], "application/octet-stream")


def kind_of_type(mime: str) -> AttachmentKind:
    """Return the kind of a file of which only the MIME type is known."""
    match mime.partition("/")[0]:
        case "image":
            return AttachmentKind.IMAGE
        case "audio":
            return AttachmentKind.AUDIO
        case "video":
            return AttachmentKind.VIDEO
        case _:
            return AttachmentKind.DOCUMENT


_STARTS = (
    (b"\x89PNG\r\n\x1a\n", AttachmentKind.IMAGE, "image/png"),
    (b"\xff\xd8\xff", AttachmentKind.IMAGE, "image/jpeg"),
    (b"GIF87a", AttachmentKind.IMAGE, "image/gif"),
    (b"GIF89a", AttachmentKind.IMAGE, "image/gif"),
    (b"ID3", AttachmentKind.AUDIO, "audio/mpeg"),
    (b"fLaC", AttachmentKind.AUDIO, "audio/flac"),
    (b"\x1aE\xdf\xa3", AttachmentKind.VIDEO, "video/webm"),
)
_RIFF = {
    b"WEBP": (AttachmentKind.IMAGE, "image/webp"),
    b"WAVE": (AttachmentKind.AUDIO, "audio/wav"),
    b"AVI ": (AttachmentKind.VIDEO, "video/x-msvideo"),
}
_OFFICE = "application/vnd.openxmlformats-officedocument"
# The system's own table is not asked: that would read files, and say something else on every machine.
_TYPES = {
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "xml": "application/xml",
    "zip": "application/zip",
    "gz": "application/gzip",
    "svg": "image/svg+xml",
    "epub": "application/epub+zip",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "pptx": f"{_OFFICE}.presentationml.presentation",
}
