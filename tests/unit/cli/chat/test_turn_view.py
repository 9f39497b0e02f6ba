"""What a person sees while turns go on: everything once, finished lines above, the rest below."""

from __future__ import annotations

import json
from typing import Any

from hermes.cli.chat.lines import text_of
from hermes.cli.chat.turn_view import FollowedSay, TurnView, format_seconds, short_result
from hermes.core.i18n.catalogue import ENGLISH


def view(width: int = 80) -> tuple[TurnView, FollowedSay]:
    made = TurnView(ENGLISH, width)
    return made, made.begin("do it")


def lines(of: TurnView) -> list[str]:
    return [text_of(line) for line in of.take()]


def live(of: TurnView, now: float = 0.0) -> list[str]:
    return [text_of(line) for line in of.live(now, 8)]


def delta(text: str, turn: str = "t1") -> dict[str, str]:
    return {"kind": "delta", "text": text, "turn": turn}


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"kind": "tool", "name": name, "label": name, "call": "c1", "turn": "t1", "arguments": json.dumps(arguments)}


def ended(result: str, outcome: str = "ok") -> dict[str, Any]:
    return {"kind": "tool_end", "name": "", "call": "c1", "turn": "t1", "outcome": outcome, "result": result}


DONE = {"state": "done", "reason": "", "approvals": []}


def test_a_streamed_answer_is_shown_once() -> None:
    shown, say = view()
    shown.handle(say, delta("Some **bo"), 0.0)
    assert live(shown) == ["Some bo"]
    shown.handle(say, delta("ld** words"), 0.0)
    shown.handle(say, {"kind": "reply", "text": "Some **bold** words", "id": "r1", "turn": "t1"}, 0.0)
    shown.end(say, DONE)
    assert lines(shown) == ["Some bold words"]
    assert live(shown) == []


def test_a_reminder_that_comes_while_an_answer_is_written_does_not_show_the_answer_twice() -> None:
    shown, say = view()
    shown.handle(say, delta("Good "), 0.0)
    shown.handle(say, {"kind": "reply", "text": "Tea is ready", "id": "r1"}, 0.0)
    shown.handle(say, delta("evening."), 0.0)
    shown.handle(say, {"kind": "reply", "text": "Good evening.", "id": "r2", "turn": "t1"}, 0.0)
    shown.end(say, DONE)
    assert [line.strip() for line in lines(shown) if line.strip()] == ["Good", "Tea is ready", "evening."]


def test_a_tool_is_a_line_with_its_time_and_becomes_a_mark_with_its_result() -> None:
    shown, say = view()
    shown.handle(say, tool("terminal", command="pytest -q"), 10.0)
    assert live(shown, 22.4) == ["● $ pytest -q  12 s"]
    shown.handle(say, {"kind": "tool_output", "call": "c1", "text": "a\nb"}, 22.0)
    assert live(shown, 22.4) == ["● $ pytest -q  12 s", "  │ a", "  │ b"]
    shown.handle(say, ended("Exit code 0.\na\nb\n3 passed"), 23.0)
    assert lines(shown) == ["✓ $ pytest -q  13 s  3 passed"]
    assert live(shown) == []


def test_a_command_that_failed_is_marked_so() -> None:
    shown, say = view()
    shown.handle(say, tool("terminal", command="false"), 0.0)
    shown.handle(say, ended("Exit code 1.\n(No output.)"), 0.1)
    assert lines(shown) == ["✗ $ false  exit code 1"]


def test_a_tool_that_was_refused_is_marked_so() -> None:
    shown, say = view()
    shown.handle(say, tool("read_file", path="a.txt"), 0.0)
    shown.handle(say, ended("There is no file 'a.txt'.", "error"), 0.1)
    assert lines(shown) == ["✗ read_file a.txt  There is no file ‹'a.txt'›.".replace("‹", "").replace("›", "")]


def test_a_verbose_view_shows_results_below_their_tools() -> None:
    shown, say = view()
    shown.is_verbose = True
    shown.handle(say, tool("read_file", path="a.txt"), 0.0)
    shown.handle(say, ended("\n".join(f"row {n}" for n in range(20))), 0.1)
    rows = lines(shown)
    assert rows[1] == "  │ row 0"
    assert rows[-1] == "  │ … 8 more lines"


