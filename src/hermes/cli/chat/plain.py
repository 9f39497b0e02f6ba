"""The chat as plain text: over a pipe, on a dumb terminal, without colours."""

from __future__ import annotations

import os
import secrets
import select
import shutil
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from hermes.cli.chat.lines import UNLIMITED, Line, StyledText
from hermes.cli.chat.markdown import MarkdownStream, render
from hermes.cli.chat.mentions import read_mentions
from hermes.cli.chat.pastes import MIN_LINES
from hermes.cli.chat.progress import Progress
from hermes.cli.chat.questions import approval_box
from hermes.cli.chat.replies import closing_line, unseen_of
from hermes.cli.chat.surroundings import LEAVING, SAY_SECONDS, here, surroundings
from hermes.cli.chat.theme import uncoloured
from hermes.cli.support.client import GatewayClient
from hermes.cli.support.program_name import as_typed
from hermes.cli.support.screen import complain
from hermes.core.errors import GatewayError
from hermes.core.i18n.catalogue import ENGLISH
from hermes.core.i18n.en import Texts
from hermes.hosting.terminal import ask, out, write_styled

Ask = Callable[[], str]
PROMPT = "> "
PASTE_SECONDS = 0.05  # a person types no second line so soon
MAX_LINE_BYTES = 65_536


class PlainChat:
    def __init__(self, client: GatewayClient, chat: str, words: Texts) -> None:
        self._client = client
        self._chat = chat
        self._words = words

    def talk(self, read: Ask) -> int:
        """Read and answer until /exit, Ctrl+C or Ctrl+D."""
        while True:
            try:
                text = read()
            except (EOFError, KeyboardInterrupt):
                return 0
            if text.strip().lower() in LEAVING:
                return 0
            if text.strip():
                self.answer(text)

    def answer(self, text: str) -> None:
        screen = PlainScreen(is_command=text.lstrip().startswith("/"), words=self._words)
        try:
            if not text.lstrip().startswith("/"):
                # A fetch that failed is told by the model itself, as the answer to this message.
                with suppress(GatewayError), Progress() as progress:
                    self._client.ask("model.ready", {"text": text}, progress, timeout=SAY_SECONDS)
            args: dict[str, Any] = {"chat": self._chat, "text": text, "key": secrets.token_hex(12), **surroundings()}
            if sys.stdin.isatty() and not text.lstrip().startswith("/"):  # over a pipe, an @ is a sign like any other
                args |= self._mentioned(text)
            result = self._client.ask("say", args, screen.show, timeout=SAY_SECONDS)
            screen.end(result)
            if text.strip().lower() == "/help":  # the gateway knows no terminal, so it cannot tell how to leave one
                out(self._words.HOW_TO_LEAVE, flush=True)
        except KeyboardInterrupt:
            self._stop(screen)
        except GatewayError as error:
            screen.end()
            complain(error)

    def _mentioned(self, text: str) -> dict[str, Any]:
        """Files and pictures that a message names, as parts of what is said."""
        found = read_mentions(text, Path(here() or "."))
        for name, size in found.added:
            out("  " + self._words.CHAT_FILE_ADDED.format(name=name, size=f"{size:,} B"), flush=True)
        for name, reason in found.left_out:
            out("  " + self._words.CHAT_FILE_LEFT_OUT.format(name=name, reason=reason), flush=True)
        return {"text": found.text, **({"pictures": list(found.pictures)} if found.pictures else {})}

    def _stop(self, screen: PlainScreen) -> None:
        """Ctrl+C while it answers ends the turn; at the prompt it leaves."""
        args = {"chat": self._chat, "text": "/stop", "key": secrets.token_hex(12)}
        try:
            screen.end(self._client.ask("say", args, screen.show))
        except GatewayError as error:
            complain(error)


