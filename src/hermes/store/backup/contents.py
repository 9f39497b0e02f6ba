"""Say what of a home belongs into a backup, and which names an archive may hold at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

MIGRATIONS = {
    "state.db": "hermes.store.migrations",
    "response_store.db": "hermes.store.response_migrations",
    "kanban.db": "hermes.store.kanban_migrations",
}
STORES = tuple(MIGRATIONS)
CONFIG_FILES = ("config.yaml", "gateway.json")
"""Settings. Secrets that stand in them are replaced before they are archived."""

FILES = (*CONFIG_FILES, "SOUL.md", "MEMORY.md", "USER.md", "recoveries.jsonl", "history")
FOLDERS = ("memories", "skills", "scripts", "cron", "spool", "pictures")
WORKSPACES = "workspaces"
SECRETS = (".env", "api_server.key", "backups/key", "whatsapp/session")
"""Archived only when asked, and then encrypted."""

ENCRYPTED = "secrets.enc"
SCOPE = (*STORES, *FILES, *FOLDERS)

_BESIDE = ("-wal", "-shm", "-journal", ".head", ".pages", ".rebuilt")
_FROM_STATE = ("mirror.jsonl", "sessions", "search.db", "search.db-wal", "search.db-shm", "search.db-journal")
"""Written from state.db. A restored state.db needs those that belong to it."""

MAX_NAME_BYTES = 4096


def backup_folder(home: Path, setting: str = "") -> Path:
    """Return where the backups of a home are kept. ``setting`` may be absolute, below the home, or ''."""
    return home / Path(setting or "backups").expanduser()


def companions(name: str) -> list[str]:
    """List the files that live and leave with a store; nothing for any other name."""
    if name not in STORES:
        return []
    return [f"{name}{suffix}" for suffix in _BESIDE] + list(_FROM_STATE if name == "state.db" else ())


def why_refused(name: str, *, is_secret: bool = False) -> str:
    """Half a sentence on why no backup may hold this name; '' for one that may."""
    parts = name.split("/")
    if not name or name.startswith("/") or ".." in parts or "\0" in name:
        return "names a file outside the home"
    if "" in parts or "." in parts or len(os.fsencode(name)) > MAX_NAME_BYTES:
        return "holds a name that cannot be used"
    if is_secret:
        is_known = any(name == known or name.startswith(f"{known}/") for known in SECRETS)
    else:
        is_known = name in (*STORES, *FILES) or (len(parts) > 1 and parts[0] in (*FOLDERS, WORKSPACES))
    return "" if is_known else "names a file that no backup of Hermes holds"


def files_below(home: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Find regular files at or below a name, with their names in an archive. Links inside a folder are left out."""
    top = home / name
    if top.is_file():
        yield name, top
        return
    for folder, folders, files in os.walk(top):
        folders.sort()
        for file in sorted(files):
            path = Path(folder, file)
            if path.is_file() and not path.is_symlink():
                yield f"{name}/{path.relative_to(top).as_posix()}", path
