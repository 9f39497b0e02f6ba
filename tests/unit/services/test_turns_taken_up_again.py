"""A stream whose turn is taken up again, by the same node or another, shows no text twice."""

from __future__ import annotations

import pytest

from hermes.services.events import SegmentEnded, TextArrived, TurnEvent, TurnStarted
from hermes.services.requests.requests import RequestHandle

LANE, TURN = "agent:main:api:dm:one", "t_1"
BEGUN = TurnStarted(LANE, TURN, event_ids=("ev_1",))
AGAIN = TurnStarted(LANE, TURN, is_resumed=True, event_ids=("ev_1",))


def text(words: str) -> TextArrived:
    return TextArrived(LANE, TURN, words)


def shown(*events: TurnEvent) -> str:
    handle = RequestHandle("ev_1", LANE)
    for event in events:
        handle.saw(event)
    return "".join(event.text for event in handle.ready() if isinstance(event, TextArrived))


@pytest.mark.parametrize("pieces", [["one two three"], ["one ", "two ", "three"], ["one tw", "o thr", "ee"]])
def test_text_that_is_said_again_is_left_out(pieces: list[str]) -> None:
    assert shown(BEGUN, text("one "), text("two"), AGAIN, *map(text, pieces)) == "one two three"


def test_other_words_begin_anew_below_what_stands_there() -> None:
    assert shown(BEGUN, text("one two"), AGAIN, text("one "), text("more")) == "one two\n\none more"


def test_message_that_was_whole_before_is_not_expected_again() -> None:
    segment = SegmentEnded(LANE, TURN, "one")
    assert shown(BEGUN, text("one"), segment, AGAIN, text("two")) == "onetwo"


def test_turn_taken_up_twice_is_shown_once() -> None:
    assert shown(BEGUN, text("one "), AGAIN, text("one t"), AGAIN, text("one two")) == "one two"


def test_turn_that_dies_while_it_repeats_itself_is_shown_once() -> None:
    assert shown(BEGUN, text("one two"), AGAIN, text("one"), AGAIN, text("one two three")) == "one two three"
