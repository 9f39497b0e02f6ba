"""Judge the words of a simple command: what every program has in common."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from hermes.core.shell_safety import dangerous, places, running
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.findings import name_word
from hermes.core.shell_safety.flow import Feed, FoldersAfter
from hermes.core.shell_safety.judging import Judging
from hermes.core.shell_safety.paths import NOWHERE, few, normal, path_tokens
from hermes.core.shell_safety.places import names
from hermes.core.shell_safety.words import Word, is_plain_name, option_text


class ShellState(Protocol):
    """What a command may read and change of the shell that runs it."""

    @property
    def moves(self) -> bool:
        """Tell whether the text changes the working folder somewhere."""

    def poison(self) -> None:
        """Treat every variable as unknown from here on."""


class SimpleCommand:
    """A command that is judged, and the rules for every program.

    ``is_odd``: it names something that would need a question if another program ran it.
    """

    def __init__(self, walk: ShellState, judging: Judging, folders: frozenset[str], feed: Feed, depth: int) -> None:
        self._walk = walk
        self._judging = judging
        self._folders = folders
        self._feed = feed
        self._depth = depth
        self.is_odd = False

    def judge(self, words: Sequence[Word], level: int = 0) -> FoldersAfter:
        """Judge a command; rules call this for a command inside another one."""
        raise NotImplementedError

    def _ask(self, danger: Danger) -> None:
        self._judging.ask(danger)

    def _name_all(self, words: Sequence[Word], program: str) -> None:
        for word in words:
            name_word(self._judging, word, self._folders, program)

    def _rules(self, program: str, words: Sequence[Word]) -> None:
        texts = [word.text for word in words]
        name = "mkfs" if program.startswith(("mkfs.", "newfs_")) else program
        name = "pip" if re.fullmatch(r"pip[\d.]+", name) else name
        found = {rule.danger for rule in dangerous.rules_of(name) if rule.test(texts)}
        if found & {Danger.SERVICES, Danger.KILL} and any("hermes" in text.lower() for text in texts):
            found.add(Danger.GATEWAY)
        for danger in found:
            self._ask(danger)
        if name == "hermes":
            self._hermes(texts)

    def _hermes(self, texts: Sequence[str]) -> None:
        """Judge commands of Hermes; one that answers an approval is refused."""
        named = [text for text in texts if not text.startswith("-")]
        answers = any(one == "approvals" and other not in ("list", "grants") for one, other in pairwise(named))
        if answers or any(places.ANSWERS_ITSELF.search(text) for text in texts):
            self._judging.refuse("It answers a question that the agent itself has asked.")
        elif named[:1] == ["gateway"] and named[1:2] != ["status"]:
            self._ask(Danger.GATEWAY)
        elif not _OWN_READING.fullmatch(" ".join(text for text in texts if text != "--json")):
            # All else changes settings, sends messages, or is an agent of its own under whatever settings it is given.
            self._ask(Danger.HERMES_HOME)

    def _text_of(self, words: Sequence[Word]) -> frozenset[str]:
        """Judge a text that a shell reads; ask if a part of it is not known."""
        self._judging.changes()
        folders = self._folders | {NOWHERE} if self._walk.moves else self._folders
        ends = self._judging.text(" ".join(word.text for word in words), self._depth + 1, folders)
        if not all(word.is_known or (word.is_quoted and word.is_tame) for word in words):
            self._ask(Danger.NETWORK_TO_SHELL if self._judging.fetches else Danger.UNJUDGED)
        return ends.any

    def _sourced(self, words: Sequence[Word]) -> frozenset[str]:
        """Judge a script by name, for ``.`` or for a shell."""
        self._judging.changes()
        ends = self._folders
        if not words:
            return ends
        word = words[0]
        if word.text.startswith("/dev/fd/"):
            self._ask(Danger.NETWORK_TO_SHELL if self._judging.fetches or self._feed.is_fetched else Danger.UNJUDGED)
        elif word.text in ("/dev/stdin", "-"):
            self._fed()
        elif not word.is_known:
            self._ask(Danger.UNJUDGED)
        else:
            for path in self._judging.paths(word.text, self._folders):
                ends |= self._judging.script(path, self._depth, self._folders, is_shell=True)
        self._scan("sh", words[1:], 1)
        return few(ends)

    def _fed(self) -> None:
        """Judge a shell that reads its standard input."""
        self._judging.changes()
        if self._feed.is_fetched:
            self._ask(Danger.NETWORK_TO_SHELL)
        elif self._feed.text is not None:
            self._judging.text(self._feed.text, self._depth + 1, self._folders)
        elif self._feed.is_piped:
            self._ask(Danger.UNJUDGED)

    def _words_of_runner(self, words: Sequence[Word], level: int) -> None:
        """Judge the words of a wrapper with unknown options: each may be the command."""
        for number, word in enumerate(words):
            if posixpath.basename(word.text) in running.DANGEROUS_NAMES:
                self.judge(words[number:], level + 1)
                return

    def _is_home_folder(self) -> bool:
        """Tell whether every folder it may run in belongs to the workspace."""
        return all(folder != NOWHERE and (not folder or self._judging.is_inside(folder)) for folder in self._folders)

    def _holds_settings(self, words: Sequence[Word]) -> bool:
        """Tell whether unpacking here may replace a start file or a git hook."""
        read = self._judging.site.read
        target = next(
            (found for name in ("-C", "--directory", "-d") if (found := option_text(words, name))),
            ".",
        )
        return any(
            f"{self._judging.site.home or '~'}/".startswith(f"{place.rstrip('/')}/")
            or (read is not None and (read(f"{place}/.git/HEAD") is not None or read(f"{place}/.git") is not None))
            for place in (normal(path) for path in self._judging.paths(target, self._folders))
        )

    def _hold_secrets(self, words: Sequence[Word]) -> bool:
        """Tell whether one of these folders is a home, above one, or hidden in it."""
        home = self._judging.site.home or "~"
        return any(
            f"{home}/".startswith(f"{place.rstrip('/')}/")
            or place.startswith(f"{home}/.")
            or place in ("/root", "/home", "/proc")
            for word in words
            for place in (normal(path) for path in self._judging.paths(word.text, self._folders))
        )

    def _generic(self, program: str, words: Sequence[Word], level: int) -> None:
        """Judge a program that may change files.

        A word asks if it leads out of the workspace, is not known, or names a dangerous program.
        """
        self._judging.changes()
        is_make = program in ("make", "gmake") and not any(
            re.match(r"-\w*f|--f|--m|--ev|-E", word.text) for word in words
        )
        if self._feed.is_piped and program in running.READS_COMMANDS and program != "patch" and not is_make:
            self._ask(Danger.UNJUDGED)
        if program not in _TAKES_TEXT and program not in running.OWN_VERBS:
            fed = self._feed.text or ""
            if self._feed.is_odd or running.NAMES_IN_TEXT.search(fed) or self._judging.leads_out(fed):
                self._ask(Danger.UNJUDGED)
        if not self._is_home_folder():
            self._ask(Danger.OUTSIDE)
        self._scan(program, words, level)

    def _scan(self, program: str, words: Sequence[Word], level: int, *, may_be_unknown: bool = True) -> None:
        has_verb = program in running.OWN_VERBS
        in_options = True
        for number, word in enumerate(words):
            text = word.text
            if text == "--" and program not in ("npm", "pnpm", "yarn", "cargo"):
                in_options = False
            is_verb = has_verb and not text.startswith("-")
            if is_verb:
                has_verb = False
            if (
                may_be_unknown
                and not word.is_known
                and (
                    not word.is_tame
                    or (
                        word.globs
                        and in_options
                        and word.may_be_option()
                        and program in _GLOB_IS_OPTION
                        and not (program in FILE_TOOLS and is_plain_name(word))
                    )
                )
            ):
                self._ask(Danger.UNJUDGED)
            if not is_verb and posixpath.basename(text) in running.DANGEROUS_NAMES and program not in FILE_TOOLS:
                self._ask(Danger.UNJUDGED)
                self._judging.trial(words[number : number + 50], self._folders, level)
            elif (
                re.search(r"\s|=", text)
                and running.NAMES_IN_TEXT.search(text)
                and not text.startswith(("http://", "https://"))
            ):
                self._ask(Danger.UNJUDGED)
            self._scan_places(program, word)

    def _scan_places(self, program: str, word: Word) -> None:
        text = word.text
        if _COMPILES.match(text):
            return
        for token in path_tokens(text):
            for path in self._judging.paths(token, self._folders):
                if places.HARMLESS_DEVICES.match(normal(path)):
                    continue
                if not self._judging.is_inside(path):
                    self._judging.softly_written(path)
        if "://" in text:
            return
        if self._judging.site.resolve is not None and word.is_tame and re.match(r"-|\w+=", text):
            for value in {text.partition("=")[2], *(text[at:] for at in (2, 3) if text[:1] == "-")} - {""}:
                if not all(map(self._judging.is_inside, self._judging.paths(value, self._folders))):
                    self._ask(Danger.OUTSIDE)
        if text.startswith("-"):
            return
        if word.globs and program in FILE_TOOLS and any(mark in posixpath.dirname(text) for mark in "*?["):
            self._ask(Danger.OUTSIDE)  # the pattern may match a link
        for path in self._judging.paths(text, self._folders) if word.is_tame else ():
            if (places.runs_by_itself(normal(path), self._judging.site.home) and program not in ("git",)) or (
                program == "git" and re.search(r"(^|/)\.git(/|$)", text)
            ):
                self._ask(Danger.SYSTEM_FILES)
            elif self._judging.site.resolve is not None and not self._judging.is_inside(path):
                self._ask(Danger.OUTSIDE)
            elif program in FILE_TOOLS or program in WRITES_FILES:
                self._judging.noted(path)


_OWN_READING = re.compile(
    r"(-h|--help|-V|--version|help|version|status|doctor|gateway status)|(logs|trace)( \S+)*|completion( \w+)?|"
    r"approvals( list| grants)?|(pairing|people|config|tools|skills|sessions|api-key|model)( list)?|"
    r"config (get|explain|show|path)( \S+)*|\w[\w-]*( \w[\w-]*)? (-h|--help)"
)
"""What our own command line only shows, as all of its words."""
WRITES_FILES = names(
    "git tar unzip curl wget cp mv rsync patch ln 7z 7za cpio pax sed install ar unrar gunzip bunzip2 xz"
)
FILE_TOOLS = names("rm cp mv touch ln mkdir rmdir chmod chown install truncate tee cat")
_GLOB_IS_OPTION = names(
    "rm tar rsync chmod chown chgrp zip 7z git find sort scp ssh mv cp ln install rmdir unlink touch truncate dd "
    "tee find wget curl"
)
_TAKES_TEXT = names(
    "tee git patch dd tail split csplit gzip xz bzip2 zstd pbcopy xclip wl-copy xsel tar zip sponge mail sendmail pv"
)
_COMPILES = re.compile(r"-(I|L|isystem|isysroot|W[lap],|D)\S*$|--sysroot=/usr")
