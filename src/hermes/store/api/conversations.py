"""Store conversations as objects: when they were made, their metadata, and items that wait for the next response."""

from __future__ import annotations

from typing import Any

import orjson

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx


@dataclass(frozen=True, slots=True)
class ConversationObject:
    """``items`` are the bodies of items that no response has taken in yet."""

    name: str
    created_at: float
    metadata: dict[str, Any]
    items: list[dict[str, Any]]


def get(tx: Tx, asked_by: str, name: str) -> ConversationObject | None:
    """A conversation that was made, or that a response named: it exists from its newest response on."""
    found = tx.one(
        """
        SELECT name, created_at, metadata, items FROM conversation_objects
        WHERE asked_by = :asked_by AND name = :name
        """,
        _read,
        asked_by=asked_by,
        name=name,
    )
    if found is not None:
        return found
    at = tx.value(
        """
        SELECT responses.created_at FROM conversations JOIN responses ON responses.id = conversations.response_id
        WHERE conversations.asked_by = :asked_by AND conversations.name = :name
        """,
        asked_by=asked_by,
        name=name,
    )
    return ConversationObject(name, float(at), {}, []) if at is not None else None


def put(tx: Tx, asked_by: str, made: ConversationObject) -> None:
    """Store a conversation, or what has changed of it."""
    tx.run(
        """
        INSERT INTO conversation_objects (asked_by, name, created_at, metadata, items)
        VALUES (:asked_by, :name, :created_at, :metadata, :items)
        ON CONFLICT (asked_by, name) DO UPDATE SET metadata = excluded.metadata, items = excluded.items
        """,
        asked_by=asked_by,
        name=made.name,
        created_at=made.created_at,
        metadata=orjson.dumps(made.metadata).decode(),
        items=orjson.dumps(made.items).decode(),
    )


def take_items(tx: Tx, asked_by: str, name: str, count: int) -> None:
    """Forget the first items that wait: a response has taken them in."""
    made = get(tx, asked_by, name)
    if made is not None and count:
        put(tx, asked_by, ConversationObject(made.name, made.created_at, made.metadata, made.items[count:]))


def delete(tx: Tx, asked_by: str, name: str) -> bool:
    """Forget a conversation. Its responses and its session stay, and the name starts afresh."""
    tx.run("DELETE FROM conversations WHERE asked_by = :asked_by AND name = :name", asked_by=asked_by, name=name)
    made = tx.run(
        "DELETE FROM conversation_objects WHERE asked_by = :asked_by AND name = :name", asked_by=asked_by, name=name
    )
    return bool(made)


def _read(name: str, created_at: float, metadata: str, items: str) -> ConversationObject:
    return ConversationObject(name, created_at, orjson.loads(metadata), orjson.loads(items))
