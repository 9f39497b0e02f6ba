"""Anthropic's Messages API: ``POST /v1/messages``, content blocks, signed thinking."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby
from typing import Any

import aiohttp
import orjson

from hermes.agent.models import request_body
from hermes.agent.models.answer import Answer, count, is_complaint, plain
from hermes.agent.models.endpoint import Endpoint
from hermes.agent.models.http_model import HttpModel, new_call_id
from hermes.agent.models.reasoning import ReasoningBlocks, parts_of
from hermes.core.messages import ChatMessage, Image, Json, OutputFormat, Role, ToolCall, ToolSpec, Usage
from hermes.core.ports import ModelRequest

VERSION = "2023-06-01"
MAX_TOKENS = 16_384  # the API wants a number; older models say how much less they take
BUDGETS = {"low": 2048, "medium": 8192, "high": 16_384}
CACHED = {"type": "ephemeral"}
OPTIONAL = ("temperature", "top_p", "tool_choice")
THOUGHTS = "thoughts"
NOTHING = "…"
GO_ON = "Go on exactly where your last message ends. Write only what follows."
ANY_JSON = "Your answer is one JSON object and nothing else: no words around it, and no code fence."
TOO_MANY_TOKENS = re.compile(r"max_tokens: \d+ > (\d+)")
ABOUT_THOUGHTS = re.compile(r"signature|(redacted_)?thinking`? blocks?|expected `thinking`", re.IGNORECASE)
NUMBERS = re.compile(r"(?<!\d)\d{1,2}(?!\d)")


class AnthropicMessages(HttpModel):
    def __init__(
        self, endpoint: Endpoint, http: aiohttp.ClientSession, *, new_id: Callable[[], str] = new_call_id
    ) -> None:
        super().__init__(AnthropicDialect(endpoint.provider), endpoint, http, new_id=new_id)


class AnthropicDialect:
    """Two places are kept in the provider's cache: the end of the system, and the end of the conversation."""

    def __init__(self, provider: str) -> None:
        self._by = f"anthropic_messages:{provider}"

    def url(self, base_url: str) -> str:
        # ANTHROPIC_BASE_URL is written without /v1 by everybody else.
        return f"{base_url}/messages" if base_url.endswith("/v1") else f"{base_url}/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        headers = {"anthropic-version": VERSION}
        return {**headers, "x-api-key": key} if key else headers

    def body(self, request: ModelRequest, model: str, *, with_tools: bool, without: Collection[str]) -> Json:
        has_tools = bool(request.tools) and with_tools
        choice = choice_of(request.tool_choice) if has_tools and request.tool_choice else None
        by = "" if THOUGHTS in without else self._by
        is_forced = choice is not None and choice["type"] in ("any", "tool")
        thinking = thinking_of(request, model, by, without, is_forced=is_forced)
        # Thinking counts as output: its budget is added to the answer's.
        limits = [int(name.partition(":")[2]) for name in without if name.startswith("max_tokens:")]
        budget: int = thinking.get("thinking", {}).get("budget_tokens", 0)
        body: Json = {"model": model, "max_tokens": min([(request.max_tokens or MAX_TOKENS) + budget, *limits])}
        if request.stream:
            body["stream"] = True
        is_thinking = thinking.get("thinking", {"type": "disabled"})["type"] != "disabled"
        if request.temperature is not None and not is_thinking:  # one that thinks has a temperature of its own
            body["temperature"] = request.temperature
        body |= thinking
        sampling = request.sampling
        if sampling is not None:
            if sampling.stop:
                body["stop_sequences"] = list(sampling.stop)
            # Newer models take one of temperature and top_p.
            if sampling.top_p is not None and not is_thinking and "temperature" not in body:
                body["top_p"] = sampling.top_p
            if has_tools and sampling.parallel_tool_calls is False and (choice or {}).get("type") != "none":
                choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
        if choice:
            body["tool_choice"] = choice
        for name in OPTIONAL:
            if name in without:
                body.pop(name, None)
        if "cache_control" not in without:
            body["cache_control"] = CACHED  # moves along with the end of the conversation by itself
        if has_tools:
            body["tools"] = [tool_of(tool, with_strict="strict" not in without) for tool in request.tools]
        form = request.format
        if form is not None and form.schema is not None:
            body["output_config"] = {**body.get("output_config", {}), "format": format_of(form, form.schema)}
        body |= conversation(request.messages, by)
        if form is not None and form.schema is None:  # there is no field for that, so it is asked for in words
            body["system"] = [*body.get("system", ()), _text(ANY_JSON)]
        mark(body, without)
        return body

    def refused(self, body: Json, reason: str) -> str:
        if found := TOO_MANY_TOKENS.search(reason):
            return f"max_tokens:{found[1]}"
        if "format" in body.get("output_config", ()) and request_body.is_about_format(reason):
            return ""
        if ABOUT_THOUGHTS.search(reason) and any(
            "thinking" in block["type"] for turn in body["messages"] for block in turn["content"]
        ):
            return THOUGHTS
        thinking = body.get("thinking")
        if thinking and re.search(r"thinking|budget_tokens|adaptive|output_config|effort", reason):
            return str(thinking["type"])
        if re.search(r"\bstrict\b", reason) and any(tool.get("strict") for tool in body.get("tools", ())):
            return "strict"
        if "cache_control" in reason:
            return "cache_control" if "cache_control" in body else "cache marks"
        return next((name for name in OPTIONAL if name in body and name in reason), "")

    def is_passing(self, name: str) -> bool:
        return name == THOUGHTS  # signed for another account, for instance; the next ones may be good again

    def answer(self, new_id: Callable[[], str]) -> AnthropicAnswer:
        return AnthropicAnswer(new_id, self._by)


