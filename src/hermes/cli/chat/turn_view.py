"""Turn the events of messages into lines: finished ones for the scrollback, live ones below them.

Pure: events, a width and the time in, lines out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from hermes.cli.chat import sessions
from hermes.cli.chat.lines import EMPTY, Line, StyledText, cut, line_width, plain, width_of, wrap
from hermes.cli.chat.markdown import MarkdownStream, render
from hermes.cli.chat.replies import closing_line, unseen_of
from hermes.cli.support.program_name import as_typed
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.en import Texts
from hermes.core.printable import printable, printable_line
from hermes.core.text import one_line

SHOWN_ARGUMENT = 100
SHOWN_RESULT = 60
VERBOSE_LINES = 12
OUTPUT_LINES = 5
MAIN_ARGUMENTS = ("command", "path", "query", "url", "pattern", "name", "question", "task", "target", "action", "text")


@dataclass(slots=True)
class RunningTool:
    name: str
    what: str
    began: float
    output: tuple[str, ...] = ()


@dataclass(slots=True)
class FollowedSay:
    """What is known of one message that was sent: which turns are its own, and which belong to another message."""

    text: str
    mine: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)


class TurnView:
    def __init__(self, words: Texts, width: int, *, has_links: bool = False) -> None:
        self.is_verbose = False
        self.clarify: tuple[str, tuple[str, ...]] | None = None
        """The question that the turn ended with, and its choices."""
        self.approvals: dict[str, Mapping[str, Any]] = {}
        """Questions that wait for an answer, by their code."""
        self._words = words
        self._width = width
        self._has_links = has_links
        self._says: list[FollowedSay] = []
        self._delivered: set[str] = set()
        self._lines: list[Line] = []
        self._stream: MarkdownStream | None = None
        self._streamed = ""
        self._reasoning = ""  # what of it is not shown yet
        self._tools: dict[str, RunningTool] = {}
        self.has_shown = False
        self._was_told = False
        self._is_listening = True
        self._last_is_tool = False
        self._ends_blank = False

    # What happens

    def begin(self, text: str) -> FollowedSay:
        """A message is sent; its events are given to ``handle`` with what this returns."""
        if not self._says:
            self._was_told, self._is_listening, self.clarify = False, True, None
        say = FollowedSay(text)
        self._says.append(say)
        return say

    def handle(self, say: FollowedSay, event: Mapping[str, Any], now: float) -> None:
        if not self._concerns(say, event):
            return
        if event.get("kind") == "reasoning":
            if self._is_listening:
                self._reason(str(event["text"]))
            return
        self._end_reasoning()
        match event.get("kind"):
            case "again":
                if self._is_listening:
                    self._end_stream()
                    self._add(plain(f"  ({self._words.CHAT_RESTARTED})", "dim"))
                self._stream, self._streamed, self._is_listening = None, "", False
                self._tools.clear()
            case "turn":
                self._is_listening = True
            case "delta" if self._is_listening:
                self._delta(event["text"])
            case "segment":
                self._end_stream()
                self._streamed = ""
            case "tool":
                self._begin_tool(event, now)
            case "tool_output":
                if tool := self._tools.get(str(event.get("call"))):
                    tool.output = tuple(str(event["text"]).splitlines()[-OUTPUT_LINES:])
            case "tool_end":
                self._end_tool(event, now)
            case "reply":
                is_command = say.text.lstrip().startswith("/")
                self._reply(as_typed(event["text"]) if is_command else event["text"])
            case "notice":
                self._was_told = True
                self._end_stream()
                self._lines += [self._dimmed(line) for line in self._rendered(as_typed(event["text"]))]
            case "approval":
                self._was_told = True
                if event.get("code"):
                    self.approvals[event["code"]] = event
                else:
                    self._lines += self._rendered(event["text"])
            case _:
                pass

    def end(self, say: FollowedSay, result: Mapping[str, Any] | None) -> None:
        """A message has come to its end; None: the asking itself failed."""
        if say in self._says:
            self._says.remove(say)
        if not self._says:
            self._end_reasoning()
            self._end_stream()
            self._streamed = ""
            self._tools.clear()
        if result is None:
            return
        pending = {asked["code"] for asked in result.get("approvals", ())}
        self.approvals = {code: asked for code, asked in self.approvals.items() if code in pending}
        if line := closing_line(result, self._words, was_told=self._was_told):
            self._add(plain(line, "bad" if line.startswith("✗") else "dim"))

    def complain(self, reason: object) -> None:
        self._end_stream()
        for number, line in enumerate(as_typed(f"✗ {reason}").splitlines()):
            self._lines += wrap(plain(printable_line(line), "bad" if not number else ""), self._width)

    def show_message(self, text: str) -> None:
        """Show what the person said."""
        self.has_shown = True
        self._gap()
        for number, line in enumerate(printable(text).splitlines() or [""]):
            lead = plain("> " if not number else "  ", "mark")
            self._lines += wrap(plain(line.expandtabs(4), "you"), self._width, lead, plain("  "))
        self._gap()

    def show_elsewhere(self, message: Mapping[str, Any]) -> None:
        """Show a message of this conversation that was said, or answered, on another platform."""
        self._end_stream()
        self._lines += sessions.message_lines(message, self._words, self._width)

    def note(self, text: str, style: str = "dim") -> None:
        for line in printable(text).splitlines():
            self._lines += wrap(plain(line, style), self._width)

    def add(self, lines: Sequence[Line]) -> None:
        self._end_stream()
        self._lines += lines

    # What is shown

    @property
    def is_busy(self) -> bool:
        return bool(self._says)

    @property
    def waiting(self) -> int:
        """How many messages were sent while another was being answered."""
        return max(0, len(self._says) - 1)

    def resize(self, width: int) -> None:
        self._width = width
        if self._stream is not None:
            self._stream.width = width

    def take(self) -> list[Line]:
        """Return the lines finished since the last call, with never two blank ones in a row."""
        if self._stream is not None and (finished := self._stream.take()):
            self._lines += finished
        lines: list[Line] = []
        for line in self._lines:
            if line or not self._ends_blank:
                lines.append(line)
            self._ends_blank = not line
        self._lines = []
        return lines

    def live(self, now: float, most: int) -> list[Line]:
        """The rows that are not finished, the last ``most`` of them: text, then tools at work."""
        rows = self._reasoning_rows(self._reasoning) if self._reasoning.strip() else []
        rows += self._stream.live() if self._stream is not None else []
        for tool in self._tools.values():
            rows.append(cut((StyledText("● ", "mark"), *self._tool_pieces(tool, now)), self._width))
            rows += [cut(plain(f"  │ {printable_line(text)}", "dim"), self._width) for text in tool.output]
        return rows[-most:]

    @property
    def has_tools(self) -> bool:
        return bool(self._tools)

    def activity(self) -> str:
        """Say in a word what is going on while no tool runs."""
        return self._words.CHAT_WRITING if self._streamed else self._words.CHAT_THINKING

    # Text

    def _concerns(self, say: FollowedSay, event: Mapping[str, Any]) -> bool:
        """Everything once, though two messages that wait at the same time are both told of every turn."""
        if name := event.get("id") if event.get("kind") != "turn" else "":
            is_new = name not in self._delivered
            self._delivered.add(str(name))
            return is_new
        turn = str(event.get("turn") or "")
        if not turn or len(self._says) < 2:
            if event.get("kind") == "turn" and event.get("is_mine"):
                say.mine.add(turn)
            return turn not in say.others
        if event.get("kind") == "turn":
            (say.mine if event.get("is_mine") else say.others).add(turn)
        if turn in say.others:
            return False
        return turn in say.mine or (
            say is self._says[0] and not any(turn in other.mine for other in self._says if other is not say)
        )

    def _reason(self, text: str) -> None:
        """Lines of the model's reasoning, shown as soon as they are whole."""
        self._end_stream()
        whole, line_end, rest = (self._reasoning + text).rpartition("\n")
        if line_end and whole.strip():
            self._gap_after_tools()
            for line in whole.strip("\n").splitlines():
                self._lines += self._reasoning_rows(line) if line.strip() else [EMPTY]
        self._reasoning = rest

    def _end_reasoning(self) -> None:
        if self._reasoning:
            self._reason("\n")
            self._gap()

    def _reasoning_rows(self, text: str) -> list[Line]:
        lead = plain("┊ ", "dim")
        return wrap(plain(printable_line(text.expandtabs(4)), "dim"), self._width, lead, lead)

    def _delta(self, text: str) -> None:
        if self._stream is None:
            text = text.lstrip("\n")
            if not text:
                return
            self._gap_after_tools()
            self._stream = MarkdownStream(self._width, has_links=self._has_links)
        self._streamed += text
        self._stream.feed(text)

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._lines += self._stream.end()
            self._stream = None
            self._last_is_tool = False

    def _reply(self, text: str) -> None:
        """The delivered answer. What was streamed already is not shown again; what came before it is."""
        unseen = unseen_of(text, self._streamed)
        self._was_told = True
        if not unseen.whole:  # else a reminder or a webhook came in between, and the answer is still to be delivered
            self._streamed = ""
        if unseen.after and self._stream is not None:
            self._stream.feed(unseen.after)
        elif unseen.after.strip():
            self._lines += self._rendered(unseen.after)
        self._end_stream()
        if unseen.before:
            self._lines += [self._dimmed(line) for line in self._rendered(unseen.before)]
        if unseen.whole:
            self._gap_after_tools()
            self._lines += self._rendered(unseen.whole)
            self._last_is_tool = False

    def _rendered(self, text: str) -> list[Line]:
        return render(text, self._width, has_links=self._has_links)

    def _dimmed(self, line: Line) -> Line:
        return tuple(piece._replace(style=f"{piece.style} dim".strip()) for piece in line)

    def _add(self, line: Line) -> None:
        self._lines += wrap(line, self._width)

    def _gap(self) -> None:
        self._lines.append(EMPTY)

    def _gap_after_tools(self) -> None:
        if self._last_is_tool:
            self._gap()
        self._last_is_tool = False

    # Tools

    def _begin_tool(self, event: Mapping[str, Any], now: float) -> None:
        self._end_stream()
        self._streamed = ""
        arguments = _parsed(str(event.get("arguments") or ""))
        argument = main_argument(arguments)
        self._tools[str(event.get("call") or event["name"])] = RunningTool(event["name"], argument, now)
        if event["name"] == "clarify":
            choices = arguments.get("choices")
            offered = (
                [str(choice).strip() for choice in choices if str(choice).strip()] if isinstance(choices, list) else []
            )
            self.clarify = (argument, tuple(offered))

    def _end_tool(self, event: Mapping[str, Any], now: float) -> None:
        tool = self._tools.pop(str(event.get("call") or event["name"]), None)
        if tool is None or tool.name == "clarify":
            return
        result = str(event.get("result") or "")
        is_good = event.get("outcome") == "ok" and not _failed(tool.name, result)
        mark = StyledText("✓ ", "good") if is_good else StyledText("✗ ", "bad")
        line = (mark, *self._tool_pieces(tool, now))
        short = short_result(tool.name, result)
        room = self._width - line_width(line) - 4
        if short and room > 12:
            line = (*line, StyledText(f"  {one_line(short, min(room, SHOWN_RESULT))}", "dim"))
        self._lines.append(cut(line, self._width))
        self._last_is_tool = True
        if self.is_verbose and result.strip():
            rows = printable(result).rstrip().splitlines()
            self._lines += [cut(plain(f"  │ {row.expandtabs(4)}", "dim"), self._width) for row in rows[:VERBOSE_LINES]]
            if len(rows) > VERBOSE_LINES:
                self._lines.append(
                    plain("  │ " + self._words.CHAT_MORE_LINES.format(count=len(rows) - VERBOSE_LINES), "dim")
                )

    def _tool_pieces(self, tool: RunningTool, now: float) -> Line:
        seconds = max(0.0, now - tool.began)
        shown = f"  {format_seconds(seconds)}" if seconds >= 1 else ""
        room = max(10, self._width - width_of(tool.name) - width_of(shown) - 8)
        argument = one_line(tool.what, min(room, SHOWN_ARGUMENT))
        name = (
            (StyledText("$ ", "dim"),)
            if tool.name == "terminal" and argument
            else (StyledText(f"{tool.name} ", "strong"),)
        )
        return (*name, StyledText(argument, "code"), StyledText(shown, "dim"))


