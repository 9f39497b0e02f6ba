"""What Tab offers."""

from __future__ import annotations

from pathlib import Path

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from hermes.app.tools import COMMANDS
from hermes.cli.chat.completion import ChatCompleter, arguments_of, hints, is_completable
from hermes.services.commands.base import collect


def offered(typed: str, folder: Path) -> list[str]:
    known = hints(collect(COMMANDS), [("clear-writing", "Write clearly")])
    completer = ChatCompleter(lambda: known, lambda: folder)
    return [one.text for one in completer.get_completions(Document(typed), CompleteEvent())]


def test_commands_and_skills_are_offered_by_their_beginning(tmp_path: Path) -> None:
    assert offered("/bus", tmp_path) == ["busy"]
    assert "clear-writing" in offered("/cl", tmp_path)
    assert offered("/exi", tmp_path) == ["exit"]


def test_the_words_of_a_usage_are_offered_behind_their_command(tmp_path: Path) -> None:
    assert offered("/busy ", tmp_path) == ["interrupt", "queue", "steer"]
    assert offered("/busy q", tmp_path) == ["queue"]
    assert arguments_of("/resume [NUMBER|last|TITLE|ID]") == ("last",)


def test_files_are_offered_behind_an_at_sign(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "node").mkdir()
    (tmp_path / ".hidden").touch()
    assert offered("see @no", tmp_path) == ["node/", "notes.txt"]
    assert ".hidden" not in offered("@", tmp_path)
    assert offered("@.hid", tmp_path) == [".hidden"]
    assert offered("@nowhere/x", tmp_path) == []


def test_a_name_that_a_terminal_would_obey_is_not_offered(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2J").touch()
    assert offered("@a", tmp_path) == []


def test_no_menu_opens_while_words_are_typed() -> None:
    assert is_completable("/he")
    assert is_completable("read @src/")
    assert not is_completable("either/or ana@example.org")
