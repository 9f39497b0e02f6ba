"""OpenAI's Chat Completions API, which most providers speak."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import is_not
from typing import Any, Literal

import aiohttp
import msgspec

from hermes.agent.models import request_body
from hermes.agent.models.answer import Answer, count, is_complaint, plain
from hermes.agent.models.endpoint import Endpoint, Timeouts, bare_model
from hermes.agent.models.http_model import HttpModel, new_call_id
from hermes.agent.models.reasoning import ReasoningBlocks, parts_of
from hermes.core.messages import ChatMessage, Image, Json, OutputFormat, Role, Sampling, ToolSpec, Usage
from hermes.core.ports import ModelRequest

__all__ = ["ChatCompletions", "Endpoint", "Timeouts", "bare_model"]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
SHORT = re.compile(r"[a-zA-Z0-9]{9}\Z")
HINTS = ("top_p", "presence_penalty", "frequency_penalty", "seed")
"""Fields of ``Sampling`` without which the answer is still the one that was asked for."""
OPTIONAL = ("stream_options", "temperature", "tool_choice", "max_tokens", *HINTS)
EFFORT = {"off": "none"}
SILENT = "silence about reasoning"
SHORT_IDS = "short ids"
ABOUT_IDS = re.compile(r"tool call id\b.{1,300}\blength of 9\b", re.IGNORECASE | re.DOTALL)
IN_TURN = "turn by turn"
ABOUT_TURNS = re.compile(r"roles must alternate|unexpected role '?user'? after role '?tool'?", re.IGNORECASE)
NOTHING = "…"
PICTURES = "[the pictures of the results above]"


class ChatCompletions(HttpModel):
    def __init__(
        self, endpoint: Endpoint, http: aiohttp.ClientSession, *, new_id: Callable[[], str] = new_call_id
    ) -> None:
        super().__init__(ChatDialect(endpoint.provider), endpoint, http, new_id=new_id)


class ChatDialect:
    """Thoughts have no place of their own here. Signatures that come with a call go back with it (Gemini refuses a
    call without its own); the reasoning itself goes back to those who refuse a talk without it (DeepSeek, Kimi), and
    to nobody else, since others refuse it.
    """

    def __init__(self, provider: str) -> None:
        self._by = f"chat_completions:{provider}"
        self._offered: tuple[ToolSpec, ...] = ()
        self._sent: list[Json] = []

    def url(self, base_url: str) -> str:
        return f"{base_url}/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest, model: str, *, with_tools: bool, without: Collection[str]) -> Json:
        body: Json = {"model": model}
        if request.stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        if request.max_tokens:
            # OpenAI's newer name for it is the only one that o-models take.
            body["max_completion_tokens" if "max_tokens" in without else "max_tokens"] = request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.sampling is not None:
            body |= sampling_of(request.sampling)
        if request.reasoning:
            body["reasoning_effort"] = EFFORT.get(request.reasoning, request.reasoning)
        if request.tools and with_tools:
            if request.tool_choice:
                body["tool_choice"] = choice_of(request.tool_choice)
            body["tools"] = self._tools_of(request.tools)
            if request.sampling is not None and request.sampling.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = request.sampling.parallel_tool_calls
        if request.format is not None:
            body["response_format"] = format_of(request.format)
        for name in (*OPTIONAL, _effort(body)):
            if name in without:
                body.pop(name.partition(":")[0], None)
        body["messages"] = list(messages_of(request.messages, self._by, with_reasoning=SILENT in without))
        if SHORT_IDS in without:
            # Mistral accepts only its own form of ids, also for calls of another provider's model.
            for message in body["messages"]:
                for call in message.get("tool_calls", ()):
                    call["id"] = _short(call["id"])
                if "tool_call_id" in message:
                    message["tool_call_id"] = _short(message["tool_call_id"])
        if IN_TURN in without:
            body["messages"] = list(_in_turn(body["messages"]))
        return body

    def _tools_of(self, tools: Sequence[ToolSpec]) -> list[Json]:
        """Return the tools in the shape of this API. Kept, since nearly every request offers the same tools."""
        if len(tools) != len(self._offered) or any(map(is_not, tools, self._offered)):
            self._offered, self._sent = tuple(tools), [tool_of(tool) for tool in tools]
        return self._sent

    def refused(self, body: Json, reason: str) -> str:
        if "response_format" in body and request_body.is_about_format(reason):
            return ""
        if ABOUT_IDS.search(reason):
            return SHORT_IDS
        if ABOUT_TURNS.search(reason):
            return IN_TURN
        if "reasoning_content" in reason:
            return SILENT
        if "reasoning_effort" in body and "reasoning" in reason:
            return _effort(body)
        return next((name for name in OPTIONAL if name in body and name in reason), "")

    def is_passing(self, name: str) -> bool:  # noqa: ARG002 - a part that is refused once is always
        return False

    def answer(self, new_id: Callable[[], str]) -> ChatAnswer:
        return ChatAnswer(new_id, self._by)


def _effort(body: Json) -> str:
    """One effort may be refused and another taken, so each has a name of its own."""
    return f"reasoning_effort:{body.get('reasoning_effort')}"


# What is sent


def messages_of(messages: Sequence[ChatMessage], by: str = "", *, with_reasoning: bool = False) -> Iterator[Json]:
    """A result can hold no picture here, so the pictures of a run of results follow upon it as the user's."""
    if not any(message.tool_calls or message.tool_call_id for message in messages):  # a plain talk, often a long one
        yield from map(message_of, messages)
        return
    for is_result, run in groupby(messages, lambda message: message.role is Role.TOOL):
        pictures: list[Image] = []
        for message in run:
            rendered = message_of(message)
            if message.tool_calls:
                _recall(message, rendered, by, with_reasoning=with_reasoning)
            yield rendered
            pictures += message.images if is_result else ()
        if pictures:
            yield {"role": "user", "content": [{"type": "text", "text": PICTURES}, *map(_picture, pictures)]}


