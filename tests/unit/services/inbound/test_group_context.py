"""What is kept of a group's talk is little, and what is remembered of strangers is bounded."""

from __future__ import annotations

from datetime import UTC, datetime

from hermes.core.bounded import Throttle
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import InboundMessage
from hermes.services.inbound import group_context
from hermes.services.inbound.group_context import GroupContext


def line(text: str, *, key: str = "", chat: str = "-1", sender: str = "8", is_edit: bool = False) -> InboundMessage:
    place = SessionKey("telegram", ChatKind.GROUP, chat)
    sent_at = datetime(2026, 1, 1, tzinfo=UTC)
    return InboundMessage((key or f"msg:{text}",), place, sender, text, sent_at, sender_name="Ben", is_edit=is_edit)


def texts(heard: GroupContext, message: InboundMessage, most: int = 3) -> list[str]:
    return [quote.text for quote in heard.before(message, most)]


def test_only_the_newest_lines_are_kept_each_once_and_shown_to_each_person_once() -> None:
    heard = GroupContext()
    for number in range(9):
        heard.hear(line(f"line {number}"), 3)
        heard.hear(line(f"line {number}"), 3)
    heard.hear(line("changed", is_edit=True), 3)
    heard.hear(line("  "), 3)
    assert texts(heard, line("?", sender="7")) == ["line 6", "line 7", "line 8"]
    assert texts(heard, line("?", sender="7")) == []
    heard.hear(line("line 9"), 3)
    assert texts(heard, line("?", sender="7")) == ["line 9"]
    assert texts(heard, line("?", sender="8")) == ["line 7", "line 8", "line 9"]
    assert texts(heard, line("?", sender="7", chat="-2")) == []


def test_a_smaller_setting_counts_at_once_and_long_lines_are_cut() -> None:
    heard = GroupContext()
    for number in range(3):
        heard.hear(line("x" * 2000 + str(number)), 3)
    shown = texts(heard, line("?", sender="7"), 2)
    assert len(shown) == 2
    assert max(map(len, shown)) <= group_context.MAX_LINE_CHARS


def test_many_places_and_people_do_not_make_it_grow() -> None:
    heard = GroupContext()
    for number in range(group_context.MAX_PLACES + 50):
        heard.hear(line("hi", chat=f"-{number}"), 3)
    assert len(heard._places) == group_context.MAX_PLACES
    for number in range(group_context.MAX_PEOPLE + 50):
        heard.before(line("?", sender=str(number), chat=f"-{group_context.MAX_PLACES}"), 3)
    assert (
        len(heard._places[str(line("", chat=f"-{group_context.MAX_PLACES}").session_key)].shown_up_to)
        == group_context.MAX_PEOPLE
    )


def test_something_is_due_once_in_a_while_for_each_and_a_crowd_does_not_make_it_grow() -> None:
    lately = Throttle(60.0, most=100)
    assert [lately.is_due("ana", now) for now in (0.0, 59.0, 61.0)] == [True, False, True]
    assert lately.is_due("ben", 61.0)
    lately.forget("ana")
    assert lately.is_due("ana", 62.0)
    for number in range(1000):
        lately.is_due(number, 63.0)
    assert len(lately._at) == 100