def main_argument(arguments: Mapping[str, Any]) -> str:
    """The argument that tells most of what a call does."""
    for name in MAIN_ARGUMENTS:
        if isinstance(value := arguments.get(name), str) and value.strip():
            return value
    return next((value for value in arguments.values() if isinstance(value, str) and value.strip()), "")


def short_result(name: str, result: str) -> str:
    """A few words about what a tool gave back: the last line of a command, the first of anything else."""
    rows = [row for row in result.splitlines() if row.strip()]
    if not rows:
        return ""
    if name in ("terminal", "execute_code") and rows[0].startswith("Exit code"):
        last_row = rows[-1] if len(rows) > 1 and rows[-1] != "(No output.)" else ""
        code = "" if rows[0] == "Exit code 0." else rows[0].removesuffix(".").lower()
        return " · ".join(filter(None, (code, last_row)))
    return rows[0]


def _failed(name: str, result: str) -> bool:
    return (
        name in ("terminal", "execute_code")
        and result.startswith(("Exit code", "Stopped"))
        and not (result.startswith("Exit code 0"))
    )


def format_seconds(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _parsed(arguments: str) -> dict[str, Any]:
    try:
        given = json.loads(arguments)
    except ValueError:  # a model wrote it; what is no JSON is shown as it is
        return {"text": arguments} if arguments.strip() else {}
    return given if isinstance(given, dict) else {}
