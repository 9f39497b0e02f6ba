"""The Responses API from the provider's side: typed events, items, sealed reasoning."""

from __future__ import annotations

import itertools
from typing import Any

import orjson
from aiohttp import web

from tests.fakes.model import Prepared, Reply, complaint_about_form

Json = dict[str, Any]
SEAL = "gAAAA-sealed-"
FINISHED = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ResponsesSpeech:
    def key_of(self, request: web.Request) -> str:
        return request.headers.get("Authorization", "").removeprefix("Bearer ")

    def error(self, status: int, message: str, code: str = "") -> Json:
        kind = "invalid_request_error" if status in (400, 401) else "fake_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code or None}}

    def complaint_about(self, body: Json) -> str:
        if not body.get("model"):
            return "Missing required parameter: 'model'."
        if not isinstance(body.get("input"), list) or not body["input"]:
            return 'One of "input" or "previous_response_id" must be provided.'
        if 0 < body.get("max_output_tokens", 16) < 16:
            return "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
        if complaint := complaint_about_form((body.get("text") or {}).get("format"), "text.format"):
            return complaint
        for number, tool in enumerate(body.get("tools") or ()):
            if not tool.get("name"):
                return f"Missing required parameter: 'tools[{number}].name'."
        return _complaint_about_items(body["input"])

    def whole_body(self, answer: Reply, model: str, call_prefix: str) -> Json:
        return _response(answer, model, _items(answer, call_prefix), is_ended=True)

    def prepare(self, answer: Reply, model: str, call_prefix: str, body: Json) -> Prepared:
        numbers = itertools.count()

        def event(kind: str, **more: Any) -> bytes:
            told = {"type": kind, "sequence_number": next(numbers), **more}
            return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps(told))

        head, pieces, tail = b"", [], b""
        for kind in ("response.created", "response.in_progress"):
            head += event(kind, response=_response(answer, model, [], is_ended=False))
        for place, item in enumerate(_items(answer, call_prefix)):
            match item["type"]:
                case "reasoning":
                    began = {**item, "summary": [], "encrypted_content": ""}
                    at = {"item_id": item["id"], "output_index": place, "summary_index": 0}
                    head += event("response.output_item.added", output_index=place, item=began)
                    head += event("response.reasoning_summary_text.delta", **at, delta=answer.reasoning)
                    head += event("response.output_item.done", output_index=place, item=item)
                case "message":
                    at = {"item_id": item["id"], "output_index": place, "content_index": 0}
                    empty = {**item, "status": "in_progress", "content": []}
                    head += event("response.output_item.added", output_index=place, item=empty)
                    pieces = [event("response.output_text.delta", **at, delta=piece) for piece in answer.pieces]
                    tail += event("response.output_text.done", **at, text=answer.whole_text)
                    tail += event("response.output_item.done", output_index=place, item=item)
                case _:
                    at = {"item_id": item["id"], "output_index": place}
                    began = {**item, "status": "in_progress", "arguments": ""}
                    half = len(item["arguments"]) // 2
                    tail += event("response.output_item.added", output_index=place, item=began)
                    for delta in (item["arguments"][:half], item["arguments"][half:]):
                        tail += event("response.function_call_arguments.delta", **at, delta=delta)
                    tail += event("response.function_call_arguments.done", **at, arguments=item["arguments"])
                    tail += event("response.output_item.done", output_index=place, item=item)
        whole = self.whole_body(answer, model, call_prefix)
        return Prepared(head, pieces, tail + event(f"response.{whole['status']}", response=whole))


def _complaint_about_items(items: list[Json]) -> str:
    open_calls: list[str] = []
    for number, item in enumerate(items):
        match item.get("type"):
            case "function_call":
                if not isinstance(item["arguments"], str):
                    return f"Invalid type for 'input[{number}].arguments': expected a string."
                open_calls.append(item["call_id"])
            case "function_call_output":
                if item["call_id"] not in open_calls:
                    return f"No tool call found for function call output with call_id {item['call_id']}."
                open_calls.remove(item["call_id"])
            case "reasoning":
                if not str(item.get("encrypted_content") or "").startswith(SEAL):
                    return "The encrypted content could not be verified. Reason: it could not be decrypted or parsed."
                if items[number + 1 :] and items[number + 1].get("role") == "user":
                    return "Item 'rs_1' of type 'reasoning' was provided without its required following item."
            case "message":
                if item.get("role") not in ("system", "developer", "user", "assistant"):
                    return f"Invalid value: {item.get('role')!r}."
                wanted = "output_" if item["role"] == "assistant" else "input_"
                if not all(part["type"].startswith(wanted) for part in item["content"]):
                    return f"Invalid value: '{item['content'][0]['type']}'."
            case other:
                return f"Invalid value: {other!r}. Supported values are: 'message', 'function_call', …"
    return f"No tool output found for function call {open_calls[0]}." if open_calls else ""


def _items(answer: Reply, call_prefix: str) -> list[Json]:
    items: list[Json] = []
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        items.append({"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": SEAL + call_prefix})
    if answer.pieces:
        content = [{"type": "output_text", "annotations": [], "text": answer.whole_text}]
        items.append({"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": content})
    for number, (name, arguments) in enumerate(answer.tool_calls):
        call: Json = {"id": f"fc_{number}", "type": "function_call", "status": "completed"}
        call |= {"call_id": f"{call_prefix}_{number}", "name": name, "arguments": orjson.dumps(arguments).decode()}
        items.append(call)
    return items


def _response(answer: Reply, model: str, items: list[Json], *, is_ended: bool) -> Json:
    reason = FINISHED.get(answer.finish)
    ended = "incomplete" if reason else "completed"
    response: Json = {"id": "resp_fake", "object": "response", "created_at": 1, "model": model, "error": None}
    response["status"] = ended if is_ended else "in_progress"
    response["incomplete_details"] = {"reason": reason} if is_ended and reason else None
    response |= {"output": items, "store": False, "usage": None}
    if is_ended and answer.usage is not None:
        prompt, completion = answer.usage
        usage: Json = {"input_tokens": prompt, "input_tokens_details": {"cached_tokens": 0}}
        usage |= {"output_tokens": completion, "output_tokens_details": {"reasoning_tokens": 0}}
        response["usage"] = {**usage, "total_tokens": prompt + completion}
    return response
