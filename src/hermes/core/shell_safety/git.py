"""Judge ``git``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from hermes.core.shell_safety import reading
from hermes.core.shell_safety.classes import Danger
from hermes.core.shell_safety.places import names
from hermes.core.shell_safety.simple_command import SimpleCommand
from hermes.core.shell_safety.words import Word


class Git(SimpleCommand):
    """Rules for git."""

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
        if verb in _GIT_SENDS:
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
_GIT_SENDS = names("push send-pack send-email request-pull svn p4 daemon instaweb http-push imap-send")
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