# What is sent


def thinking_of(request: ModelRequest, model: str, by: str, without: Collection[str], *, is_forced: bool) -> Json:
    """How hard to think, in the form this model takes: newer ones weigh it themselves, older ones want a budget."""
    if not request.reasoning:
        return {}
    if request.reasoning == "off":
        return {} if "disabled" in without else {"thinking": {"type": "disabled"}}
    forms = ("adaptive", "enabled") if is_adaptive(model) else ("enabled", "adaptive")
    form = next((form for form in forms if form not in without), "")
    if form == "adaptive":
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": request.reasoning}}
    # With a budget no tool can be forced, and a turn that is under way must show the thinking it began with.
    if not form or is_forced or not _began_thinking(request.messages, by):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": BUDGETS.get(request.reasoning, BUDGETS["medium"])}}


def is_adaptive(model: str) -> bool:
    """Since Claude 4.6. The version stands behind the family's name, or before it: claude-3-7-sonnet-20250219."""
    version = tuple(int(number) for number in NUMBERS.findall(model.rpartition("/")[2])[:2])
    return version >= (4, 6)


def _began_thinking(messages: Sequence[ChatMessage], by: str) -> bool:
    for message in reversed(messages):
        if message.role is Role.USER:
            return True
        if message.role is Role.ASSISTANT and message.tool_calls:
            return isinstance(parts_of(message, by)[0], dict)
    return True


def mark(body: Json, without: Collection[str]) -> None:
    """Say up to where the provider may keep the request: the end of the system, and of the talk where that is not
    done for the whole body."""
    if "cache marks" in without:
        return
    if system := body.get("system"):
        system[-1]["cache_control"] = CACHED
    if "cache_control" not in body:
        body["messages"][-1]["content"][-1]["cache_control"] = CACHED


def format_of(form: OutputFormat, schema: Json) -> Json:
    """A schema is always kept to here, strict or not. The form has no description of its own: it joins the schema."""
    description = {"description": form.description} if form.description else {}
    return {"type": "json_schema", "schema": {**description, **schema}}


def conversation(messages: Sequence[ChatMessage], by: str) -> Json:
    """What the system says first stands apart. A conversation begins and ends with the user, as the API wants it."""
    rest = list(messages)
    system: list[Json] = []
    while rest and rest[0].role is Role.SYSTEM:
        if text := rest.pop(0).text:
            system.append({"type": "text", "text": text})
    turns = list(turns_of(rest, by))
    if not turns or turns[0]["role"] != "user":
        turns.insert(0, _turn("user", [_text(NOTHING)]))
    if turns[-1]["role"] != "user":  # a client's own beginning of the answer; newer models refuse to go on from it
        turns.append(_turn("user", [_text(GO_ON)]))
    return {"system": system, "messages": turns} if system else {"messages": turns}


def turns_of(messages: Sequence[ChatMessage], by: str) -> Iterator[Json]:
    """All results of one message of the model stand in one turn of the user; every other message is its own."""
    for is_result, run in groupby(messages, lambda message: message.role is Role.TOOL):
        if is_result:
            yield _turn("user", [_result(message) for message in run])
            continue
        for message in run:
            match message.role:
                case Role.ASSISTANT:
                    yield _turn("assistant", _blocks(message, by))
                case Role.SYSTEM:
                    yield _turn("user", [_text(f"<system>\n{message.text}\n</system>")])
                case _:
                    yield _turn("user", _content(message) or [_text(NOTHING)])


def _turn(role: str, content: list[Json]) -> Json:
    return {"role": role, "content": content}


def _blocks(message: ChatMessage, by: str) -> list[Json]:
    blocks: list[Json] = []
    for part in parts_of(message, by):
        if isinstance(part, ToolCall):
            arguments = orjson.loads(request_body.sendable(part.arguments))
            blocks.append({"type": "tool_use", "id": _call_id(part.id), "name": part.name, "input": arguments})
        elif isinstance(part, dict):
            blocks.append(part)
        elif part.strip():  # a block of blanks is refused
            blocks.append(_text(part))
    return blocks or [_text(NOTHING)]


