"""Detect sensitive files: autostart scripts, credentials, keys."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hermes.agent.toolkit.context import ApprovalNeed, ToolContext
from hermes.core.i18n.en import Texts

# Matched against the end of the real path, case aside; a pattern with a slash needs the folders too.
RUNS_BY_ITSELF = (
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
    ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xinitrc", ".xsession",
    ".xprofile", ".vimrc", ".exrc", ".emacs", ".tmux.conf", ".screenrc", ".gdbinit", ".pythonrc", ".envrc",
    ".config/fish/*", ".config/autostart/*", ".config/systemd/*", ".config/environment.d/*", ".config/nvim/*",
    ".local/bin/*", ".local/share/systemd/*", "Library/LaunchAgents/*", ".git/hooks/*", ".git/config", ".gitconfig",
    ".config/git/*", ".npmrc", ".yarnrc", ".pip/*", ".config/pip/*", ".pypirc", "crontab", "cron.d/*",
)  # fmt: skip
IS_A_KEY = (
    ".ssh/*", ".gnupg/*", ".aws/*", ".azure/*", ".kube/*", ".docker/*", ".netrc", ".pgpass", ".git-credentials",
    ".config/gcloud/*", ".config/gh/*", ".password-store/*", ".local/share/keyrings/*",
)  # fmt: skip


HIDDEN_LINE = b"[hidden: a private key]"


class KeyCover:
    """Says of lines, told one after another from the first on, which belong to a private key.

    Read by itself, a line from the middle of a key looks like any other.
    """

    def __init__(self) -> None:
        self._is_inside = False

    def covers(self, line: bytes) -> bool:
        is_edge = b"PRIVATE KEY" in line
        self._is_inside = self._is_inside or (is_edge and b"-----BEGIN" in line)
        is_covered = self._is_inside
        if is_edge and b"-----END" in line:
            self._is_inside = False
        return is_covered


def why_sensitive(path: str, words: Texts) -> str:
    """'' for an ordinary file; otherwise the question that says what is special about it."""
    if _fits(path, RUNS_BY_ITSELF):
        return words.ASK_WRITE_RUNS
    if _fits(path, IS_A_KEY):
        return words.ASK_WRITE_KEYS
    return ""


def ask_for_sensitive(ctx: ToolContext, path: str) -> ApprovalNeed | None:
    """Whether writing this file needs a yes. ToolError for a path that cannot be written at all."""
    target = ctx.inside(path)
    question = why_sensitive(str(target), ctx.words)
    if not question or _is_own_corner(ctx):
        return None
    where = ctx.words.WHERE_FILES.format(folder=ctx.workspace)
    return ApprovalNeed(question.format(path=ctx.relative_path(target)), subject="write:sensitive", where=where)


def ask_for_keys(ctx: ToolContext, path: str) -> ApprovalNeed | None:
    """Whether reading this file or folder needs a yes: what a tool reads goes to the model's provider."""
    from hermes.core.shell_safety.judge import (
        is_secret,  # its rules are half a hundred patterns: no start waits for them
    )

    target = ctx.inside(path)
    name = str(target)
    if not _fits(name, IS_A_KEY) and not _fits(f"{name}/any", IS_A_KEY) and not is_secret(name):
        return None
    if _is_own_corner(ctx):
        return None
    question = ctx.words.ASK_READ_KEYS.format(path=ctx.relative_path(target))
    return ApprovalNeed(question, subject="read:keys", where=ctx.words.WHERE_FILES.format(folder=ctx.workspace))


def _is_own_corner(ctx: ToolContext) -> bool:
    """Tell whether the workspace lies in the home of Hermes, where no file starts with the machine."""
    workspace = ctx.workspace.resolve()
    return any(workspace.is_relative_to(folder.resolve()) for folder in ctx.forbidden)


def _fits(path: str, patterns: tuple[str, ...]) -> bool:
    name = f"/{path.lstrip('/')}".casefold()
    return any(fnmatchcase(name, f"*/{pattern.casefold()}") for pattern in patterns)