class PlainScreen:
    """Shows the events of one ``say`` as lines of text, each as soon as it is finished."""

    def __init__(self, out: TextIO | None = None, *, is_command: bool = False, words: Texts = ENGLISH) -> None:
        """``is_command``: a slash command was typed, so the reply is our own words."""
        self._out = out
        self._is_command = is_command
        self._words = words
        self._streamed = ""  # of the text being written now
        self._was_told = False
        self._is_listening = True
        self._stream: MarkdownStream | None = None
        self._width = shutil.get_terminal_size().columns - 1 if out is None and sys.stdout.isatty() else UNLIMITED

    def show(self, event: Mapping[str, Any]) -> None:
        match event.get("kind"):
            case "again":  # the gateway changed hands: the rest comes with the next beginning, or whole
                if self._is_listening:  # told once, however many tries it takes to find the next one
                    self._line(f"  ({self._words.CHAT_RESTARTED})")
                self._streamed, self._is_listening = "", False
            case "turn":
                self._is_listening = True
            case "delta" if self._is_listening:
                text = event["text"] if self._streamed else event["text"].lstrip("\n")
                self._streamed += text
                if text and self._stream is None:
                    self._stream = MarkdownStream(self._width)
                if self._stream is not None:
                    self._stream.feed(text)
                    self._write(self._stream.take())
            case "segment":
                self._end_stream()
                self._streamed = ""
            case "tool":
                self._line(f"  {event['label'].replace('`', '')}")
            case "reply":
                self._reply(as_typed(event["text"]) if self._is_command else event["text"])
            case "notice":
                self._was_told = True
                self._line(as_typed(event["text"]))
            case "approval":
                self._was_told = True
                self._end_stream()
                self._show_approval(event)
            case _:
                pass

    def end(self, result: Mapping[str, Any] | None = None) -> None:
        self._end_stream()
        if result is not None and (line := closing_line(result, self._words, was_told=self._was_told)):
            self._line(line)

    def _reply(self, text: str) -> None:
        """The delivered answer. What was streamed already is not shown again; what came before it is."""
        unseen = unseen_of(text, self._streamed)
        self._was_told = True
        if not unseen.whole:  # else a reminder or a webhook came in between, and the answer is still to be delivered
            self._streamed = ""
        if unseen.after and self._stream is not None:
            self._stream.feed(unseen.after)
        self._end_stream()
        if unseen.before:
            self._line(f"  {unseen.before}")
        if unseen.whole:
            self._line(unseen.whole)

    def _show_approval(self, event: Mapping[str, Any]) -> None:
        """What would run, to the byte. One of an older gateway is shown as it came."""
        if not event.get("tool"):
            self._write([(StyledText(line),) for line in event["text"].split("\n")])
            return
        self._write(approval_box(event, self._words, self._width))
        *_, how = event["text"].rstrip().split("\n")
        self._line(how)

    def _line(self, text: str) -> None:
        self._end_stream()
        self._write(render(text, self._width))

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._write(self._stream.end())
            self._stream = None

    def _write(self, lines: list[Line]) -> None:
        stream = self._out or sys.stdout
        write_styled(stream, map(uncoloured, lines))
        stream.flush()


# Reading what is typed


def reader(home: Path, words: Texts = ENGLISH) -> Ask:
    if not sys.stdin.isatty():
        return _plain_line
    if os.environ.get("TERM") == "dumb":
        return _DumbReader(words).read
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory

    path = home / "history"
    with suppress(OSError):  # then the library says what is wrong with it
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    session: PromptSession[str] = PromptSession(history=FileHistory(str(path)))

    def typed() -> str:
        while True:
            try:
                return session.prompt(PROMPT)
            except KeyboardInterrupt:
                if not session.default_buffer.text:
                    raise  # on an empty line it leaves; a line begun is only given up, as in a shell

    return typed


def _plain_line() -> str:
    return ask("")


class _DumbReader:
    """Reads lines of a terminal that cannot tell a paste. Many lines that come at once are one message."""

    def __init__(self, words: Texts) -> None:
        self._words = words
        self._waiting: deque[str] = deque()
        self._has_ended = False

    def read(self) -> str:
        if self._waiting:
            return self._waiting.popleft()
        if self._has_ended:
            raise EOFError
        lines = [ask(PROMPT)]
        while select.select([sys.stdin.fileno()], [], [], PASTE_SECONDS)[0]:
            if not (more := os.read(sys.stdin.fileno(), MAX_LINE_BYTES)):
                self._has_ended = True
                break
            lines += more.decode("utf-8", "replace").removesuffix("\n").split("\n")
        if len(lines) < MIN_LINES:
            self._waiting.extend(lines[1:])
            return lines[0]
        out(self._words.CHAT_PASTED.format(count=len(lines)), flush=True)
        return "\n".join(lines)
