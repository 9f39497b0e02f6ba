"""Questions of the agent: the whole command is shown, nothing hides in it, and every way to choose works."""

from __future__ import annotations

import json

from hermes.cli.chat.lines import line_width, text_of
from hermes.cli.chat.menu import Menu, MenuChoice
from hermes.cli.chat.questions import answer_command, approval_box, approval_menu, clarify_menu
from hermes.cli.chat.sessions import picker
from hermes.core.i18n.catalogue import ENGLISH


def box(command: str, width: int = 79) -> list[str]:
    asked = {
        "tool": "terminal",
        "arguments": json.dumps({"command": command}),
        "where": "on this machine, in /work",
        "question": "It deletes folders.",
    }
    lines = approval_box(asked, ENGLISH, width)
    assert max(line_width(line) for line in lines) <= width
    return [text_of(line) for line in lines]


def test_the_command_is_shown_as_a_command_with_where_and_why() -> None:
    assert box("rm -rf build") == [
        "",
        "╭─ May I run this?",
        "│ terminal on this machine, in /work",
        "│ ",
        "│   rm -rf build",
        "│ ",
        "│ Why I ask: It deletes folders.",
        "╰─",
    ]


def test_a_command_of_ten_thousand_characters_is_shown_whole() -> None:
    command = " ".join(f"word{number}" for number in range(1400))
    shown = " ".join(row.removeprefix("│").strip() for row in box(command))
    assert command in shown


def test_what_hides_in_a_command_is_spelled_out() -> None:
    shown = "\n".join(box("ls\u200b\u202e\x1b[8m\r; rm -rf ~\u00ad"))
    for mark in ("‹U+200B›", "‹U+202E›", "‹U+001B›", "‹U+000D›", "‹U+00AD›"):
        assert mark in shown


def test_a_command_behind_many_blanks_or_lines_is_shown() -> None:
    assert any("rm -rf" in row for row in box("ls" + " " * 3000 + "; rm -rf ~"))
    assert any("rm -rf" in row for row in box("ls" + "\n" * 500 + "rm -rf ~"))


def test_arguments_that_are_no_json_are_shown_as_they_came() -> None:
    lines = approval_box({"tool": "x", "arguments": "{broken", "question": "?"}, ENGLISH, 79)
    assert "│   {broken" in [text_of(line) for line in lines]


def test_a_choice_is_picked_by_number_letter_or_arrows() -> None:
    menu = approval_menu({"has_scopes": True}, ENGLISH)
    assert [choice.letter for choice in menu.matches] == ["y", "s", "a", "n", "w"]
    assert (menu.typed("3") or MenuChoice("", "")).value == "always"
    assert (menu.typed("N") or MenuChoice("", "")).value == "deny"
    assert menu.typed("9") is menu.typed("q") is None
    menu.move(-1)
    assert menu.marked is not None
    assert menu.marked.value == "why"


def test_what_cannot_be_granted_for_longer_is_not_offered() -> None:
    assert [choice.value for choice in approval_menu({}, ENGLISH).matches] == ["once", "deny", "why"]


def test_what_has_scrolled_away_is_not_approved_with_one_key_but_by_the_code_at_its_end() -> None:
    asked = {
        "tool": "terminal",
        "arguments": json.dumps({"command": "x" * 9000}),
        "proof": "4TQX9BKM",
        "has_scopes": True,
    }
    menu = approval_menu(asked, ENGLISH)
    assert [choice.value for choice in menu.matches] == ["deny", "why"]
    assert menu.typed("y") is None
    *_, told, _ = [text_of(line) for line in approval_box(asked, ENGLISH, 200)]
    assert told.endswith("press Esc and type /approve 4TQX9BKM")


def test_an_answer_becomes_the_command_that_gives_it() -> None:
    assert answer_command("K7", "once") == "/approve K7"
    assert answer_command("K7", "session") == "/approve K7 session"
    assert answer_command("K7", "deny") == "/deny K7"
    assert answer_command("K7", "why", "not\non a Sunday") == "/deny K7 not on a Sunday"


def test_a_menu_is_searched_by_what_is_typed() -> None:
    menu = Menu([MenuChoice("a", "Plans"), MenuChoice("b", "Trains", preview=("to Rome",))], is_searched=True)
    for letter in "rome":
        assert menu.typed(letter) is None
    assert [choice.value for choice in menu.matches] == ["b"]
    menu.erase()
    assert menu.search == "rom"


def test_a_question_can_be_answered_in_own_words() -> None:
    assert [choice.value for choice in clarify_menu(("red",), ENGLISH).matches] == ["red", ""]


def test_keys_of_a_line_that_is_being_typed_pick_nothing() -> None:
    menu = approval_menu({}, ENGLISH)
    menu.guard(10.0)
    assert [menu.accepts(now) for now in (10.1, 10.5, 10.7, 11.1, 11.5)] == [False] * 5
    assert menu.accepts(12.1)
    assert menu.accepts(12.2)


def test_the_preview_of_a_conversation_shows_words_and_no_marks() -> None:
    said = [{"role": "user", "text": "a\nb"}, {"role": "assistant", "text": "# Plans\n\n**bold** and `code`"}]
    found = [{"id": "s_1", "title": "T", "key": "", "lines": 2, "updated_at": 0.0, "preview": said}]
    rows = [text_of(row) for row in picker(found, ENGLISH, 0.0).rows(79)]
    assert rows[-2:] == ["  > a b", "    Plans bold and code"]
