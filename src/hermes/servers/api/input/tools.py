"""Read tools that are no functions, the choice among tools, and which of the gateway's tools a request uses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from hermes.core.messages import Json, ToolSpec
from hermes.core.text import one_line
from hermes.servers.api.context import CALLER, WARNINGS
from hermes.servers.api.errors import ApiError, bad_request
from hermes.services.gateway import Gateway
from hermes.services.requests.requests import PLATFORM

TOOLS_HEADER = "X-Hermes-Tools"
NO_TOOLS = "none"
OUR_EQUALS = {"web_search": "web_search", "web_fetch": "web_extract"}
"""Types of hosted tools, by the beginning of their names, and the gateway's tool that does the same."""
LONGEST_LIST = 2000
_NAME = re.compile(r"[\w-]+\Z", re.ASCII)


def is_function(tool: Json) -> bool:
    return tool.get("type") in (None, "function")


def is_ours(tool: Any) -> bool:
    """The gateway's own tools as a client declares them, to be asked about approvals: they are there anyway."""
    return isinstance(tool, dict) and tool.get("type") == "mcp" and tool.get("server_label") == "hermes"


def left_out(tools: Sequence[Json] | None, offered: Sequence[str]) -> list[str]:
    """Name the tools of a request that nothing here does. ``offered`` are the names of the gateway's own tools."""
    names: list[str] = []
    for tool in tools or ():
        kind = str(tool.get("type"))
        equal = next((ours for prefix, ours in OUR_EQUALS.items() if kind.startswith(prefix)), "")
        if is_function(tool) or is_ours(tool) or (equal and equal in offered):
            continue
        name = tool.get("name") or tool.get("server_label") or ""
        names.append(one_line(f"{kind} {name}".strip(), 60))
    return names


async def note_left_out(request: web.Request, gateway: Gateway, body: Json) -> None:
    """Warn about tools that are left out, in a header of the answer: the request itself is not refused."""
    sent = body.get("tools")
    if not isinstance(sent, list) or all(not isinstance(tool, dict) or is_function(tool) for tool in sent):
        return
    await gateway.toolbox.ready()
    ready, wanted = gateway.toolbox.ready_names(PLATFORM, request[CALLER].role), own_tools(request)
    offered = [name for name in ready if gateway.toolbox.is_among(name, wanted)]
    if names := left_out([tool for tool in sent if isinstance(tool, dict)], offered):
        request.setdefault(WARNINGS, []).append(f"tools left out: {', '.join(names)}")


def read_tool_choice(
    value: Any, tools: tuple[ToolSpec, ...], sent: Sequence[Json] | None, param: str = "tool_choice"
) -> tuple[str, tuple[ToolSpec, ...]]:
    """Return the choice and the tools it leaves: '' where the client says nothing; auto, none, required, or a name.

    ``sent`` are the tools as they came: a choice of one that was left out means any.
    """
    if value is None:
        return "", tools
    has_others = any(not is_function(tool) for tool in sent or ())
    if value in ("auto", "none") or (value == "required" and tools):
        return str(value), tools
    if value == "required" and has_others:
        return "auto", tools
    if value == "required":
        message = "tool_choice 'required' needs tools to choose from."
        raise bad_request(message, code="invalid_tool_choice", param=param)
    if isinstance(value, dict):
        if value.get("type") == "allowed_tools":
            return _read_allowed(value, tools, param)
        named = value["function"] if isinstance(value.get("function"), dict) else value
        if value.get("type") == "function" and any(tool.name == named.get("name") for tool in tools):
            return str(named["name"]), tools
        if value.get("type") != "function" and has_others:
            return "auto", tools
    raise _no_choice(param)


def _read_allowed(value: Json, tools: tuple[ToolSpec, ...], param: str) -> tuple[str, tuple[ToolSpec, ...]]:
    """Chat completions put mode and tools into a box of their own; responses do not."""
    box = value["allowed_tools"] if isinstance(value.get("allowed_tools"), dict) else value
    mode, listed = box.get("mode", "auto"), box.get("tools")
    if mode not in ("auto", "required") or not isinstance(listed, list):
        raise _no_choice(param)
    names = set()
    for item in listed:
        inner = item.get("function") if isinstance(item, dict) else None
        names.add(str((inner if isinstance(inner, dict) else item if isinstance(item, dict) else {}).get("name")))
    allowed = tuple(tool for tool in tools if tool.name in names)
    return mode if allowed else "auto", allowed


def _no_choice(param: str) -> ApiError:
    message = "tool_choice is auto, none, required, allowed_tools, or names one of the tools of this request."
    return bad_request(message, code="invalid_tool_choice", param=param)


def own_tools(request: web.Request) -> tuple[str, ...] | None:
    """Return the gateway's tools that a request may use: the header says so, else its key; None for all."""
    given = request.headers.get(TOOLS_HEADER)
    words = (request[CALLER].tools if given is None else given).strip()
    if words.lower() in ("", "all"):
        return None
    if words.lower() == NO_TOOLS:
        return ()
    names = tuple(name.strip() for name in words.split(","))
    if len(words) > LONGEST_LIST or not all(_NAME.match(name) for name in names):
        message = f"{TOOLS_HEADER} is none, all, or names of tools and toolsets with commas: see GET /v1/toolsets."
        raise bad_request(message, code="invalid_value", param=TOOLS_HEADER)
    return names
