"""Requests of the Messages API, translated into those of chat completions."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.servers.api.anthropic.request import chat_body, wants_thinking
from hermes.servers.api.errors import ApiError

HELLO = {"role": "user", "content": "hello"}


def translated(*messages: Any, **fields: Any) -> dict[str, Any]:
    return chat_body({"messages": list(messages) or [HELLO], "max_tokens": 10, **fields})


def test_plain_request_keeps_its_fields() -> None:
    body = translated(system="Be brief.", model="hermes", temperature=0.5, stop_sequences=["END"], stream=True)
    assert body == {
        "messages": [{"role": "system", "content": ["Be brief."]}, HELLO],
        "model": "hermes",
        "max_tokens": 10,
        "temperature": 0.5,
        "stop": ["END"],
        "stream": True,
    }


def test_results_of_tools_stand_before_what_the_user_says() -> None:
    call = {"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": "it"}}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "seen"}]}
    said = {"type": "text", "text": "And now?"}
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    body = translated(
        HELLO, {"role": "assistant", "content": [thought, said, call]}, {"role": "user", "content": [result, said]}
    )
    function = {"name": "look", "arguments": {"at": "it"}}
    assert body["messages"] == [
        HELLO,
        {
            "role": "assistant",
            "content": [said],
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "seen"}]},
        {"role": "user", "content": [said]},
    ]


def test_failed_result_says_so() -> None:
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "no such file", "is_error": True}
    [message] = translated({"role": "user", "content": [result]})["messages"]
    assert message["content"] == ["The tool failed:", "no such file"]


def test_pictures_and_documents_become_parts() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    image = {"type": "image", "source": source}
    pdf = {"type": "document", "title": "a.pdf", "source": {**source, "media_type": "application/pdf"}}
    text = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}
    [message] = translated({"role": "user", "content": [image, pdf, text]})["messages"]
    assert message["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        {"type": "text", "text": "[document: document]\nwords"},
    ]


def test_tools_and_choices_are_translated() -> None:
    tool = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
    search = {"type": "web_search_20250305", "name": "web_search"}
    choice = {"type": "tool", "name": "look", "disable_parallel_tool_use": True}
    body = translated(tools=[tool, search], tool_choice=choice)
    function = {"name": "look", "description": "Looks.", "strict": None, "parameters": {"type": "object"}}
    assert body["tools"] == [{"type": "function", "function": function}, search]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "look"}}
    assert body["parallel_tool_calls"] is False
    assert translated(tool_choice={"type": "any"})["tool_choice"] == "required"


def test_thinking_becomes_an_effort() -> None:
    assert translated(thinking={"type": "enabled", "budget_tokens": 2000})["reasoning_effort"] == "low"
    assert translated(thinking={"type": "enabled", "budget_tokens": 20_000})["reasoning_effort"] == "high"
    assert translated(thinking={"type": "disabled"})["reasoning_effort"] == "none"
    assert translated(output_config={"effort": "max"})["reasoning_effort"] == "xhigh"
    assert "reasoning_effort" not in translated(thinking={"type": "adaptive"})
    assert wants_thinking({"thinking": {"type": "adaptive"}})
    assert not wants_thinking({"thinking": {"type": "disabled"}})


@pytest.mark.parametrize(
    "fields, param",
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "bot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
        ({"messages": [HELLO], "tool_choice": {"type": "function"}}, "tool_choice.type"),
        ({"messages": [HELLO], "system": [{"type": "image"}]}, "system"),
        ({"messages": [HELLO], "max_tokens": 0}, "max_tokens"),
        ({"messages": [HELLO], "output_config": {"format": {"type": "xml"}}}, "output_config.format"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file"}}]}]},
            "messages[0].content[0].source",
        ),
    ],
)
def test_request_that_cannot_be_read_is_refused_with_its_place(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        chat_body(fields)
    assert caught.value.param == param
    assert caught.value.anthropic_body()["error"]["type"] == "invalid_request_error"
