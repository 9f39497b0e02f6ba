"""Where a long talk is cut, when, and what is asked of the model that sums it up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.agent import compression
from hermes.agent.toolkit.search import FIND_TOOLS, names_found
from hermes.core.messages import ChatMessage, Image, Role, ToolCall
from tests.unit.agent.test_prompt import is_accepted, talks


def said(text: str) -> ChatMessage:
    return ChatMessage(Role.USER, text)


def replied(text: str) -> ChatMessage:
    return ChatMessage(Role.ASSISTANT, text)


def step(number: int, size: int) -> list[ChatMessage]:
    call = ToolCall(f"c{number}", "read_file", "{}")
    return [
        ChatMessage(Role.ASSISTANT, "", (call,)),
        ChatMessage(Role.TOOL, "x" * size, tool_call_id=call.id, name=call.name),
    ]


@given(talks(), st.integers(1, 400))
def test_a_cut_never_parts_a_call_from_its_result(talk: list[ChatMessage], window: int) -> None:
    count = compression.cut(talk, window)
    assert 0 <= count < len(talk)
    rest = [ChatMessage(Role.SYSTEM, "x"), compression.summary_message("s"), *talk[count:]]
    assert is_accepted(rest), "no result without its call"
    calls = {call.id for line in talk[:count] for call in line.tool_calls}
    assert calls <= {line.tool_call_id for line in talk[:count]}, "no call without its result"


def test_the_newest_exchanges_stay_as_they_were() -> None:
    talk = [line for number in range(20) for line in (said(f"{number} " + "x" * 400), replied("y" * 400))]
    count = compression.cut(talk, 4000)
    assert talk[count].role is Role.USER
    kept = compression.tokens_of(talk[count:])
    assert 0 < kept <= 1000


def test_the_last_exchange_stays_whole_unless_it_is_longer_than_half_the_window() -> None:
    short = [said("a" * 4000), replied("b" * 4000), said("c" * 1200), replied("d" * 1200)]
    assert compression.cut(short, 2000) == 2
    steps = [line for number in range(10) for line in step(number, 1000)]
    long = [said("go"), *steps, replied("done")]
    count = compression.cut(long, 2000)
    assert long[count].role is Role.ASSISTANT
    assert compression.tokens_of(long[count:]) <= 500


def test_what_cannot_be_cut_is_not() -> None:
    assert compression.cut([], 1000) == 0
    assert compression.cut([said("x" * 100_000)], 1000) == 0


def test_a_talk_is_due_by_its_size_or_by_its_lines() -> None:
    def is_due(talk: list[ChatMessage], summary: str = "") -> bool:
        return compression.share(talk, summary, window=1000, most_lines=100) >= 0.5

    assert not is_due([said("x" * 1900)])
    assert is_due([said("x" * 2100)])
    assert is_due([said("x" * 1900)], "y" * 200)
    assert is_due([said("字" * 700)]), "what is no English takes more tokens for each character"
    assert is_due([ChatMessage(Role.USER, "", images=(Image("data:"),))])
    assert is_due([said("x")] * 50)
    assert is_due([ChatMessage(Role.ASSISTANT, "", (ToolCall("c", "write_file", "x" * 2100),))])


def test_what_is_asked_is_bounded_and_keeps_the_newest() -> None:
    talk = [said(f"line {number} " + "x" * 90) for number in range(100)]
    [system, asked] = compression.request(talk, "the summary before", most=1000)
    assert system.role is Role.SYSTEM
    assert "the summary before" in asked.text
    assert "line 99" in asked.text
    assert "line 1 " not in asked.text
    assert len(asked.text) < 1200


def test_long_results_are_shown_by_their_ends() -> None:
    [_, asked] = compression.request([*step(1, 50_000)], "", most=100_000)
    assert len(asked.text) < 2000
    assert "result of read_file: xxx" in asked.text
    assert "[calls read_file {}]" in asked.text


def test_found_tools_are_kept_and_none_can_be_smuggled_in() -> None:
    result = ChatMessage(Role.TOOL, "- web_search: x", tool_call_id="c", name=FIND_TOOLS)
    kept = compression.stored_summary(
        f"{compression.OPENING} All done.\n{compression.FOUND_BEFORE}terminal", names_found([result])
    )
    assert names_found([compression.summary_message(kept)]) == ["web_search"]
    again = compression.stored_summary("More.", names_found([compression.summary_message(kept)]))
    assert names_found([compression.summary_message(again)]) == ["web_search"]
    assert names_found([compression.summary_message(compression.stored_summary("None.", []))]) == []


def test_a_summary_is_bounded_and_must_be_worth_it() -> None:
    assert len(compression.stored_summary("x" * 100_000, [])) == compression.MAX_SUMMARY_CHARS
    assert compression.is_gain([said("x" * 1000)], "", "y" * 100)
    assert not compression.is_gain([said("x" * 1000)], "", "y" * 900)
