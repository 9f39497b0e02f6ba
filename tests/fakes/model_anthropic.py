"""The Messages API from the provider's side: content blocks, signed thinking, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import orjson
from aiohttp import web

from tests.fakes.model import Prepared, Reply

Json = dict[str, Any]
SIGNED = "EqQBCgIYAhIM-signed-"
FIELDS = {
    "model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "temperature", "top_p", "top_k",
    "stop_sequences", "thinking", "output_config", "cache_control", "metadata", "service_tier",
}  # fmt: skip
KINDS = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
}  # fmt: skip
STOPPED = {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use", "stop": "end_turn"}


class AnthropicSpeech:
    def key_of(self, request: web.Request) -> str:
        assert request.headers["anthropic-version"] == "2023-06-01"
        assert "Authorization" not in request.headers
        return request.headers.get("x-api-key", "")

    def error(self, status: int, message: str, code: str = "") -> Json:
        known = "authentication_error" if code == "invalid_api_key" else code
        error = {"type": known or KINDS.get(status, "api_error"), "message": message}
        return {"type": "error", "error": error, "request_id": "req_fake"}

    def complaint_about(self, body: Json) -> str:
        for needed in ("model", "max_tokens", "messages"):
            if not body.get(needed):
                return f"{needed}: Field required"
        if odd := body.keys() - FIELDS:
            return f"{min(odd)}: Extra inputs are not permitted"
        if orjson.dumps(body).count(b'"cache_control"') > 4:
            return "A maximum of 4 blocks with cache_control may be provided. Found 5."
        if complaint := _complaint_about_form(body.get("output_config", {}).get("format")):
            return complaint
        return _complaint_about_thinking(body) or _complaint_about_messages(body["messages"])

    def whole_body(self, answer: Reply, model: str, call_prefix: str) -> Json:
        body: Json = {"id": "msg_fake", "type": "message", "role": "assistant", "model": model}
        body |= {"content": _blocks(answer, call_prefix), "stop_reason": STOPPED.get(answer.finish_reason)}
        return body | {"stop_sequence": None, "usage": _usage(answer)}

    def prepare(self, answer: Reply, model: str, call_prefix: str, body: Json) -> Prepared:
        started: Json = {**self.whole_body(answer, model, call_prefix), "content": [], "stop_reason": None}
        started["usage"] = {**started["usage"], "output_tokens": 1}
        head, pieces, tail = _event("message_start", message=started) + _event("ping"), [], b""
        for place, block in enumerate(_blocks(answer, call_prefix)):
            stop = _event("content_block_stop", index=place)
            match block["type"]:
                case "thinking":
                    head += _begin(place, {**block, "thinking": "", "signature": ""})
                    head += _delta(place, "thinking_delta", thinking=block["thinking"])
                    head += _delta(place, "signature_delta", signature=block["signature"]) + stop
                case "text":
                    head += _begin(place, {"type": "text", "text": ""})
                    pieces = [_delta(place, "text_delta", text=piece) for piece in answer.pieces]
                    tail += stop
                case _:
                    written = orjson.dumps(block["input"]).decode()
                    tail += _begin(place, {**block, "input": {}}) + _delta(place, "input_json_delta", partial_json="")
                    for piece in (written[:3], written[3:]):
                        tail += _delta(place, "input_json_delta", partial_json=piece)
                    tail += stop
        ended = {"stop_reason": STOPPED.get(answer.finish_reason), "stop_sequence": None}
        usage = {"output_tokens": _usage(answer)["output_tokens"]}
        return Prepared(head, pieces, tail + _event("message_delta", delta=ended, usage=usage) + _event("message_stop"))


def _complaint_about_form(form: Json | None) -> str:
    if form is None:
        return ""
    if form.keys() != {"type", "schema"} or form["type"] != "json_schema":
        return "output_config.format: Input should be an object with type 'json_schema' and schema"
    if form["schema"].get("type") == "object" and form["schema"].get("additionalProperties") is not False:
        return "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
    return ""


def _complaint_about_thinking(body: Json) -> str:
    thinking = body.get("thinking") or {}
    if thinking.get("type") not in (None, "enabled", "disabled", "adaptive"):
        return "thinking.type: unknown"
    if thinking.get("type") != "enabled":
        return ""
    if not 1024 <= thinking.get("budget_tokens", 0) < body["max_tokens"]:
        return "`max_tokens` must be greater than `thinking.budget_tokens`, and that at least 1024."
    if body.get("temperature", 1) != 1:
        return "`temperature` may only be set to 1 when thinking is enabled."
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        return "Thinking may not be enabled when tool_choice forces tool use."
    last = body["messages"][-1]
    if any(block["type"] == "tool_result" for block in last["content"]):
        asked = body["messages"][-2]["content"]
        if "thinking" not in asked[0]["type"]:
            return "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    return ""


def _complaint_about_messages(messages: list[Json]) -> str:
    if messages[0]["role"] != "user":
        return 'messages: first message must use the "user" role'
    if messages[-1]["role"] != "user":
        return "This model does not support assistant message prefill. The conversation must end with a user message."
    waiting: set[str] = set()
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        if message["role"] not in ("user", "assistant"):
            return f"{where}.role: unexpected role {message['role']!r}"
        answered = {block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"}
        if answered != waiting:
            return f"{where}: `tool_use` ids and `tool_result` blocks in the next message differ: {answered ^ waiting}"
        for place, block in enumerate(message["content"]):
            if complaint := _complaint_about_block(block):
                return f"{where}.content.{place}: {complaint}"
        waiting = {block["id"] for block in message["content"] if block["type"] == "tool_use"}
    return ""


def _complaint_about_block(block: Json) -> str:
    match block["type"]:
        case "text" if not block["text"].strip():
            return "text content blocks must contain non-whitespace text"
        case "thinking" if not block["signature"].startswith(SIGNED):
            return "Invalid `signature` in `thinking` block"
        case "tool_use" if re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]) is None or not isinstance(block["input"], dict):
            return "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$', tool_use.input a valid dictionary"
        case "image" if block["source"]["type"] not in ("base64", "url"):
            return "source.type: unknown"
        case _:
            return ""


def _blocks(answer: Reply, call_prefix: str) -> list[Json]:
    blocks: list[Json] = []
    if answer.reasoning:
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": SIGNED + call_prefix})
    if answer.pieces:
        blocks.append({"type": "text", "text": answer.whole_text})
    for number, (name, arguments) in enumerate(answer.tool_calls):
        blocks.append({"type": "tool_use", "id": f"{call_prefix}_{number}", "name": name, "input": arguments})
    return blocks


def _usage(answer: Reply) -> Json:
    prompt, completion = answer.usage or (0, 0)
    cache = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {"input_tokens": prompt, **cache, "output_tokens": completion, "service_tier": "standard"}


def _begin(place: int, block: Json) -> bytes:
    return _event("content_block_start", index=place, content_block=block)


def _delta(place: int, kind: str, **more: str) -> bytes:
    return _event("content_block_delta", index=place, delta={"type": kind, **more})


def _event(kind: str, **more: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **more}))
