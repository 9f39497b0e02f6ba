"""The terminal of whoever signs in: codes in one another's place, progress on a line of its own."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

import pytest

from hermes.cli.wizard.qr_login import Terminal

LINK = "https://example.org/" + "x" * 90


class Tty(StringIO):
    """A screen that remembers what was written to it."""

    def isatty(self) -> bool:
        return True

    def taken(self) -> str:
        """All that was written since the last look."""
        written = self.getvalue()
        self.seek(0)
        self.truncate()
        return written


@pytest.fixture
def tty(monkeypatch: pytest.MonkeyPatch) -> Tty:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "60")
    return Tty()


def rows(text: str, columns: int = 80) -> int:
    """How many rows of a terminal this takes."""
    plain = text.replace("\x1b[30;107m", "").replace("\x1b[0m", "")
    return sum(max(1, -(-len(line) // columns)) for line in plain.removesuffix("\n").split("\n"))


@pytest.mark.parametrize("payload", ["2@abc,def", LINK], ids=["text", "link"])
def test_a_new_code_takes_exactly_the_place_of_the_last(tty: Tty, payload: str) -> None:
    with redirect_stdout(tty):
        terminal = Terminal(None)
        terminal.show_code(payload)
        first = tty.taken()
        terminal.show_code(payload)
    assert tty.taken() == f"\x1b[{rows(first)}F\x1b[J{first}"


@pytest.mark.parametrize("side", ["COLUMNS", "LINES"])
def test_a_window_that_does_not_hold_the_code_is_told_of(tty: Tty, monkeypatch: pytest.MonkeyPatch, side: str) -> None:
    with redirect_stdout(tty):
        Terminal(None).show_code(LINK)
        assert "too small" not in tty.taken()
        monkeypatch.setenv(side, "24")
        Terminal(None).show_code(LINK)
    assert "! This window is too small for the code: it takes" in tty.taken()


def test_a_code_that_is_no_link_is_not_offered_as_one(tty: Tty) -> None:
    with redirect_stdout(tty):
        Terminal(None).show_code("2@abc,def")
    assert "2@abc" not in tty.getvalue()
    assert "Scan it with the app on your phone." in tty.getvalue()


def test_after_other_words_and_on_a_small_screen_the_last_code_stays(tty: Tty, monkeypatch: pytest.MonkeyPatch) -> None:
    with redirect_stdout(tty):
        terminal = Terminal(None)
        terminal.show_code("2@abc")
        terminal.say("Scanned.")
        terminal.show_code("2@abd")
        monkeypatch.setenv("LINES", "10")
        other = Terminal(None)
        other.show_code("2@abe")
        other.show_code("2@abf")
    assert "F\x1b[J" not in tty.getvalue()


def test_progress_is_one_line_and_whoever_prints_next_has_their_own(tty: Tty) -> None:
    with redirect_stdout(tty):
        terminal = Terminal(None)
        terminal.progress("1 MB")
        terminal.progress("2 MB")
        terminal.say("Done.")
    assert tty.getvalue() == "\r\x1b[K1 MB\r\x1b[K2 MB\r\x1b[KDone.\n"


def test_a_log_is_shown_no_line_that_changes(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(None)
    terminal.progress("1 MB")
    terminal.say("Done.")
    assert capsys.readouterr().out == "Done.\n"


def test_a_link_and_a_step_of_the_platform_cannot_take_over_the_screen(tty: Tty) -> None:
    with redirect_stdout(tty):
        terminal = Terminal(None)
        terminal.show_code("https://evil.example/\x1b]0;owned\x07")
        shown = tty.taken().replace("\x1b[30;107m", "").replace("\x1b[0m", "")
        assert "\x1b" not in shown
        assert "https://evil.example/‹U+001B›]0;owned‹U+0007›" in shown
        terminal.progress("\x1b[2J1 MB")
        terminal.say("\x9b2JDone.")
    assert tty.getvalue() == "\r\x1b[K‹U+001B›[2J1 MB\r\x1b[K‹U+009B›2JDone.\n"
