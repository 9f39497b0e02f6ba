"""Complete what is typed: slash commands, their arguments, skills, and files behind @."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hermes.core.dataclasses import dataclass
from hermes.core.printable import printable_line

MAX_FILES = 50
_OWN_ARGUMENTS = {"reasoning": ("show", "hide")}  # what the chat in a terminal understands by itself
_MENTION = re.compile(r"(?:^|\s)@(\S*)$")
_ALTERNATIVES = re.compile(r"[\[(]?([a-z][a-z0-9-]*(?:\|[a-zA-Z][a-zA-Z0-9-]*)+)[\])]?")


@dataclass(frozen=True, slots=True)
class CompletionHint:
    name: str
    summary: str
    arguments: tuple[str, ...] = ()


def hints(commands: Mapping[str, object], skills: Iterable[tuple[str, str]]) -> list[CompletionHint]:
    """The names that can follow a slash: commands of the registry, then skills."""
    found: dict[str, CompletionHint] = {}
    for name, known in commands.items():
        usage = str(getattr(known, "usage", ""))
        arguments = (*arguments_of(usage), *_OWN_ARGUMENTS.get(name, ()))
        found[name] = CompletionHint(name, str(getattr(known, "summary", "")), arguments)
    for name, summary in skills:
        found.setdefault(name, CompletionHint(name, summary))
    found.setdefault("exit", CompletionHint("exit", "Leave"))
    return [found[name] for name in sorted(found)]


def arguments_of(usage: str) -> tuple[str, ...]:
    """The words that a usage such as ``/busy [interrupt|queue|steer]`` offers; names in capitals are none."""
    found = [word for part in _ALTERNATIVES.findall(usage) for word in part.split("|")]
    return tuple(word for word in found if word == word.lower())


def is_completable(text: str) -> bool:
    """Whether a menu helps while this is typed."""
    return (text.startswith("/") and "\n" not in text) or _MENTION.search(text) is not None


class ChatCompleter(Completer):
    """``known`` is asked once, when the first slash is typed: finding the commands takes a moment."""

    def __init__(self, known: Callable[[], Sequence[CompletionHint]], folder: Callable[[], Path]) -> None:
        self._known = known
        self._folder = folder
        self._hints: Sequence[CompletionHint] | None = None

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterator[Completion]:
        text = document.text_before_cursor
        if mention := _MENTION.search(text):
            yield from self._files(mention[1])
        elif text.startswith("/") and "\n" not in text:
            yield from self._commands(text[1:])

    def _commands(self, typed: str) -> Iterator[Completion]:
        if self._hints is None:
            self._hints = self._known()
        name, blank, rest = typed.partition(" ")
        if not blank:
            for hint in self._hints:
                if hint.name.startswith(name.lower()):
                    yield Completion(hint.name, -len(name), f"/{hint.name}", printable_line(hint.summary)[:80])
            return
        known = next((hint for hint in self._hints if hint.name == name.lower()), None)
        if known is not None and " " not in rest:
            for word in known.arguments:
                if word.startswith(rest.lower()):
                    yield Completion(word, -len(rest))

    def _files(self, typed: str) -> Iterator[Completion]:
        head, tail = os.path.split(typed)
        folder = self._folder() / Path(head).expanduser()
        try:
            with os.scandir(folder) as entries:
                found = sorted(
                    ((entry.name, entry.is_dir()) for entry in entries if entry.name.startswith(tail)),
                    key=lambda match: (match[0].startswith("."), match[0]),
                )
        except OSError:  # no such folder, or not ours to look into
            return
        for name, is_folder in found[:MAX_FILES]:
            if name.startswith(".") and not tail.startswith("."):
                continue
            if printable_line(name) != name or " " in name:
                continue
            ending = "/" if is_folder else ""
            yield Completion(name + ending, -len(tail), name + ending)
