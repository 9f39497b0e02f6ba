"""Judge ``find``, ``sed``, ``cp`` and ``tar``."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from hermes.core.shell_safety import dangerous, reading
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.paths import NOWHERE
from hermes.core.shell_safety.simple_command import SimpleCommand
from hermes.core.shell_safety.words import UNKNOWN, Word, find_starts, is_plain_name, option_text


class FilePrograms(SimpleCommand):
    """Rules for programs that find, edit, copy and pack files."""

    def _find(self, words: Sequence[Word], level: int) -> None:
        texts = [word.text for word in words]
        is_out = bool({"-L", "-follow", "-files0-from"} & set(texts))
        for start in find_starts(words):
            paths = self._judging.paths(start.text, self._folders)
            is_out = is_out or not start.is_tame or not all(map(self._judging.is_inside, paths))
        if self._hold_secrets(find_starts(words)):
            self._judging.lists_secrets = True
        for inner in _executed(words):
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

    def _tar(self, words: Sequence[Word], level: int) -> None:
        """Ask about options that run programs, and about -P, which keeps absolute names."""
        for number, word in enumerate(words):
            text = word.text
            is_cluster = re.match(r"-[A-Za-z]", text) or (number == 0 and not text.startswith("-"))
            if (is_cluster and re.match(r"-?[a-zA-Z]*[PIF]", text)) or (
                text.startswith("--") and any(option.startswith(text.split("=", 1)[0]) for option in _TAR_ODD)
            ):
                self._ask(Danger.UNJUDGED)
        self._generic("tar", words, level)


def _executed(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Yield the commands behind ``-exec`` and similar options."""
    at = 0
    while at < len(words):
        if words[at].text in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            end = at + 1
            while end < len(words) and words[end].text not in (";", "+"):
                end += 1
            yield words[at + 1 : end]
            at = end
        at += 1


_TAR_ODD = (
    "--absolute-names", "--to-command", "--checkpoint-action", "--use-compress-program", "--info-script",
    "--new-volume-script",
    "--rsh-command", "--rmt-command", "--listed-incremental", "--recursive-unlink", "--transform", "--xform",
    "--keep-directory-symlink",
)  # fmt: skip
