"""What a person sees while an answer comes: everything once."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from hermes.cli.chat.plain import PlainScreen


def shown(*events: Mapping[str, Any], result: Mapping[str, Any] | None = None) -> str:
    out = io.StringIO()
    screen = PlainScreen(out)
    for event in events:
        screen.show(event)
    screen.end(result)
    return out.getvalue()


def delta(text: str) -> dict[str, str]:
    return {"kind": "delta", "text": text}


def reply(text: str) -> dict[str, str]:
    return {"kind": "reply", "text": text}


def test_a_reminder_that_comes_before_the_delivery_does_not_show_the_answer_twice() -> None:
    told = shown(delta("Good evening."), reply("Tea is ready"), reply("Good evening."))
    assert told == "Good evening.\nTea is ready\n"


def test_an_answer_that_was_streamed_is_not_shown_again() -> None:
    assert shown(delta("Hel"), delta("lo."), reply("Hello.")) == "Hello.\n"


def test_an_answer_without_a_stream_is_shown_whole() -> None:
    assert shown(reply("Fresh session.")) == "Fresh session.\n"


def test_a_note_before_the_answer_is_shown_after_its_stream() -> None:
    told = shown(delta("Hello."), reply("I answered with the fallback.\n\nHello."))
    assert told == "Hello.\n  I answered with the fallback.\n"


def test_a_failure_after_half_an_answer_is_shown_on_a_line_of_its_own() -> None:
    assert shown(delta("Hel"), reply("My model says no.")) == "Hel\nMy model says no.\n"


def test_an_interrupted_answer_gets_only_its_end_added() -> None:
    assert shown(delta("one two"), reply("one two three … (interrupted)")) == "one two three … (interrupted)\n"


def test_tools_stand_between_the_words_before_and_after_them() -> None:
    told = shown(
        delta("Let me look."),
        {"kind": "segment"},
        {"kind": "tool", "name": "read_file", "label": "📖 read_file"},
        delta("It says hi."),
        reply("It says hi."),
    )
    assert told == "Let me look.\n  📖 read_file\nIt says hi.\n"


def test_after_a_restart_the_answer_comes_whole_rather_than_from_its_middle() -> None:
    told = shown(delta("one two"), {"kind": "again"}, delta("three"), reply("one two three"))
    assert told == "one two\n  (the gateway was restarted; going on)\none two three\n"


def test_a_restart_is_told_once_however_many_tries_it_takes() -> None:
    told = shown({"kind": "again"}, {"kind": "again"}, {"kind": "turn"}, reply("Here."))
    assert told == "  (the gateway was restarted; going on)\nHere.\n"


def test_after_a_restart_a_stream_that_begins_anew_is_shown_as_it_comes() -> None:
    told = shown(delta("one"), {"kind": "again"}, {"kind": "turn", "id": "t_1"}, delta("one two"), reply("one two"))
    assert told.splitlines()[-1] == "one two"
    assert told.count("one two") == 1


def test_a_message_behind_an_approval_is_said_to_wait() -> None:
    waits = {"state": "queued", "reason": "", "approvals": [{"code": "K7QP", "question": "?"}]}
    assert "/approve K7QP" in shown(result=waits)


def test_sequences_of_an_answer_are_spelled_out_wherever_the_stream_cuts_them() -> None:
    whole = "\x1b]0;owned\x07\x1b[2J"
    for at in range(len(whole)):
        told = shown(delta(whole[:at]), delta(whole[at:]), reply(whole))
        assert told == "‹U+001B›]0;owned‹U+0007›‹U+001B›[2J\n"


def test_a_line_end_of_windows_is_one_line_end_wherever_the_stream_cuts_it() -> None:
    for pieces in (["one\r\ntwo"], ["one\r", "\ntwo"], ["one", "\r\n", "two"]):
        assert shown(*map(delta, pieces), reply("one\r\ntwo")) == "one\ntwo\n"


def test_a_bare_carriage_return_does_not_write_over_the_line() -> None:
    assert shown(delta("I deleted it.\r"), delta("I read it.")) == "I deleted it.‹U+000D›I read it.\n"
