"""Thoughts keep their place beside what was said and called, and go only to whom they belong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.agent.models.reasoning import Part, ReasoningBlocks, parts_of
from hermes.core.messages import ChatMessage, Role, ToolCall

CALLS = (ToolCall("a", "now", "{}"), ToolCall("b", "now", "{}"))
HM, AHA = {"type": "thinking", "seal": "1"}, {"type": "thinking", "seal": "2"}


def told() -> ChatMessage:
    layout = ReasoningBlocks("me")
    layout.thought(HM)
    layout.add_text("Wait")
    layout.add_text(" a bit.")
    layout.called()
    layout.thought({"type": "thinking", "seal": ""})
    layout.thought(AHA)
    layout.called()
    layout.add_text(" Well.")
    return ChatMessage(Role.ASSISTANT, "Wait a bit. Well.", tool_calls=CALLS, thought=layout.dump(("seal",)))


def test_pieces_come_back_in_their_order_without_what_has_no_seal() -> None:
    assert parts_of(told(), "me") == [HM, "Wait a bit.", CALLS[0], AHA, CALLS[1], " Well."]


PLAIN: list[Part] = ["Wait a bit. Well.", *CALLS]


@pytest.mark.parametrize("thought", ["", "{", "[]", '{"by":"me"}', '{"by":"you","parts":[{"seal":"1"}]}'])
def test_thoughts_of_others_and_broken_ones_are_left_out(thought: str) -> None:
    assert parts_of(replace(told(), thought=thought), "me") == PLAIN


def test_nobody_gets_them_when_they_are_left_out_on_purpose() -> None:
    assert parts_of(told(), "") == PLAIN


def test_in_a_message_that_was_changed_they_come_first() -> None:
    changed = replace(told(), text="Wait a bit. Well, well.")
    assert parts_of(changed, "me") == [HM, AHA, "Wait a bit. Well, well.", *CALLS]


def test_without_a_thought_nothing_is_kept() -> None:
    layout = ReasoningBlocks("me")
    layout.add_text("Hi.")
    layout.called()
    assert layout.dump(("seal",)) == ""
