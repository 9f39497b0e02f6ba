"""``hermes`` and ``hermes chat``: talk to the agent; ``hermes -z PROMPT``: ask once."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.support.client import GatewayClient, Standalone, home_folder, load_config, outside_platforms
from hermes.cli.support.program_name import as_typed, command_name
from hermes.cli.support.screen import Screen, complain, note
from hermes.core.errors import GatewayError
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import pick
from hermes.hosting.terminal import ask, err, out, out_json, rewrite_line

if TYPE_CHECKING:
    import argparse

    Ask = Callable[[], str]

PROMPT = "> "
# A shell is left by the bare words, and nobody means to say them to the agent.
LEAVING = frozenset({"/exit", "/quit", "/q", "exit", "quit"})
SAY_SECONDS = 600.0  # of silence, where only request files can be exchanged; else a sign of life comes every 2 s
GOOD = frozenset({"done", "answered"})
USAGE_ERROR = 2

EXAMPLES = """\
  hermes                       chat with the agent; /help lists the commands, /exit leaves
  hermes chat --session work   a separate conversation
  hermes -z "hello"            ask one question, print the answer, exit
  echo "Sum this up: …" | hermes -z -
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", default="cli", metavar="NAME", help="name of the conversation (default: cli)")


def run(args: argparse.Namespace) -> int:
    with GatewayClient(home_folder(), Standalone.CHAT) as client:
        client.connect()
        words = own_words(client.home)
        out(words.BANNER, flush=True)
        if client.is_alone and (deaf := configured_platforms(client.home)):
            out(deaf_words(deaf), flush=True)
        return TerminalChat(client, args.session, words).talk(_reader(client.home))


def own_words(home: Path) -> Texts:
    """The words of whoever sits here: in the language of the settings, else of their terminal."""
    return words_of(pick(load_config(home).config.language, "", hint=terminal_language()))


def terminal_language() -> str:
    """The language that this terminal is set to; '' where it says none."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name, ""):
            language = value.partition(".")[0]
            return "" if language in ("C", "POSIX") else language
    return ""


def surroundings() -> dict[str, str]:
    """What goes with whatever is said here."""
    return {"folder": here(), "language": terminal_language()}


def here() -> str:
    """The folder that we are in: there the owner's tools work. Empty when it was removed under us."""
    with suppress(OSError):
        return os.getcwd()
    return ""


def one_shot(prompt: str, *, as_json: bool) -> int:
    """Print the answer alone on stdout; whatever else there is to say goes to stderr."""
    if not prompt.strip():
        note(f'✗ There is nothing to ask. For example: {command_name()} -z "hello"')
        return USAGE_ERROR
    chat = f"z-{secrets.token_hex(4)}"
    replies: list[str] = []
    with GatewayClient(home_folder(), Standalone.GATEWAY) as client:
        if not prompt.lstrip().startswith("/"):
            with Progress() as progress:
                client.ask("model.ready", {"text": prompt}, progress, timeout=SAY_SECONDS)
        said = {"chat": chat, "text": prompt, "key": secrets.token_hex(12), **surroundings()}
        result = client.ask("say", said, lambda event: _collect(event, replies), timeout=SAY_SECONDS)
    return _tell_once(result, "\n".join(replies), chat, as_json=as_json)


def _collect(event: Mapping[str, Any], replies: list[str]) -> None:
    if event["kind"] == "reply":
        own_note = event.get("note", "")
        replies.append(event["text"].removesuffix(own_note).rstrip() if own_note else event["text"])
        if own_note:
            note(own_note)
    elif event["kind"] == "notice":
        note(as_typed(event["text"]))


def _tell_once(result: Mapping[str, Any], answer: str, chat: str, *, as_json: bool) -> int:
    is_good = result["state"] in GOOD
    if as_json:
        outcome = {name: result[name] for name in ("state", "turn", "event")}
        reason = "" if is_good else answer or result["reason"]
        out_json({"answer": answer if is_good else "", **outcome, "reason": reason})
    elif is_good:
        out(answer)
    if is_good:
        return 0
    for asked in result["approvals"]:
        note(f"✗ It asks first: {asked['question']}")
        note(f"  Allow it: {command_name()} -z '/approve {asked['code']}'")
        note(f"  The answer then waits here: {command_name()} chat --session {chat}")
    if not result["approvals"]:
        complain(answer or result["reason"] or result["state"])
        note(f"  What happened: {command_name()} trace {result['turn'] or result['event']}")
    return 1


# The conversation


class TerminalChat:
    def __init__(self, client: GatewayClient, chat: str, words: Texts) -> None:
        self._asker = client
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
                self._answer(text)

    def _answer(self, text: str) -> None:
        screen = Screen(is_command=text.lstrip().startswith("/"))
        try:
            if not text.lstrip().startswith("/"):
                # A fetch that failed is told by the model itself, as the answer to this message.
                with suppress(GatewayError), Progress() as progress:
                    self._asker.ask("model.ready", {"text": text}, progress, timeout=SAY_SECONDS)
            said = {"chat": self._chat, "text": text, "key": secrets.token_hex(12), **surroundings()}
            result = self._asker.ask("say", said, screen.show, timeout=SAY_SECONDS)
            screen.end(result)
            if text.strip().lower() == "/help":  # the gateway knows no terminal, so it cannot tell how to leave one
                out(self._words.HOW_TO_LEAVE, flush=True)
        except KeyboardInterrupt:
            self._stop(screen)
        except GatewayError as error:
            screen.end()
            complain(error)

    def _stop(self, screen: Screen) -> None:
        """Ctrl+C while it answers ends the turn; at the prompt it leaves."""
        said = {"chat": self._chat, "text": "/stop", "key": secrets.token_hex(12)}
        try:
            screen.end(self._asker.ask("say", said, screen.show))
        except GatewayError as error:
            complain(error)


class Progress:
    """How far the fetch of the built-in model is: one line on stderr that is rewritten, or a line now and then."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._told = -1
        self._is_line_open = False

    def __call__(self, event: Mapping[str, Any]) -> None:
        if event.get("kind") != "progress":
            return
        text = f"Model    {event['text']}"
        if self._is_terminal:
            rewrite_line(sys.stderr, text)
            self._is_line_open = True
        elif event["done_mb"] >= self._told + 20 or self._told < 0:
            self._told = event["done_mb"]
            err(text)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_line_open:
            rewrite_line(sys.stderr)


def configured_platforms(home: Path) -> list[str]:
    """Platforms that somebody set up, and that only a running gateway listens to."""
    return outside_platforms(load_config(home).config)


def deaf_words(platforms: list[str]) -> str:
    names = ", ".join(platforms)
    return f"Gateway is not running: nobody is answered on {names}. Start it: {command_name()} gateway run"


# Reading what is typed


def _reader(home: Path) -> Ask:
    if not sys.stdin.isatty() or os.environ.get("TERM") == "dumb":
        return _plain_line
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
    return ask(PROMPT if sys.stdin.isatty() else "")
