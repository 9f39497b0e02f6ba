"""Judge one simple command: a program and its words."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol

from hermes.core.shell_safety import dangerous, places, reading, running
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.code import INTERPRETERS
from hermes.core.shell_safety.judging import (
    DEEPEST,
    NOWHERE,
    Feed,
    FoldersAfter,
    Judging,
    few,
    is_plain_name,
    name_word,
    normal,
    option_text,
    path_tokens,
)
from hermes.core.shell_safety.places import names
from hermes.core.shell_safety.words import SPLITS, UNKNOWN, Word


class ShellState(Protocol):
    """What a command may know and change of the shell that runs it."""

    @property
    def moves(self) -> bool:
        """Tell whether the text changes its folder somewhere."""

    def poison(self) -> None:
        """Take no variable for known from here on."""


class CommandRun:
    """``is_odd``: it names something that would need a question if another program ran it."""

    def __init__(self, walk: ShellState, judging: Judging, folders: frozenset[str], feed: Feed, depth: int) -> None:
        self._walk = walk
        self._judging = judging
        self._folders = folders
        self._feed = feed
        self._depth = depth
        self.is_odd = False

    def judge(self, words: Sequence[Word], level: int = 0) -> FoldersAfter:
        """Judge a command, looking through what only runs another one."""
        same = FoldersAfter(self._folders, self._folders)
        if level > DEEPEST or not words:
            if words:
                self._ask(Danger.UNJUDGED)
            return same
        first = words[0]
        for word in words:
            if not word.is_known or path_tokens(word.text):
                self.is_odd = True
        if (
            (first.globs and first.text not in ("[", "[["))
            or not first.is_known
            or not first.text.isascii()
            or not first.text
        ):
            self._judging.changes()
            self._ask(Danger.UNJUDGED)
            self._name_all(words[1:], "?")
            return same
        if "/" in first.text and not _FOUND_PROGRAMS.search(first.text):
            self._own_program(first, words[1:], level)
            return same
        program = posixpath.basename(first.text)
        return self._program(program, words[1:], level)

    def _ask(self, danger: Danger) -> None:
        self._judging.ask(danger)

    def _name_all(self, words: Sequence[Word], program: str) -> None:
        for word in words:
            name_word(self._judging, word, self._folders, program)

    # Programs

    def _own_program(self, first: Word, words: Sequence[Word], level: int) -> None:
        """A program by its path: a script of the workspace is read."""
        program = posixpath.basename(first.text)
        self._rules(program, words)
        self._judging.hard(program, words, self._folders)
        for path in self._judging.paths(first.text, self._folders):
            self._judging.script(path, self._depth, self._folders, is_shell=False)
        self._name_all(words, program)
        self._generic(program, words, level)

    def _program(self, program: str, words: Sequence[Word], level: int) -> FoldersAfter:
        same = FoldersAfter(self._folders, self._folders)
        self._name_all(words, program)
        if program in running.AS_ROOT:
            self._ask(Danger.ROOT)
        if (
            program in running.DETACHERS
            and not reading.only_reads(program, words)
            and not _LISTS.fullmatch(" ".join(word.text for word in words))
        ):
            self._ask(Danger.DETACHES)
        self._rules(program, words)
        self._judging.hard(program, words, self._folders)
        if program in running.FETCHERS:
            self._judging.fetched()
        if program in ("cd", "pushd", "popd"):
            return self._change_folder(program, words)
        if program in _BUILTINS:
            ends = few(self._folders | self._builtin(program, words, level))
            return FoldersAfter(ends, ends)
        if program in running.WRAPPERS:
            ends = self._wrapper(program, words, level)
            return FoldersAfter(few(ends | self._folders), same.fail) if program in _IN_THIS_SHELL else same
        if program in running.SHELLS or program in ("su", "runuser"):
            self._shell(program, words, level)
            return same
        if (kind := interpreter(program)) is not None:
            self._interpreter(kind, words, level)
            return same
        if reading.only_reads(program, words):
            self._reader(program, words)
            return same
        self._judging.changes()
        if any(re.match(_OPTIONS_THAT_RUN.get(program, r"(?!)"), word.text) for word in words):
            self._ask(Danger.UNJUDGED)
        match program:
            case "tar" | "bsdtar":
                self._tar(words, level)
            case "ssh" | "autossh":
                self._ssh(words)
            case "find" | "fd" | "fdfind":
                self._find(words, level)
            case "sed":
                self._sed(words)
            case "awk" | "gawk" | "mawk" | "nawk":
                self._ask(Danger.UNJUDGED)  # it runs programs, writes files, or cannot be told
            case "cp":
                self._copy(words, level)
            case "curl" | "wget":
                self._fetch(program, words, level)
            case "kill":
                self._kill(words)
            case "run-parts":
                self._ask(Danger.CODE)
                self._generic(program, words, level)
            case "git":
                self._git(words, level)
            case _:
                self._generic(program, words, level)
        if program in _WRITES_FILES:
            self._judging.wrote_files()
        if (
            program in _WRITES_ANYWHERE
            and not (
                program in ("tar", "bsdtar") and not any(re.match(r"-?\w*x|--(ext|get)", one.text) for one in words)
            )
            and self._holds_settings(words)
        ):
            self._ask(Danger.SYSTEM_FILES)
        if program in _UNPACKS and (
            program != "cp"
            or any(re.match(r"-\w*[aRrdP]|--(archive|rec|no-deref|preserve)", word.text) for word in words)
        ):
            self._judging.wrote_links()
        return same

    def _holds_settings(self, words: Sequence[Word]) -> bool:
        """Whether what is unpacked may replace a start file of a home, or a hook of a repository."""
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

    def _reader(self, program: str, words: Sequence[Word]) -> None:
        """A reader changes nothing; what it shows may still be secret: all of a home, or a hidden folder in it."""
        texts = [word.text for word in words]
        named = [word for word in words if not word.text.startswith("-")]
        if program in _LISTERS:
            starts = _find_starts(words) if program == "find" else named[program in ("fd", "fdfind") :]
            if program in ("locate", "mlocate", "plocate") or self._hold_secrets(starts or [Word(".")]):
                self._judging.lists_secrets = True
        if self._judging.lists_secrets and program in _SHOWS_FILES and any(not word.is_tame for word in words):
            self._ask(Danger.SECRETS)
        if program in ("rg", "ag", "ack"):
            is_deep, sees_hidden = True, any(re.match(r"--hidden|-\w*[u.]|--unrestr", text) for text in texts)
        elif program in ("grep", "egrep", "fgrep", "diff", "colordiff"):
            is_deep = sees_hidden = dangerous.recursive(texts) or any(
                re.match(r"-\w*d|--dir|--rec|--deref|recurse", text) for text in texts
            )
        else:
            return
        looked_at = named if program in ("diff", "colordiff") else named[1:] or ([Word(".")] if sees_hidden else [])
        if is_deep and self._hold_secrets(looked_at):
            self._ask(Danger.SECRETS)

    def _hold_secrets(self, words: Sequence[Word]) -> bool:
        """Whether one of these folders is a home, above one, or a hidden folder in it."""
        home = self._judging.site.home or "~"
        return any(
            f"{home}/".startswith(f"{place.rstrip('/')}/")
            or place.startswith(f"{home}/.")
            or place in ("/root", "/home", "/proc")
            for word in words
            for place in (normal(path) for path in self._judging.paths(word.text, self._folders))
        )

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
        """Our own commands. The agent must not answer its own questions, whoever would allow it to."""
        named = [text for text in texts if not text.startswith("-")]
        answers = any(one == "approvals" and other not in ("list", "grants") for one, other in pairwise(named))
        if answers or any(places.ANSWERS_ITSELF.search(text) for text in texts):
            self._judging.refuse("It answers a question that the agent itself has asked.")
        elif named[:1] == ["gateway"] and named[1:2] != ["status"]:
            self._ask(Danger.GATEWAY)
        elif not _OWN_READING.fullmatch(" ".join(text for text in texts if text != "--json")):
            # All else changes settings, sends messages, or is an agent of its own under whatever settings it is given.
            self._ask(Danger.HERMES_HOME)

    # Folders

    def _change_folder(self, program: str, words: Sequence[Word]) -> FoldersAfter:
        named = [word for word in words if not word.text.startswith("-") or word.text == "-"]
        home = self._judging.site.home or "~"
        if program == "popd" or (program == "pushd" and (not named or named[0].text[:1] == "+")):
            found = {NOWHERE}
        elif not named:
            found = {home}
        elif named[0].text == "-" or not (
            named[0].is_known or (named[0].is_tame and not named[0].globs and "/" not in named[0].text)
        ):
            found = {NOWHERE}
        else:
            raw = self._judging.paths(named[0].text, self._folders)
            found = {normal(path) for path in raw} | {self._judging.real(path) for path in raw if ".." in path}
        return FoldersAfter(few(frozenset(found)), self._folders)

    # Builtins

    def _builtin(self, program: str, words: Sequence[Word], level: int) -> frozenset[str]:
        """Judge a command of the shell itself; return the folders in which it may leave the shell."""
        ends = self._folders
        texts = [word.text for word in words]
        known = all(word.is_known for word in words)
        match program:
            case "eval":
                self._walk.poison()
                ends = self._text_of(words)
            case "." | "source":
                self._walk.poison()
                ends = self._sourced(words)
            case "trap":
                rest = words[1:] if texts[:1] == ["--"] else words
                if rest and rest[0].text not in ("-", "-l", "-p", ""):
                    ends = self._text_of(rest[:1])
            case "alias":
                for word in words:
                    if "=" in word.text or not word.is_known:
                        self._ask(Danger.UNJUDGED)
                        self._judging.text(word.text.partition("=")[2], self._depth + 1, self._folders)
            case "shopt":
                if any(text in ("-s", "-u") for text in texts):
                    self._ask(Danger.UNJUDGED)
            case "set":
                if not all(
                    re.fullmatch(
                        r"[-+][euxvfCmbhEBT]+|[-+][euxv]*o|pipefail|nounset|errexit|xtrace|verbose|noglob|--|-", text
                    )
                    for text in texts
                ) and texts[:1] != ["--"]:
                    self._ask(Danger.UNJUDGED)
            case "enable" | "bind" | "complete" | "compgen" | "compopt" | "fc":
                if program != "compgen" or any(text.startswith("-") and set("CFW") & set(text) for text in texts):
                    self._ask(Danger.UNJUDGED)
            case "read" | "mapfile" | "readarray" | "getopts" | "let" | "wait" | "printf":
                is_setting = program not in ("wait", "printf") or any(
                    word.may_be_option() and ("v" in word.text or "p" in word.text or not word.is_known)
                    for word in words[:2]
                )
                if is_setting and not known:
                    self._walk.poison()
                if is_setting and any(
                    not re.fullmatch(r"[\w.,:=+*/%()<>! -]*", text) for text in texts if program != "printf"
                ):
                    self._ask(Danger.UNJUDGED)
                if program in ("mapfile", "readarray") and any(text.startswith("-") and "C" in text for text in texts):
                    self._ask(Danger.UNJUDGED)
                if is_setting and program == "printf":
                    self._walk.poison()
                    if "[" in " ".join(texts[:2]):
                        self._ask(Danger.UNJUDGED)
            case "hash":
                if not reading.only_reads(program, words):
                    self._ask(Danger.UNJUDGED)
            case "test" | "[":
                if any(text == "-v" for text in texts) and any(
                    "[" in text or UNKNOWN in text or SPLITS in text for text in texts
                ):
                    self._ask(Danger.UNJUDGED)
            case "exit" | "return" | "true":
                pass
            case _:
                self._ask(Danger.UNJUDGED)
        if level:
            self._judging.changes()
        return ends

    # What runs others

    def _wrapper(self, program: str, words: Sequence[Word], level: int) -> frozenset[str]:
        """Judge the command behind a program that runs it; return the folders in which that one may end."""
        ends = self._folders
        self._judging_changes_unless_reading(program, words)
        texts = [word.text for word in words]
        if program == "command" and texts[:1] and re.fullmatch(r"-[pvV]*[vV]", texts[0]):
            return ends
        if program in (
            "gdb",
            "entr",
            "capsh",
            "parallel",
            "sem",
            "nix-shell",
            "rlwrap",
            "ssh-agent",
            "coproc",
            "setarch",
        ):
            self._ask(Danger.UNJUDGED)
        if program in ("strace", "ltrace") and any(re.match(r"(-o|--output=)?\s*[|!]", text) for text in texts):
            self._ask(Danger.UNJUDGED)
        if program == "env":
            split = option_text([_without_cluster(word) for word in words], "-S", "--split-string")
            if split:
                self._judging.text(split, self._depth + 1, self._folders)
                return ends
        if program == "flock" and (text := option_text(words, "-c", "--command")):
            self._judging.text(text, self._depth + 1, self._folders)
        inner = running.behind(program, words)
        if program == "coproc":
            at = next((number for number, text in enumerate(texts) if text == "{"), -1)
            inner = words[at + 1 :]
        if inner is None:
            self._ask(Danger.UNJUDGED)
            self._words_of_runner(words, level)
            return ends
        if program == "env":
            for word in words[: len(words) - len(inner)]:
                name, equals, value = word.text.partition("=")
                if equals and running.takes_over(name) and value not in running.PLAIN_VALUES:
                    self._ask(Danger.UNJUDGED)
                if word.text in ("-C", "--chdir") or word.text.startswith(("-C", "--chdir=")):
                    self._folders = frozenset({NOWHERE})
            if not inner:
                self._ask(Danger.SECRETS)
        if program in ("watch", "hyperfine", "entr") and inner:
            self._judging.text(" ".join(word.text for word in inner), self._depth + 1, self._folders)
            if not all(word.is_known for word in inner):
                self._ask(Danger.UNJUDGED)
            inner = ()
        options = words[: len(words) - len(inner)] if inner else words
        self._scan(program, [word for word in options if word.text not in ("run", "exec")], level)
        replaced = option_text(words, "-I", "--replace", "-i") if program in running.FED_BY_PIPE else ""
        if program in running.FED_BY_PIPE and inner and replaced:
            inner = [Word(word.text.replace(replaced, SPLITS)) for word in inner]
            self.judge(inner, level + 1)
            return ends
        if program in running.FED_BY_PIPE and inner:
            given = self._feed.text
            inner = (*inner, *([Word(one) for one in given.split()] if given is not None else [Word(SPLITS)]))
            if posixpath.basename(inner[0].text) in ("rm", "unlink", "rmdir", "shred"):
                self._ask(Danger.DELETE_TREE)
        if (
            program in ("uv", "npx", "bunx", "pnpx")
            and inner
            and "/" not in inner[0].text
            and inner[0].text.endswith((".py", ".js", ".ts"))
        ):
            for path in self._judging.paths(inner[0].text, self._folders):
                self._judging.code_file(path)
            inner = inner[1:]
            self._scan(program, inner, level)
        elif inner:
            ends = self.judge(inner, level + 1).any
        if not inner and program not in ("time", "exec", "env", "command") and self._feed.is_piped:
            self._ask(Danger.UNJUDGED)
        return ends

    def _words_of_runner(self, words: Sequence[Word], level: int) -> None:
        """Words of a wrapper whose options are not known: each may be the command."""
        for number, word in enumerate(words):
            if posixpath.basename(word.text) in running.DANGEROUS_NAMES:
                self.judge(words[number:], level + 1)
                return

    def _judging_changes_unless_reading(self, program: str, words: Sequence[Word]) -> None:
        if program in ("command", "time", "nice", "timeout", "env", "stdbuf", "ionice", "xargs", "builtin"):
            return  # the command behind it decides
        if not reading.only_reads(program, words):
            self._judging.changes()

    def _text_of(self, words: Sequence[Word]) -> frozenset[str]:
        """Text that a shell reads. What stands in it is judged; a value that is not known may hold anything."""
        self._judging.changes()
        folders = self._folders | {NOWHERE} if self._walk.moves else self._folders
        ends = self._judging.text(" ".join(word.text for word in words), self._depth + 1, folders)
        if not all(word.is_known or (word.is_quoted and word.is_tame) for word in words):
            self._ask(Danger.NETWORK_TO_SHELL if self._judging.fetches else Danger.UNJUDGED)
        return ends.any

    def _sourced(self, words: Sequence[Word]) -> frozenset[str]:
        """A script by name, for ``.`` or for a shell."""
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
        """A shell that reads its standard input."""
        self._judging.changes()
        if self._feed.is_fetched:
            self._ask(Danger.NETWORK_TO_SHELL)
        elif self._feed.text is not None:
            self._judging.text(self._feed.text, self._depth + 1, self._folders)
        elif self._feed.is_piped:
            self._ask(Danger.UNJUDGED)

    def _shell(self, program: str, words: Sequence[Word], level: int) -> None:
        """A shell runs the text behind -c, a script by name, or what it is fed."""
        self._judging.changes()
        is_user_change = program in ("su", "runuser")
        flags = ""
        at = 0
        while at < len(words):
            word = words[at]
            text = word.text
            if word.may_be_option() and not word.is_known:
                self._ask(Danger.UNJUDGED)
                self._words_of_runner(words, level)
                return
            if is_user_change and (attached := re.match(r"(?:-c|--command=|--session-command=)(.+)", text, re.DOTALL)):
                self._judging.text(attached[1], self._depth + 1, self._folders)
                return
            if re.fullmatch(r"[-+][A-Za-z]*c[A-Za-z]*", text) or text in ("--command", "--session-command"):
                rest = list(words[at + 1 :])
                while rest and re.match(r"[-+]", rest[0].text) and rest[0].text != "-":
                    takes = rest[0].text in ("-o", "-O", "+o", "+O")
                    if rest[0].text == "--":
                        rest = rest[1:]
                        break
                    rest = rest[2 if takes else 1 :]
                self._text_of(rest[:1])
                for extra in rest[1:]:
                    if not extra.is_known or path_tokens(extra.text):
                        self._generic(program, rest[1:], level)
                        break
                return
            if text in ("--rcfile", "--init-file", "-o", "-O", "+o", "+O", "-l") or (
                is_user_change and text in ("-s", "-g", "-G", "-u", "-w", "--shell")
            ):
                if text in ("--rcfile", "--init-file"):
                    self._sourced(words[at + 1 : at + 2])
                    at += 1
                elif text != "-l":
                    at += 1
            elif text in ("--", "-"):
                at += 1
                break
            elif text[:1] in ("-", "+"):
                flags += text[1:]
            else:
                break
            at += 1
        named = words[at:]
        if is_user_change:
            if self._feed.is_piped:
                self._fed()
            return
        if named and "s" not in flags.replace("posix", "").replace("-login", ""):
            self._sourced(named)
        elif self._feed.is_piped:
            self._fed()
        elif "i" in flags or not named:
            return

    # Interpreters

    def _interpreter(self, kind: str, words: Sequence[Word], level: int) -> None:
        self._judging.changes()
        if not self._is_home_folder():
            self._ask(Danger.CODE)
        options = INTERPRETERS[kind]
        is_python = kind in ("python", "pypy", "ipython")
        takes = _INTERPRETER_VALUES.get(kind, frozenset())
        codes: list[Word] = []
        at = 0
        while at < len(words):
            word = words[at]
            text = word.text
            if word.may_be_option() and not word.is_known and not (word.globs and not is_python):
                self._ask(Danger.CODE)
                return
            if is_python and text == "-m":
                self._module(words[at + 1 :], level)
                return
            if is_python and re.fullmatch(r"-[bBdEiIOPqRsSuvx]*m\w+", text):
                self._module([Word(text.partition("m")[2]), *words[at + 1 :]], level)
                return
            found = _code_in(text, options, words[at + 1 :], kind)
            if found is not None:
                codes.append(found)
                at += 1 if found.is_quoted else 2
                if is_python or kind in ("php", "deno"):
                    break
                continue
            if text in ("--version", "-V", "--help", "-h", "-v") and len(words) == 1:
                return
            if text == "-":
                break
            if text.startswith("-") and len(text) > 1:
                if kind == "perl" and re.match(r"-[\w.]*i.*[/*]", text):
                    self._ask(Danger.CODE)  # where the old file is kept
                if kind == "perl" and re.match(r"-[\w.]*i", text):
                    for other in words[at + 1 :]:
                        for path in (
                            self._judging.paths(other.text, self._folders) if not other.text.startswith("-") else ()
                        ):
                            self._judging.softly_written(path)
                if re.match(
                    r"-[rMmIC]\S|--(require|import|loader|experimental-loader|inspect|env-file|preload)|-[rI]$", text
                ) and not (kind == "perl" and text in ("-Mstrict", "-Mwarnings")):
                    self._ask(Danger.CODE)
                at += 2 if text in takes else 1
                continue
            break
        rest = words[at:]
        if kind == "perl" and any(re.search(r"[|<>*?]$|^[<>|+]", word.text.strip()) for word in rest):
            self._ask(Danger.CODE)  # it takes such a name for a command, or for a file to write
        if codes:
            for one in codes:
                if not one.is_tame or one.globs:
                    self._ask(Danger.CODE)
                if is_python:
                    self._judging.python(one.plain(), self._folders)
                else:
                    self._judging.other_code(one.plain())
            self._scan(kind, rest, level, may_be_unknown=False)
            return
        file = next(iter(rest), None)
        if file is None or file.text == "-" or file.text.startswith(("/dev/stdin", "/dev/fd/")):
            if self._feed.is_fetched or (
                file is not None and file.text.startswith("/dev/fd") and self._judging.fetches
            ):
                self._ask(Danger.NETWORK_TO_SHELL)
            elif self._feed.text is not None:
                if is_python:
                    self._judging.python(self._feed.text, self._folders)
                else:
                    self._judging.other_code(self._feed.text)
            elif self._feed.is_piped or (file is not None and file.text != "-"):
                self._ask(Danger.CODE)
            return
        if not file.is_known:
            self._ask(Danger.CODE)
            return
        if (kind == "deno" or kind == "bun") and file.text in (
            "test",
            "run",
            "task",
            "install",
            "lint",
            "fmt",
            "check",
            "build",
            "add",
            "x",
            "dev",
            "start",
        ):
            self._generic(kind, rest, level)
            return
        for path in self._judging.paths(file.text, self._folders):
            self._judging.code_file(path)
        self._scan(kind, rest[1:], level)

    def _module(self, words: Sequence[Word], level: int) -> None:
        """``python -m name …``"""
        if not words or not words[0].is_known:
            self._ask(Danger.UNJUDGED)
            return
        name = words[0].text
        if name in ("pip", "ensurepip"):
            self._rules("pip", words[1:] if name == "pip" else [Word("install")])
            if reading.only_reads("pip", words[1:]):
                return
        if name in _MODULES_THAT_RUN:
            self._ask(Danger.CODE)
        if name in ("zipfile", "tarfile") and self._holds_settings(()):
            self._ask(Danger.SYSTEM_FILES)
        if name.split(".")[0] == "hermes":
            self._hermes([word.text for word in words[1:]])
            return
        if name not in _KNOWN_MODULES:
            self._judging.module(name)
        self._generic(f"python -m {name}", words[1:], level)

    # Programs with rules of their own

    def _find(self, words: Sequence[Word], level: int) -> None:
        texts = [word.text for word in words]
        is_out = bool({"-L", "-follow", "-files0-from"} & set(texts))
        for start in _find_starts(words):
            paths = self._judging.paths(start.text, self._folders)
            is_out = is_out or not start.is_tame or not all(map(self._judging.is_inside, paths))
        if self._hold_secrets(_find_starts(words)):
            self._judging.lists_secrets = True
        for inner in executed(words):
            is_plain = not is_out and not self._judging.lists_secrets and ("-type", "f") in pairwise(texts)
            named = [Word(one.text.replace("{}", "./found" if is_plain else UNKNOWN)) for one in inner]
            if inner and posixpath.basename(inner[0].text) in ("rm", "unlink", "rmdir", "shred"):
                self._ask(Danger.DELETE_TREE)
            if not any("{}" in one.text for one in inner) and inner and posixpath.basename(inner[0].text) in ("xargs",):
                self._ask(Danger.UNJUDGED)
            before = self._folders
            if is_out and ("-execdir" in texts or "-okdir" in texts):
                self._folders = frozenset({NOWHERE})
            self.judge(named, level + 1)
            self._folders = before
        for option, value in pairwise(words):
            if option.text in ("-fprint", "-fprint0", "-fprintf", "-fls"):
                if not value.is_known:
                    self._ask(Danger.UNJUDGED)
                for path in self._judging.paths(value.text, self._folders):
                    self._judging.written(path)
        if "-delete" in texts and is_out:
            self._ask(Danger.OUTSIDE)
        if any(not word.is_known and word.may_be_option() and not (word.globs and word.is_tame) for word in words):
            self._ask(Danger.UNJUDGED)

    def _sed(self, words: Sequence[Word]) -> None:
        scripts = reading.sed_scripts(words)
        if scripts is None or not all(script.is_tame and reading.is_plain_sed(script.plain()) for script in scripts):
            self._ask(Danger.UNJUDGED)
        if any(not word.is_tame for word in words if word not in (scripts or ())):
            self._ask(Danger.UNJUDGED)
        if any(
            word.globs and word.may_be_option() and not is_plain_name(word)
            for word in words
            if word not in (scripts or ())
        ):
            self._ask(Danger.UNJUDGED)
        if reading.is_sed_in_place(words):
            for word in words:
                if word.text.startswith("-") or word in (scripts or ()):
                    continue
                for path in self._judging.paths(word.text, self._folders):
                    self._judging.written(path)
        if NOWHERE in self._folders:
            self._ask(Danger.OUTSIDE)

    def _copy(self, words: Sequence[Word], level: int) -> None:
        texts = [word.text for word in words]
        named = [word for word in words if not word.text.startswith("-")]
        for word in named:
            for path in (
                self._judging.paths(word.text, self._folders)
                if not word.text.startswith(("/", "~")) and ".." not in word.text
                else ()
            ):
                if not self._judging.is_inside(path):
                    self._ask(Danger.OUTSIDE)  # a link that leads out, copied as a link
        is_linking = dangerous.flag("ls", "--link", "--symbolic-link")(texts)
        if (
            is_linking
            or any(re.match(r"-[a-zA-Z]*[tS]|--[tsb]", text) and text != "-t" for text in texts)
            or any(not word.is_tame for word in words)
            or any(word.globs and word.may_be_option() and not is_plain_name(word) for word in words)
            or (named[-1:] and named[-1].globs)
        ):
            self._generic("cp", words, level)
            return
        if self._hold_secrets(named[:-1]) and any(re.match(r"-\w*[aRr]|--(arch|rec)", text) for text in texts):
            self._ask(Danger.SECRETS)
        target = option_text(words, "-t", "--target-directory")
        for text in [target] if target else [named[-1].text] if len(named) > 1 else []:
            for path in self._judging.paths(text, self._folders):
                self._judging.written(path)
        if NOWHERE in self._folders or not self._is_home_folder():
            self._ask(Danger.OUTSIDE)

    def _is_home_folder(self) -> bool:
        """Whether every folder it may run in belongs to the workspace."""
        return all(folder != NOWHERE and (not folder or self._judging.is_inside(folder)) for folder in self._folders)

    def _fetch(self, program: str, words: Sequence[Word], level: int) -> None:
        texts = [word.text for word in words]
        urls = [text for text in texts if re.match(r"[a-z]+://|[\w.-]+\.\w+/|localhost|127\.|\[?::1", text)]
        is_local = bool(urls) and all(
            re.match(r"(https?://)?(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?(/|\?|$)", url) for url in urls
        )
        sends = _CURL_SENDS if program == "curl" else _WGET_SENDS
        is_sending = any(re.match(sends, text) for text in texts)
        has_file = any(
            "@" in text or text.startswith(("-T", "--upload-file", "--post-file", "--body-file"))
            for text in texts
            if not re.match(r"https?://", text)
        )
        if is_sending and (not is_local or has_file):
            self._ask(Danger.SENDS)
        if any(re.match(_FETCH_ODD, text) or reading.shortens(text, _FETCH_ODD_LONG) for text in texts):
            self._ask(Danger.UNJUDGED)
        if any(text.startswith("file:") for text in texts):
            self._ask(Danger.SECRETS)
        skip: set[int] = set()
        for number, (option, value) in enumerate(pairwise(words)):
            if (
                option.text
                in (
                    "-d",
                    "-H",
                    "--header",
                    "--data",
                    "--data-raw",
                    "--json",
                    "-A",
                    "--user-agent",
                    "-X",
                    "-w",
                    "--write-out",
                    "-u",
                    "-e",
                    "--referer",
                    "--post-data",
                    "-b",
                    "--cookie",
                )
                and value.is_tame
            ):
                skip.add(number + 1)
            if (
                (
                    option.text in ("-o", "--output", "-O", "--output-document", "-D", "--dump-header")
                    and program in ("curl", "wget")
                    and not (program == "curl" and option.text == "-O")
                )
                and value.is_tame
                and not value.globs
            ):
                skip.add(number + 1)
                if value.text != "-":
                    for path in self._judging.paths(value.text, self._folders):
                        self._judging.written(path, may_be_temporary=True)
        self._generic(program, [word for number, word in enumerate(words) if number not in skip], level)

    def _tar(self, words: Sequence[Word], level: int) -> None:
        """Names in an archive are taken as they are with -P, and some options run programs."""
        for number, word in enumerate(words):
            text = word.text
            is_cluster = re.match(r"-[A-Za-z]", text) or (number == 0 and not text.startswith("-"))
            if (is_cluster and re.match(r"-?[a-zA-Z]*[PIF]", text)) or (
                text.startswith("--") and any(option.startswith(text.split("=", 1)[0]) for option in _TAR_ODD)
            ):
                self._ask(Danger.UNJUDGED)
        self._generic("tar", words, level)

    def _ssh(self, words: Sequence[Word]) -> None:
        """Another machine, or this one by another way."""
        self._ask(Danger.REMOTE)
        rest = running.skip_options(words, _SSH_TAKES_VALUE)
        if rest is None or any(
            re.search(r"(?i)proxycommand|localcommand|knownhostscommand|include", word.text) for word in words
        ):
            self._ask(Danger.UNJUDGED)
            return
        if rest[1:]:
            self._text_of(rest[1:])

    def _kill(self, words: Sequence[Word]) -> None:
        targets = [
            word
            for word in words
            if not word.text.startswith("-") or (re.fullmatch(r"-\d+", word.text) and word is not words[0])
        ]
        if [word.text for word in words[:1]] in (["-l"], ["-L"]):
            return
        own = all(re.fullmatch(r"%\S*", word.text) for word in targets)
        if not own or not targets:
            self._ask(Danger.KILL)

    def _git(self, words: Sequence[Word], level: int) -> None:
        rest = list(words)
        while len(rest) > 1 and rest[0].text == "-c" and rest[1].is_known and _GIT_PLAIN.match(rest[1].text):
            rest = rest[2:]
        if len(rest) < len(words) and reading.only_reads("git", rest):
            return
        kept: list[Word] = []
        at = 0
        while at < len(rest) and rest[at].text.startswith("-"):
            at += 2 if rest[at].text in ("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env") else 1
        verb = rest[at].text if at < len(rest) else ""
        if any(re.match(_GIT_BEFORE, word.text) for word in rest[:at]):
            self._ask(Danger.UNJUDGED)
        at = 0
        while at < len(rest):
            text = rest[at].text
            takes_text = verb in ("commit", "tag", "merge", "stash", "notes", "revert", "cherry-pick") and re.fullmatch(
                r"-[aqsvSe]*m|--message|--author|--date", text
            )
            if takes_text:
                at += 2
                continue
            if (
                verb in ("commit", "tag", "merge", "stash", "notes")
                and re.match(r"--(message|author|date)=", text)
                and rest[at].is_quoted | rest[at].is_tame
            ):
                at += 1
                continue
            kept.append(rest[at])
            at += 1
        if verb == "config" and not _GIT_CONFIG.fullmatch(" ".join(word.text for word in kept)):
            self._ask(Danger.SYSTEM_FILES)
        if verb == "maintenance" and [word.text for word in kept[1:2]] != ["run"]:
            self._ask(Danger.SYSTEM_FILES)  # it writes the settings of the person, and schedules
        if verb == "remote" and any(word.text in ("add", "set-url", "rename") for word in kept):
            self._ask(Danger.SENDS)
        if verb in (
            "push",
            "send-pack",
            "send-email",
            "request-pull",
            "svn",
            "p4",
            "daemon",
            "instaweb",
            "http-push",
            "imap-send",
        ):
            named = [word.text for word in kept if not word.text.startswith("-")][1:]
            if verb != "push" or (named and re.search(r"[:/@]|\.\.", named[0])):
                self._ask(Danger.SENDS)
        if any(re.match(_GIT_RUNS, word.text) or reading.shortens(word.text, _GIT_RUNS_LONG) for word in kept):
            self._ask(Danger.UNJUDGED)
        if any(re.match(r"(-s|--strat\w*=).*/", f"{one.text}{two.text}") for one, two in pairwise([*kept, Word("")])):
            self._ask(Danger.UNJUDGED)  # a way to merge is a program
        if verb == "clone" and any(re.match(r"-[a-zA-Z]*[uc]", word.text) for word in kept):
            self._ask(Danger.UNJUDGED)  # a program for the other side, or a setting
        if verb and verb not in _GIT_VERBS and not reading.only_reads("git", words):
            self._ask(Danger.UNJUDGED)
        self._generic("git", kept, level)

    # Everything else

    def _generic(self, program: str, words: Sequence[Word], level: int) -> None:
        """A program that may change things: a word that leads out, is not known, or names a dangerous program asks."""
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
                        and not (program in _FILE_TOOLS and is_plain_name(word))
                    )
                )
            ):
                self._ask(Danger.UNJUDGED)
            if not is_verb and posixpath.basename(text) in running.DANGEROUS_NAMES and program not in _FILE_TOOLS:
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
        if word.globs and program in _FILE_TOOLS and any(mark in posixpath.dirname(text) for mark in "*?["):
            self._ask(Danger.OUTSIDE)  # the pattern may match a link
        for path in self._judging.paths(text, self._folders) if word.is_tame else ():
            if (places.runs_by_itself(normal(path), self._judging.site.home) and program not in ("git",)) or (
                program == "git" and re.search(r"(^|/)\.git(/|$)", text)
            ):
                self._ask(Danger.SYSTEM_FILES)
            elif self._judging.site.resolve is not None and not self._judging.is_inside(path):
                self._ask(Danger.OUTSIDE)
            elif program in _FILE_TOOLS or program in _WRITES_FILES:
                self._judging.noted(path)


def interpreter(program: str) -> str | None:
    name = re.sub(r"[\d.]+$", "", program) or program
    return name if name in INTERPRETERS else None


def _code_in(text: str, options: Sequence[str], rest: Sequence[Word], kind: str) -> Word | None:
    """The code behind this option, or in it; quoted where it stood in the same word."""
    if text in options:
        return Word(rest[0].text, rest[0].globs) if rest else Word("")
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        return Word(value, is_quoted=True) if equals and name in options else None
    for option in options:
        if len(option) != 2 or not text.startswith("-"):
            continue
        letters = _CLUSTERS.get(kind, "")
        match = (
            re.match(rf"-[{letters}]*{option[1]}(.*)", text, re.DOTALL)
            if letters
            else re.match(rf"-{option[1]}(.*)", text, re.DOTALL)
        )
        if match:
            return (
                Word(match[1], is_quoted=True)
                if match[1]
                else (Word(rest[0].text, rest[0].globs) if rest else Word(""))
            )
    return None


def _without_cluster(word: Word) -> Word:
    """``-vS`` as ``-S``."""
    return Word(re.sub(r"^-[a-zA-Z0]+S", "-S", word.text))


def _find_starts(words: Sequence[Word]) -> list[Word]:
    found = []
    for word in words:
        if word.text.startswith(("-", "(", "!")):
            if word.text in ("-H", "-L", "-P") or word.text.startswith(("-O", "-D")):
                continue
            break
        found.append(word)
    return found or [Word(".")]


def executed(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The commands behind -exec and its kin."""
    at = 0
    while at < len(words):
        if words[at].text in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            end = at + 1
            while end < len(words) and words[end].text not in (";", "+"):
                end += 1
            yield words[at + 1 : end]
            at = end
        at += 1


