"""A real terminal: tmux shows what a person would see, and types what they would."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

HAS_TMUX = shutil.which("tmux") is not None
COLUMNS, ROWS = 80, 60


class Pane:
    """``with Pane(folder, environ) as pane:`` one window of 80 columns, with a shell of its own."""

    def __init__(
        self,
        folder: Path,
        environ: Mapping[str, str],
        *,
        columns: int = COLUMNS,
        rows: int = ROWS,
        lang: str = "C.UTF-8",
    ) -> None:
        self._size = columns, rows
        self._lang = lang
        self._folder = folder
        self._environ = dict(environ)
        self._name = f"hermes-{secrets.token_hex(4)}"

    def __enter__(self) -> Self:
        size = ("-x", str(self._size[0]), "-y", str(self._size[1]))
        self._tmux("-f", os.devnull, "new-session", "-d", *size, "-s", "w", "sh")
        self._tmux("set-option", "-g", "history-limit", "5000")
        self._tmux("set-option", "-g", "window-size", "manual")
        self._tmux("set-option", "-s", "escape-time", "0")
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        environ = {**self._environ, "TERM": "xterm-256color", "PS1": "$ ", "TMUX_TMPDIR": str(self._folder)}
        environ |= {"LANG": self._lang, "LC_ALL": self._lang}
        done = subprocess.run(
            ["tmux", "-u", "-L", self._name, *words],
            cwd=self._folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout

    def types(self, text: str) -> None:
        """A line and Enter."""
        self._tmux("send-keys", "-t", "w", "-l", text)
        self.presses("Enter")

    def writes(self, text: str) -> None:
        """Text without Enter."""
        self._tmux("send-keys", "-t", "w", "-l", text)

    def presses(self, *keys: str) -> None:
        self._tmux("send-keys", "-t", "w", *keys)

    def pastes(self, text: str) -> None:
        """Paste as a terminal does, between brackets."""
        self._tmux("set-buffer", "-b", "pasted", text)
        self._tmux("paste-buffer", "-p", "-b", "pasted", "-t", "w")

    def resizes(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-t", "w", "-x", str(columns), "-y", str(rows))

    def screen(self) -> list[str]:
        """The rows of the window as they stand, without what has scrolled away."""
        text = self._tmux("capture-pane", "-p", "-t", "w")
        return [line.rstrip() for line in text.rstrip().splitlines()]

    def lines(self) -> list[str]:
        """Everything shown so far; a line that did not fit is one line here, longer than the window."""
        text = self._tmux("capture-pane", "-p", "-J", "-S", "-", "-t", "w")
        return [line.rstrip() for line in text.splitlines()]

    def coloured(self) -> str:
        """The window with the codes of its colours."""
        return self._tmux("capture-pane", "-p", "-e", "-S", "-", "-t", "w")

    @property
    def title(self) -> str:
        """The name that the program gave to its window."""
        return self._tmux("display-message", "-p", "-t", "w", "#{pane_title}").strip()

    @property
    def text(self) -> str:
        return "\n".join(self.lines())

    async def shows(self, words: str, seconds: float = 20.0) -> str:
        """Everything shown, once these words are."""
        deadline = time.monotonic() + seconds
        while words not in (text := await asyncio.to_thread(lambda: self.text)):
            assert time.monotonic() < deadline, f"{words!r} was not shown:\n{text}"
            await asyncio.sleep(0.05)
        return text
