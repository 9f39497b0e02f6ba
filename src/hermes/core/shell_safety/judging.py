"""Collect what is found in a command line: dangers, refusals, files it writes.

The *hard list* is the set of commands that are refused to everybody: deleting the root folder, formatting the disk.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from hermes.core.dataclasses import dataclass
from hermes.core.shell_safety import code, dangerous, places, tree
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.places import is_secret, names
from hermes.core.shell_safety.words import Word, braces

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST = 8
MAX_FOLDERS = 8
MAX_SCRIPTS = 8
MAX_TRIALS = 4
MAX_IMPORTS = 200
NOWHERE = "\ue0fe"
"""A folder that is not known."""

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


@dataclass(frozen=True, slots=True)
class FoldersAfter:
    """The folders that a shell may be in after a command: on success, on failure."""

    ok: frozenset[str]
    fail: frozenset[str]

    @property
    def any(self) -> frozenset[str]:
        return self.ok | self.fail


@dataclass(frozen=True, slots=True)
class Feed:
    """What reaches the standard input of a command."""

    is_piped: bool = False
    is_fetched: bool = False
    is_odd: bool = False
    """An earlier command of the pipe names something that would need a question."""
    text: str | None = None


NO_FEED = Feed()

WalkText = Callable[
    ["Judging", tree.Parsed, "Node", str, int, Feed, frozenset[str]],
    FoldersAfter,
]


class Judging:
    """The findings about one command line.

    ``walk`` judges a parsed text. It is handed in because it imports the commands, which import this class.
    """

    def __init__(self, site: Site, walk: WalkText, *, is_trial: bool = False) -> None:
        self._walk = walk
        self.found: set[Danger] = set()
        self.refusal = ""
        self.only_reads = True
        self._site = site
        self._is_trial = is_trial
        self._fetches = False
        self._written: set[str] = set()
        self._wrote_files = False
        self._wrote_links = False
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

    def ask(self, danger: Danger) -> None:
        self.found.add(danger)

    def changes(self) -> None:
        self.only_reads = False

    def refuse(self, reason: str) -> None:
        self.refusal = self.refusal or f"{reason} This is refused to everybody; no approval changes it."

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
            if len(piece) > 2_000 or not _HARD_NAME.search(piece):
                continue
            spread = [
                one
                for part in re.sub(r"['\"\\]", "", piece).split()[:200]
                for one in some(braces(part.strip("{}") if part in ("{", "}") else part))
            ]
            for at, word in enumerate(spread):
                if posixpath.basename(word) in _HARD_PROGRAMS or word.startswith("mkfs"):
                    self.hard(posixpath.basename(word), [Word(one) for one in spread[at + 1 :]], folders)
                    break

    # Places

    def paths(self, text: str, folders: frozenset[str]) -> list[str]:
        """Return where a path leads from each folder, without following links."""
        if text.startswith("~"):
            first, slash, rest = text.partition("/")
            base = (self._site.home or "~") if first == "~" else first
            return [base + slash + rest]
        if text.startswith("/"):
            return [text]
        return [f"{folder}/{text}" if folder else text for folder in folders]

    def is_inside(self, path: str) -> bool:
        """Tell whether a path leads into the workspace, by its text and its links."""
        if not lies_in(normal(path), self._site.workspace):
            return False
        if self._site.resolve is None or not path.startswith("/"):
            return True
        if any(mark in path for mark in _GLOB_MARKS):
            path = before_pattern(path)
        try:
            return lies_in(self._site.resolve(path), self._site.workspace)
        except (OSError, ValueError, RuntimeError):
            return False

    def real(self, path: str) -> str:
        """Return the real path, or NOWHERE if it cannot be resolved."""
        if self._site.resolve is None:
            return normal(path)
        try:
            return self._site.resolve(path)
        except (OSError, ValueError, RuntimeError):
            return NOWHERE

    def leads_out(self, text: str) -> bool:
        """Tell whether a text names a place outside, or one that needs a question."""
        folders = frozenset({self._site.folder})
        if len(text) < 300 and not re.search(r"\s", text) and places.runs_by_itself(normal(text), self._site.home):
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
        if places.DISKS.match(place) or place in self._site.mounted:
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
        if self._wrote_links and folder not in ("", self._site.folder, self._site.workspace):
            self.ask(Danger.OUTSIDE)  # a link that was unpacked a moment ago may lead anywhere
        if any(mark in folder for mark in _GLOB_MARKS):
            self.ask(Danger.OUTSIDE)  # the pattern may match such a link
        real = place
        if self._site.resolve is not None and place.startswith("/"):
            try:
                real = self._site.resolve(path)
            except (OSError, ValueError, RuntimeError):
                self.ask(Danger.UNJUDGED)
        for one in {place, real}:
            if places.ACCOUNT_FILES.search(one):
                self.ask(Danger.ACCOUNTS)
            elif places.SYSTEM.match(one) or places.BOOT.match(one) or places.runs_by_itself(one, self._site.home):
                self.ask(Danger.SYSTEM_FILES)
            elif places.holds_keys(one) or is_secret(one):
                self.ask(Danger.SECRETS)
        if not self.is_inside(path) and not (may_be_temporary and _TEMPORARY.match(place) and place == real):
            self.ask(Danger.OUTSIDE)

    # The hard list

    def hard(self, program: str, words: Sequence[Word], folders: frozenset[str]) -> None:
        """Refuse a command of the hard list."""
        texts = [word.text for word in words]
        is_recursive = dangerous.recursive(texts)
        named = [word for word in words if not word.text.startswith("-")]
        found = [normal(path) for word in named for path in self.paths(word.text, folders)]
        match program:
            case "rm" | "srm" if is_recursive:
                self._deleted(words, folders)
            case "find" | "fd" if {"-delete", "rm", "/bin/rm", "/usr/bin/rm", "shred"} & set(texts):
                self._found_and_deleted(words, folders)
            case "chmod" | "chown" | "chgrp" if is_recursive:
                self._changed(words, folders)
            case "mv" if any(places.is_root(place) for place in found[:-1]):
                self.refuse("It moves a folder away that this machine needs to run.")
            case "dd":
                found = [
                    normal(path) for text in texts if text.startswith("of=") for path in self.paths(text[3:], folders)
                ]
                for place in found:
                    self.written(place)
                return
            case _ if program.startswith(("mkfs", "mke2fs", "mkswap", "newfs")):
                if any(places.FIRST_DISKS.match(place) or place in self._site.mounted for place in found):
                    self.refuse("It formats the disk this machine runs from.")
            case _:
                pass
        if program in _OVERWRITERS:
            target = option_text(words, "-t", "--target-directory")
            for place in ([normal(path) for path in self.paths(target, folders)] if target else []) + found:
                if places.DISKS.match(place) or place in self._site.mounted:
                    if program not in ("cp", "install") or place == found[-1]:
                        self.refuse(f"It writes over a disk ({place}).")
                elif places.BOOT.match(place) and (program not in ("cp", "install") or target or place == found[-1]):
                    self.refuse(f"It writes over what starts this machine ({place}).")

    def _deleted(self, words: Sequence[Word], folders: frozenset[str]) -> None:
        if any(word.text == "--no-preserve-root" for word in words):
            self.refuse("It is told to delete the root folder (--no-preserve-root).")
        for word in words:
            if word.text.startswith("-") and word.text != "-":
                continue
            for place in map(normal, self.paths(word.text, folders)):
                if places.is_root(place) and word.is_tame:
                    self.refuse(f"It deletes {place}, which this machine needs to run.")
                elif self._is_all(place, word, folders):
                    self.ask(Danger.DELETE_ALL)

    def _found_and_deleted(self, words: Sequence[Word], folders: frozenset[str]) -> None:
        narrowed = any(word.text in _NARROWS_FIND for word in words)
        for word in find_starts(words):
            for place in map(normal, self.paths(word.text, folders)):
                if not narrowed and places.is_root(place):
                    self.refuse(f"It deletes all of {place}, which this machine needs to run.")
                elif not narrowed and self._is_all(place, word, folders):
                    self.ask(Danger.DELETE_ALL)

    def _changed(self, words: Sequence[Word], folders: frozenset[str]) -> None:
        for word in words:
            if word.text.startswith("-") or "/" not in word.text or not word.is_tame:
                continue
            for place in map(normal, self.paths(word.text, folders)):
                if places.is_root(place):
                    self.refuse(f"It changes the permissions of all of {place}, after which nothing would run.")

    def _is_all(self, place: str, word: Word, folders: frozenset[str]) -> bool:
        """Tell whether a path is the whole working folder, a folder above it, or a home."""
        text = word.text.rstrip("/")
        if text in (".", "..", "*", "./*", "~", "~/*", ".*", "./.*") or re.fullmatch(r"(\.\./?)+\*?", text):
            return True
        bare = place.rstrip("/*").rstrip("/") or "/"
        home = self._site.home
        if bare == "~" or (home and bare == home) or re.fullmatch(r"/(home|Users)/[^/]+", bare):
            return True
        return any(folder and (bare == folder or folder.startswith(f"{bare}/")) for folder in folders)

    # Code

    def python(self, source: str, folders: frozenset[str] = frozenset()) -> None:
        """Judge a piece of Python that runs in one of these folders."""
        folders = folders or frozenset({self._site.folder})
        self.changes()
        if places.HERMES.search(source):
            self.ask(Danger.HERMES_HOME)

        def stays_in(path: str) -> bool:
            return all(map(self.is_inside, self.paths(path, folders)))

        def imports(name: str) -> None:
            self._imported(name, folders)

        if not code.judge_python(source, self._code_leads_out, stays_in, imports):
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
        content = (
            self._site.read(place) if self._site.read and not is_changed and self._scripts <= MAX_SCRIPTS else None
        )
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
        content = self._site.read(place) if self._site.read else None
        is_python = place.endswith(".py")
        if content is not None and not code.is_plain_script(content, self._code_leads_out, is_python=is_python):
            self.ask(Danger.CODE)

    def _imported(self, name: str, folders: frozenset[str]) -> None:
        """Judge a module that code imports: a file of that name in the folder comes first."""
        if self._site.read is None or name in self._imports:
            return
        self._imports.add(name)
        path = name.replace(".", "/")
        stems = {path, path.partition("/")[0]}
        for folder in folders:
            for file in [f"{stem}{ending}" for stem in stems for ending in _MODULE_ENDINGS]:
                place = normal(f"{folder}/{file}" if folder else file)
                if place in self._written or (self._wrote_files and name not in code.SAFE_MODULES):
                    self.ask(Danger.CODE)
                content = self._site.read(place)
                if content is None:
                    continue
                if not file.endswith(".py") or "\0" in content or len(self._imports) > MAX_IMPORTS:
                    self.ask(Danger.CODE)
                else:
                    self.python(content, folders)

    def module(self, name: str) -> None:
        """Judge a Python module: a file of that name in the folder is code that runs."""
        path = name.replace(".", "/")
        for folder in {self._site.folder, self._site.workspace}:
            for file in (f"{path}.py", f"{path}/__init__.py", f"{path}/__main__.py"):
                self.code_file(f"{folder}/{file}" if folder else file)

    def wrote_files(self) -> None:
        self._wrote_files = True

    def may_set(self, name: str) -> bool:
        """Tell whether this variable may be set here.

        ``activate`` of a virtual environment sets PATH.
        """
        return self._is_activation and name in ("PATH", "PS1", "PYTHONHOME")

    def wrote_links(self) -> None:
        self._wrote_links = True

    def noted(self, path: str) -> None:
        """Remember a file that this command may change before a later part runs it."""
        self._written.add(normal(path))

    def trial(self, words: Sequence[Word], folders: frozenset[str], depth: int) -> None:
        """Ask if these words, run by an unknown program, would be refused."""
        self._trials += 1
        if self._is_trial or self._trials > MAX_TRIALS:
            return
        other = Judging(self._site, self._walk, is_trial=True)
        other.hard(posixpath.basename(words[0].text), words[1:], folders)
        if other.refusal or depth > DEEPEST:
            self.ask(Danger.UNJUDGED)

    @property
    def is_trial(self) -> bool:
        return self._is_trial

    @property
    def site(self) -> Site:
        return self._site

    @property
    def fetches(self) -> bool:
        return self._fetches

    def fetched(self) -> None:
        self._fetches = True

    def swap_fetches(self, value: bool) -> bool:
        before, self._fetches = self._fetches, value
        return before


def name_word(judging: Judging, word: Word, folders: frozenset[str], program: str) -> None:
    """Ask about a word that names our home or a secret file, whatever the program."""
    text = word.plain()
    if places.HERMES.search(text) or (word.globs and places.globs_hermes(text)):
        judging.ask(Danger.HERMES_HOME)
    if program and (program not in _SHOWS_NO_CONTENT or word.globs) and judging.names_secret(word, folders):
        judging.ask(Danger.SECRETS)


def normal(path: str) -> str:
    """Return a path without ``.``, ``..`` and doubled slashes, by its text."""
    if not path:
        return ""
    if path.startswith("/"):
        return "/" + posixpath.normpath(path).lstrip("/")
    return posixpath.normpath(path)


def lies_in(place: str, workspace: str) -> bool:
    if not workspace:
        return not place.startswith(("/", "~", "../", NOWHERE)) and place != ".."
    return place == workspace or place.startswith(f"{workspace.rstrip('/')}/")


def few(folders: frozenset[str]) -> frozenset[str]:
    return folders if len(folders) <= MAX_FOLDERS else frozenset({NOWHERE})


def some(texts: Iterable[str]) -> list[str]:
    return list(islice(texts, 64))


def find_starts(words: Sequence[Word]) -> list[Word]:
    """Return the folders that ``find`` starts from."""
    found = []
    for word in words:
        if word.text.startswith(("-", "(", "!")):
            if word.text in ("-H", "-L", "-P") or word.text.startswith(("-O", "-D")):
                continue
            break
        found.append(word)
    return found or [Word(".")]


def is_plain_name(word: Word) -> bool:
    """Tell whether a word is no option and stays below its folder.

    The same must hold for all that a pattern in it may match.
    """
    text = word.text
    if not word.is_tame or text.startswith(("-", "/", "~")) or ".." in text:
        return False
    if not word.globs:
        return True
    if re.search(r"(^|/)\.[*?\[]", text):
        return False
    return text[:1] not in "*?[" or "." in text or "/" in text


def option_text(words: Sequence[Word], *wanted: str) -> str:
    """Return the value of an option: the next word, or the rest of the same word."""
    for number, word in enumerate(words):
        if word.text in wanted and number + 1 < len(words):
            return words[number + 1].text
        for name in wanted:
            if word.text.startswith(f"{name}=") or (
                len(name) == 2 and word.text.startswith(name) and len(word.text) > 2
            ):
                return word.text[len(name) :].lstrip("=")
    return ""


_TOKEN = re.compile(
    r"(?:^-{1,2}[A-Za-z-]{0,3}|^|(?<=[=:,\s\"'()<>|;&{}\[\]@+!`]))((?:/|~|\.\.(?=/|$|[\s\"'():;,<>|"
    r"&]))[^\s\"'():;,<>|&]*)"
)
_UPWARD = re.compile(
    r"(?:^|[=:,\s\"'(])([\w.@%+-][^\s\"'():;,<>|&=]*/\.\.(?=/|$|[\s\"'():;,<>|&])(?:/[^\s\"'():;,<>|&]*)?)"
)


def path_tokens(text: str) -> list[str]:
    """Find paths in a text that may lead out: absolute, of a home, or upwards."""
    if "/" not in text and "~" not in text and ".." not in text:
        return []
    if len(text) > 20_000:
        text = text[:20_000]
    found = [token for token in _TOKEN.findall(_ADDRESS.sub(" ", text)) if token not in ("~", "/") or token == text]
    if "/.." in text:
        found += _UPWARD.findall(text)
    return found


_JOINED = re.compile(r"[^\s\\]\\\n[^\s#]")
"""A word that goes on behind the end of a line: the grammar takes it for two."""
_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*://)[^\s\"']*")
_ACTIVATION = re.compile(r"/[\w.-]*env[\w.-]*/bin/activate$")
_MODULE_ENDINGS = (".py", ".pyc", ".so", "/__init__.py")
_GLOB_MARKS = "*?["
_TEMPORARY = re.compile(r"^/tmp/[^/]+\.\w+$")
_SHELL_LINE = re.compile(r"#!\s*\S*?(?:env\s+(?:-S\s+)?)?(?:\S*/)?(?:ba|da|z|k|a)?sh\b")
_OVERWRITERS = names("tee cp mv shred wipefs blkdiscard truncate install sponge ln rm unlink badblocks")
_NARROWS_FIND = names("-name -iname -path -ipath -mtime -mmin -size -newer -regex -user -empty -atime -ctime")
_HARD_PROGRAMS = names("rm srm find dd chmod chown chgrp mv mke2fs mkswap tee cp shred wipefs truncate")
_HARD_NAME = re.compile(r"r.*m|find|dd|ch(?:mod|own|grp)|mv|mk|tee|cp|shred|wipefs|truncate")
_SHOWS_NO_CONTENT = names("ls stat test [ [[ touch mkdir cd file du git rm basename dirname which true false : for")
"""Programs that may name a file of secrets without showing what is in it."""


def before_pattern(path: str) -> str:
    """Return the part of a path before its first pattern."""
    kept = []
    for part in path.split("/"):
        if any(mark in part for mark in _GLOB_MARKS):
            break
        kept.append(part)
    return "/".join(kept) or "/"
