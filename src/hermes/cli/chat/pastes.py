"""Long pastes: shown as their size in the input line, sent whole."""

from __future__ import annotations

from pathlib import Path

from hermes.cli.chat.mentions import as_mention

MIN_LINES = 5  # from so many on, a paste is shown as its size


class Pastes:
    def __init__(self, mark: str) -> None:
        """``mark`` is what stands for a paste, with ``{count}`` for its lines."""
        self._mark = mark
        self._texts: dict[str, str] = {}

    def add(self, data: str, folder: Path) -> str:
        """What to insert for a paste: a mark, a mention where it is the path of a picture, or the text itself."""
        text = data.replace("\r\n", "\n").replace("\r", "\n")
        if mention := as_mention(text, folder):
            return mention
        count = text.count("\n") + 1
        if count < MIN_LINES:
            return text
        mark = self._mark.format(count=count)
        while mark in self._texts:
            mark = f"{mark[:-1]}'{mark[-1]}"
        self._texts[mark] = text
        return mark

    def unfold(self, shown: str) -> str:
        """The text of an input line with its pastes, which are forgotten then."""
        text = shown
        for mark, pasted in self._texts.items():
            text = text.replace(mark, pasted)
        self._texts.clear()
        return text