def _result(message: ChatMessage) -> Json:
    content = _content(message) if message.images else message.text
    return {"type": "tool_result", "tool_use_id": _call_id(message.tool_call_id), "content": content}


def _call_id(call_id: str) -> str:
    """Ids that another provider gave may hold letters that are refused here."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)


def _content(message: ChatMessage) -> list[Json]:
    content = [_text(message.text)] if message.text.strip() else []
    return [*content, *map(_picture, message.images)]


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _picture(image: Image) -> Json:
    if (data := request_body.inline(image)) is not None:
        return {"type": "image", "source": {"type": "base64", "media_type": data[0], "data": data[1]}}
    return {"type": "image", "source": {"type": "url", "url": image.url}}


def tool_of(tool: ToolSpec, *, with_strict: bool = True) -> Json:
    schema = {"type": "object", **tool.parameters}
    rendered: Json = {"name": tool.name, "description": tool.description, "input_schema": schema}
    return {**rendered, "strict": True} if tool.strict and with_strict else rendered


def choice_of(choice: str) -> Json:
    """``auto`` and ``none`` as they are, ``required`` is any; anything else names a tool."""
    if choice in ("auto", "none"):
        return {"type": choice}
    return {"type": "any"} if choice == "required" else {"type": "tool", "name": choice}


# What comes back


class AnthropicAnswer(Answer):
    __slots__ = ("_layout", "_thinking", "_usage")

    def __init__(self, new_id: Callable[[], str], by: str) -> None:
        super().__init__(new_id)
        self._layout = ReasoningBlocks(by)
        self._thinking: dict[Any, tuple[Json, list[str]]] = {}  # blocks by their place, and the pieces of their text
        self._usage: Json = {}

    @property
    def thought(self) -> str:
        for block, pieces in self._thinking.values():
            block["thinking"] = "".join(pieces)
        return self._layout.dump(("signature", "data"))

    def _take_chunk(self, chunk: dict[str, Any]) -> None:
        match chunk.get("type"):
            case "content_block_delta":
                self._take_delta(chunk.get("index"), chunk["delta"])
            case "content_block_start":
                self._begin_block(chunk.get("index"), chunk["content_block"])
            case "message_start":
                self.model = str(chunk["message"].get("model") or "")
                self._count(chunk["message"].get("usage"))
            case "message_delta":
                self._count(chunk.get("usage"))
                if reason := (chunk.get("delta") or {}).get("stop_reason"):
                    self.finish(str(reason))
            case "message_stop":
                self.finish()
                self.is_over = True
            case "message":
                for place, block in enumerate(chunk.get("content") or ()):
                    self._begin_block(place, block)
                self.model = str(chunk.get("model") or "")
                self._count(chunk.get("usage"))
                self.finish(str(chunk.get("stop_reason") or "stop"))
            case "error":
                self.error, self.is_over = chunk, True
            case None if is_complaint(chunk):
                self.error = chunk
            case _:
                pass  # a ping, and what a newer version tells besides

    def _begin_block(self, place: Any, block: dict[str, Any]) -> None:
        match block.get("type"):
            case "text":
                self._say(block.get("text"))
            case "tool_use":
                self._layout.called()
                # A stream begins with an empty object, and the real one follows in pieces.
                function = {"name": block.get("name"), "arguments": block.get("input") or None}
                self.calls.add([{"index": place, "id": block.get("id"), "function": function}])
            case "thinking":
                thinking: Json = {"type": "thinking", "thinking": "", "signature": plain(block.get("signature"))}
                self._thinking[place] = (thinking, [])
                self._layout.thought(thinking)
                self._think(place, block.get("thinking"))
            case "redacted_thinking":
                self._layout.thought({"type": "redacted_thinking", "data": block.get("data")})
            case _:
                pass

    def _take_delta(self, place: Any, delta: dict[str, Any]) -> None:
        match delta.get("type"):
            case "text_delta":
                self._say(delta["text"])
            case "input_json_delta":
                self.calls.add([{"index": place, "function": {"arguments": delta["partial_json"]}}])
            case "thinking_delta":
                self._think(place, delta["thinking"])
            case "signature_delta":
                self._thinking[place][0]["signature"] += delta["signature"]
            case _:
                pass

    def _say(self, delta: Any) -> None:
        if text := plain(delta):
            self.fresh_text.append(text)
            self._layout.add_text(text)

    def _think(self, place: Any, thinking: Any) -> None:
        if text := plain(thinking):
            self._thinking[place][1].append(text)
            self.fresh_reasoning.append(text)

    def _count(self, usage: Any) -> None:
        """The newest number counts; what was read from the cache or written to it is not among the input's."""
        if not isinstance(usage, dict):
            return
        self._usage |= {name: value for name, value in usage.items() if value is not None}
        read = count(self._usage.get("cache_read_input_tokens"))
        written = count(self._usage.get("cache_creation_input_tokens"))
        prompt = count(self._usage.get("input_tokens")) + read + written
        self.usage = Usage(prompt, count(self._usage.get("output_tokens")), read)
