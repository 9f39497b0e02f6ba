"""A stream has the same text as the answer in one piece."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.messages import ToolCall
from hermes.core.requests import TurnResult
from hermes.servers.api.streams.segments import SegmentText


def streamed(segments: Sequence[Sequence[str]], result: TurnResult, text: SegmentText | None = None) -> str:
    """What a client reads of a turn whose texts come in these pieces, the last text being the answer."""
    text = text or SegmentText()
    *before, last = segments
    written = ""
    for pieces in before:
        written += "".join(map(text.add, pieces)) + text.end_segment("".join(pieces).strip())
    return written + "".join(map(text.add, last)) + text.end_answer(result)


PIECES = st.lists(st.text(alphabet="ab \n", max_size=4), max_size=5)


@given(st.lists(PIECES, min_size=1, max_size=4))
def test_pieces_of_any_texts_read_as_the_answer_in_one_piece_does(segments: list[list[str]]) -> None:
    texts = ["".join(pieces).strip() for pieces in segments]
    result = TurnResult("t", "done", texts[-1], segments=tuple(texts[:-1]))
    assert streamed(segments, result) == result.whole_text


def test_words_that_were_never_streamed_follow_at_the_end() -> None:
    assert streamed([[]], TurnResult("t", "done", "No words came.")) == "No words came."
    assert streamed([["one"]], TurnResult("t", "done", "one two")) == "one two"


def test_answer_that_was_begun_anew_is_shown_whole_below_its_first_half() -> None:
    result = TurnResult("t", "done", "another answer", notices=("begun anew",))
    assert streamed([["half an"]], result) == "half an\n\nanother answer"


def test_hidden_words_are_not_shown_again_without_a_notice() -> None:
    assert streamed([["the key is secret"]], TurnResult("t", "done", "the key is [hidden]")) == "the key is secret"


def test_beginning_of_a_continued_answer_keeps_its_blank() -> None:
    result = TurnResult("t", "done", " upon a time")
    assert streamed([[" upon", " a time "]], result, SegmentText(keeps_start=True)) == " upon a time"


def test_text_beside_calls_of_both_kinds_is_told_once() -> None:
    call = ToolCall("call_1", "theirs", "{}")
    result = TurnResult("t", "done", "Wait.", tool_calls=(call,), segments=("Wait.",))
    assert streamed([["Wait."], []], result) == "Wait." == result.whole_text


def test_thoughts_of_two_calls_stand_apart() -> None:
    text = SegmentText()
    thought = text.add_thinking("first") + text.add_thinking(" thought")
    text.end_segment("")
    assert thought + text.add_thinking("second") == "first thought\n\nsecond"
