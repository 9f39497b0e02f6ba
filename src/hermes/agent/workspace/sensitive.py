"""Detect sensitive files: autostart scripts, credentials, keys."""

from __future__ import annotations

from pathlib import Path

from hermes.agent.toolkit.context import ApprovalNeed, ToolContext
from hermes.core.i18n.en import Texts
from hermes.core.roles import PersonRole

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
    from hermes.core.shell_safety.places import holds_keys, runs_by_itself  # its patterns: no start waits for them

    if holds_keys(path):
        return words.ASK_WRITE_KEYS
    return words.ASK_WRITE_RUNS if runs_by_itself(path, str(Path.home())) else ""


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
    from hermes.core.shell_safety.places import holds_keys, is_secret  # its patterns: no start waits for them

    target = ctx.inside(path)
    name = str(target)
    if not holds_keys(name) and not holds_keys(f"{name}/any") and not is_secret(name):
        return None
    if _is_own_corner(ctx):
        return None
    question = ctx.words.ASK_READ_KEYS.format(path=ctx.relative_path(target))
    return ApprovalNeed(question, subject="read:keys", where=ctx.words.WHERE_FILES.format(folder=ctx.workspace))


def _is_own_corner(ctx: ToolContext) -> bool:
    """Tell whether the workspace lies in the home of Hermes and its commands run in a sandbox.

    No file there starts with the machine. The owner's commands may run on the machine itself, so what they run by
    themselves (git hooks, .envrc) is asked about in every workspace.
    """
    if ctx.role is PersonRole.OWNER:
        return False
    workspace = ctx.workspace.resolve()
    return any(workspace.is_relative_to(folder.resolve()) for folder in ctx.forbidden)
