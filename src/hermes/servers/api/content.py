"""What a message says, out of the many forms clients give it: a text, and the pictures beside it."""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import Any

from hermes.config import ApiConfig
from hermes.core.dataclasses import dataclass
from hermes.core.messages import Image, TextUnit
from hermes.core.text import length, one_line, storable
from hermes.servers.api.errors import ApiError, bad_request

TEXT_TYPES = frozenset({"text", "input_text", "output_text", "refusal", "summary_text"})
AUDIO_TYPES = frozenset({"input_audio", "audio", "output_audio"})
IMAGE_TYPES = frozenset({"image_url", "input_image"})
DETAILS = frozenset({"auto", "low", "high", "original"})


@dataclass(frozen=True, slots=True)
class InputLimits:
    """How much one request may hold. ``text`` is for one message, in bytes of UTF-8; ``parts`` for one message too.

    ``description`` is for that of a tool or a form, in characters.
    """

    body_bytes: int = 50 * 1024 * 1024
    messages: int = 10_000
    parts: int = 1_000
    text: int = 10 * 1024 * 1024
    description: int = 64 * 1024
    depth: int = 10
    tools: int = 512
    schema_depth: int = 64
    schema_bytes: int = 256 * 1024


INPUT_LIMITS = InputLimits()


def limits_of(api: ApiConfig) -> InputLimits:
    """As the owner has set them."""
    return _limits(api.max_request_bytes, api.max_content_parts, api.max_text_bytes)


@lru_cache(maxsize=4)  # every request asks
def _limits(body_bytes: int, parts: int, text: int) -> InputLimits:
    return InputLimits(body_bytes=body_bytes, parts=parts, text=text)


@dataclass(frozen=True, slots=True)
class Content:
    text: str = ""
    images: tuple[Image, ...] = ()


def read_content(value: Any, param: str, limits: InputLimits = INPUT_LIMITS) -> Content:
    """A string, null, one part, or an array of parts, which may hold arrays again within the limits."""
    if isinstance(value, str):  # by far the most common, and the cheapest
        return Content(_short_enough(storable(value), param, limits))
    if value is None:
        return Content()
    found = _ContentParts(limits)
    found.take(value, param, 1)
    return Content(_short_enough(storable("\n".join(found.texts)), param, limits), tuple(found.images))


def read_text(value: Any, param: str, limits: InputLimits = INPUT_LIMITS) -> str:
    """The same where only words have a meaning: a system message, a tool's result."""
    if isinstance(value, str):
        return _short_enough(storable(value), param, limits)
    content = read_content(value, param, limits)
    if content.images:
        raise _unsupported("Pictures are taken in messages of a user or a tool; send text here.", param)
    return content.text


def summary(content: Content, letters: int = 60) -> str:
    """For a log: ``[2 images] what do you see?``."""
    count = len(content.images)
    pictures = f"[{count} image{'s' if count > 1 else ''}] " if count else ""
    return f"{pictures}{one_line(content.text, letters)}".strip()


@dataclass(slots=True)
class _ContentParts:
    limits: InputLimits
    texts: list[str] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    count: int = 0

    def take(self, value: Any, param: str, depth: int) -> None:
        self.count += 1  # arrays count too: a million empty ones would keep the loop busy
        if self.count > self.limits.parts + 1:  # the outermost array is no part
            message = f"A message may have at most {self.limits.parts} content parts."
            raise bad_request(message, code="too_many_parts", param=param)
        if isinstance(value, list):
            if depth > self.limits.depth:
                message = f"Content is nested deeper than {self.limits.depth} levels; send one array of parts."
                raise bad_request(message, code="content_too_deep", param=param)
            for index, item in enumerate(value):
                self.take(item, f"{param}[{index}]", depth + 1)
        elif isinstance(value, str):
            self.texts.append(value)
        elif isinstance(value, dict):
            self._take_part(value, param)
        elif value is not None:
            message = f"A content part is an object such as {{'type': 'text', 'text': '…'}}, not {_kind(value)}."
            raise bad_request(message, code="invalid_content", param=param)

    def _take_part(self, part: dict[str, Any], param: str) -> None:
        kind = part.get("type", "text" if "text" in part else None)
        box = part.get("file")
        if (box if isinstance(box, dict) else part).get("file_id") is not None:
            raise _unsupported("Files are not kept here: send the file itself as file_data, not a file_id.", param)
        if not isinstance(kind, str):
            raise bad_request("A content part needs a type.", code="invalid_content", param=f"{param}.type")
        if kind in TEXT_TYPES:
            name = "refusal" if kind == "refusal" else "text"
            if not isinstance(part.get(name), str):
                raise bad_request(f"{name} has to be a string.", code="invalid_content", param=f"{param}.{name}")
            self.texts.append(part[name])
        elif kind in IMAGE_TYPES:
            self.images.append(_image_of(part, param))
        elif kind in AUDIO_TYPES:
            raise _unsupported(
                "Audio is not taken by the API: send the words as text. Chats take voice messages.", param
            )
        else:
            message = (
                f"Content of type {one_line(kind, 40)!r} is not taken; send text, image_url, and files as file_data."
            )
            raise _unsupported(message, param)


def _image_of(part: dict[str, Any], param: str) -> Image:
    """Chat sends an object with address and detail, responses sends both side by side."""
    value: Any = part.get("image_url")
    detail: Any = part.get("detail")
    if isinstance(value, dict):
        value, detail = value.get("url"), value.get("detail", detail)
    if not isinstance(value, str) or not value.strip():
        message = "A picture needs an address: http(s)://… or data:image/…;base64,…"
        raise bad_request(message, code="invalid_image_url", param=f"{param}.image_url")
    detail = "auto" if detail is None else detail
    if not isinstance(detail, str) or detail not in DETAILS:
        message = f"detail is one of {', '.join(sorted(DETAILS))}."
        raise bad_request(message, code="invalid_image_detail", param=f"{param}.detail")
    return Image(_address(value.strip(), f"{param}.image_url"), detail)


def _address(url: str, param: str) -> str:
    scheme = url[:32].lower()
    if scheme.startswith("data:"):
        if not scheme.startswith("data:image/"):
            raise _unsupported("Of data: addresses only data:image/… is taken.", param)
        if "," not in url[:256]:
            raise bad_request("The data: address has no data.", code="invalid_image_url", param=param)
        return storable(url)
    if scheme.startswith(("http://", "https://")) and len(url.partition("://")[2]) > 0:
        return storable(url)
    message = "The address of a picture has to begin with http://, https:// or data:image/."
    raise bad_request(message, code="invalid_image_url", param=param)


def _short_enough(text: str, param: str, limits: InputLimits) -> str:
    if len(text) * 4 <= limits.text:  # a character has four bytes at most
        return text
    if (size := length(text, TextUnit.BYTES)) > limits.text:
        message = f"The text has {size:,} bytes; a message may have {limits.text:,}. Send it in parts."
        raise bad_request(message, code="content_too_long", param=param)
    return text


def _unsupported(message: str, param: str) -> ApiError:
    return bad_request(message, code="unsupported_content_type", param=param)


def _kind(value: Any) -> str:
    return {bool: "a boolean", int: "a number", float: "a number"}.get(type(value), f"a {type(value).__name__}")
