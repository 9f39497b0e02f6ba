"""Judge one simple command: a program and its words."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from hermes.core.shell_safety import dangerous, reading, running
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.file_programs import FilePrograms
from hermes.core.shell_safety.flow import FoldersAfter
from hermes.core.shell_safety.git import Git
from hermes.core.shell_safety.hard_list import judge_hard
from hermes.core.shell_safety.interpreters import Interpreters, interpreter
from hermes.core.shell_safety.judging import DEEPEST
from hermes.core.shell_safety.network_programs import NetworkPrograms
from hermes.core.shell_safety.paths import few, path_tokens
from hermes.core.shell_safety.places import names
from hermes.core.shell_safety.runners import Runners
from hermes.core.shell_safety.shell_builtins import BUILTINS, ShellBuiltins
from hermes.core.shell_safety.simple_command import WRITES_FILES
from hermes.core.shell_safety.words import Word, find_starts


class CommandRun(ShellBuiltins, Runners, Interpreters, FilePrograms, NetworkPrograms, Git):
    """Choose the rules of a program and apply them."""

    def judge(self, words: Sequence[Word], level: int = 0) -> FoldersAfter:
        """Judge a command, and the command that it runs if it is a wrapper."""
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

    def _own_program(self, first: Word, words: Sequence[Word], level: int) -> None:
        """Judge a program that is named by its path: a script of the workspace is read."""
        program = posixpath.basename(first.text)
        self._rules(program, words)
        judge_hard(self._judging, program, words, self._folders)
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
        judge_hard(self._judging, program, words, self._folders)
        if program in running.FETCHERS:
            self._judging.fetched()
        if program in ("cd", "pushd", "popd"):
            return self._change_folder(program, words)
        if program in BUILTINS:
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
        if program in WRITES_FILES:
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

    def _reader(self, program: str, words: Sequence[Word]) -> None:
        """Ask if a recursive search may show secrets of a home."""
        texts = [word.text for word in words]
        named = [word for word in words if not word.text.startswith("-")]
        if program in _LISTERS:
            starts = find_starts(words) if program == "find" else named[program in ("fd", "fdfind") :]
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


_FOUND_PROGRAMS = re.compile(
    r"^/(usr/)?(local/)?s?bin/[^/]+$|(^|/)(\.?v?env[\w.-]*|\.venv[\w.-]*)/bin/[^/]+$|(^|"
    r"/)node_modules/\.bin/[^/]+$|(^|/)vendor/bin/[^/]+$|"
    r"^/opt/[\w.-]+/bin/[^/]+$"
)
_LISTS = re.compile(r"|-V|--version|ls|list-sessions|-ls|-list|list|status|list-machines|-l")
_IN_THIS_SHELL = names("command builtin time exec")
_LISTERS = names("find fd fdfind ls tree locate mlocate plocate")
_SHOWS_FILES = names(
    "cat head tail less more nl tac rev cut paste fold fmt od hexdump hd strings xxd base64 base32 "
    "basenc grep egrep fgrep "
    "zgrep zcat sed awk gawk mawk sort uniq diff cmp comm join tr column jq bat rg ag ack look"
)
"""Readers that show what is in a file."""
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
_WRITES_ANYWHERE = names("tar bsdtar unzip 7z 7za unrar cpio pax patch")
_UNPACKS = names("tar bsdtar unzip git cp rsync 7z 7za unrar cpio pax gh hg svn")
