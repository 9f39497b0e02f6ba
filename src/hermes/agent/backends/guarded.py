"""Run the owner's commands in a sandbox: workspace writable, secrets hidden.

The machine can be read, apart from keys, tokens, histories and the gateway's own folder; only the workspace, a cache
and a `/tmp` of its own can be written; the network is the machine's. Programs that need more fail, and the agent may
ask the owner to run the same command outside the sandbox.
"""

from __future__ import annotations

import asyncio
import fnmatch
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hermes.agent.backends import bubblewrap, landlock
from hermes.agent.backends.base import BackendName, CommandSpec
from hermes.agent.backends.child import ChildProcess
from hermes.agent.backends.output import Output
from hermes.core.i18n.en import Texts

FOLDER = "guarded"
# Patterns below the owner's home: keys, tokens, sign-ins of browsers and programs, histories of what was typed.
SECRETS = (
    ".hermes", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh",
    ".config/glab-cli", ".config/hub", ".config/rclone", ".config/op", ".config/doctl",
    ".config/containers/auth.json", ".config/sops", ".config/git/credentials", ".config/github-copilot", ".netrc",
    ".pgpass", ".my.cnf", ".mylogin.cnf", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".vault-token",
    ".terraform.d", ".terraformrc", ".s3cfg", ".boto", ".cargo/credentials", ".cargo/credentials.toml",
    ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".composer/auth.json",
    ".config/composer/auth.json", ".local/share/keyrings", ".local/share/kwalletd", ".password-store",
    ".config/Bitwarden", ".config/1Password", ".1password", ".local/share/gnupg", ".electrum", ".bitcoin",
    ".ethereum", ".mozilla", ".thunderbird", ".config/google-chrome*", ".config/chromium", ".config/vivaldi",
    ".config/BraveSoftware", ".config/microsoft-edge*", ".config/opera", ".var/app", "snap", ".config/Signal",
    ".config/Slack", ".config/discord", ".local/share/TelegramDesktop", ".claude", ".claude.json", ".codex",
    ".gemini", ".openclaw", ".*_history", ".lesshst", ".viminfo", ".local/share/recently-used.xbel", ".Xauthority",
    ".ICEauthority", ".env*", "*.pem", "*.key", "*.p12", "*.pfx", "*.kdbx",
)  # fmt: skip
# Of the machine: readable where the gateway runs as root.
SYSTEM_SECRETS = (
    "/etc/shadow*", "/etc/gshadow*", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh/ssh_host_*_key", "/etc/ssl/private",
    "/etc/wireguard", "/etc/letsencrypt", "/etc/kubernetes", "/etc/NetworkManager/system-connections",
    "/var/backups", "/var/spool/cron", "/var/lib/docker", "/var/lib/containers", "/var/lib/kubelet", "/var/lib/private",
    "/var/mail", "/boot", "/lost+found",
)  # fmt: skip
NOT_IN_HOME = ("bin",)  # programs that a later login would find
HIDDEN_FOLDERS = ("/run", "/tmp", "/var/tmp")  # noqa: S108 - Landlock cannot put empty ones in their place


