"""Read files that a request holds as data (`file`, `input_file`): their text takes their place."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import itertools
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from hermes.core.errors import ToolError
from hermes.core.messages import Json
from hermes.core.text import one_line, storable, visible
from hermes.servers.api.content import InputLimits
from hermes.servers.api.errors import ApiError, bad_request

if TYPE_CHECKING:
    from hermes.agent.web.reader import DocumentReader

FILE_TYPES = frozenset({"file", "input_file"})
MOST_FILES = 50
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,", re.IGNORECASE)

Part = dict[str, Any]
Read = Callable[[Part, str], Awaitable[Part]]


class FileTexts:
    """Reads the files of requests. The document reader, and all that it imports, comes with the first file."""

    def __init__(self) -> None:
        self._reader: DocumentReader | None = None

    async def put_in(self, request: web.Request, body: Json, field: str, limits: InputLimits) -> Json:
        """Return the body with texts, or pictures, in place of the files in ``field``."""
        given = body.get(field)
        if not isinstance(given, list) or b"file_data" not in await request.read():  # it is there by now
            return body
        count = 0

        async def read(part: Part, param: str) -> Part:
            nonlocal count
            count += 1
            if count > MOST_FILES:
                message = f"A request may hold at most {MOST_FILES} files."
                raise bad_request(message, code="too_many_parts", param=param)
            return await self._text_of(part, param, limits)

        messages = [await _changed(item, f"{field}[{index}]", read) for index, item in enumerate(given)]
        return {**body, field: messages}

    async def _text_of(self, part: Part, param: str, limits: InputLimits) -> Part:
        box = part["file"] if isinstance(part.get("file"), dict) else part
        data, name = box.get("file_data"), box.get("filename")
        if not isinstance(data, str) or not data:
            return part  # a bare file_id, or an address: refused where content is read
        name = one_line(storable(name), 120) if isinstance(name, str) and name.strip() else "file"
        found = _DATA.match(data[:300])
        mime = (found[1] or "").lower() if found else ""
        if mime.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": data}}
        if mime.startswith(("audio/", "video/")):
            message = f"The file {name!r} is {mime}. Text, PDF, Word and HTML files are read, and pictures are shown."
            raise ApiError(400, message, code="unsupported_content_type", param=param)
        try:
            raw = await asyncio.to_thread(_decoded, data[found.end() :] if found else data)
        except (binascii.Error, ValueError):
            message = f"The data of the file {name!r} is no base64. Send data:TYPE;base64,… as file_data."
            raise bad_request(message, code="invalid_file", param=param) from None
        return {"type": "text", "text": await self._read_document(raw, name, mime, param, limits)}

    async def _read_document(self, raw: bytes, name: str, mime: str, param: str, limits: InputLimits) -> str:
        from hermes.agent.web import documents, untrusted
        from hermes.agent.web.reader import DocumentReader

        if self._reader is None:
            self._reader = DocumentReader()
        if not documents.is_document(name, mime) and not raw.startswith(b"%PDF-"):
            if b"\0" in raw[:8192]:
                message = f"The file {name!r} is no text. Text, PDF, Word and HTML files are read; pictures are shown."
                raise ApiError(400, message, code="unsupported_content_type", param=param)
            mime = "text/plain"
        try:
            found = await documents.excerpt(self._reader, raw, name, mime, most=max(1, limits.text // 4))
        except ToolError as error:
            reason = one_line(visible(str(error)), 300)
            message = f"The file {name!r} cannot be read as text: {reason}"
            raise ApiError(400, message, code="unsupported_content_type", param=param) from None
        # The same file gives the same words, so that providers know a conversation again that is sent once more.
        marks = (hashlib.sha256(b"%d %s" % (number, raw)).hexdigest()[:12] for number in itertools.count())
        framed = untrusted.framed(found.shown, f"the file {name}", new_mark=lambda: next(marks))
        note = f"\n({found.note})" if found.note else ""
        cut = "\n(There is more of it, which was left out.)" if found.next_line else ""
        return f"[file: {name}]\n{framed}{note}{cut}"


async def _changed(item: Any, param: str, read: Read) -> Any:
    """Return a message with the files in its content, or in its output, read."""
    if not isinstance(item, dict):
        return item
    for field in ("content", "output"):
        parts = item.get(field)
        if isinstance(parts, list) and any(_is_file(part) for part in parts):
            where = f"{param}.{field}"
            changed = [
                await read(part, f"{where}[{index}]") if _is_file(part) else part for index, part in enumerate(parts)
            ]
            item = {**item, field: changed}
    return item


def _is_file(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in FILE_TYPES


def _decoded(text: str) -> bytes:
    return base64.b64decode("".join(text.split()), validate=True)
