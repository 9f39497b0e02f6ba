"""Tools of other types, and the choice among tools."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.core.messages import ToolSpec
from hermes.servers.api.errors import ApiError
from hermes.servers.api.input.tools import left_out, read_tool_choice

A, B = ToolSpec("a", ""), ToolSpec("b", "")
CUSTOM = {"type": "custom", "name": "apply_patch"}


def test_tools_that_nothing_here_does_are_named() -> None:
    sent: list[dict[str, Any]] = [
        {"type": "function", "name": "a"},
        {"type": "web_search_preview"},
        {"type": "web_search_20250305", "name": "web_search"},
        CUSTOM,
        {"type": "mcp", "server_label": "deepwiki"},
        {"type": "namespace", "name": "crm", "tools": []},
    ]
    assert left_out(sent, ["web_search"]) == ["custom apply_patch", "mcp deepwiki", "namespace crm"]
    assert left_out(sent, [])[:2] == ["web_search_preview", "web_search_20250305 web_search"]


def allowed(mode: str, *names: str) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": name} for name in names]}


def test_allowed_tools_leave_only_those_that_they_list() -> None:
    assert read_tool_choice(allowed("required", "b"), (A, B), None) == ("required", (B,))
    boxed = {"type": "function", "function": {"name": "a"}}
    chat = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [boxed]}}
    assert read_tool_choice(chat, (A, B), None) == ("auto", (A,))
    assert read_tool_choice(allowed("required", "other"), (A, B), None) == ("auto", ())
    with pytest.raises(ApiError, match="tool_choice is"):
        read_tool_choice({"type": "allowed_tools"}, (A,), None)


def test_choice_of_a_tool_that_was_left_out_means_any() -> None:
    assert read_tool_choice({"type": "custom", "name": "apply_patch"}, (A,), [CUSTOM]) == ("auto", (A,))
    assert read_tool_choice("required", (), [CUSTOM]) == ("auto", ())
