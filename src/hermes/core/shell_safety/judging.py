"""Judge the texts of a command line: the line itself, the scripts and the code that it runs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hermes.core.shell_safety import code, places, python_code, tree
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.findings import Findings, Site
from hermes.core.shell_safety.flow import NO_FEED, Feed, FoldersAfter
from hermes.core.shell_safety.hard_list import HARD_NAME, HARD_PROGRAMS, judge_hard
from hermes.core.shell_safety.paths import normal, some
from hermes.core.shell_safety.words import Word, braces

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST = 8
MAX_SCRIPTS = 8
MAX_TRIALS = 4
MAX_IMPORTS = 200


WalkText = Callable[
    ["Judging", tree.Parsed, "Node", str, int, Feed, frozenset[str]],
    FoldersAfter,
]


class Judging(Findings):
    """Judge one command line, and collect what is found.

    ``walk`` judges a parsed text. It is handed in because it imports the commands, which import this class.
    """

    def __init__(self, site: Site, walk: WalkText, *, is_trial: bool = False) -> None:
        super().__init__(site)
        self._walk = walk
        self._is_trial = is_trial
        self._fetches = False
        self._wrote_files = False
        self._is_activation = False
        self._scripts = 0
        self._trials = 0
        self._imports: set[str] = set()
        self.opens_outside = False
        """Whether a file outside of the workspace is opened for reading: by its descriptor it can be written."""
        self.lists_secrets = False
        """Whether a part has listed a folder in which files of secrets are: a name that is not known may be one."""

    def text(self, command: str, depth: int, folders: frozenset[str], feed: Feed = NO_FEED) -> FoldersAfter:
        """Judge a whole command line, or a text that another shell would run."""
        if depth > DEEPEST:
            self.ask(Danger.UNJUDGED)
            return FoldersAfter(folders, folders)
        self._look_at_raw(command)
        parsed = tree.parse(command)
        if not parsed.is_sound:
            self.ask(Danger.UNJUDGED)
            self._rough(command, folders)
        if parsed.root is None:
            return FoldersAfter(folders, folders)
        return self._walk(self, parsed, parsed.root, command, depth, feed, folders)

    def _look_at_raw(self, command: str) -> None:
        bare = "".join(command.split())
        if places.FORK_BOMB.search(bare) or places.FORK_WORDS.search(command):
            self.refuse("It starts copies of itself without end (a fork bomb).")
        if places.HIDDEN_COMMAND.search(command):
            self.ask(Danger.UNJUDGED)
        if _JOINED.search(command):
            self.ask(Danger.UNJUDGED)
        if places.HERMES.search(command):
            self.ask(Danger.HERMES_HOME)
        if places.SECRET_VARIABLE.search(command):
            self.ask(Danger.SECRETS)

    def _rough(self, command: str, folders: frozenset[str]) -> None:
        """Look for the hard list in a text that was not understood.

        Quotes are removed and braces expanded.
        """
        plain = re.sub(r"\\\n", "", command)
        for piece in re.split(r"[;&|\n()`]|\bthen\b|\bdo\b|\belse\b", plain)[:500]:
            if len(piece) > 2_000 or not HARD_NAME.search(piece):
                continue
            spread = [
                one
                for part in re.sub(r"['\"\\]", "", piece).split()[:200]
                for one in some(braces(part.strip("{}") if part in ("{", "}") else part))
            ]
            for at, word in enumerate(spread):
                if posixpath.basename(word) in HARD_PROGRAMS or word.startswith("mkfs"):
                    judge_hard(self, posixpath.basename(word), [Word(one) for one in spread[at + 1 :]], folders)
                    break

    # Code

    def python(self, source: str, folders: frozenset[str] = frozenset()) -> None:
        """Judge a piece of Python that runs in one of these folders."""
        folders = folders or frozenset({self.site.folder})
        self.changes()
        if places.HERMES.search(source):
            self.ask(Danger.HERMES_HOME)

        def stays_in(path: str) -> bool:
            return all(map(self.is_inside, self.paths(path, folders)))

        def imports(name: str) -> None:
            self._imported(name, folders)

        if not python_code.judge_python(source, self._code_leads_out, stays_in, imports):
            self.ask(Danger.CODE)

    def _code_leads_out(self, text: str) -> bool:
        return text.strip() not in ("/", "//", "..") and self.leads_out(text)

    def other_code(self, source: str) -> None:
        self.changes()
        if not code.is_plain_code(source, self._code_leads_out):
            self.ask(Danger.CODE)

    def script(self, path: str, depth: int, folders: frozenset[str], *, is_shell: bool) -> frozenset[str]:
        """Judge a file that the command runs; return the folders in which it may end.

        A shell script is read; every other file counts as code.
        """
        self.changes()
        self._scripts += 1
        place = normal(path)
        is_changed = self._wrote_files or place in self._written
        content = self.site.read(place) if self.site.read and not is_changed and self._scripts <= MAX_SCRIPTS else None
        if content is None or "\0" in content:
            self.ask(Danger.CODE)
            return folders
        if _ACTIVATION.search(place) and is_shell:
            # It sets PATH, which is what it is for; everything else in it is judged as usual.
            self._is_activation = True
            ends = self.text(content, depth + 1, folders)
            self._is_activation = False
            return ends.any
        first = content.partition("\n")[0]
        runs_in_shell = _SHELL_LINE.match(first) is not None if first.startswith("#!") else True
        if is_shell or runs_in_shell:
            return self.text(content, depth + 1, folders).any
        if not code.is_plain_script(content, self._code_leads_out, is_python="python" in first):
            self.ask(Danger.CODE)
        return folders

    def code_file(self, path: str) -> None:
        """Judge a file of code for an interpreter, if it can be read."""
        self.changes()
        place = normal(path)
        if place in self._written or self._wrote_files or not self.is_inside(path):
            self.ask(Danger.CODE)
            return
        content = self.site.read(place) if self.site.read else None
        is_python = place.endswith(".py")
        if content is not None and not code.is_plain_script(content, self._code_leads_out, is_python=is_python):
            self.ask(Danger.CODE)

    def _imported(self, name: str, folders: frozenset[str]) -> None:
        """Judge a module that code imports: a file of that name in the folder comes first."""
        if self.site.read is None or name in self._imports:
            return
        self._imports.add(name)
        path = name.replace(".", "/")
        stems = {path, path.partition("/")[0]}
        for folder in folders:
            for file in [f"{stem}{ending}" for stem in stems for ending in _MODULE_ENDINGS]:
                place = normal(f"{folder}/{file}" if folder else file)
                if place in self._written or (self._wrote_files and name not in python_code.SAFE_MODULES):
                    self.ask(Danger.CODE)
                content = self.site.read(place)
                if content is None:
                    continue
                if not file.endswith(".py") or "\0" in content or len(self._imports) > MAX_IMPORTS:
                    self.ask(Danger.CODE)
                else:
                    self.python(content, folders)

    def module(self, name: str) -> None:
        """Judge a Python module: a file of that name in the folder is code that runs."""
        path = name.replace(".", "/")
        for folder in {self.site.folder, self.site.workspace}:
            for file in (f"{path}.py", f"{path}/__init__.py", f"{path}/__main__.py"):
                self.code_file(f"{folder}/{file}" if folder else file)

    def wrote_files(self) -> None:
        self._wrote_files = True

    def may_set(self, name: str) -> bool:
        """Tell whether this variable may be set here.

        ``activate`` of a virtual environment sets PATH.
        """
        return self._is_activation and name in ("PATH", "PS1", "PYTHONHOME")

    def trial(self, words: Sequence[Word], folders: frozenset[str], depth: int) -> None:
        """Ask if these words, run by an unknown program, would be refused."""
        self._trials += 1
        if self._is_trial or self._trials > MAX_TRIALS:
            return
        other = Judging(self.site, self._walk, is_trial=True)
        judge_hard(other, posixpath.basename(words[0].text), words[1:], folders)
        if other.refusal or depth > DEEPEST:
            self.ask(Danger.UNJUDGED)

    @property
    def is_trial(self) -> bool:
        return self._is_trial

    @property
    def fetches(self) -> bool:
        return self._fetches

    def fetched(self) -> None:
        self._fetches = True

    def swap_fetches(self, value: bool) -> bool:
        before, self._fetches = self._fetches, value
        return before


_JOINED = re.compile(r"[^\s\\]\\\n[^\s#]")
"""A word that goes on behind the end of a line: the grammar takes it for two."""
_ACTIVATION = re.compile(r"/[\w.-]*env[\w.-]*/bin/activate$")
_MODULE_ENDINGS = (".py", ".pyc", ".so", "/__init__.py")
_SHELL_LINE = re.compile(r"#!\s*\S*?(?:env\s+(?:-S\s+)?)?(?:\S*/)?(?:ba|da|z|k|a)?sh\b")
