"""What the model is sent is always a talk that a provider accepts."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.prompt import (
    MAX_NAME_CHARS,
    SETTLED_SESSIONS,
    PromptBuilder,
    Scene,
    Surroundings,
    newest_half,
    quoted,
    speaker,
    spoken,
    under,
    window,
    with_short_results,
    without_head,
)
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import ChatMessage, InboundMessage, Role, ToolCall
from hermes.core.roles import PersonRole
from tests.fakes.model import complaint_about

SCENE = Scene(SessionKey.parse("agent:main:telegram:dm:7"))


@st.composite
def talks(draw: st.DrawFn) -> list[ChatMessage]:
    """A whole conversation: messages, answers, and steps with calls that are all answered, in any order."""
    lines: list[ChatMessage] = []
    for turn in range(draw(st.integers(1, 5))):
        lines.append(ChatMessage(Role.USER, f"question {turn}"))
        for step in range(draw(st.integers(0, 3))):
            calls = tuple(
                ToolCall(f"c{turn}.{step}.{index}", "read_file", "{}") for index in range(draw(st.integers(1, 3)))
            )
            lines.append(ChatMessage(Role.ASSISTANT, "", tool_calls=calls))
            results = [ChatMessage(Role.TOOL, "x", tool_call_id=call.id, name=call.name) for call in calls]
            lines += draw(st.permutations(results))
        if draw(st.booleans()):
            lines.append(ChatMessage(Role.ASSISTANT, f"answer {turn}"))
    return lines


def is_accepted(lines: list[ChatMessage]) -> bool:
    messages = [
        {
            "role": line.role.value,
            "content": line.text,
            "tool_call_id": line.tool_call_id,
            "tool_calls": [{"id": call.id, "function": {"arguments": call.arguments}} for call in line.tool_calls],
        }
        for line in lines
    ]
    return complaint_about({"model": "x", "messages": messages}) == ""


@given(talks())
def test_a_whole_talk_is_sent_as_it_is(talk: list[ChatMessage]) -> None:
    assert PromptBuilder().messages(SCENE, talk)[1:] == talk


@given(talks(), st.data())
def test_whatever_lines_are_lost_the_rest_is_a_talk_that_is_accepted(
    talk: list[ChatMessage], data: st.DataObject
) -> None:
    kept = [line for line in talk if data.draw(st.booleans())]
    assert is_accepted(PromptBuilder().messages(SCENE, kept))


@given(talks(), st.integers(0, 40))
def test_a_talk_whose_beginning_is_cut_off_anywhere_is_accepted(talk: list[ChatMessage], start: int) -> None:
    assert is_accepted(PromptBuilder().messages(SCENE, talk[start:]))


@given(talks())
def test_the_newest_half_begins_with_a_person(talk: list[ChatMessage]) -> None:
    half = newest_half(talk)
    assert not half or (half[0].role is Role.USER and len(half) < len(talk))


def test_long_results_are_shortened_and_nothing_else() -> None:
    called = ChatMessage(Role.ASSISTANT, tool_calls=(ToolCall("c1", "read_file", "{}"),))
    talk = [ChatMessage(Role.USER, "u" * 9000), called, ChatMessage(Role.TOOL, "r" * 9000, tool_call_id="c1")]
    person, calling, result = with_short_results(talk)
    assert [person, calling] == talk[:2]
    assert "7,000 characters are left out" in result.text
    assert with_short_results(talk[:2]) == []


def test_a_talk_beyond_the_window_keeps_its_newest_part() -> None:
    talk = [ChatMessage(Role.USER, f"{number} " + "x" * 50_000) for number in range(10)]
    kept = window(talk)
    assert kept
    assert kept[-1] is talk[-1]
    assert len(kept) < len(talk)


def test_one_message_larger_than_the_window_is_kept_all_the_same() -> None:
    talk = [ChatMessage(Role.USER, "x" * 500_000)]
    assert window(talk) == talk


def test_what_is_switched_on_meanwhile_is_told_of_in_the_next_session() -> None:
    skills = ["- one: x"]
    around = [Surroundings(("telegram",))]
    builder = PromptBuilder(surroundings=lambda: around[-1], skills=lambda _key, _role: skills[-1])
    first, second = (replace(SCENE, session_id=name, role=PersonRole.OWNER) for name in ("s_1", "s_2"))
    before = builder.messages(first, [])
    skills.append("- two: y")
    around.append(Surroundings(("telegram", "slack"), (("slack", "Garden"),)))
    assert builder.messages(first, []) == before
    told = builder.messages(second, [])[0].text
    assert "- two: y" in told
    assert 'Home channels: slack "Garden"' in told
    for number in range(SETTLED_SESSIONS):
        builder.messages(replace(first, session_id=f"s_{number + 3}"), [])
    assert builder.messages(first, []) != before, "no more is remembered than so many sessions"


@given(st.text(max_size=300))
def test_no_name_leaves_its_quotes(name: str) -> None:
    shown = quoted(name)
    assert shown[0] == shown[-1] == '"'
    assert len(shown.splitlines()) == 1
    assert len(shown) <= MAX_NAME_CHARS + 2
    assert not set(shown[1:-1]) & set('"<>`\\')
    assert all(unicodedata.category(letter) not in ("Cc", "Cf", "Zl", "Zp", "Cs") for letter in shown)


def test_a_summary_stands_before_the_lines_after_it() -> None:
    told = PromptBuilder().messages(SCENE, [ChatMessage(Role.USER, "go on")], summary="short")
    assert [message.role for message in told] == [Role.SYSTEM, Role.USER, Role.USER]
    assert told[1].text.endswith("\nshort")


def in_group(text: str, name: str = "Gil") -> InboundMessage:
    key = SessionKey("telegram", ChatKind.GROUP, "-100", "5")
    return InboundMessage((), key, "9", text, datetime.fromtimestamp(0, UTC), sender_name=name)


@given(st.text(), st.text(max_size=200))
def test_only_the_first_line_of_a_group_message_stands_where_a_head_may_stand(text: str, name: str) -> None:
    message = in_group(text, name)
    first, *others = under(speaker(message, "guest"), spoken(message)).splitlines()
    assert re.match(r"[^:()]+ \(guest 9\): ", f"{first} ")
    assert all(line.startswith("  ") for line in others)


@given(st.text(max_size=200))
def test_a_name_stays_a_name(name: str) -> None:
    head = speaker(in_group("hi", name), "guest")
    assert re.fullmatch(r"[^:()\n]{1,61} \(guest 9\)", head)


def test_a_message_whose_event_is_forgotten_is_read_back_without_its_head() -> None:
    said = "first\n  indented\nlast"
    for role in ("owner", ""):
        assert without_head(under(speaker(in_group(said), role), said)) == said
    assert without_head("no head: here\n  at all") == "no head: here\n  at all"
