"""OpenAI's Responses API: ``POST /responses``, typed items, nothing stored there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import aiohttp

from hermes.agent.models import request_body
from hermes.agent.models.answer import Answer, count, is_complaint, plain
from hermes.agent.models.endpoint import Endpoint
from hermes.agent.models.http_model import HttpModel, new_call_id
from hermes.agent.models.reasoning import ReasoningBlocks, parts_of
from hermes.core.messages import ChatMessage, Json, OutputFormat, Role, ToolCall, ToolSpec, Usage
from hermes.core.ports import ModelRequest

OPTIONAL = ("temperature", "top_p", "tool_choice", "max_output_tokens", "store")
MIN_TOKENS = 16  # fewer are refused
EFFORT = {"off": "none"}
THOUGHTS = "thoughts"
SEALED = "encrypted_content"


class Responses(HttpModel):
    def __init__(
        self, endpoint: Endpoint, http: aiohttp.ClientSession, *, new_id: Callable[[], str] = new_call_id
    ) -> None:
        super().__init__(ResponsesDialect(endpoint.provider), endpoint, http, new_id=new_id)


class ResponsesDialect:
    """Reasoning comes sealed, since nothing is stored at the provider, and is sent back beside its calls."""

    def __init__(self, provider: str) -> None:
        self._by = f"responses:{provider}"

    def url(self, base_url: str) -> str:
        return f"{base_url}/responses"

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest, model: str, *, with_tools: bool, without: Collection[str]) -> Json:
        body: Json = {"model": model, "store": False}
        if request.stream:
            body["stream"] = True
        if request.max_tokens:
            body["max_output_tokens"] = max(MIN_TOKENS, request.max_tokens)
        if request.temperature is not None:
            body["temperature"] = request.temperature
        sampling = request.sampling
        if sampling is not None and sampling.top_p is not None:
            body["top_p"] = sampling.top_p
        if request.reasoning:
            body["reasoning"] = {"effort": EFFORT.get(request.reasoning, request.reasoning)}
        body["include"] = [f"reasoning.{SEALED}"]
        if sampling is not None and sampling.logprobs:
            body["include"].append("message.output_text.logprobs")
            body["top_logprobs"] = sampling.top_logprobs
        if request.tools and with_tools:
            if request.tool_choice:
                body["tool_choice"] = choice_of(request.tool_choice)
            body["tools"] = [tool_of(tool) for tool in request.tools]
            if sampling is not None and sampling.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = sampling.parallel_tool_calls
        if request.format is not None:
            body["text"] = {"format": format_of(request.format)}
        for name in (*OPTIONAL, "include", _effort(body)):
            if name in without:
                body.pop(name.partition(":")[0], None)
        by = "" if THOUGHTS in without else self._by
        return {**body, **conversation(request.messages, by)}

    def refused(self, body: Json, reason: str) -> str:
        if "text" in body and request_body.is_about_format(reason):
            return ""
        folded = reason.casefold()
        if "include" in body and ("'include'" in folded or "encrypted content is not supported" in folded):
            return "include"
        is_about_thoughts = "encrypted" in folded or "reasoning' was provided" in folded
        if is_about_thoughts and any(item.get("type") == "reasoning" for item in body["input"]):
            return THOUGHTS
        if "reasoning" in body and ("reasoning" in folded or "effort" in folded):
            return _effort(body)
        return next((name for name in OPTIONAL if name in body and name in folded), "")

    def is_passing(self, name: str) -> bool:
        return name == THOUGHTS  # sealed with another account's key, for instance; the next ones may be good again

    def answer(self, new_id: Callable[[], str]) -> ResponsesAnswer:
        return ResponsesAnswer(new_id, self._by)


def _effort(body: Json) -> str:
    """One effort may be refused and another taken, so each has a name of its own."""
    return f"reasoning:{body.get('reasoning', {}).get('effort')}"


# What is sent


def conversation(messages: Collection[ChatMessage], by: str) -> Json:
    """The system's first word stands apart, as ``instructions``; a later one keeps its place."""
    rest = list(messages)
    system = rest.pop(0).text if rest and rest[0].role is Role.SYSTEM else ""
    items = [item for message in rest for item in items_of(message, by)]
    # Some servers refuse an empty input, as a call with nothing but instructions would have.
    items = items or [_message("user", [{"type": "input_text", "text": "…"}])]
    return {"instructions": system, "input": items} if system else {"input": items}


