"""Lines of a transcript file are put back where the store lacks them, and nowhere else."""

from __future__ import annotations

from typing import Any

from hermes.store.db import Database
from hermes.store.sessions import rebuild, sessions, transcripts
from tests.contract.store.rows import LANE, NOW, begun_turn, finish


def line(seq: int, text: str) -> dict[str, Any]:
    return {"session": "s_1", "seq": seq, "at": NOW + seq, "turn": "t_1", "kind": "message", "body": {"text": text}}


async def test_a_session_that_is_gone_is_made_again_from_its_lines(database: Database) -> None:
    row = {"key": LANE, "title": "Plans", "created_at": NOW, "ended_at": None}
    lines = [line(1, "a"), line(2, "b")]
    assert await database.write(rebuild.put_back, "s_1", row, lines) == 2
    assert await database.write(rebuild.put_back, "s_1", row, lines) == 0
    found = await database.read(sessions.get, "s_1")
    assert found is not None
    assert (found.title, found.seq, found.updated_at) == ("Plans", 2, NOW + 2)
    begun = await begun_turn(database)
    assert begun.turn.session_id == "s_1"  # the conversation goes on where it was
    assert await database.read(sessions.is_busy, "s_1")


async def test_lines_that_the_store_has_stay_as_they_are(database: Database) -> None:
    begun = await begun_turn(database, "mine")
    await finish(database, begun)
    session_id = begun.turn.session_id
    added = await database.write(
        rebuild.put_back, session_id, {"key": LANE}, [line(1, "x"), line(2, "y"), line(3, "z")]
    )
    assert added == 1
    assert '"mine"' in (await database.read(transcripts.lines, session_id))[0].body
    assert not await database.read(sessions.is_busy, session_id)
