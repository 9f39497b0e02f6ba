"""Judge the builtins of bash."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.core.shell_safety import reading
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.flow import FoldersAfter
from hermes.core.shell_safety.paths import NOWHERE, few, normal
from hermes.core.shell_safety.places import names
from hermes.core.shell_safety.simple_command import SimpleCommand
from hermes.core.shell_safety.words import SPLITS, UNKNOWN, Word


class ShellBuiltins(SimpleCommand):
    """Rules for builtins."""

    def _builtin(self, program: str, words: Sequence[Word], level: int) -> frozenset[str]:
        """Judge a builtin; return the folders in which it may leave the shell."""
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


BUILTINS = names(
    "eval . source trap alias shopt set enable bind complete compgen compopt fc read mapfile readarray getopts "
    "let wait hash test "
    "[ exit return printf"
)
