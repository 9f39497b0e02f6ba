"""Judge programs that run a command: wrappers (``env``, ``xargs``) and shells."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from hermes.core.shell_safety import reading, running
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.paths import NOWHERE, path_tokens
from hermes.core.shell_safety.simple_command import SimpleCommand
from hermes.core.shell_safety.words import SPLITS, Word, option_text


class Runners(SimpleCommand):
    """Rules for programs that run other programs."""

    def _wrapper(self, program: str, words: Sequence[Word], level: int) -> frozenset[str]:
        """Judge the command of a wrapper; return the folders in which it may end."""
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

    def _judging_changes_unless_reading(self, program: str, words: Sequence[Word]) -> None:
        if program in ("command", "time", "nice", "timeout", "env", "stdbuf", "ionice", "xargs", "builtin"):
            return  # the command behind it decides
        if not reading.only_reads(program, words):
            self._judging.changes()

    def _shell(self, program: str, words: Sequence[Word], level: int) -> None:
        """Judge what a shell runs: the text behind ``-c``, a script, or its input."""
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


def _without_cluster(word: Word) -> Word:
    """Return ``-vS`` as ``-S``."""
    return Word(re.sub(r"^-[a-zA-Z0]+S", "-S", word.text))
