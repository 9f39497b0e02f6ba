"""The list of things to do is the session's own; a question ends the turn and is put only where somebody answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.agent.todos import Item, load, merged
from hermes.agent.toolkit.context import ToolContext, ToolOutput
from hermes.agent.toolkit.schema import Tool
from hermes.agent.tools.clarify import clarify
from hermes.agent.tools.todo import todo
from hermes.core.errors import ToolError
from hermes.core.keys import ChatKind, SessionKey
from hermes.store.db import Database


async def carry_out(db: Database, output: ToolOutput) -> str:
    """What a turn does with an output: its effect is stored with the result."""
    if output.effect is not None:
        await db.write(output.effect)
    return output.text


async def test_a_list_is_written_changed_and_shown(equipped: ToolContext, db: Database) -> None:
    assert (await todo(equipped)).text == "The list is empty."
    told = await carry_out(db, await todo(equipped, [Item("1", "buy milk", "done"), Item("2", "cook")]))
    assert told == "[x] 1: buy milk\n[ ] 2: cook\n1 of 2 done."
    changes = [Item("2", state="in_progress"), Item("3", "eat")]
    await carry_out(db, await todo(equipped, changes, merge=True))
    assert (await todo(equipped)).text == "[x] 1: buy milk\n[>] 2: cook\n[ ] 3: eat\n1 of 3 done."
    await carry_out(db, await todo(equipped, []))
    assert (await todo(equipped)).text == "The list is empty."


async def test_nothing_is_stored_before_the_result_is(equipped: ToolContext) -> None:
    output = await todo(equipped, [Item("1", "buy milk")])
    assert output.effect is not None
    assert (await todo(equipped)).text == "The list is empty."


async def test_another_session_has_another_list(equipped: ToolContext, db: Database) -> None:
    await carry_out(db, await todo(equipped, [Item("1", "a secret")]))
    assert (await todo(replace(equipped, session_id="s_2"))).text == "The list is empty."


@pytest.mark.parametrize(
    "items,told",
    [
        ([Item("", "x")], "an 'id' of its own"),
        ([Item("1", "x"), Item("1", "y")], "an 'id' of its own"),
        ([Item("1", " ")], "needs a 'text'"),
        ([Item("1", "x" * 301)], "needs a 'text'"),
        ([Item(str(number), "x") for number in range(51)], "at most 50"),
    ],
)
async def test_a_list_that_makes_no_sense_is_told(equipped: ToolContext, items: list[Item], told: str) -> None:
    with pytest.raises(ToolError, match=told):
        await todo(equipped, items)


def test_a_list_that_cannot_be_read_is_an_empty_one() -> None:
    assert load("") == load("{") == load('[{"id": 1, "nonsense": 2}]') == ()
    assert merged((), [Item("1", "x")]) == (Item("1", "x"),)


def test_the_states_are_three() -> None:
    with pytest.raises(ToolError, match="must be a list"):
        Tool.of(todo).parse('{"items": [{"id": "1", "text": "x", "state": "finished"}]}')


async def test_a_question_comes_with_numbered_choices_and_ends_the_turn(context: ToolContext) -> None:
    asked = await clarify(context, "Which colour?", ["red", "green"])
    assert asked.asks
    assert asked.text == "Which colour?\n1. red\n2. green\n\nA number, or your own words."
    assert (await clarify(context, "What is your name?")).text == "What is your name?"


@pytest.mark.parametrize("platform", ["api", "task"])
async def test_where_nobody_can_answer_the_model_decides_itself(context: ToolContext, platform: str) -> None:
    alone = replace(context, session_key=SessionKey(platform, ChatKind.DM, "x"))
    with pytest.raises(ToolError, match=r"Nobody can answer here. Decide yourself"):
        await clarify(alone, "Which colour?")


@pytest.mark.parametrize("question,choices", [("  ", None), ("x" * 2001, None), ("x", ["a"] * 7), ("x", ["a" * 301])])
async def test_a_question_that_is_none_is_told(context: ToolContext, question: str, choices: list[str] | None) -> None:
    with pytest.raises(ToolError, match=r"question|choices"):
        await clarify(context, question, choices)
