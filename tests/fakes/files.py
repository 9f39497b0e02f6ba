"""Small files of every kind, made here: real enough for whoever looks at their first bytes."""

from __future__ import annotations

import io
import struct
import wave
import zipfile
import zlib


def png(width: int = 2, height: int = 2) -> bytes:
    """A black picture that any viewer opens."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = zlib.compress((b"\0" + b"\0" * ((width + 7) // 8)) * height)
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def wav(seconds: float = 0.1, rate: int = 16000) -> bytes:
    """Silence."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"\0\0" * int(rate * seconds))
    return out.getvalue()


OPUS = b"OggS\0\x02" + bytes(22) + b"OpusHead\x01\x01" + bytes(300)
"""As much of a voice message as tells what it is."""


def docx(*paragraphs: str, more: str = "") -> bytes:
    """A Word document with these paragraphs. ``more`` stands before its root element."""
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    xml = f'<?xml version="1.0"?>{more}<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", xml)
    return out.getvalue()