_FOUND_PROGRAMS = re.compile(
    r"^/(usr/)?(local/)?s?bin/[^/]+$|(^|/)(\.?v?env[\w.-]*|\.venv[\w.-]*)/bin/[^/]+$|(^|"
    r"/)node_modules/\.bin/[^/]+$|(^|/)vendor/bin/[^/]+$|"
    r"^/opt/[\w.-]+/bin/[^/]+$"
)
_LISTS = re.compile(r"|-V|--version|ls|list-sessions|-ls|-list|list|status|list-machines|-l")
_BUILTINS = names(
    "eval . source trap alias shopt set enable bind complete compgen compopt fc read mapfile readarray getopts "
    "let wait hash test "
    "[ exit return printf"
)
_IN_THIS_SHELL = names("command builtin time exec")
_LISTERS = names("find fd fdfind ls tree locate mlocate plocate")
_SHOWS_FILES = names(
    "cat head tail less more nl tac rev cut paste fold fmt od hexdump hd strings xxd base64 base32 "
    "basenc grep egrep fgrep "
    "zgrep zcat sed awk gawk mawk sort uniq diff cmp comm join tr column jq bat rg ag ack look"
)
"""Readers that show what is in a file."""
_OWN_READING = re.compile(
    r"(-h|--help|-V|--version|help|version|status|doctor|gateway status)|(logs|trace)( \S+)*|completion( \w+)?|"
    r"approvals( list| grants)?|(pairing|people|config|tools|skills|sessions|api-key|model)( list)?|"
    r"config (get|explain|show|path)( \S+)*|\w[\w-]*( \w[\w-]*)? (-h|--help)"
)
"""What our own command line only shows, as all of its words."""
_INTERPRETER_VALUES = {
    "python": names("-W -X"),
    "pypy": names("-W -X"),
    "perl": names("-I"),
    "node": names("-r --require --import --loader -C --conditions"),
    "ruby": names("-I -r -C"),
    "php": names("-d -c"),
}
_CLUSTERS = {
    "python": "bBdEiIOPqRsSuvx",
    "pypy": "bBdEiIOPqRsSuvx",
    "perl": "npalwWsStTuUXcf0-9",
    "ruby": "npalwWsSv",
    "ipython": "i",
}
_MODULES_THAT_RUN = names(
    "timeit pdb code cProfile profile trace runpy idlelib bdb turtle webbrowser smtpd ftplib telnetlib "
    "cgi pickle marshal ctypes IPython asyncio pty test"
)
_WRITES_FILES = names(
    "git tar unzip curl wget cp mv rsync patch ln 7z 7za cpio pax sed install ar unrar gunzip bunzip2 xz"
)
_FILE_TOOLS = names("rm cp mv touch ln mkdir rmdir chmod chown install truncate tee cat")
_GLOB_IS_OPTION = names(
    "rm tar rsync chmod chown chgrp zip 7z git find sort scp ssh mv cp ln install rmdir unlink touch truncate dd "
    "tee find wget curl"
)
_TAKES_TEXT = names(
    "tee git patch dd tail split csplit gzip xz bzip2 zstd pbcopy xclip wl-copy xsel tar zip sponge mail sendmail pv"
)
_CURL_SENDS = r"-[a-zA-Z#]*[dFTb]|--cookie(=|$)|--(data|form|upload-file|json|url-query|mail-|ftp-|quote|post)"
_WGET_SENDS = r"--(post|body|method|header=.*\bCookie)"
_FETCH_ODD = (
    r"-[a-zA-Z0-9#]*K|--config|--unix-socket|--abstract-unix-socket|--use-askpass|--execute|-e$|--libcurl|--trace|"
    r"--engine|--plugin|"
    r"--netrc-file|--cert|--key|--proxy|-x$|--preproxy|--socks|--resolve|--connect-to|--interface|--load-cookies|"
    r"-i$|--input-file|"
    r"--output-dir|-P|--directory-prefix|--warc|--save-cookies|--cookie-jar|-c$"
)
_EDITOR_RUNS = r"\+.|-[a-zA-Z]*[cSuUWwis]|--cmd"
_OPTIONS_THAT_RUN = {
    **dict.fromkeys(("vim", "vi", "view", "ex", "nvim", "gvim", "vimdiff", "rvim", "rview", "vim.tiny"), _EDITOR_RUNS),
    "split": r"--f",
    "zip": r"-TT|--u",
    "gcc": r"-wrapper|-B|-fplugin|-?-specs|@",
    "g++": r"-wrapper|-B|-fplugin|-?-specs|@",
    "cc": r"-wrapper|-B|-fplugin|-?-specs|@",
    "sqlite3": r"(?is)-?-(cmd|init)|\s*\.(?!(tables?|schema|head(ers)?|mode|ind(exes|ices)|dump|databases|width|timer|"
    r"explain|fullschema|nullvalue|stats|dbinfo|separator|quit|exit|help)\b[^\n;|]*$)|"
    r".*(\battach\b|\bvacuum\b.*\binto\b|\bwritefile\b|\bedit\s*\(|load_extension|\n\s*\.)",
    "cargo": r"--config",
    "rpm": r"--(pipe|eval|define|load|rcfile|macros|dbpath|root)|-E|-D",
    "apt": r"-o|-c|--option|--config",
    "pip": r"--lo",
    "pip3": r"--lo",
    "rg": r"--pre|--hostname-bin",
    "ag": r"--pager",
    "ack": r"--pager|--ackrc",
    "delta": r"--pager",
    "man": r"-[A-Za-z]*[PHC]|--pager|--html|--config-file",
    "sort": r"--compress-pro",
    "xmllint": r"--shell",
    "less": r"-[kK]|--lesskey|\+",
    "more": r"\+",
}
_FETCH_ODD_LONG = (
    "--config", "--upload-file", "--data-binary", "--form", "--execute", "--use-askpass", "--input-file", "--post-file",
    "--body-file", "--output-dir", "--directory-prefix", "--unix-socket", "--trace-ascii", "--dump-header",
    "--cookie-jar", "--stderr", "--etag-save", "--hsts", "--alt-svc", "--libcurl", "--append-output", "--output-file",
    "--hsts-file", "--rejected-log",
)  # fmt: skip
_TAR_ODD = (
    "--absolute-names", "--to-command", "--checkpoint-action", "--use-compress-program", "--info-script",
    "--new-volume-script",
    "--rsh-command", "--rmt-command", "--listed-incremental", "--recursive-unlink", "--transform", "--xform",
    "--keep-directory-symlink",
)  # fmt: skip
_WRITES_ANYWHERE = names("tar bsdtar unzip 7z 7za unrar cpio pax patch")
_UNPACKS = names("tar bsdtar unzip git cp rsync 7z 7za unrar cpio pax gh hg svn")
_KNOWN_MODULES = names(
    "pytest unittest pip venv build http.server json.tool compileall py_compile mypy ruff black isort flake8 "
    "pylint coverage "
    "tox nox twine wheel virtualenv ensurepip zipfile tarfile calendar site platform sysconfig this django flask "
    "uvicorn "
    "gunicorn alembic pre_commit pipx poetry tabnanny dis ast tokenize base64 gzip sphinx mkdocs jupyter ipykernel"
)
_GIT_CONFIG = re.compile(
    r"config (--local )?(user\.(name|email|signingkey)|color\.\w+|core\.(autocrlf|eol|filemode|ignorecase|"
    r"quotepath|abbrev)|"
    r"pull\.(rebase|ff)|push\.(default|autosetupremote)|init\.defaultbranch|merge\.(conflictstyle|ff)|"
    r"rebase\.autostash|"
    r"fetch\.prune|branch\.\S+)( .*)?",
    re.IGNORECASE,
)
_GIT_PLAIN = re.compile(
    r"(?i)(color\.|user\.|advice\.|log\.|core\.(quotepath|abbrev|autocrlf|longpaths)=|commit\.gpgsign=|"
    r"init\.defaultbranch=|"
    r"protocol\.version=|gc\.auto=|diff\.(renames|algorithm|context)=|pull\.rebase=|column\.|http\.(version|"
    r"postbuffer)=)"
)
_SSH_TAKES_VALUE = names("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w -B")
_GIT_BEFORE = r"-c|-p$|--paginate|--config-env|--exec-path|--work-tree"
_GIT_RUNS = (
    r"(?i)(--config-env|--exec-path|--upload-pack|--receive-pack|--exec|--ext-diff|--textconv|"
    r"--open-files-in-pager|--template|"
    r"--tool|--extcmd|-x$|--sequence-editor|--unsafe-paths|--to-command|--smtp|ext::|fd::|-O\S|--separate-git-dir|"
    r"--reference)(=|$|.)"
)
_GIT_RUNS_LONG = (
    "--config-env", "--exec-path", "--upload-pack", "--receive-pack", "--exec", "--ext-diff", "--textconv",
    "--open-files-in-pager", "--template", "--tool", "--extcmd", "--sequence-editor", "--unsafe-paths", "--to-command",
    "--separate-git-dir", "--reference", "--config",
)  # fmt: skip
_GIT_VERBS = names(
    "add am apply archive bisect branch bundle checkout cherry-pick clean clone commit config describe diff "
    "fetch format-patch gc "
    "init log maintenance merge mv notes pull push range-diff rebase reflog remote reset restore revert rm show "
    "stash status "
    "submodule switch tag worktree blame grep lfs sparse-checkout fsck repack prune pack-refs ls-remote ls-files "
    "rev-parse "
    "commit-graph update-index hash-object write-tree read-tree filter-branch filter-repo update-ref replace "
    "ls-tree cat-file rev-list shortlog help version flow cherry rerere"
)
_COMPILES = re.compile(r"-(I|L|isystem|isysroot|W[lap],|D)\S*$|--sysroot=/usr")