class GuardedBackend:
    """The owner's commands in a sandbox.

    ``home`` is the gateway's own folder. Commands see nothing of it except a workspace in it, and nothing of
    ``backups``, which hold the same.
    """

    name = BackendName.GUARDED
    touches_host = True  # the owner's own files: what destroys them is asked about as without a sandbox
    shares_files = True

    def __init__(
        self, home: Path, environ: Mapping[str, str], *, has_bubblewrap: bool, backups: Path | None = None
    ) -> None:
        self._home = home.resolve()
        self._backups = backups or self._home
        self._user = Path(environ.get("HOME") or Path.home()).resolve()
        self._has_bubblewrap = has_bubblewrap

    def where(self, folder: Path, words: Texts) -> str:
        return words.WHERE_GUARDED.format(folder=folder)

    async def start(self, work: CommandSpec, output: Output) -> ChildProcess:
        cache = self._home / FOLDER / "cache"
        await asyncio.to_thread(self._prepare, cache)
        variables = {
            **work.environment,
            "HOME": str(self._user),
            "XDG_CACHE_HOME": str(cache),
            "npm_config_cache": str(cache / "npm"),
            "npm_config_update_notifier": "false",
            "GOMODCACHE": str(cache / "go-mod"),
        }
        if self._has_bubblewrap:
            arguments = await asyncio.to_thread(lambda: [*self._mounts(work, cache)])
            variables["TMPDIR"] = "/tmp"  # noqa: S108 - its own
            return await bubblewrap.start_sandbox(arguments, work, variables, output)
        temporary = await asyncio.to_thread(landlock.make_temporary, self._home / FOLDER / "tmp")
        variables["TMPDIR"] = str(temporary)
        hidden = await asyncio.to_thread(self._hidden)
        closed = {*hidden, *(Path(name) for name in HIDDEN_FOLDERS)}
        read = await asyncio.to_thread(lambda: [*_around(Path("/"), closed), *self._home_in_a_closed_folder(closed)])
        # Landlock closes nothing inside what it opens: a folder with something to hide is opened piece by piece.
        writable = self._writable(work.workspace.resolve())
        around = await asyncio.to_thread(lambda: [path for each in writable for path in _open_pieces(each, hidden)])
        write = [*around, cache, temporary]
        families = (socket.AF_INET, socket.AF_INET6)
        return await landlock.start_confined(work, read, write, families, variables, temporary, output)

    def _home_in_a_closed_folder(self, closed: Iterable[Path]) -> Iterable[Path]:
        if not any(self._user.is_relative_to(name) for name in HIDDEN_FOLDERS):
            return ()
        return _around(self._user, [path for path in closed if path.is_relative_to(self._user)])

    def _prepare(self, cache: Path) -> None:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._home / FOLDER / "empty").touch(mode=0o400)

    def _mounts(self, work: CommandSpec, cache: Path) -> Iterator[str]:
        workspace = work.workspace.resolve()
        alone = [word for word in bubblewrap.ALONE if word not in ("--hostname", "sandbox")]
        yield from (*alone, "--share-net", "--ro-bind", "/", "/")
        yield from bubblewrap.own_folders(work.bounds.limits.tmp if work.bounds is not None else 0)
        for path in (Path("/etc/resolv.conf").resolve(), self._user):
            if any(path.is_relative_to(folder) for folder in bubblewrap.OWN_FOLDERS):
                yield from ("--ro-bind-try", str(path), str(path))
        writable = self._writable(workspace)
        hidden = self._hidden()
        inside = [path for path in hidden if any(path.is_relative_to(folder) for folder in writable)]
        before = [path for path in hidden if path not in inside]
        for path in before:
            yield from self._hide(path)
        for path in (cache, *writable):
            yield from ("--bind", str(path), str(path))
        for path in inside:
            yield from self._hide(path)
        for path in hidden:
            if path.is_dir():
                yield from ("--remount-ro", str(path))
        yield from ("--chdir", str(work.folder.resolve()))

    def _hide(self, path: Path) -> tuple[str, ...]:
        if path.is_dir():
            return ("--tmpfs", str(path))
        # Empty rather than closed: many programs stop at a file of settings that they may not read.
        return ("--ro-bind", str(self._home / FOLDER / "empty"), str(path))

    def _writable(self, workspace: Path) -> list[Path]:
        """Return what can be written: the workspace, or the plain folders of a home.

        What lies in a home itself decides what runs at the next login: start files, ``~/bin``, ``~/.config``.
        """
        if not self._user.is_relative_to(workspace):
            return [workspace]
        found = []
        for path in sorted(self._user.iterdir()):
            is_plain = not path.name.startswith(".") and path.name not in NOT_IN_HOME
            if is_plain and not path.is_symlink() and (path.is_dir() or path.is_file()):
                found.append(path)
        return found

    def _hidden(self) -> list[Path]:
        """Return the real paths to hide, without those inside another one."""
        found = {str(self._home), os.path.realpath(self._backups)}
        if self._home.parent.name == "profiles" and (self._home.parent.parent / ".hermes-home").exists():
            found.add(str(self._home.parent.parent))  # the home that holds this profile, and the other profiles
        for folder, patterns in ((str(self._user), SECRETS), ("/", SYSTEM_SECRETS)):
            for pattern in patterns:
                found.update(os.path.realpath(path) for path in _matching(folder, pattern.lstrip("/")))
        if not self._user.is_relative_to("/home"):
            found.update(_matching("/home", "*"))  # other people's, which root could read
        # Never what the owner's home or the root of everything lies in, which a strange link may point to.
        usable = {path for path in map(Path, found) if path.exists() and not self._user.is_relative_to(path)}
        return sorted(path for path in usable if not any(parent in usable for parent in path.parents))


def _matching(folder: str, pattern: str) -> list[str]:
    """Return the paths in a folder whose names match; much cheaper than ``glob``."""
    path = os.path.join(folder, pattern)
    if "*" not in pattern:
        return [path] if os.path.lexists(path) else []
    parent, name = os.path.split(path)
    try:
        return [os.path.join(parent, each) for each in fnmatch.filter(os.listdir(parent), name)]
    except OSError:
        return []


def _open_pieces(folder: Path, hidden: list[Path]) -> Iterable[Path]:
    """Return a writable folder, or its parts if something in it is hidden.

    A workspace that lies in a hidden folder stays open.
    """
    return _around(folder, [path for path in hidden if not folder.is_relative_to(path) or path == folder])


def _around(folder: Path, closed: Iterable[Path]) -> Iterator[Path]:
    """Yield the largest parts of a folder that hold no closed path."""
    inside = [path for path in closed if path.is_relative_to(folder)]
    if folder in inside:
        return
    if not inside:
        yield folder
        return
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = folder / name
        if not path.is_symlink():  # its target is reached, or not, by its own name
            yield from _around(path, inside)
