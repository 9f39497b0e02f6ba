"""Which requests are background tasks of a chat client."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.servers.api.direct.tasks import is_background_task, is_template_alone

TITLE = "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Output:\n"
TAGS = "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history\n"
FOLLOW_UPS = "### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might naturally ask next\n"
NEWER_FOLLOW_UPS = (
    "### Task:\nPredict 3-5 useful messages this user might naturally send next to advance their current objective.\n"
)
REWORDED = "### Task:\nName the mood of this chat in one word.\n### Guidelines:\n- Be brief.\n"
EMOJI = "Your task is to reflect the speaker's likely facial expression through a fitting emoji. Message: ```hi```"
QUERIES = "### Task:\nAnalyze the chat history to determine the necessity of generating search queries\n"
OPENCODE_SYSTEM = "You are a title generator. You output ONLY a thread title. Nothing else.\n\n<task>\n…\n</task>\n"
OPENCODE_ORDER = "Generate a title for this conversation:\n"
HISTORY = "### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"


def asked(text: Any, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


@pytest.mark.parametrize("template", [TITLE, TAGS, FOLLOW_UPS, NEWER_FOLLOW_UPS, REWORDED, QUERIES, EMOJI])
def test_templates_of_open_webui_are_tasks(template: str) -> None:
    assert is_background_task(asked(template + HISTORY))
    assert is_background_task(asked([{"type": "text", "text": template + HISTORY}]))
    system = {"role": "system", "content": "Be brief."}
    assert is_background_task({"messages": [system, *asked(template + HISTORY)["messages"]]})


def test_template_that_is_the_whole_input_of_a_response_is_a_task() -> None:
    assert is_template_alone({}, TITLE + HISTORY)
    assert is_template_alone({}, asked([{"type": "input_text", "text": TITLE + HISTORY}])["messages"])
    assert not is_template_alone({"metadata": {"task": "deploy"}}, "deploy it")  # programs set this field as they like
    assert not is_template_alone({}, [{"role": "user", "content": "hello"}, *asked(TITLE + HISTORY)["messages"]])


def titled(system: Any, *texts: Any, role: str = "system") -> list[dict[str, Any]]:
    return [{"role": role, "content": system}, *({"role": "user", "content": text} for text in texts)]


def test_title_that_opencode_asks_for_is_a_task() -> None:
    for role in ("system", "developer"):
        assert is_background_task({"messages": titled(OPENCODE_SYSTEM, OPENCODE_ORDER, "deploy it", role=role)})
    parts = [{"type": "text", "text": OPENCODE_ORDER}]
    assert is_background_task({"messages": titled(OPENCODE_SYSTEM, parts, "deploy it")})
    said = titled("", OPENCODE_ORDER, "deploy it")[1:]
    assert is_template_alone({"instructions": OPENCODE_SYSTEM}, said)


@pytest.mark.parametrize(
    "body",
    [
        {"messages": titled("Be brief.", OPENCODE_ORDER, "deploy it")},
        {"messages": titled(OPENCODE_SYSTEM, "deploy it")},
        {"messages": titled(OPENCODE_SYSTEM, "deploy it", OPENCODE_ORDER)},
        {"messages": titled(OPENCODE_SYSTEM, OPENCODE_ORDER, "deploy it"), "tools": [{"type": "function"}]},
        {"messages": titled(7, OPENCODE_ORDER, "deploy it")},
        {"messages": titled(OPENCODE_SYSTEM)},
        {"messages": titled(OPENCODE_SYSTEM, OPENCODE_ORDER, "deploy it")[1:], "instructions": 7},
    ],
)
def test_half_of_the_title_request_of_opencode_is_a_message(body: dict[str, Any]) -> None:
    assert not is_background_task(body)


def test_field_that_names_a_task_makes_one() -> None:
    assert is_background_task(asked("anything", task="title_generation"))
    assert is_background_task(asked("anything", metadata={"task": "tags_generation"}))


@pytest.mark.parametrize(
    "body",
    [
        asked("hello"),
        asked("### Task:\nGenerate a concise summary of my week."),
        asked("### Task:\nAnswer as in ### Chat History:\n<chat_history>\nhi\n</chat_history>\nand deploy it."),
        asked(TITLE + HISTORY, tools=[{"type": "function", "name": "a"}]),
        {"messages": [*asked("hi")["messages"], *asked(TITLE + HISTORY)["messages"]]},
        asked("hello", task="", metadata={"task": None}),
        asked(None),
        asked([1]),
        {"messages": "x"},
        {"messages": [1]},
        {},
    ],
)
def test_anything_else_is_a_message(body: dict[str, Any]) -> None:
    assert not is_background_task(body)
