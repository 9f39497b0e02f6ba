"""Store API keys: the default key in the home, named ones as hashes."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import asdict
from pathlib import Path

from hermes.core.dataclasses import dataclass
from hermes.core.secret import Secret
from hermes.store.db import Tx
from hermes.store.private_files import write_private

DEFAULT_NAME = "default"
KEY_FILE = "api_server.key"


def own_key(home: Path) -> Secret:
    """The key that stands for the owner when none is configured: made once, kept in the home, 0600."""
    path = home / KEY_FILE
    try:
        kept = path.read_text("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        kept = ""
    if not kept:
        kept = new_token()
        write_private(path, kept + "\n")
    return Secret(kept)


def new_token() -> str:
    return f"hk_{secrets.token_urlsafe(32)}"


@dataclass(frozen=True, slots=True)
class ApiKey:
    name: str
    hash: str
    role: str
    hint: str
    created_at: float
    revoked_at: float | None = None


_COLUMNS = "name, hash, role, hint, created_at, revoked_at"


def hash_of(token: str) -> str:
    """Plain SHA-256: our keys are 256 random bits, so there is nothing to guess and no need to be slow."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def add(tx: Tx, key: ApiKey) -> bool:
    """Store a key under its name. False when a key that still works has that name; a revoked one is replaced."""
    return (
        tx.run(
            f"""
            INSERT INTO api_keys ({_COLUMNS}) VALUES (:name, :hash, :role, :hint, :created_at, NULL)
            ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, role = excluded.role, hint = excluded.hint,
                created_at = excluded.created_at, revoked_at = NULL
            WHERE api_keys.revoked_at IS NOT NULL
            """,  # noqa: S608 - our own column names
            **asdict(key),
        )
        == 1
    )


def listed(tx: Tx) -> list[ApiKey]:
    """Every key, revoked ones too, the oldest first."""
    return tx.all(f"SELECT {_COLUMNS} FROM api_keys ORDER BY created_at, name", ApiKey)  # noqa: S608 - as above


def working(tx: Tx) -> list[ApiKey]:
    return tx.all(f"SELECT {_COLUMNS} FROM api_keys WHERE revoked_at IS NULL", ApiKey)  # noqa: S608 - as above


def revoke(tx: Tx, name: str, *, now: float) -> bool:
    """End a key. False when no working key has this name."""
    return (
        tx.run("UPDATE api_keys SET revoked_at = :now WHERE name = :name AND revoked_at IS NULL", now=now, name=name)
        == 1
    )
