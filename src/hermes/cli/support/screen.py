"""Stream an answer to the terminal: words as they come, tools dimmed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from hermes.cli.support.program_name import as_typed, command_name
from hermes.core.i18n.failures import sentence
from hermes.hosting.terminal import DIM, err, write


def note(text: str) -> None:
    """A word beside the answer."""
    sys.stdout.flush()
    err(text)


def complain(reason: object) -> None:
    """Say on stderr what went wrong, with the commands it names as they can be typed here."""
    err(as_typed(f"✗ {reason}"))


class Screen:
    """Shows the events of one ``say``."""

    def __init__(self, out: TextIO | None = None, *, is_command: bool = False) -> None:
        """``is_command``: a slash command was typed, so the reply is our own words."""
        self._out = out
        self._is_command = is_command
        self._streamed = ""  # of the text being written now
        self._held = ""  # a carriage return at the end of a piece: the line feed may come with the next
        self._column = 0
        self._was_told = False
        self._is_listening = True
        self._has_colour = (out or sys.stdout).isatty() and "NO_COLOR" not in os.environ

    def show(self, event: Mapping[str, Any]) -> None:
        match event.get("kind"):
            case "again":  # the gateway changed hands: the rest comes with the next beginning, or whole
                if self._is_listening:  # told once, however many tries it takes to find the next one
                    self._line("  (the gateway was restarted; going on)", is_dim=True)
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
                self._line(f"  {event['label']}", is_dim=True)
            case "reply":
                self._reply(as_typed(event["text"]) if self._is_command else event["text"])
            case "notice":
                self._was_told = True
                self._line(as_typed(event["text"]))
            case "approval":  # it shows what would run, so nothing in it is changed
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
            self._line(f"  (waits in line until you answered: {codes})", is_dim=True)
        elif result["state"] in {"interrupted", "stopped"} and not self._was_told:
            self._line(f"  ({result['reason'] or result['state']})", is_dim=True)
        elif result["state"] == "lost":
            self._line(f"✗ {sentence(result['reason'])} Look: {command_name()} logs")

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
                self._line(f"  {before}", is_dim=True)
            return
        self._line(text)

    def _line(self, text: str, *, is_dim: bool = False) -> None:
        self._end_line()
        self._write(text, is_dim=is_dim)
        self._end_line()

    def _end_line(self) -> None:
        if self._column:
            self._write("\n")
        self._held = ""

    def _write(self, text: str, *, is_dim: bool = False) -> None:
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        text = text.removesuffix("\r")
        if not text:
            return
        write(self._out or sys.stdout, text, style=DIM if is_dim and self._has_colour else "", flush=True)
        self._column = len(text) - text.rfind("\n") - 1
