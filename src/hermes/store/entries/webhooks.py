"""Store the routes of webhooks that were subscribed by hand."""

from __future__ import annotations

from dataclasses import asdict

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """One route. ``events`` and ``skills`` are names separated by commas."""

    name: str
    secret: str
    signature: str
    events: str
    prompt: str
    skills: str
    deliver: str
    deliver_only: int
    role: str
    created_at: float


COLUMNS = "name, secret, signature, events, prompt, skills, deliver, deliver_only, role, created_at"


def add(tx: Tx, row: WebhookRow) -> None:
    """Store a route; one of the same name is replaced."""
    tx.run(
        f"""
        INSERT INTO webhooks ({COLUMNS})
        VALUES (:name, :secret, :signature, :events, :prompt, :skills, :deliver, :deliver_only, :role, :created_at)
        ON CONFLICT (name) DO UPDATE SET secret = excluded.secret, signature = excluded.signature,
            events = excluded.events, prompt = excluded.prompt, skills = excluded.skills, deliver = excluded.deliver,
            deliver_only = excluded.deliver_only, role = excluded.role
        """,
        **asdict(row),
    )


def listed(tx: Tx) -> list[WebhookRow]:
    return tx.all(f"SELECT {COLUMNS} FROM webhooks ORDER BY name", WebhookRow)


def has_any(tx: Tx) -> bool:
    return tx.value("SELECT 1 FROM webhooks LIMIT 1") is not None


def remove(tx: Tx, name: str) -> bool:
    return tx.run("DELETE FROM webhooks WHERE name = :name", name=name) == 1
