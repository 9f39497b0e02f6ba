"""Collect what is found in a command line: dangers, a refusal, the files that it writes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

from hermes.core.dataclasses import dataclass
from hermes.core.shell_safety import places
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.paths import GLOB_MARKS, NOWHERE, before_pattern, lies_in, normal, path_tokens
from hermes.core.shell_safety.places import is_secret, names
from hermes.core.shell_safety.words import Word

Resolve = Callable[[str], str]
"""Return the real path of a path, with links followed."""
Read = Callable[[str], str | None]
"""Return a file as text; None if there is none. A text with a NUL stands for a file that cannot be judged."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a command would run, and how its files are looked up."""

    folder: str
    workspace: str
    home: str
    mounted: frozenset[str]
    resolve: Resolve | None
    read: Read | None


class Findings:
    """The findings about one command line, and the places that it names."""

    def __init__(self, site: Site) -> None:
        self.found: set[Danger] = set()
        self.refusal = ""
        self.only_reads = True
        self.site = site
        self._written: set[str] = set()
        self._wrote_links = False

    def ask(self, danger: Danger) -> None:
        self.found.add(danger)

    def changes(self) -> None:
        self.only_reads = False

    def refuse(self, reason: str) -> None:
        self.refusal = self.refusal or f"{reason} This is refused to everybody; no approval changes it."

    def paths(self, text: str, folders: frozenset[str]) -> list[str]:
        """Return where a path leads from each folder, without following links."""
        if text.startswith("~"):
            first, slash, rest = text.partition("/")
            base = (self.site.home or "~") if first == "~" else first
            return [base + slash + rest]
        if text.startswith("/"):
            return [text]
        return [f"{folder}/{text}" if folder else text for folder in folders]

    def is_inside(self, path: str) -> bool:
        """Tell whether a path leads into the workspace, by its text and its links."""
        if not lies_in(normal(path), self.site.workspace):
            return False
        if self.site.resolve is None or not path.startswith("/"):
            return True
        if any(mark in path for mark in GLOB_MARKS):
            path = before_pattern(path)
        try:
            return lies_in(self.site.resolve(path), self.site.workspace)
        except (OSError, ValueError, RuntimeError):
            return False

    def real(self, path: str) -> str:
        """Return the real path, or NOWHERE if it cannot be resolved."""
        if self.site.resolve is None:
            return normal(path)
        try:
            return self.site.resolve(path)
        except (OSError, ValueError, RuntimeError):
            return NOWHERE

    def leads_out(self, text: str) -> bool:
        """Tell whether a text names a place outside, or one that needs a question."""
        folders = frozenset({self.site.folder})
        if len(text) < 300 and not re.search(r"\s", text) and places.runs_by_itself(normal(text), self.site.home):
            return True
        return any(self._is_odd_place(one, folders) for one in path_tokens(text)) or self.names_secret(
            Word(text), folders
        )

    def _is_odd_place(self, token: str, folders: frozenset[str]) -> bool:
        for path in self.paths(token, folders):
            if not self.is_inside(path) and not places.HARMLESS_DEVICES.match(normal(path)):
                return True
        return False

    def names_secret(self, word: Word, folders: frozenset[str]) -> bool:
        text = word.plain() if not word.text.startswith("/proc") else word.text
        if any(is_secret(normal(path)) for path in self.paths(text, folders)):
            return True
        tail = re.split(r"[=@:]", text)[-1]
        if tail != text and is_secret(normal(tail)):
            return True
        return word.globs and places.globs_secret(text)

    def written(self, path: str, *, may_be_temporary: bool = False) -> None:
        """Record that the command writes to this path."""
        self.changes()
        place = normal(path)
        self._written.add(place)
        if places.DISKS.match(place) or place in self.site.mounted:
            self.refuse(f"It writes over a disk ({place}).")
        elif places.BOOT.match(place):
            self.refuse(f"It writes over what starts this machine ({place}).")
        elif place == "/proc/sysrq-trigger":
            self.ask(Danger.POWER)
        elif place.startswith(("/dev/tcp/", "/dev/udp/")):
            self.ask(Danger.NETWORK)
        elif places.HARMLESS_DEVICES.match(place):
            pass
        elif place.startswith("/dev/"):
            self.ask(Danger.DEVICE)
        else:
            self.softly_written(path, may_be_temporary=may_be_temporary)

    def softly_written(self, path: str, *, may_be_temporary: bool = False) -> None:
        """Ask about a path that a program may write to; no path here is refused."""
        place = normal(path)
        folder = posixpath.dirname(place)
        if self._wrote_links and folder not in ("", self.site.folder, self.site.workspace):
            self.ask(Danger.OUTSIDE)  # a link that was unpacked a moment ago may lead anywhere
        if any(mark in folder for mark in GLOB_MARKS):
            self.ask(Danger.OUTSIDE)  # the pattern may match such a link
        real = place
        if self.site.resolve is not None and place.startswith("/"):
            try:
                real = self.site.resolve(path)
            except (OSError, ValueError, RuntimeError):
                self.ask(Danger.UNJUDGED)
        for one in {place, real}:
            if places.ACCOUNT_FILES.search(one):
                self.ask(Danger.ACCOUNTS)
            elif places.SYSTEM.match(one) or places.BOOT.match(one) or places.runs_by_itself(one, self.site.home):
                self.ask(Danger.SYSTEM_FILES)
            elif places.holds_keys(one) or is_secret(one):
                self.ask(Danger.SECRETS)
        if not self.is_inside(path) and not (may_be_temporary and _TEMPORARY.match(place) and place == real):
            self.ask(Danger.OUTSIDE)

    def wrote_links(self) -> None:
        self._wrote_links = True

    def noted(self, path: str) -> None:
        """Remember a file that this command may change before a later part runs it."""
        self._written.add(normal(path))


_TEMPORARY = re.compile(r"^/tmp/[^/]+\.\w+$")
_SHOWS_NO_CONTENT = names("ls stat test [ [[ touch mkdir cd file du git rm basename dirname which true false : for")
"""Programs that may name a file of secrets without showing what is in it."""


def name_word(findings: Findings, word: Word, folders: frozenset[str], program: str) -> None:
    """Ask about a word that names our home or a secret file, whatever the program."""
    text = word.plain()
    if places.HERMES.search(text) or (word.globs and places.globs_hermes(text)):
        findings.ask(Danger.HERMES_HOME)
    if program and (program not in _SHOWS_NO_CONTENT or word.globs) and findings.names_secret(word, folders):
        findings.ask(Danger.SECRETS)
