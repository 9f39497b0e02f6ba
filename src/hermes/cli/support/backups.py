"""What the commands about backups share: where they are kept, what is secret, which file is meant."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hermes
from hermes.cli.support.home import load_config
from hermes.core.errors import GatewayError
from hermes.store.backup import contents

if TYPE_CHECKING:
    from hermes.store.backup.create import BackupRequest, BackupResult

LATEST = "latest"
PG_DUMP = 'pg_dump --format=custom --file=hermes.dump "$HERMES_DATABASE_URL"'
"""Backs up a PostgreSQL database; the password comes from the variable."""


def backup_folder(home: Path, config: Any) -> Path:
    """Where the backups of this home are kept."""
    return contents.backup_folder(home, config.backup.folder)


def request_of(home: Path, *, reason: str, has_workspaces: bool = False) -> BackupRequest:
    """A backup as the settings want it."""
    from hermes.store.backup.create import BackupRequest
    from hermes.store.open import is_postgres

    loaded = load_config(home)
    return BackupRequest(
        home,
        hermes.__version__,
        reason=reason,
        folder=backup_folder(home, loaded.config),
        secrets=known_secrets(loaded),
        has_workspaces=has_workspaces or loaded.config.backup.workspaces,
        has_stores=not is_postgres(loaded.config.database_url),
    )


def make_backup(home: Path, *, reason: str) -> BackupResult:
    """Make an automatic backup, and delete those that are too old or too many."""
    from hermes.store.backup import shelf
    from hermes.store.backup.create import create

    made = create(request_of(home, reason=reason))
    limits = load_config(home).config.backup
    shelf.prune(home, made.path.parent, time.time(), keep_days=limits.keep_days, keep_bytes=limits.keep_mb * 1_000_000)
    return made


def known_secrets(loaded: Any) -> list[str]:
    """Every secret of the settings, those inside addresses and under unknown keys too."""
    from hermes.config.secrets import secrets_of, secrets_within

    variables = {
        **os.environ,
        **_leaves(loaded.layers.home_env),
        **_leaves(loaded.layers.yaml),
        **_leaves(loaded.layers.json),
    }
    found = [*secrets_within(loaded.config), *secrets_of(variables)]
    return sorted({secret.reveal() for secret in found if secret})


def _leaves(tree: object, name: str = "") -> dict[str, str]:
    """The texts of a tree of settings; keys of the same name keep apart by their place."""
    if isinstance(tree, Mapping):
        return {inner: value for key, part in tree.items() for inner, value in _leaves(part, f"{name}_{key}").items()}
    if isinstance(tree, list | tuple):
        return {inner: value for at, part in enumerate(tree) for inner, value in _leaves(part, f"{at}{name}").items()}
    return {name: tree} if isinstance(tree, str) else {}


def find_archive(text: str, folder: Path) -> Path:
    """The file that was meant: a path, a name in the folder of backups, or ``latest``."""
    from hermes.store.backup import shelf

    if text == LATEST:
        found = shelf.entries(folder)
        if not found:
            raise GatewayError(f"There is no backup in {folder}. Make one: hermes backup create")
        return found[0].path
    path = Path(text).expanduser()
    return path if path.exists() or "/" in text else folder / text
