"""Assemble an answer from stream events or one body; shared by all dialects."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import orjson

from hermes.agent.models.sse import DONE, DataLines, LineTooLongError
from hermes.agent.models.tool_calls import ToolCalls
from hermes.core.messages import ToolCall, Usage

MAX_BODY_BYTES = 32_000_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some relays begin every body with one
# Each dialect's own word for an answer that was cut off or held back; any other word is an ordinary end.
FINISH = {
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "sensitive": "content_filter",
    "refusal": "content_filter",
}


# An escape of JSON: a whole surrogate pair or the first half of one, the second half alone, or any other.
ESCAPE = re.compile(rb"\\(?:u([dD][89abAB]..)(\\u[dD][c-fC-F]..)?|u([dD][c-fC-F]..)|.)", re.DOTALL)
REPLACED = rb"\ufffd"


class UnreadableChunkError(ValueError):
    """A chunk that looks like JSON and is not."""


class Answer(ABC):
    """What has come so far; ``fresh_…`` is not taken yet. ``is_over``: the provider's last event was read."""

    __slots__ = (
        "_finish",
        "_half",
        "_text",
        "calls",
        "error",
        "fresh_reasoning",
        "fresh_text",
        "is_over",
        "logprobs",
        "model",
        "usage",
    )

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._text: list[str] = []
        self._finish = ""
        self._half = b""  # of a character, whose other half the next chunk begins with
        self.calls = ToolCalls(new_id)
        self.fresh_text: list[str] = []
        self.fresh_reasoning: list[str] = []
        self.is_over = False
        self.logprobs: list[Any] = []
        self.usage = Usage()
        self.model = ""
        self.error: Any = None

    @property
    def text(self) -> str:
        return "".join(self._text) + "".join(self.fresh_text)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return self.calls.finished()

    @property
    def thought(self) -> str:
        """Return what the model wants back with its next call, as ``ChatMessage.thought`` keeps it."""
        return ""

    @property
    def is_finished(self) -> bool:
        """A finish reason has come; only the usage may follow."""
        return bool(self._finish)

    @property
    def finish_reason(self) -> str:
        reason = FINISH.get(self._finish, self._finish)
        if reason in ("length", "content_filter"):
            return reason
        return "tool_calls" if self.calls else "stop"  # some say "stop" and call tools all the same

    def finish(self, reason: str = "stop") -> None:
        """Note why it ended. The first reason counts; a stream closed in due form without one has stopped."""
        self._finish = self._finish or reason

    def take_text(self) -> str:
        text = "".join(self.fresh_text)
        self._text.append(text)
        self.fresh_text.clear()
        return text

    def take_reasoning(self) -> str:
        text = "".join(self.fresh_reasoning)
        self.fresh_reasoning.clear()
        return text

    def take(self, payload: bytes) -> None:
        """Read one chunk, or a whole body. An error inside it is kept in ``error``."""
        try:
            chunk = parse(payload)
        except UnreadableChunkError:
            whole, self._half = join_halves(payload, self._half)
            if whole == payload:
                raise
            chunk = parse(whole)
        self._take_parsed(chunk)

    def _take_parsed(self, chunk: Any) -> None:
        if isinstance(chunk, dict):
            try:
                self._take_chunk(chunk)
            except (AttributeError, KeyError, TypeError):  # a text where an object should be, and the like
                raise UnreadableChunkError from None
        elif isinstance(chunk, list):  # Gemini wraps its errors so
            self.error = chunk

    def take_all(self, payloads: list[bytes]) -> None:
        """Read the chunks of one network read, parsed together: by themselves they are too small to be worth a call."""
        try:
            chunks = orjson.loads(b"[%s]" % b",".join(payloads))
        except orjson.JSONDecodeError:
            chunks = []
        if len(chunks) != len(payloads):  # one of them is no JSON, or is more than one piece of it
            for payload in payloads:
                self.take(payload)
            return
        for chunk in chunks:
            self._take_parsed(chunk)

    @abstractmethod
    def _take_chunk(self, chunk: dict[str, Any]) -> None: ...


class AnswerReader:
    """Takes the bytes of a body as they come, and finds out by itself whether it is a stream.

    Neither the request nor the content type decides: servers answer a streamed request with one JSON object (mostly an
    error), relays stream to those who did not ask, and a wrong address gives a web page with a good status.
    """

    __slots__ = ("_lines", "_size", "_whole", "answer", "is_done", "is_page", "is_stream")

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.is_stream: bool | None = None
        self.is_done = False
        self.is_page = False
        self._lines = DataLines()
        self._whole: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        if self.is_stream is None:
            data = data.lstrip().removeprefix(BYTE_ORDER_MARK).lstrip()
            if data:
                self.is_stream = data[:1] not in (b"{", b"[", b"<")
                self.is_page = data[:1] == b"<"
        if self.is_stream:
            self._take(self._lines.feed(data))
        elif data:
            self._size += len(data)
            if self._size > MAX_BODY_BYTES:
                raise LineTooLongError
            self._whole.append(data)

    def end(self) -> None:
        """The body is over."""
        if self.is_stream:
            self._take(self._lines.finish())
        elif self._whole and not self.is_page:
            self.answer.take(b"".join(self._whole))
        self.is_done = True

    @property
    def is_complete(self) -> bool:
        """The provider said that this was all: by a finish reason, by [DONE], or by sending it in one piece."""
        return self.answer.is_finished or not self.is_stream

    def _take(self, payloads: list[bytes]) -> None:
        answer = self.answer
        is_last = DONE in payloads
        if is_last:
            payloads = payloads[: payloads.index(DONE)]
        answer.take_all(payloads)
        if is_last:
            answer.finish()
        if is_last or answer.is_over:
            self.is_done = True


def plain(value: Any) -> str:
    """Return the text of a string, of a part, or of a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(plain(part) for part in value)
    if isinstance(value, dict):
        return plain(value.get("text"))
    return ""


def is_complaint(chunk: dict[str, Any]) -> bool:
    """Tell whether a chunk that is no part of an answer says what went wrong, in one of the many shapes there are."""
    return any(chunk.get(name) for name in ("error", "detail", "message", "msg"))


def count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0


def parse(payload: bytes) -> Any:
    """Read JSON; bytes that are not UTF-8 become the replacement mark. What was never JSON (``ping``) is None."""
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError:
        if payload[:1] != b"{":
            return None
    try:
        return orjson.loads(payload.decode("utf-8", "replace"))
    except orjson.JSONDecodeError:
        raise UnreadableChunkError from None


def join_halves(payload: bytes, half: bytes) -> tuple[bytes, bytes]:
    """JSON without halves of characters, and the half that it ends a text with, whose other the next one may bring.

    Who cuts a text by UTF-16 sends an emoji in two chunks, neither of which a strict parser reads.
    ``half`` is what the chunk before kept back. A lone half within a text becomes the replacement mark.
    """
    kept = b""

    def whole(escape: re.Match[bytes]) -> bytes:
        nonlocal kept
        first, second, alone = escape.groups()
        if first and not second:
            is_last = payload[escape.end() : escape.end() + 1] == b'"'
            kept = escape[0] if is_last else kept
            return b"" if is_last else REPLACED
        if alone:
            is_first = payload[escape.start() - 1 : escape.start()] == b'"'
            return half + escape[0] if half and is_first else REPLACED
        return escape[0]

    return ESCAPE.sub(whole, payload), kept
