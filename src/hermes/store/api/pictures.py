"""Store pictures that came as data once, by hash: clients send the same ones again with every request."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from hermes.core.messages import ChatMessage, Image
from hermes.store.db import Tx

PREFIX = "picture:"
MIN_CHARS = 1024
"""A shorter address is kept in its message: its name would not be shorter."""
NOTED_SECONDS = 86400.0


def take_out(messages: Sequence[ChatMessage]) -> tuple[tuple[ChatMessage, ...], dict[str, str]]:
    """Return the messages with names in place of pictures, and the addresses of these pictures by hash."""
    found: dict[str, str] = {}

    def named(image: Image) -> Image:
        if not image.url.startswith("data:") or len(image.url) < MIN_CHARS:
            return image
        name = hashlib.sha256(image.url.encode()).hexdigest()
        found[name] = image.url
        kind = image.url[5:].partition(",")[0].partition(";")[0]
        return replace(image, url=f"{PREFIX}{name};{kind[:100]};{len(image.url)}")

    changed = tuple(
        replace(message, images=tuple(map(named, message.images))) if message.images else message
        for message in messages
    )
    return changed, found


def describe(name: str) -> tuple[str, int]:
    """Return the media type of a named picture, and how many characters its address has."""
    _, kind, length = (*name.split(";"), "", "")[:3]
    return kind, int(length) if length.isdigit() else 0


def put_back(messages: Sequence[ChatMessage], known: dict[str, str]) -> list[ChatMessage]:
    """Undo ``take_out``. A picture that is not known any more is left out."""
    return [_whole(message, known) if message.images else message for message in messages]


def _whole(message: ChatMessage, known: dict[str, str]) -> ChatMessage:
    urls = [known.get(_hash_of(image.url), "") if _is_name(image.url) else image.url for image in message.images]
    images = (replace(image, url=url) for image, url in zip(message.images, urls, strict=True) if url)
    return replace(message, images=tuple(images))


def names_in(messages: Sequence[ChatMessage]) -> set[str]:
    """Return the hashes of the pictures that these messages name."""
    return {_hash_of(image.url) for message in messages for image in message.images if _is_name(image.url)}


def keep(tx: Tx, found: dict[str, str], *, now: float) -> None:
    """Store pictures; of one that is there, note about once a day that it is still used."""
    for name, url in found.items():
        tx.run(
            """
            INSERT INTO pictures (hash, url, created_at) VALUES (:hash, :url, :now)
            ON CONFLICT (hash) DO UPDATE SET created_at = excluded.created_at WHERE pictures.created_at < :old
            """,
            hash=name,
            url=url,
            now=now,
            old=now - NOTED_SECONDS,
        )


def load(tx: Tx, names: set[str]) -> dict[str, str]:
    known: dict[str, str] = {}
    for name in names:
        url = tx.value("SELECT url FROM pictures WHERE hash = :hash", hash=name)
        if url is not None:
            known[name] = str(url)
    return known


def _is_name(url: str) -> bool:
    return url.startswith(PREFIX)


def _hash_of(url: str) -> str:
    return url.removeprefix(PREFIX).partition(";")[0]