def message_of(message: ChatMessage) -> Json:
    rendered: Json = {"role": message.role, "content": message.text}
    if not (message.tool_calls or message.tool_call_id or message.images or message.name):
        return rendered
    if message.role is Role.TOOL:
        rendered["tool_call_id"] = message.tool_call_id
        return rendered
    if message.images and message.role is Role.USER:
        content = [{"type": "text", "text": message.text}] if message.text else []
        rendered["content"] = [*content, *map(_picture, message.images)]
    if message.tool_calls:
        rendered["content"] = message.text or None
        rendered["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": request_body.sendable(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.name and NAME.match(message.name):  # providers refuse any other name
        rendered["name"] = message.name
    return rendered


def _recall(message: ChatMessage, rendered: Json, by: str, *, with_reasoning: bool) -> None:
    kept: Json = next((part for part in parts_of(message, by) if isinstance(part, dict)), {})
    if with_reasoning:
        rendered["reasoning_content"] = kept.get("reasoning_content") or ""
    for place, signature in (kept.get("extra_content") or {}).items():
        rendered["tool_calls"][int(place)]["extra_content"] = signature


def _short(call_id: str) -> str:
    return call_id if SHORT.match(call_id) else hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:9]


def _in_turn(messages: Iterable[Json]) -> Iterator[Json]:
    """Merge neighbours: templates of Gemma and Mistral take no role twice in a row and no user right after a result."""
    held: Json | None = None
    for message in messages:
        if held is not None and held["role"] == message["role"] == "user":
            first, then = held["content"], message["content"]
            both_plain = isinstance(first, str) and isinstance(then, str)
            held = {**held, "content": f"{first}\n\n{then}" if both_plain else [*_as_parts(first), *_as_parts(then)]}
            continue
        if held is not None:
            yield held
            if held["role"] == "tool" and message["role"] == "user":
                yield {"role": "assistant", "content": NOTHING}
        held = message
    if held is not None:
        yield held


def _as_parts(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _picture(image: Image) -> Json:
    return {"type": "image_url", "image_url": {"url": image.url, "detail": image.detail}}


def sampling_of(sampling: Sampling) -> Json:
    """The fields that this API has by the same names; ``parallel_tool_calls`` is refused without tools."""
    body: Json = {name: value for name in HINTS if (value := getattr(sampling, name)) is not None}
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if sampling.logprobs:
        body["logprobs"] = True
        if sampling.top_logprobs:
            body["top_logprobs"] = sampling.top_logprobs
    return body


def tool_of(tool: ToolSpec) -> Json:
    function: Json = {"name": tool.name, "description": tool.description, "parameters": request_body.schema_of(tool)}
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def choice_of(choice: str) -> str | Json:
    """``auto``, ``none`` and ``required`` as they are; anything else names a tool."""
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def format_of(form: OutputFormat) -> Json:
    if form.schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": request_body.named_schema(form)}


# What comes back


_NoText = Literal[""] | None


class _PlainDelta(msgspec.Struct, gc=False):
    content: str
    refusal: _NoText = None
    reasoning_content: _NoText = None
    reasoning: _NoText = None
    tool_calls: tuple[()] | None = None


class _TextChoice(msgspec.Struct, gc=False):
    delta: _PlainDelta
    finish_reason: _NoText = None
    logprobs: None = None


class _TextChunk(msgspec.Struct, gc=False):
    """A chunk that brings text and nothing else, as nearly all of them do; any other is not decoded.

    What else providers write into each of them (``id``, ``created``) is never made into values.
    """

    choices: tuple[_TextChoice]
    usage: None = None
    x_groq: None = None
    error: None = None


_text_chunk = msgspec.json.Decoder(_TextChunk)
_text_chunks = msgspec.json.Decoder(list[_TextChunk])
NOT_TEXT = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Raised by a chunk that brings anything else, is no JSON, or is nested more deeply than can be read."""
MANY_CHUNKS = 10
"""With fewer chunks, finding the text-only ones costs more than it saves."""
LAST_CHUNKS = 3
"""The last chunks of an answer carry the finish reason and the usage instead of text."""


def _is_text_only(payload: bytes) -> bool:
    try:
        _text_chunk.decode(payload)
    except NOT_TEXT:
        return False
    return True


class ChatAnswer(Answer):
    __slots__ = ("_by", "_reasoned", "_signatures")

    def __init__(self, new_id: Callable[[], str], by: str = "") -> None:
        super().__init__(new_id)
        self._by = by
        self._reasoned: list[str] = []
        self._signatures: Json = {}  # by the number of their call

    @property
    def thought(self) -> str:
        layout = ReasoningBlocks(self._by)
        kept = {"reasoning_content": "".join(self._reasoned), "extra_content": self._signatures}
        layout.thought({name: value for name, value in kept.items() if value})
        return layout.dump(("reasoning_content", "extra_content"))

    def take_all(self, payloads: list[bytes]) -> None:
        if len(payloads) < MANY_CHUNKS:
            super().take_all(payloads)
            return
        begin, end = 0, len(payloads)
        while begin < end and not self.model:  # the first chunk names the model; Azure's second
            self.take(payloads[begin])
            begin += 1
        for payload in reversed(payloads[begin:][-LAST_CHUNKS:]):
            if _is_text_only(payload):
                break
            end -= 1
        self._take_texts(payloads[begin:end])
        super().take_all(payloads[end:])

    def _take_texts(self, payloads: list[bytes]) -> None:
        """Parse chunks that probably carry only text, all at once."""
        try:
            chunks = _text_chunks.decode(b"[%s]" % b",".join(payloads))
        except NOT_TEXT:
            chunks = []
        if len(chunks) == len(payloads):
            self.fresh_text += [chunk.choices[0].delta.content for chunk in chunks]
        else:
            super().take_all(payloads)

    def _take_chunk(self, chunk: dict[str, Any]) -> None:
        choices = chunk.get("choices")
        if choices:
            self._take_choice(choices[0])
        usage = chunk.get("usage")
        if usage is None and (groq := chunk.get("x_groq")):
            usage = groq.get("usage")
        if usage:
            self.usage = read_usage(usage)
        if not self.model:
            self.model = str(chunk.get("model") or "")
        if chunk.get("error") or (choices is None and is_complaint(chunk)):
            self.error = chunk

    def _take_choice(self, choice: dict[str, Any]) -> None:
        # A whole answer has `message` where a chunk has `delta`, and the same fields inside.
        delta = choice.get("delta") or choice.get("message")
        if delta:
            if content := delta.get("content"):
                if isinstance(content, str):
                    self.fresh_text.append(content)
                else:
                    # Mistral sends parts once a model thinks: ``text``, and ``thinking`` with parts of its own.
                    for part in content if isinstance(content, list) else [content]:
                        if isinstance(part, dict) and part.get("type") == "thinking":
                            self._think(part.get("thinking"))
                        else:
                            self.fresh_text.append(plain(part))
            elif refusal := delta.get("refusal"):
                self.fresh_text.append(plain(refusal))
            if reasoning := (delta.get("reasoning_content") or delta.get("reasoning")):
                self._think(reasoning)
            if calls := delta.get("tool_calls"):
                self.calls.add(calls)
                for back, call in enumerate(reversed(calls)):
                    if isinstance(call, dict) and (signature := call.get("extra_content")):
                        self._signatures[str(max(0, len(self.calls) - 1 - back))] = signature
        if isinstance(logprobs := choice.get("logprobs"), dict):
            self.logprobs += logprobs.get("content") or ()
        if reason := choice.get("finish_reason"):
            self._finish = str(reason)
            if reason == "error" and self.error is None:
                self.error = choice.get("error") or {"error": "server_error"}

    def _think(self, reasoning: Any) -> None:
        text = plain(reasoning)
        self.fresh_reasoning.append(text)
        self._reasoned.append(text)


def read_usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    spent, cost = usage.get("completion_tokens_details"), usage.get("cost")
    return Usage(
        count(usage.get("prompt_tokens")),
        count(usage.get("completion_tokens")),
        count(cached),
        count(spent.get("reasoning_tokens")) if isinstance(spent, dict) else 0,
        float(cost) if isinstance(cost, int | float) and 0 < cost < math.inf else 0.0,
    )