def test_a_message_sent_meanwhile_shows_nothing_twice() -> None:
    shown, first = view()
    shown.handle(first, {"kind": "turn", "id": "t1", "turn": "t1", "is_mine": True}, 0.0)
    shown.handle(first, delta("one "), 0.0)
    second = shown.begin("and this")
    assert shown.waiting == 1
    for say in (first, second):
        shown.handle(say, delta("two"), 0.0)
    for say in (second, first):  # whichever is told first
        shown.handle(say, {"kind": "reply", "text": "one two", "id": "r1", "turn": "t1"}, 0.0)
    for say in (first, second):
        shown.handle(say, {"kind": "turn", "id": "t2", "turn": "t2", "is_mine": say is second}, 0.0)
        shown.handle(say, delta("three", "t2"), 0.0)
    shown.end(first, DONE)
    shown.handle(second, delta(" four", "t2"), 0.0)
    shown.handle(second, {"kind": "reply", "text": "three four", "id": "r2", "turn": "t2"}, 0.0)
    shown.end(second, DONE)
    assert lines(shown) == ["one two", "three four"]


def test_an_approval_waits_until_it_is_answered() -> None:
    shown, say = view()
    shown.handle(say, {"kind": "approval", "text": "?", "code": "K7", "id": "q1", "turn": "t1"}, 0.0)
    shown.end(say, {"state": "waiting", "reason": "", "approvals": [{"code": "K7", "question": "?"}]})
    assert list(shown.approvals) == ["K7"]
    again = shown.begin("/approve K7")
    shown.end(again, DONE)
    assert shown.approvals == {}


def test_the_choices_of_a_question_are_kept_for_the_menu() -> None:
    shown, say = view()
    shown.handle(say, tool("clarify", question="Which?", choices=["red", "green"]), 0.0)
    shown.handle(say, ended("Which?\n1. red\n2. green", "asked"), 0.1)
    assert shown.clarify == ("Which?", ("red", "green"))
    assert lines(shown) == []


def test_what_strangers_wrote_into_calls_and_outputs_is_spelled_out() -> None:
    shown, say = view()
    shown.handle(say, tool("terminal", command="echo \x1b[2J"), 0.0)
    shown.handle(say, {"kind": "tool_output", "call": "c1", "text": "\x1b]0;owned\x07"}, 0.0)
    text = "\n".join(live(shown))
    shown.handle(say, ended("Exit code 0.\n\x1b[2J"), 0.1)
    text += "\n".join(lines(shown))
    assert "\x1b" not in text
    assert "‹U+001B›" in text


def test_only_the_last_rows_of_a_long_paragraph_are_live() -> None:
    shown, say = view(20)
    shown.handle(say, delta("word " * 100), 0.0)
    assert len(live(shown)) == 8
    assert lines(shown) == []
    shown.end(say, DONE)
    assert len(lines(shown)) == 25


def test_times_are_told_as_people_say_them() -> None:
    assert [format_seconds(each) for each in (0.4, 59, 61, 3700)] == ["0 s", "59 s", "1 min 01 s", "1 h 01 min"]


def test_a_result_without_words_has_none() -> None:
    assert short_result("terminal", "Exit code 0.\n(No output.)") == ""
    assert short_result("read_file", "") == ""


def reasoning(text: str) -> dict[str, str]:
    return {"kind": "reasoning", "text": text, "turn": "t1"}


def test_reasoning_stands_dimmed_before_the_answer_line_by_line() -> None:
    shown, say = view(30)
    shown.handle(say, reasoning("First I look\nThen I th"), 0.0)
    assert live(shown) == ["┊ Then I th"]
    shown.handle(say, reasoning("ink about it for a long while"), 0.0)
    shown.handle(say, delta("Done."), 0.0)
    shown.end(say, DONE)
    taken = shown.take()
    assert [text_of(line) for line in taken] == [
        "┊ First I look",
        "┊ Then I think about it for a",
        "┊ long while",
        "",
        "Done.",
    ]
    assert {piece.style for line in taken[:3] for piece in line} == {"dim"}


def test_reasoning_of_a_stranger_draws_nothing() -> None:
    shown, say = view()
    shown.handle(say, reasoning("a\x1b[2Jb\n"), 0.0)
    assert not any("\x1b" in line for line in lines(shown))


def test_a_message_of_another_platform_is_shown_with_its_origin() -> None:
    shown, _ = view()
    shown.show_elsewhere({"role": "user", "text": "**hi**", "platform": "Telegram", "name": "A\x1bnn", "tools": []})
    shown.show_elsewhere(
        {"role": "assistant", "text": "**hello**", "platform": "Telegram", "name": "Ann", "tools": ["web"]}
    )
    taken = [line for line in lines(shown) if line]
    assert taken[0].startswith("via Telegram · A")
    assert taken[1:] == ["> **hi**", "hello", "✓ web"]
    assert "\x1b" not in taken[0]
