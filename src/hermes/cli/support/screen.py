"""How an answer is shown while it comes: words as they arrive, tools and notes dimmed, nothing twice."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from hermes.cli.support.program_name import command_name


def note(text: str) -> None:
    """A word beside the answer."""
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)


class Screen:
    """Shows the events of one ``say``."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._streamed = ""  # of the text being written now
        self._column = 0
        self._was_told = False
        self._is_listening = True
        self._has_colour = self._out.isatty() and "NO_COLOR" not in os.environ

    def show(self, event: Mapping[str, Any]) -> None:
        match event.get("kind"):
            case "again":  # the gateway changed hands: the rest comes with the next beginning, or whole
                if self._is_listening:  # told once, however many tries it takes to find the next one
                    self._line(self._dim("  (the gateway was restarted; going on)"))
                self._streamed, self._is_listening = "", False
            case "turn":
                self._is_listening = True
            case "delta" if not self._is_listening:
                pass
            case "delta":
                self._write(event["text"] if self._streamed else event["text"].lstrip("\n"))
                self._streamed += event["text"]
            case "segment":
                self._end_line()
                self._streamed = ""
            case "tool":
                self._line(self._dim(f"  {event['label']}"))
            case "reply":
                self._reply(event["text"])
            case "approval" | "notice":
                self._was_told = True
                self._line(event["text"])
            case _:
                pass

    def end(self, result: Mapping[str, Any] | None = None) -> None:
        self._end_line()
        if result is None:
            return
        if result["state"] == "queued" and not self._was_told:
            codes = ", ".join(f"/approve {asked['code']}" for asked in result["approvals"])
            self._line(self._dim(f"  (waits in line until you answered: {codes})"))
        elif result["state"] in {"interrupted", "stopped"} and not self._was_told:
            self._line(self._dim(f"  ({result['reason'] or result['state']})"))
        elif result["state"] == "lost":
            self._line(f"✗ {result['reason']}. Look: {command_name()} logs")

    def _reply(self, text: str) -> None:
        """The delivered answer. What was streamed already is not shown again; what came before it is."""
        streamed, self._streamed = self._streamed.strip(), ""
        self._was_told = True
        if streamed and text.startswith(streamed):
            self._write(text.removeprefix(streamed))
            self._end_line()
            return
        if streamed and text.strip().endswith(streamed):
            self._end_line()
            if before := text.strip().removesuffix(streamed).strip():
                self._line(self._dim(f"  {before}"))
            return
        self._line(text)

    def _line(self, text: str) -> None:
        self._end_line()
        self._write(text)
        self._end_line()

    def _end_line(self) -> None:
        if self._column:
            self._write("\n")

    def _write(self, text: str) -> None:
        if not text:
            return
        self._out.write(text)
        self._out.flush()
        self._column = len(text) - text.rfind("\n") - 1

    def _dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self._has_colour else text
