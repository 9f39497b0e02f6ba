"""A tool is its signature: what the model may send, and what it is told when it sends something else."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.toolkit.context import ApprovalNeed, Parts, ToolContext
from hermes.agent.toolkit.schema import Tool, tool, tools_of
from hermes.agent.toolkit.toolbox import Toolbox
from hermes.agent.tools import read_file, search_files
from hermes.core.errors import ToolError
from hermes.core.i18n.catalogue import CHINESE
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.roles import PersonRole
from hermes.core.secret import Redactor, Secret
from tests.fakes import tools as fake_tools

CONTEXT = ToolContext("c1", SessionKey("local", ChatKind.DM, "me"), "local", Path("/nowhere"))


@tool(toolset="test")
async def order(
    ctx: ToolContext,
    dish: str,
    portions: int = 1,
    price: float = 2.5,
    spicy: bool = False,
    sides: list[str] | None = None,
    size: Literal["small", "large"] = "small",
) -> str:
    """Order a dish.

    Ask before ordering for more than ten.
    """
    return json.dumps([dish, portions, price, spicy, sides, size])


@tool(toolset="test", seconds=0.01)
async def dawdle(ctx: ToolContext) -> str:
    """Never come back."""
    await asyncio.Event().wait()
    return ""


@tool(toolset="test")
async def stumble(ctx: ToolContext, with_timeout: bool = False) -> str:
    """Break."""
    if with_timeout:
        raise TimeoutError("the server said nothing")
    raise ZeroDivisionError("sk-verysecret by zero")


@tool(toolset="test")
async def babble(ctx: ToolContext, lines: int, line: str = "word") -> str:
    """Say a lot."""
    return f"{line}\n" * lines


def box(*functions: Any, **options: Any) -> Toolbox:
    return Toolbox([Tool.of(function) for function in functions], **options)


async def call(name: str, arguments: str, toolbox: Toolbox | None = None) -> str:
    return (await (toolbox or box(order, dawdle, stumble, babble)).call(name, arguments, CONTEXT)).text


def test_signature_is_the_schema_and_docstring_the_description() -> None:
    (spec,) = (one.spec for one in box(order).tools())
    assert spec.name == "order"
    assert spec.description == "Order a dish.\n\nAsk before ordering for more than ten."
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "dish": {"type": "string"},
            "portions": {"type": "integer", "default": 1},
            "price": {"type": "number", "default": 2.5},
            "spicy": {"type": "boolean", "default": False},
            "sides": {"type": ["array", "null"], "items": {"type": "string"}},
            "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
        },
        "required": ["dish"],
        "additionalProperties": False,
    }


async def test_arguments_arrive_as_python_values() -> None:
    sent = '{"dish": "soup", "portions": 2.0, "price": 3, "spicy": true, "sides": ["bread"], "size": "large"}'
    assert json.loads(await call("order", sent)) == ["soup", 2, 3.0, True, ["bread"], "large"]
    assert json.loads(await call("order", '{"dish": "soup", "sides": null}')) == ["soup", 1, 2.5, False, None, "small"]


@pytest.mark.parametrize(
    "arguments,told",
    [
        ('{"dish": "soup"', "The arguments of order are not valid JSON"),
        ("[1]", 'must be one JSON object, like {"dish": "...", "portions": "..."}'),
        ("", "order needs the argument 'dish' (text)."),
        ("null", "order needs the argument 'dish' (text)."),
        ('{"dsh": "soup"}', "order has no argument 'dsh'. Did you mean 'dish'? It takes: dish, portions,"),
        ('{"dish": 3}', "order: 'dish' must be text, not 3."),
        ('{"dish": "a", "portions": "two"}', "order: 'portions' must be a whole number, not \"two\"."),
        ('{"dish": "a", "portions": 2.5}', "'portions' must be a whole number, not 2.5."),
        ('{"dish": "a", "portions": true}', "'portions' must be a whole number, not true."),
        ('{"dish": "a", "portions": null}', "'portions' must be a whole number, not null."),
        ('{"dish": "a", "price": true}', "'price' must be a number, not true."),
        ('{"dish": "a", "spicy": 1}', "'spicy' must be true or false, not 1."),
        ('{"dish": "a", "sides": ["b", 1]}', "'sides' must be a list, each text, or null, not"),
        ('{"dish": "a", "size": "huge"}', "'size' must be one of 'small', 'large', not \"huge\"."),
        ("[" * 5000, "not valid JSON"),
    ],
)
async def test_wrong_arguments_are_told_in_a_sentence(arguments: str, told: str) -> None:
    with pytest.raises(ToolError) as caught:
        await call("order", arguments)
    assert told in str(caught.value)


@given(
    st.text(max_size=40) | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps)
)
def test_no_argument_text_breaks_the_parser(arguments: str) -> None:
    try:
        Tool.of(order).parse(arguments)
    except ToolError as error:
        assert str(error)  # noqa: PT017 - either is fine; anything else fails the test


async def test_unknown_tool_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(ToolError, match=r"There is no tool 'ordr'\. Did you mean 'order'"):
        await call("ordr", "{}")


def test_function_that_no_model_could_call_is_refused_at_start() -> None:
    async def unmarked(ctx: ToolContext) -> str: ...  # type: ignore[empty-body]

    @tool(toolset="test")
    async def takes_a_set(ctx: ToolContext, names: set[str]) -> str: ...  # type: ignore[empty-body]

    with pytest.raises(TypeError, match="not a tool"):
        Tool.of(unmarked)
    with pytest.raises(TypeError, match="cannot take set"):
        Tool.of(takes_a_set)


def test_tools_are_collected_from_the_modules_that_define_them() -> None:
    names = [found.name for found in tools_of(read_file, search_files, fake_tools)]
    assert names[:3] == ["read_file", "search_files", "danger"]
    assert "tool" not in names, "what a module only imports is not its own"


async def test_tool_that_breaks_becomes_a_result_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    toolbox = box(stumble, redact=Redactor([Secret("sk-verysecret")]))
    with pytest.raises(ToolError, match=r"stumble failed: ZeroDivisionError: \[hidden\] by zero"):
        await toolbox.call("stumble", "{}", CONTEXT)
    assert "Tool failed" in caplog.text


async def test_tool_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(ToolError, match=r"dawdle was stopped: it took longer than 0.01 s"):
        await call("dawdle", "{}")


async def test_time_out_inside_a_tool_is_told_as_its_own() -> None:
    with pytest.raises(ToolError, match="stumble failed: TimeoutError: the server said nothing"):
        await call("stumble", '{"with_timeout": true}')


async def test_long_result_is_cut_at_a_line_and_says_so() -> None:
    text = await call("babble", '{"lines": 100000}')
    body, _, note = text.rpartition("\n")
    assert len(body.encode()) <= 50_000
    assert body.endswith("word\n")
    assert note.startswith("[Cut here: the result is longer than 50,000 bytes.")


async def test_no_half_of_a_secret_is_left_at_the_cut() -> None:
    secret = "s" * 30 + "e" * 30
    toolbox = box(babble, redact=Redactor([Secret(secret)]), output_bytes=500)
    for lines in range(1, 400, 7):
        output = await toolbox.call("babble", json.dumps({"lines": lines, "line": secret}), CONTEXT)
        assert "sss" not in output.text


async def test_result_that_no_database_takes_is_made_storable() -> None:
    text = await call("babble", json.dumps({"lines": 1, "line": "a\0b\ud800c"}))
    text.encode()
    assert "\0" not in text


def test_approval_is_asked_only_for_a_call_that_can_run() -> None:
    toolbox = box(fake_tools.danger, order)
    need = toolbox.approval("danger", '{"text": "boo"}', CONTEXT)
    assert need == ApprovalNeed("May I write 'boo' into danger.txt?", touches_host=True)
    assert toolbox.approval("danger", "{}", CONTEXT) is None
    assert toolbox.approval("dangr", '{"text": "boo"}', CONTEXT) is None
    assert toolbox.approval("order", '{"dish": "soup"}', CONTEXT) is None


def test_approval_rule_that_breaks_means_ask() -> None:
    def broken(ctx: ToolContext) -> ApprovalNeed | None:
        raise KeyError("oops")

    @tool(toolset="test", approval=broken)
    async def risky(ctx: ToolContext) -> str: ...  # type: ignore[empty-body]

    need = box(risky).approval("risky", "{}", CONTEXT)
    assert need is not None
    assert need.touches_host


async def test_what_a_rule_refuses_for_everybody_is_not_asked_about_and_does_not_run() -> None:
    def never(ctx: ToolContext) -> ApprovalNeed | None:
        raise ToolError("This is never done.")

    @tool(toolset="test", approval=never)
    async def ruin(ctx: ToolContext) -> str:
        return "ruined"

    assert box(ruin).approval("ruin", "{}", CONTEXT) is None
    with pytest.raises(ToolError, match=r"^This is never done\.$"):
        await box(ruin).call("ruin", "{}", CONTEXT)


async def test_a_call_runs_only_as_it_was_looked_at_or_allowed() -> None:
    found: list[ApprovalNeed | None] = [None]

    def look(ctx: ToolContext) -> ApprovalNeed | None:
        return found[0]

    @tool(toolset="test", approval=look)
    async def work(ctx: ToolContext) -> str:
        return "worked"

    toolbox = box(work)
    here, there = ApprovalNeed("May I?", where="in safe"), ApprovalNeed("May I?", where="in other")
    for asked, now, runs in [(None, None, 1), (here, here, 1), (here, None, 1), (None, here, 0), (here, there, 0)]:
        found[0] = now
        if runs:
            assert (await toolbox.call("work", "{}", CONTEXT, asked)).text == "worked"
            continue
        with pytest.raises(ToolError, match="Call it again to ask again"):
            await toolbox.call("work", "{}", CONTEXT, asked)


async def test_what_was_allowed_runs_also_when_the_person_has_changed_the_language_since() -> None:
    def look(ctx: ToolContext, path: str) -> ApprovalNeed:
        return ApprovalNeed(ctx.words.ASK_READ_KEYS.format(path=path))

    @tool(toolset="test", approval=look)
    async def work(ctx: ToolContext, path: str) -> str:
        return "worked"

    toolbox, later = box(work), replace(CONTEXT, words=CHINESE)
    asked = toolbox.approval("work", '{"path": "a"}', CONTEXT)
    assert asked != toolbox.approval("work", '{"path": "a"}', later)
    assert (await toolbox.call("work", '{"path": "a"}', later, asked)).text == "worked"
    with pytest.raises(ToolError, match="Call it again to ask again"):
        await toolbox.call("work", '{"path": "b"}', later, asked)


async def test_a_tool_is_refused_to_a_role_below_its_own() -> None:
    @tool(toolset="test", role=PersonRole.ADMIN)
    async def rule(ctx: ToolContext) -> str:
        return "ruled"

    with pytest.raises(ToolError, match=r"rule needs the role admin; the person you talk with is user"):
        await box(rule).call("rule", "{}", CONTEXT)
    output = await box(rule).call("rule", "{}", replace(CONTEXT, role=PersonRole.OWNER))
    assert output.text == "ruled"


def test_a_part_is_found_by_its_class_and_a_missing_one_is_told() -> None:
    parts = Parts("a word", 5)
    assert parts.get(str) == "a word"
    with pytest.raises(ToolError, match=r"runs without Path"):
        parts.get(Path)


def test_only_marked_tools_are_not_run_again_after_a_crash() -> None:
    toolbox = box(fake_tools.danger, order)
    assert not toolbox.is_repeatable("danger")
    assert toolbox.is_repeatable("order")
    assert toolbox.is_repeatable("gone")


async def test_tools_given_as_a_function_are_made_once_when_they_are_first_needed() -> None:
    made: list[str] = []

    def make() -> list[Tool]:
        made.append("made")
        return tools_of("hermes.agent.tools.read_file")

    toolbox = Toolbox(make)
    assert made == []
    await asyncio.gather(*(asyncio.to_thread(toolbox.load) for _ in range(3)))
    assert [tool.name for tool in toolbox.tools()] == ["read_file"]
    assert made == ["made"]
