"""Store API keys: the default key in the home, named ones as hashes."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import asdict
from pathlib import Path

from hermes.core.dataclasses import dataclass
from hermes.core.roles import PersonRole
from hermes.core.secret import Secret
from hermes.store import people
from hermes.store.db import Tx
from hermes.store.private_files import write_private

PLATFORM = "api"
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
    """A key without its secret. Its data belongs to ``id``; for keys of older releases that is the name.

    ``tools`` are those of the gateway that its requests may use: '' for all, 'none', or names with commas.
    """

    name: str
    hash: str
    role: str
    hint: str
    created_at: float
    revoked_at: float | None = None
    id: str = ""
    tools: str = ""


# A row without an id comes from an older program, or from an older mirror after a recovery.
_COLUMNS = "name, hash, role, hint, created_at, revoked_at, CASE id WHEN '' THEN name ELSE id END, tools"


def sender_id_of(key_id: str) -> str:
    """Return the account of a key on the platform of the API."""
    return f"key:{key_id}"


def hash_of(token: str) -> str:
    """Plain SHA-256: our keys are 256 random bits, so there is nothing to guess and no need to be slow."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def add(tx: Tx, key: ApiKey) -> bool:
    """Store a key under its name. False when a key that still works has that name; a revoked one is replaced.

    The new key has its own id, so it inherits nothing from the revoked one.
    """
    return (
        tx.run(
            """
            INSERT INTO api_keys (name, hash, role, hint, created_at, revoked_at, id, tools)
            VALUES (:name, :hash, :role, :hint, :created_at, NULL, :id, :tools)
            ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, role = excluded.role, hint = excluded.hint,
                created_at = excluded.created_at, revoked_at = NULL, id = excluded.id, tools = excluded.tools
            WHERE api_keys.revoked_at IS NOT NULL
            """,
            **asdict(key),
        )
        == 1
    )


def label_of(tx: Tx, sender_id: str) -> str:
    """Name a key's account by the key's name, for people."""
    key_id = sender_id.removeprefix("key:")
    name = tx.value("SELECT name FROM api_keys WHERE id = :id OR (id = '' AND name = :id)", id=key_id)
    return f"key:{name}" if name else sender_id


def listed(tx: Tx) -> list[ApiKey]:
    """Every key, revoked ones too, the oldest first."""
    return tx.all(f"SELECT {_COLUMNS} FROM api_keys ORDER BY created_at, name", ApiKey)


def working(tx: Tx) -> list[ApiKey]:
    return tx.all(f"SELECT {_COLUMNS} FROM api_keys WHERE revoked_at IS NULL", ApiKey)


def revoke(tx: Tx, name: str, *, now: float) -> bool:
    """End a key and the rights of its person. False when no working key has this name.

    Its standing grants end, since the person may no longer give them. A key that was linked to another person does
    not change that person's role.
    """
    key_id = tx.value(
        """
        UPDATE api_keys SET revoked_at = :now WHERE name = :name AND revoked_at IS NULL
        RETURNING CASE id WHEN '' THEN name ELSE id END
        """,
        now=now,
        name=name,
    )
    if key_id is None:
        return False
    people.set_role(tx, people.first_id(PLATFORM, sender_id_of(key_id)), PersonRole.GUEST.value)
    return True
