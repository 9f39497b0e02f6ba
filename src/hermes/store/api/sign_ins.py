"""Store the dashboard's sign-ins and one-time codes, as hashes."""

from __future__ import annotations

from dataclasses import asdict

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx

MAX_CODES = 100
MAX_SIGN_INS = 1000
MAX_OF_ONE_KEY = 50
"""A key that signs in more often ends its own sign-ins, not those of others."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """``hash`` is of the cookie, ``key_hash`` of the API key that signed in; '' for a link of the command line."""

    id: str
    hash: str
    key_hash: str
    address: str
    agent: str
    created_at: float
    seen_at: float
    expires_at: float


_COLUMNS = "id, hash, key_hash, address, agent, created_at, seen_at, expires_at"


def add_code(tx: Tx, code_hash: str, *, now: float, seconds: float) -> None:
    """Store a one-time code. Codes that have expired go, and of more than ``MAX_CODES`` the oldest."""
    tx.run("DELETE FROM dashboard_codes WHERE expires_at <= :now", now=now)
    tx.run(
        """
        DELETE FROM dashboard_codes WHERE hash IN (
            SELECT hash FROM dashboard_codes ORDER BY created_at DESC LIMIT 1000 OFFSET :kept)
        """,
        kept=MAX_CODES - 1,
    )
    tx.run(
        "INSERT INTO dashboard_codes (hash, created_at, expires_at) VALUES (:hash, :now, :until)",
        hash=code_hash,
        now=now,
        until=now + seconds,
    )


def redeem(tx: Tx, code_hash: str, *, now: float) -> bool:
    """Use up a code. True once, for the first who shows it in time."""
    until = tx.value("DELETE FROM dashboard_codes WHERE hash = :hash RETURNING expires_at", hash=code_hash)
    return until is not None and float(until) > now


def add(tx: Tx, sign_in: SignIn) -> None:
    """Store a sign-in. Those that have expired go, and of too many the longest unseen."""
    tx.run("DELETE FROM dashboard_sign_ins WHERE expires_at <= :now", now=sign_in.created_at)
    tx.run(
        """
        DELETE FROM dashboard_sign_ins WHERE id IN (
            SELECT id FROM dashboard_sign_ins WHERE key_hash = :key ORDER BY seen_at DESC LIMIT 1000 OFFSET :kept)
        """,
        key=sign_in.key_hash,
        kept=MAX_OF_ONE_KEY - 1,
    )
    tx.run(
        """
        DELETE FROM dashboard_sign_ins WHERE id IN (
            SELECT id FROM dashboard_sign_ins ORDER BY seen_at DESC LIMIT 1000 OFFSET :kept)
        """,
        kept=MAX_SIGN_INS - 1,
    )
    tx.run(
        """
        INSERT INTO dashboard_sign_ins (id, hash, key_hash, address, agent, created_at, seen_at, expires_at)
        VALUES (:id, :hash, :key_hash, :address, :agent, :created_at, :seen_at, :expires_at)
        """,
        **asdict(sign_in),
    )


def find(tx: Tx, cookie_hash: str, *, now: float) -> SignIn | None:
    return tx.one(
        f"SELECT {_COLUMNS} FROM dashboard_sign_ins WHERE hash = :hash AND expires_at > :now",
        SignIn,
        hash=cookie_hash,
        now=now,
    )


def listed(tx: Tx, *, now: float) -> list[SignIn]:
    """Every sign-in that counts, the last used first."""
    return tx.all(
        f"""
        SELECT {_COLUMNS} FROM dashboard_sign_ins WHERE expires_at > :now ORDER BY seen_at DESC, id LIMIT 1000
        """,
        SignIn,
        now=now,
    )


def saw(tx: Tx, sign_in_id: str, *, now: float, until: float) -> None:
    """Note the use of a sign-in, which prolongs it."""
    tx.run(
        "UPDATE dashboard_sign_ins SET seen_at = :now, expires_at = :until WHERE id = :id",
        id=sign_in_id,
        now=now,
        until=until,
    )


def revoke(tx: Tx, sign_in_id: str) -> bool:
    return tx.run("DELETE FROM dashboard_sign_ins WHERE id = :id", id=sign_in_id) == 1


def revoke_all(tx: Tx) -> int:
    """End every sign-in, and every code that nobody used."""
    tx.run("DELETE FROM dashboard_codes")
    return tx.run("DELETE FROM dashboard_sign_ins")