def items_of(message: ChatMessage, by: str) -> Iterator[Json]:
    match message.role:
        case Role.TOOL:
            output = _content(message) if message.images else message.text
            yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": output}
        case Role.ASSISTANT:
            for part in parts_of(message, by):
                if isinstance(part, str):
                    yield _message("assistant", [{"type": "output_text", "text": part}])
                elif isinstance(part, ToolCall):
                    arguments = request_body.sendable(part.arguments)
                    yield {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": arguments}
                else:
                    yield part
        case _:
            yield _message(str(message.role), _content(message))


def _message(role: str, content: list[Json]) -> Json:
    return {"type": "message", "role": role, "content": content}


def _content(message: ChatMessage) -> list[Json]:
    content: list[Json] = [{"type": "input_text", "text": message.text}] if message.text else []
    content += [{"type": "input_image", "image_url": image.url, "detail": image.detail} for image in message.images]
    return content or [{"type": "input_text", "text": ""}]


def tool_of(tool: ToolSpec) -> Json:
    # Strict is this API's own default, and refuses every schema with an optional field.
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": request_body.schema_of(tool),
        "strict": bool(tool.strict),
    }


def choice_of(choice: str) -> str | Json:
    return choice if choice in ("auto", "none", "required") else {"type": "function", "name": choice}


def format_of(form: OutputFormat) -> Json:
    if form.schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", **request_body.named_schema(form)}


# What comes back


class ResponsesAnswer(Answer):
    """Deltas are taken as they come; what a server sends whole only, at an item's end or at the last, counts too."""

    __slots__ = ("_began", "_ended", "_layout")

    def __init__(self, new_id: Callable[[], str], by: str) -> None:
        super().__init__(new_id)
        self._layout = ReasoningBlocks(by)
        self._began: set[object] = set()  # items of which a delta came
        self._ended: set[object] = set()

    @property
    def thought(self) -> str:
        return self._layout.dump((SEALED,))

    def _take_chunk(self, chunk: dict[str, Any]) -> None:
        kind = chunk.get("type")
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._began.add(_place(chunk))
                self._say(chunk["delta"])
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._began.add(_place(chunk))
                self.fresh_reasoning.append(plain(chunk["delta"]))
            case "response.reasoning_summary_part.added" if count(chunk.get("summary_index")):
                self.fresh_reasoning.append("\n\n")
            case "response.function_call_arguments.delta":
                self._began.add(_place(chunk))
                self.calls.add([{"index": _place(chunk), "function": {"arguments": chunk["delta"]}}])
            case "response.output_item.added":
                if chunk["item"].get("type") == "function_call":
                    self._begin_call(_place(chunk), chunk["item"])
            case "response.output_text.done":
                self.logprobs += chunk.get("logprobs") or ()
            case "response.output_item.done":
                self._end_item(_place(chunk), chunk["item"])
            case "response.completed" | "response.incomplete" | "response.failed":
                self._end(chunk["response"])
            case "error":
                self.error, self.is_over = chunk, True
            case None:
                if chunk.get("object") == "response":
                    self._end(chunk)
                elif is_complaint(chunk):
                    self.error = chunk
            case _:
                pass  # what a newer version tells besides

    def _say(self, delta: Any) -> None:
        if text := plain(delta):
            self.fresh_text.append(text)
            self._layout.add_text(text)

    def _begin_call(self, place: object, item: dict[str, Any]) -> None:
        self._layout.called()
        call_id = item.get("call_id") or item.get("id")
        self.calls.add([{"index": place, "id": call_id, "function": {"name": item.get("name")}}])

    def _end_item(self, place: object, item: dict[str, Any]) -> None:
        if place in self._ended:
            return
        self._ended.add(place)
        is_new = place not in self._began
        match item.get("type"):
            case "message" if is_new:
                for part in item.get("content") or ():
                    self._say(plain(part) or plain(part.get("refusal")))
            case "function_call" if is_new:
                if not self.calls.has(place):
                    self._begin_call(place, item)
                self.calls.add([{"index": place, "function": {"arguments": item.get("arguments")}}])
            case "reasoning":
                if is_new:
                    self.fresh_reasoning.append(plain(item.get("summary")) or plain(item.get("content")))
                sealed = {"type": "reasoning", "summary": item.get("summary") or [], SEALED: item.get(SEALED)}
                self._layout.thought(sealed)
            case _:
                pass

    def _end(self, response: dict[str, Any]) -> None:
        for place, item in enumerate(response.get("output") or ()):
            known_by_id = item.get("id") in self._began | self._ended  # no index came with its events
            self._end_item(item["id"] if known_by_id else place, item)
        self.is_over = True
        self.model = str(response.get("model") or "")
        self.usage = read_usage(response.get("usage"))
        if error := response.get("error"):
            self.error = {"error": error}
        elif response.get("status") == "failed":
            self.error = {"error": "server_error"}
        details = response.get("incomplete_details")
        self.finish(str(details.get("reason") or "stop") if isinstance(details, dict) else "stop")


def _place(chunk: dict[str, Any]) -> object:
    place = chunk.get("output_index")
    return chunk.get("item_id") if place is None else place


def read_usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    spent = usage.get("output_tokens_details")
    return Usage(
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        count(cached),
        count(spent.get("reasoning_tokens")) if isinstance(spent, dict) else 0,
    )
