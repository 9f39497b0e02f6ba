"""An answer of the chat_completions dialect, put together from chunks or from one whole body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from hermes.agent.models.sse import DONE, DataLines, LineTooLongError
from hermes.agent.models.tool_calls import ToolCalls
from hermes.core.messages import ToolCall, Usage

LARGEST_WHOLE = 32_000_000
FINISH = {
    "function_call": "tool_calls",
    "max_tokens": "length",
    "model_length": "length",
    "sensitive": "content_filter",
}


class UnreadableChunkError(ValueError):
    """A chunk that looks like JSON and is not."""


class Answer:
    """What has come so far. ``fresh_text`` and ``fresh_reasoning`` hold what nobody has taken yet."""

    __slots__ = (
        "_calls",
        "_finish",
        "_text",
        "error",
        "fresh_reasoning",
        "fresh_text",
        "has_reasoned",
        "model",
        "usage",
    )

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._text: list[str] = []
        self._calls = ToolCalls(new_id)
        self._finish = ""
        self.fresh_text: list[str] = []
        self.fresh_reasoning: list[str] = []
        self.has_reasoned = False
        self.usage = Usage()
        self.model = ""
        self.error: Any = None

    @property
    def text(self) -> str:
        return "".join(self._text) + "".join(self.fresh_text)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return self._calls.finished()

    @property
    def is_finished(self) -> bool:
        """A finish reason has come; only the usage may follow."""
        return bool(self._finish)

    @property
    def finish_reason(self) -> str:
        reason = FINISH.get(self._finish, self._finish)
        if reason in ("length", "content_filter"):
            return reason
        return "tool_calls" if self._calls else "stop"  # some say "stop" and call tools all the same

    def finish(self) -> None:
        """The stream was closed in due form; that counts as a finish reason where none was given."""
        self._finish = self._finish or "stop"

    def take_text(self) -> str:
        text = "".join(self.fresh_text)
        self._text.append(text)
        self.fresh_text.clear()
        return text

    def take_reasoning(self) -> str:
        text = "".join(self.fresh_reasoning)
        self.fresh_reasoning.clear()
        self.has_reasoned = True
        return text

    def take(self, payload: bytes) -> None:
        """Read one chunk, or a whole body. An error inside it is kept in ``error``."""
        chunk = parse(payload)
        if isinstance(chunk, dict):
            try:
                self._take_chunk(chunk)
            except (AttributeError, KeyError, TypeError):  # a text where an object should be, and the like
                raise UnreadableChunkError from None
        elif isinstance(chunk, list):  # Gemini wraps its errors so
            self.error = chunk

    def _take_chunk(self, chunk: dict[str, Any]) -> None:
        choices = chunk.get("choices")
        if choices:
            self._take_choice(choices[0])
        usage = chunk.get("usage")
        if usage is None and "x_groq" in chunk:
            usage = chunk["x_groq"].get("usage")
        if usage:
            self.usage = read_usage(usage)
        if not self.model:
            self.model = str(chunk.get("model") or "")
        if "error" in chunk or not choices:
            self._take_rest(chunk, has_choices=choices is not None)

    def _take_rest(self, chunk: dict[str, Any], *, has_choices: bool) -> None:
        if chunk.get("error") or (not has_choices and any(chunk.get(name) for name in ("detail", "message", "msg"))):
            self.error = chunk

    def _take_choice(self, choice: dict[str, Any]) -> None:
        # A whole answer has `message` where a chunk has `delta`, and the same fields inside.
        delta = choice.get("delta") or choice.get("message")
        if delta:
            if content := delta.get("content"):
                if isinstance(content, str):
                    self.fresh_text.append(content)
                else:
                    self._take_parts(content)
            elif refusal := delta.get("refusal"):
                self.fresh_text.append(_plain(refusal))
            if reasoning := (delta.get("reasoning_content") or delta.get("reasoning")):
                self.fresh_reasoning.append(_plain(reasoning))
            if calls := delta.get("tool_calls"):
                self._calls.add(calls)
        if reason := choice.get("finish_reason"):
            self._finish = str(reason)
            if reason == "error" and self.error is None:
                self.error = choice.get("error") or {"error": "server_error"}

    def _take_parts(self, parts: Any) -> None:
        """Mistral sends content as parts once a model thinks: ``text``, and ``thinking`` with parts of its own."""
        for part in parts if isinstance(parts, list) else [parts]:
            if isinstance(part, dict) and part.get("type") == "thinking":
                self.fresh_reasoning.append(_plain(part.get("thinking")))
            else:
                self.fresh_text.append(_plain(part))


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
            data = self._look(data)
        if self.is_stream:
            self._take(self._lines.feed(data))
        elif data:
            self._size += len(data)
            if self._size > LARGEST_WHOLE:
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

    def _look(self, data: bytes) -> bytes:
        data = data.lstrip()
        if data:
            self.is_stream = data[:1] not in (b"{", b"[", b"<")
            self.is_page = data[:1] == b"<"
        return data

    def _take(self, payloads: list[bytes]) -> None:
        take = self.answer.take
        for payload in payloads:
            if payload == DONE:
                self.is_done = True
                self.answer.finish()
                return
            take(payload)


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_plain(part) for part in value)
    if isinstance(value, dict):
        return _plain(value.get("text"))
    return ""


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


def read_usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    return Usage(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), _count(cached))


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0
