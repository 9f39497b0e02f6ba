"""Ask questions at a terminal: lines with defaults, numbered choices."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TextIO

from hermes.core.dataclasses import dataclass
from hermes.hosting.terminal import ask, ask_hidden, out, write
from hermes.hosting.translation import columns, pad, tr

MAX_LABEL_CHARS = 15
MAX_SHOWN = 12
YES = frozenset({"y", "yes", "是"})


class LeftError(Exception):
    """Whoever was asked closed the terminal or its input (Ctrl+D). Ctrl+C is a KeyboardInterrupt, as everywhere."""


@dataclass(frozen=True, slots=True)
class Choice:
    """``name`` is what the answer gives; ``aside`` stands beside the label."""

    name: str
    label: str
    aside: str = ""


class Questions:
    """``read`` and ``read_hidden`` show a prompt and give a line; an EOFError there means nobody is left to ask."""

    def __init__(
        self,
        read: Callable[[str], str],
        read_hidden: Callable[[str], str],
        out: TextIO,
        forget_typed: Callable[[], None] = lambda: None,
    ) -> None:
        self._read = read
        self._read_hidden = read_hidden
        self._out = out
        self._forget_typed = forget_typed

    def say(self, text: str = "") -> None:
        write(self._out, tr(text), end="\n", flush=True)

    def line(self, label: str, present: str = "") -> str:
        """Ask for a line; Enter keeps ``present``."""
        kept = f" [{present}]" if present else ""
        return self._answer(self._read, f"{tr(label)}{kept}: ") or present

    def secret(self, label: str, present: str = "") -> str:
        """A key or token: not shown while it is typed. '' on Enter: what ``present`` hints at stays."""
        kept = f" [Enter keeps {present}]" if present else " (not shown while you type)"
        return self._answer(self._read_hidden, f"{tr(label)}{tr(kept)}: ")

    def yes(self, question: str, *, default: bool) -> bool:
        while True:
            answer = self._answer(self._read, f"{tr(question)} [{'Y/n' if default else 'y/N'}]: ").casefold()
            if answer in ("", "y", "yes", "n", "no"):
                return default if not answer else answer.startswith("y")
            self.say("  y or n, please.")

    def sure(self, question: str) -> bool:
        """A yes that opens a door: typed after it was asked for, and never by an Enter meant for something else."""
        self._forget_typed()
        while (answer := self._answer(self._read, f"{tr(question)} [y/n]: ").casefold()) not in ("y", "yes", "n", "no"):
            self.say("  y or n, please.")
        return answer.startswith("y")

    def one(self, title: str, choices: Sequence[Choice], present: str) -> str:
        """The name of the one that was chosen, by its number or its name; ``present`` on Enter."""
        self._list(title, choices, present)
        number = next((place for place, choice in enumerate(choices, 1) if choice.name == present), 0)
        while True:
            chosen = _chosen(self.line("Choose", str(number) if number else ""), choices)
            if len(chosen) == 1:
                return chosen[0]
            self.say(f"  One number from 1 to {len(choices)}, please.")

    def named(self, label: str, offered: Sequence[str], present: str = "") -> str:
        """One name of many, chosen by its number or typed; a part of a name shows those that have it."""
        listed = list(offered)
        while True:
            for number, name in enumerate(listed[:MAX_SHOWN], 1):
                self.say(f"  {number:>2}  {name}")
            if len(listed) > MAX_SHOWN:
                self.say(f"      and {len(listed) - MAX_SHOWN} more: type a part of a name to see those with it")
            typed = self.line(label, present)
            if typed.isdecimal() and 1 <= int(typed) <= min(len(listed), MAX_SHOWN):
                return listed[int(typed) - 1]
            if typed in offered:
                return typed
            listed = [name for name in offered if typed and typed.casefold() in name.casefold()]
            if typed and not listed and self.yes(f"{typed} is not in the list. Use it anyway?", default=False):
                return typed
            listed = listed or list(offered)

    def several(self, title: str, choices: Sequence[Choice], present: str = "") -> list[str]:
        """The names of those chosen, in the order of the list."""
        self._list(title, choices)
        while True:
            chosen = _chosen(self.line("Numbers, for example 1 or 1,3", present), choices)
            if chosen:
                return chosen
            self.say(f"  Numbers from 1 to {len(choices)}, with commas between them, please.")

    def _list(self, title: str, choices: Sequence[Choice], present: str = "") -> None:
        self.say(title)
        width = min(max(columns(tr(choice.label)) for choice in choices), MAX_LABEL_CHARS)
        for number, choice in enumerate(choices, 1):
            mark = "*" if choice.name == present else " "
            row = f" {mark}{number:>2}  {pad(tr(choice.label), width)}  {tr(choice.aside)}".rstrip()
            write(self._out, row, end="\n", flush=True)

    def _answer(self, read: Callable[[str], str], prompt: str) -> str:
        try:
            return read(prompt).strip()
        except EOFError:
            raise LeftError from None


def _chosen(typed: str, choices: Sequence[Choice]) -> list[str]:
    """Nothing when any word is none of them: a slip must not set up half of what was meant."""
    by_word = {str(number): choice.name for number, choice in enumerate(choices, 1)}
    by_word |= {word.casefold(): choice.name for choice in choices for word in (choice.name, choice.label)}
    words = [word.strip().casefold() for word in re.split(r"[,;]", typed) if word.strip()]
    if len(words) == 1 and words[0] not in by_word:
        words = words[0].split()
    if not words or any(word not in by_word for word in words):
        return []
    chosen = {by_word[word] for word in words}
    return [choice.name for choice in choices if choice.name in chosen]


def confirm(question: str, *, default: bool = False) -> bool:
    """Ask one yes-or-no question. Enter gives ``default``; a closed input is a no. The caller knows who is there."""
    try:
        answer = ask(f"{tr(question)} [{'Y/n' if default else 'y/N'}]: ").strip().casefold()
    except EOFError:
        return False
    except KeyboardInterrupt:
        out()  # the terminal shows ^C on the line of the question
        raise
    return answer in YES if answer else default


def at_terminal() -> Questions | None:
    """None where nobody can be asked."""
    import sys

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    import contextlib
    import termios

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - makes input() editable
    return Questions(ask, ask_hidden, sys.stdout, lambda: termios.tcflush(sys.stdin, termios.TCIFLUSH))
