"""Translate a request of the Messages API into one of chat completions, which is then read like any other."""

from __future__ import annotations

from typing import Any

from hermes.core.messages import Json
from hermes.core.text import one_line
from hermes.servers.api.bodies import MessagesRequestBody, decode
from hermes.servers.api.errors import bad_request

EFFORTS = {"low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "xhigh"}
LOW_BUDGET, MEDIUM_BUDGET = 4096, 12_288
IGNORED = frozenset({"thinking", "redacted_thinking"})
"""Blocks of earlier answers that clients send back and that mean nothing to another model."""


def chat_body(body: Json) -> Json:
    """Return the request in the shape of chat completions. Raises ApiError for what cannot be read."""
    sent = decode(body, MessagesRequestBody)
    messages: list[Json] = []
    if sent.system is not None:
        messages.append({"role": "system", "content": _texts(sent.system, "system")})
    for index, message in enumerate(sent.messages):
        messages += _messages_of(message, f"messages[{index}]")
    effort = _effort(sent)
    choice = sent.tool_choice or {}
    translated: Json = {
        "messages": messages,
        "model": sent.model,
        "stream": sent.stream,
        "max_tokens": sent.max_tokens,
        "temperature": sent.temperature,
        "top_p": sent.top_p,
        "stop": sent.stop_sequences or None,
        "tools": [_tool(tool) for tool in sent.tools or ()] or None,
        "tool_choice": _choice(choice),
        "parallel_tool_calls": False if choice.get("disable_parallel_tool_use") is True else None,
        "reasoning_effort": effort,
        "response_format": _format(sent),
    }
    return {name: value for name, value in translated.items() if value is not None}


def wants_thinking(body: Json) -> bool:
    """Tell whether the client asked to be shown what the model thinks."""
    thinking = body.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") in ("enabled", "adaptive")


def _effort(sent: MessagesRequestBody) -> str | None:
    thinking = sent.thinking or {}
    effort = (sent.output_config or {}).get("effort")
    if isinstance(effort, str) and effort in EFFORTS and thinking.get("type") != "disabled":
        return EFFORTS[effort]
    if thinking.get("type") == "disabled":
        return "none"
    budget = thinking.get("budget_tokens")
    if thinking.get("type") != "enabled" or not isinstance(budget, int):
        return None
    return "low" if budget <= LOW_BUDGET else "medium" if budget <= MEDIUM_BUDGET else "high"


def _format(sent: MessagesRequestBody) -> Json | None:
    form = (sent.output_config or {}).get("format")
    if not isinstance(form, dict):
        return None
    if form.get("type") != "json_schema":
        message = "output_config.format is of type json_schema."
        raise bad_request(message, code="invalid_response_format", param="output_config.format")
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": form.get("schema")}}


# Tools


def _tool(tool: Json) -> Json:
    kind = tool.get("type")
    if kind not in (None, "custom"):
        return tool  # one that Anthropic would run: offered where we have an equal, otherwise left out
    function = {name: tool.get(name) for name in ("name", "description", "strict")}
    return {"type": "function", "function": {**function, "parameters": tool.get("input_schema")}}


def _choice(choice: Json) -> Any:
    match choice.get("type"):
        case None:
            return None
        case "auto" | "none" as word:
            return word
        case "any":
            return "required"
        case "tool":
            return {"type": "function", "function": {"name": choice.get("name")}}
        case _:
            message = "tool_choice is of type auto, any, tool or none."
            raise bad_request(message, code="invalid_tool_choice", param="tool_choice.type")


# Messages


def _messages_of(message: Json, where: str) -> list[Json]:
    """One message of theirs is several of ours: results of tools stand apart from what the user says."""
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        raise bad_request(f"{where}.role is user, assistant or system.", code="invalid_role", param=f"{where}.role")
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    if not isinstance(content, list):
        message_ = f"{where}.content is a text, or an array of blocks."
        raise bad_request(message_, code="invalid_content", param=f"{where}.content")
    parts: list[Json] = []
    calls: list[Json] = []
    results: list[Json] = []
    for index, block in enumerate(content):
        at = f"{where}.content[{index}]"
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_use" and role == "assistant":
            calls.append(_call(block))
        elif kind == "tool_result" and role == "user":
            results.append(_result(block, at))
        elif kind not in IGNORED and not (role == "assistant" and _is_of_server(kind)):
            parts.append(_part(block, at))
    if role != "assistant":
        return [*results, *([{"role": role, "content": parts}] if parts or not results else [])]
    entry: Json = {"role": role, "content": parts}
    return [{**entry, "tool_calls": calls} if calls else entry]


def _is_of_server(kind: Any) -> bool:
    """Tools that Anthropic ran in an earlier answer, and what came of them."""
    return isinstance(kind, str) and (kind == "server_tool_use" or kind.endswith("_tool_result"))


def _call(block: Json) -> Json:
    function = {"name": block.get("name"), "arguments": block.get("input")}
    return {"id": block.get("id"), "type": "function", "function": function}


def _result(block: Json, where: str) -> Json:
    content = block.get("content")
    if isinstance(content, list):
        content = [_part(part, f"{where}.content[{index}]") for index, part in enumerate(content)]
    if block.get("is_error") is True:
        parts = [content] if isinstance(content, str) else content or []
        content = ["The tool failed:", *parts]
    return {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": content}


def _part(block: Any, where: str) -> Any:
    """A block as a part of chat completions; what is no block is refused where parts are read."""
    if not isinstance(block, dict):
        return block
    source = block.get("source")
    match block.get("type"):
        case "image" if isinstance(source, dict):
            return {"type": "image_url", "image_url": {"url": _address(source, where)}}
        case "document" if isinstance(source, dict):
            return _document(block, source, where)
        case "search_result":
            texts = _texts(block.get("content"), f"{where}.content")
            title = one_line(str(block.get("title") or ""), 200)
            return {"type": "text", "text": "\n".join((f"[search result: {title}]", *texts))}
        case _:
            return block


def _address(source: Json, where: str) -> Any:
    match source.get("type"):
        case "base64":
            return f"data:{source.get('media_type')};base64,{source.get('data')}"
        case "url":
            return source.get("url")
        case _:
            message = "Files are not kept here: send the picture itself as base64, or its url."
            raise bad_request(message, code="unsupported_content_type", param=f"{where}.source")


def _document(block: Json, source: Json, where: str) -> Json:
    title = one_line(str(block.get("title") or "document"), 120)
    match source.get("type"):
        case "base64":
            data = f"data:{source.get('media_type')};base64,{source.get('data')}"
            return {"type": "file", "file": {"filename": title, "file_data": data}}
        case "text":
            return {"type": "text", "text": f"[document: {title}]\n{source.get('data')}"}
        case "content":
            texts = _texts(source.get("content"), f"{where}.source.content")
            return {"type": "text", "text": "\n".join((f"[document: {title}]", *texts))}
        case _:
            message = "A document is taken as base64 or text; send the document itself."
            raise bad_request(message, code="unsupported_content_type", param=f"{where}.source")


def _texts(value: Any, param: str) -> list[str]:
    """The texts of a string or of text blocks."""
    if isinstance(value, str):
        return [value]
    blocks = value if isinstance(value, list) else [value]
    texts: list[Any] = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    if not all(isinstance(text, str) for text in texts):
        raise bad_request(f"{param} is a text, or an array of text blocks.", code="invalid_content", param=param)
    return texts
