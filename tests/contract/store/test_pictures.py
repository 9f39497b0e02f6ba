"""Pictures that came as data, stored once by hash, on both databases."""

from __future__ import annotations

from hermes.core.messages import ChatMessage, Image, Role
from hermes.store.api import pictures
from hermes.store.db import Database, Tx

LARGE = f"data:image/png;base64,{'A' * 4000}"
SMALL = "data:image/png;base64,AAAA"


def count(tx: Tx) -> int:
    return int(tx.value("SELECT count(*) FROM pictures") or 0)


async def test_picture_that_comes_twice_is_stored_once_and_found_again(database: Database) -> None:
    said = (ChatMessage(Role.USER, "look", images=(Image(LARGE, "high"), Image(SMALL), Image("https://x/a.png"))),)
    for _ in range(2):
        named, found = pictures.take_out(said)
        await database.write(pictures.keep, found, now=1.0)
    assert await database.read(count) == 1
    [message] = named
    assert len(message.images[0].url) < 200
    assert [image.url for image in message.images[1:]] == [SMALL, "https://x/a.png"]
    assert pictures.describe(message.images[0].url) == ("image/png", len(LARGE))
    known = await database.read(pictures.load, pictures.names_in(named))
    assert pictures.put_back(named, known) == list(said)


async def test_picture_that_is_gone_is_left_out(database: Database) -> None:
    named, _ = pictures.take_out((ChatMessage(Role.USER, "look", images=(Image(LARGE),)),))
    known = await database.read(pictures.load, pictures.names_in(named))
    assert pictures.put_back(named, known) == [ChatMessage(Role.USER, "look")]
