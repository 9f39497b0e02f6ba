"""Files that are more than files: what is written there runs by itself, opens doors, or is a key."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hermes.agent.toolkit import ApprovalNeed, ToolContext

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


def why_sensitive(path: str) -> str:
    """'' for an ordinary file; otherwise what is special about it, as the end of a sentence."""
    if _fits(path, RUNS_BY_ITSELF):
        return "what is written there runs by itself later"
    if _fits(path, IS_A_KEY):
        return "it holds keys or decides who gets in"
    return ""


def ask_for_sensitive(ctx: ToolContext, path: str) -> ApprovalNeed | None:
    """Whether writing this file needs a yes. ToolError for a path that cannot be written at all."""
    target = ctx.inside(path)
    why = why_sensitive(str(target))
    if not why:
        return None
    return ApprovalNeed(
        f"May I write {ctx.shown(target)}? It is not an ordinary file: {why}.",
        subject="write:sensitive",
        where=f"files in {ctx.workspace}",
    )


def _fits(path: str, patterns: tuple[str, ...]) -> bool:
    name = f"/{path.lstrip('/')}".casefold()
    return any(fnmatchcase(name, f"*/{pattern.casefold()}") for pattern in patterns)
