"""A list to pick from: by arrows, a number, a letter, or what is typed to search."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.cli.chat.lines import EMPTY, Line, StyledText, cut, plain
from hermes.core.dataclasses import dataclass
from hermes.core.printable import printable_line

MOST_SHOWN = 8
GUARD_SECONDS = 0.8  # a key pressed sooner was meant for the line that was being typed
PAUSE_SECONDS = 0.5  # and so is one that follows it without a pause


@dataclass(frozen=True, slots=True)
class MenuChoice:
    """``value`` is what picking it means; ``letter`` picks it too; ``preview`` is shown while it is the marked one."""

    value: str
    label: str
    letter: str = ""
    note: str = ""
    preview: tuple[str, ...] = ()


class Menu:
    """``is_searched``: letters and numbers search in it instead of picking."""

    def __init__(
        self, choices: Sequence[MenuChoice], *, title: str = "", hint: str = "", is_searched: bool = False
    ) -> None:
        self._choices = tuple(choices)
        self._title = title
        self._hint = hint
        self._is_searched = is_searched
        self._at = 0
        self._ready_at = 0.0
        self.search = ""

    def guard(self, now: float) -> None:
        """It has just appeared: whoever is typing does not pick by accident."""
        self._ready_at = now + GUARD_SECONDS

    def accepts(self, now: float) -> bool:
        """Whether a key pressed now is meant for this menu."""
        if now >= self._ready_at:
            return True
        self._ready_at = max(self._ready_at, now + PAUSE_SECONDS)
        return False

    @property
    def matches(self) -> list[MenuChoice]:
        words = self.search.casefold().split()
        if not words:
            return list(self._choices)
        return [
            choice
            for choice in self._choices
            if all(word in f"{choice.label} {choice.note} {' '.join(choice.preview)}".casefold() for word in words)
        ]

    @property
    def marked(self) -> MenuChoice | None:
        shown = self.matches
        return shown[self._at] if self._at < len(shown) else None

    def move(self, by: int) -> None:
        if shown := self.matches:
            self._at = (self._at + by) % len(shown)

    def typed(self, character: str) -> MenuChoice | None:
        """Use a key. Returns the choice that it picks, None where it picks none."""
        if self._is_searched:
            if character.isprintable():
                self.search, self._at = self.search + character, 0
            return None
        if character.isdecimal() and 0 < int(character) <= len(self._choices):
            return self._choices[int(character) - 1]
        return next((choice for choice in self._choices if choice.letter == character.casefold() != ""), None)

    def erase(self) -> None:
        self.search, self._at = self.search[:-1], 0

    def rows(self, width: int) -> list[Line]:
        rows: list[Line] = []
        if self._title:
            title = f"{self._title} {self.search}".rstrip() if self._is_searched else self._title
            rows.append(cut(plain(title, "strong"), width))
        shown = self.matches
        first = max(0, min(self._at - MOST_SHOWN // 2, len(shown) - MOST_SHOWN))
        for number, choice in enumerate(shown[first : first + MOST_SHOWN], first):
            is_marked = number == self._at
            lead = "❯ " if is_marked else "  "
            key = "" if self._is_searched else f"{number + 1} "
            style = "chosen" if is_marked else ""
            line = [StyledText(lead + key, style), StyledText(printable_line(choice.label), style)]
            if choice.note:
                line.append(StyledText(f"  {printable_line(choice.note)}", "dim"))
            rows.append(cut(tuple(line), width))
        if (marked := self.marked) is not None and marked.preview:
            rows.append(EMPTY)
            rows += [cut(plain(f"  {printable_line(row)}", "dim"), width) for row in marked.preview]
        if self._hint:
            rows.append(cut(plain(self._hint, "dim"), width))
        return rows
