"""Edits over any text: applied they say what they did, undone by the kept bytes nothing is left of them."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hermes.agent.workspace.edits import Edit, apply, positions
from hermes.core.errors import ToolError

ENDS = st.sampled_from(["\n", "\r\n"])
WORDS = st.text(alphabet="ab \té€", max_size=4)


@st.composite
def texts(draw: st.DrawFn) -> str:
    lines = draw(st.lists(st.tuples(WORDS, ENDS), max_size=12))
    return "".join(word + end for word, end in lines) + draw(WORDS)


@given(text=texts(), old=st.text(alphabet="ab \n€", min_size=1, max_size=4), new=st.text(alphabet="abx\n", max_size=4))
def test_an_edit_fits_one_place_or_nothing_changes(text: str, old: str, new: str) -> None:
    assume(old != new)
    seen = text.replace("\r\n", "\n")  # as a model sees it
    count = sum(seen.startswith(old, at) for at in range(len(seen)))
    try:
        after = apply(text, [Edit(old, new)], where="the text")
    except ToolError:
        assert count != 1
        return
    assert count == 1
    assert after.replace("\r\n", "\n") == seen.replace(old, new)
    start = positions(text, old)[0]
    assert after.startswith(text[:start])
    rest = text[start:]
    assert any(after.endswith(rest[length:]) for length in range(len(old), len(old) * 2 + 1))


@given(text=texts(), data=st.data())
def test_what_was_replaced_and_replaced_back_is_what_was_there(text: str, data: st.DataObject) -> None:
    assume(text)
    start = data.draw(st.integers(0, len(text) - 1))
    old = text[start : data.draw(st.integers(start + 1, len(text)))]
    mark = "§mark§"
    assume(not {"\r", "\n"} & set(old) or "\r\n" not in text)  # the ends of lines follow the text as it is then
    assume(len(positions(text, old)) == 1)
    there = apply(text, [Edit(old, mark)], where="the text")
    assert apply(there, [Edit(mark, old)], where="the text") == text


@given(text=texts(), old=st.text(alphabet="ab", min_size=1, max_size=2))
def test_all_changes_every_place(text: str, old: str) -> None:
    assume(old in text)
    after = apply(text, [Edit(old, "§", all=True)], where="the text")
    assert old not in after
    assert after.count("§") == text.count(old)


def test_both_kinds_of_line_ends_look_the_same_and_are_not_clear() -> None:
    with pytest.raises(ToolError, match=r"2 times \(lines 1, 2\)"):
        apply("a\na\r\n", [Edit("a\n", "b\n")], where="the text")
    assert apply("a\na\r\n", [Edit("a\n", "b\n", all=True)], where="the text") == "b\nb\r\n"


def test_places_that_overlap_are_not_clear() -> None:
    with pytest.raises(ToolError, match="2 times"):
        apply("aaa", [Edit("aa", "b")], where="the text")


def test_edits_that_multiply_a_letter_stop_before_they_fill_the_memory() -> None:
    ten_times = [Edit("a", "a" * 10, all=True)] * 50
    with pytest.raises(
        ToolError, match=r"Edit 4 would make the text too large \(over 1,000 characters\)\. Nothing was"
    ):
        apply("a", ten_times, where="the text", most=1000)
    assert apply("a", ten_times[:3], where="the text", most=1000) == "a" * 1000
