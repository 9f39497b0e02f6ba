"""Questions at a terminal: numbers and names, defaults that Enter keeps, and doors that no stray Enter opens."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from hermes.cli.support.prompts import Choice, LeftError, Questions, confirm

CHOICES = (Choice("telegram", "Telegram", "not set up"), Choice("wecom_callback", "WeCom Callback"), Choice("qq", "QQ"))


class Typing:
    """A person who types these lines, one for each question; ``shown`` is what stands on their screen."""

    def __init__(self, *lines: str) -> None:
        self._lines: Iterator[str] = iter(lines)
        self._screen = io.StringIO()
        self.forgotten = 0
        self.ask = Questions(self._read, self._read, self._screen, self._forget)

    def _read(self, prompt: str) -> str:
        self._screen.write(f"{prompt}\n")
        try:
            return next(self._lines)
        except StopIteration:
            raise EOFError from None

    def _forget(self) -> None:
        self.forgotten += 1

    @property
    def shown(self) -> str:
        return self._screen.getvalue()


@pytest.mark.parametrize(
    "typed, chosen",
    [
        ("1", ["telegram"]),
        ("3,1", ["telegram", "qq"]),
        (" 1 , 3 ", ["telegram", "qq"]),
        ("1 3", ["telegram", "qq"]),
        ("1,1,1", ["telegram"]),
        ("QQ", ["qq"]),
        ("wecom callback", ["wecom_callback"]),
        ("wecom_callback, 1", ["telegram", "wecom_callback"]),
    ],
)
def test_several_are_chosen_by_number_or_name_in_the_order_of_the_list(typed: str, chosen: list[str]) -> None:
    person = Typing(typed)
    assert person.ask.several("Select platforms to configure:", CHOICES) == chosen
    assert person.shown.startswith("Select platforms to configure:\n   1  Telegram        not set up\n")


@pytest.mark.parametrize("slip", ["", "4", "0", "1,4", "telegramm", "1.5", "-1", "1 telegramm"])
def test_a_slip_is_asked_about_again_and_chooses_nothing(slip: str) -> None:
    person = Typing(slip, "2")
    assert person.ask.several("Which?", CHOICES) == ["wecom_callback"]
    assert "Numbers from 1 to 3" in person.shown


def test_enter_keeps_what_is_there() -> None:
    person = Typing("", "", "", "")
    assert person.ask.one("Which?", CHOICES, "qq") == "qq"
    assert person.ask.line("Model", "gpt-4o-mini") == "gpt-4o-mini"
    assert person.ask.secret("Key", "…x7Q") == ""
    assert person.ask.yes("Go on?", default=True)
    assert " * 3  QQ" in person.shown
    assert "Key [Enter keeps …x7Q]:" in person.shown


def test_a_door_is_opened_by_a_yes_alone_and_not_by_what_was_typed_before() -> None:
    person = Typing("", "sure", "Y")
    assert person.ask.sure("Is that you?")
    assert person.shown.count("Is that you? [y/n]:") == 3
    assert person.forgotten == 1
    assert not Typing("no").ask.sure("Is that you?")


def test_a_terminal_that_is_closed_ends_the_questions() -> None:
    with pytest.raises(LeftError):
        Typing().ask.yes("Go on?", default=True)


MODELS = [f"gpt-{number}" for number in range(1, 21)] + ["o1-mini", "o1-pro"]


@pytest.mark.parametrize(
    "typed, chosen",
    [
        (["2"], "gpt-2"),
        (["o1-pro"], "o1-pro"),
        ([""], "gpt-7"),
        (["O1", "2"], "o1-pro"),
        (["13", "o1-mini"], "o1-mini"),
        (["claude", "y"], "claude"),
        (["claude", "n", "1"], "gpt-1"),
    ],
    ids=["number", "name", "Enter", "a part, then its number", "a number that is not shown", "unknown", "a slip"],
)
def test_one_of_many_names_is_chosen_by_number_name_or_part(typed: list[str], chosen: str) -> None:
    person = Typing(*typed)
    assert person.ask.named("Model", MODELS, "gpt-7") == chosen
    assert "  12  gpt-12\n      and 10 more: type a part of a name to see those with it\nModel [gpt-7]:" in person.shown


@pytest.mark.parametrize("default", [False, True])
@pytest.mark.parametrize(
    "typed, answer",
    [("y\n", True), (" YES \n", True), ("是\n", True), ("n\n", False), ("perhaps\n", False), ("\n", None), ("", False)],
)
def test_only_a_yes_or_a_default_confirms_and_a_closed_input_does_not(
    monkeypatch: pytest.MonkeyPatch, typed: str, answer: bool | None, default: bool
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert confirm("Go on?", default=default) is (default if answer is None else answer)
