"""Revisions and undo: what counts of a session changes, its lines never do."""

from __future__ import annotations

from dataclasses import replace

from hermes.core.messages import ChatMessage, Role, ToolCall
from hermes.store import claims
from hermes.store.db import Database, Tx
from hermes.store.sessions import revisions, sessions, transcripts, undo
from hermes.store.sessions.undo import Shorter
from tests.contract.store.rows import LANE, NOW


def exchange(tx: Tx, number: int) -> None:
    """A turn with a call in it: four lines."""
    call = ToolCall(f"c{number}", "read_file", "{}")
    lines = [
        ChatMessage(Role.USER, f"question {number}"),
        ChatMessage(Role.ASSISTANT, "", (call,)),
        ChatMessage(Role.TOOL, "result", tool_call_id=call.id, name=call.name),
        ChatMessage(Role.ASSISTANT, f"answer {number}"),
    ]
    transcripts.append(tx, "s_1", f"t_{number}", lines, now=NOW + number)


def talk(tx: Tx, count: int = 5) -> None:
    claims.wake(tx, "lanes", LANE, at=NOW)
    sessions.start(tx, "s_1", LANE, now=NOW)
    for number in range(1, count + 1):
        exchange(tx, number)


def compressed(tx: Tx, up_to: int, summary: str = "short") -> int:
    return undo.compress(tx, "s_1", Shorter(transcripts.context(tx, "s_1"), up_to, summary), now=NOW + 50)


async def questions(database: Database) -> list[str]:
    """The numbers of the questions that count."""
    found = await database.read(transcripts.history, "s_1")
    return [message.text.removeprefix("question ") for message in found if message.role is Role.USER]


async def summary(database: Database) -> str:
    return (await database.read(transcripts.context, "s_1")).summary


async def test_a_revision_stands_for_the_lines_before_it_and_they_are_kept(database: Database) -> None:
    await database.write(talk)
    assert await database.write(compressed, 12) == 1
    assert await questions(database) == ["4", "5"]
    assert await summary(database) == "short"
    lines = await database.read(transcripts.lines, "s_1")
    assert [line.kind for line in lines] == ["message"] * 20 + ["revision"]
    session = await database.read(sessions.get, "s_1")
    assert session is not None
    assert session.updated_at == NOW + 5, "that is no use of the session: it may still fall asleep"


async def test_the_newest_revision_counts_and_undo_goes_back_step_by_step(database: Database) -> None:
    await database.write(talk)
    await database.write(compressed, 8, "first")
    await database.write(exchange, 6)
    await database.write(compressed, 20, "second")
    assert (await summary(database), await questions(database)) == ("second", ["6"])
    undone = await database.write(undo.undo, "s_1", now=NOW + 60)
    assert undone.revision == 2
    assert (await summary(database), await questions(database)) == ("first", ["3", "4", "5", "6"])
    undone = await database.write(undo.undo, "s_1", now=NOW + 61)
    assert (undone.exchanges, undone.text) == (1, "question 6")
    undone = await database.write(undo.undo, "s_1", now=NOW + 62)
    assert undone.revision == 1, "nothing that was said since the compression is left"
    assert (await summary(database), await questions(database)) == ("", ["1", "2", "3", "4", "5"])


async def test_undo_takes_back_exchanges_and_a_further_one_goes_on_from_there(database: Database) -> None:
    await database.write(talk)
    undone = await database.write(undo.undo, "s_1", now=NOW)
    assert (undone.exchanges, undone.text) == (1, "question 5")
    undone = await database.write(undo.undo, "s_1", count=2, now=NOW)
    assert (undone.exchanges, undone.text) == (2, "question 3")
    assert await questions(database) == ["1", "2"]
    await database.write(exchange, 6)
    assert await questions(database) == ["1", "2", "6"]
    await database.write(undo.undo, "s_1", count=2, now=NOW)
    assert await questions(database) == ["1"]
    undone = await database.write(undo.undo, "s_1", count=50, now=NOW)
    assert undone.exchanges == 1
    assert await questions(database) == []
    assert await database.write(undo.undo, "s_1", now=NOW) == undo.NOTHING
    lines = await database.read(transcripts.lines, "s_1")
    assert len([line for line in lines if line.kind == "message"]) == 24, "the lines themselves stay"


async def test_an_undo_that_comes_twice_acts_once(database: Database) -> None:
    await database.write(talk)
    first = await database.write(undo.undo, "s_1", asked="ev_1", now=NOW)
    assert await database.write(undo.undo, "s_1", asked="ev_1", now=NOW) == first
    assert await questions(database) == ["1", "2", "3", "4"]


async def test_nothing_is_taken_back_while_a_turn_is_open(database: Database) -> None:
    def open_turn(tx: Tx) -> None:
        tx.run("UPDATE lanes SET turn_id = 't_9', session_id = 's_1' WHERE key = :key", key=LANE)

    await database.write(talk)
    await database.write(open_turn)
    assert (await database.write(undo.undo, "s_1", now=NOW)).is_busy
    assert await questions(database) == ["1", "2", "3", "4", "5"]


async def test_a_revision_made_from_what_no_longer_counts_is_not_stored(database: Database) -> None:
    await database.write(talk)
    seen = await database.read(transcripts.context, "s_1")
    await database.write(undo.undo, "s_1", now=NOW)
    assert await database.write(undo.compress, "s_1", Shorter(seen, 12, "late"), now=NOW) == 0
    seen = await database.read(transcripts.context, "s_1")
    assert await database.write(compressed, 8) == 1
    assert await database.write(undo.compress, "s_1", Shorter(seen, 12, "later"), now=NOW) == 0
    assert await database.write(undo.compress, "s_gone", Shorter(seen, 12, "gone"), now=NOW) == 0
    assert await summary(database) == "short"


async def test_a_revision_does_not_mind_what_was_said_meanwhile(database: Database) -> None:
    await database.write(talk)
    seen = await database.read(transcripts.context, "s_1")
    await database.write(exchange, 6)
    assert await database.write(undo.compress, "s_1", Shorter(seen, 16, "short"), now=NOW) == 1
    assert await questions(database) == ["5", "6"]


async def test_a_long_session_with_much_taken_back_costs_a_bounded_number_of_rows(database: Database) -> None:
    def much(tx: Tx) -> None:
        talk(tx, 1)
        for number in range(2, 130):
            exchange(tx, number)
        transcripts.append_line(tx, "s_1", "undo", '{"from": 9}', now=NOW)

    await database.write(much)
    assert await questions(database) == ["1", "2"]


async def test_a_fork_has_the_revisions_of_its_part_and_deleting_removes_them(database: Database) -> None:
    await database.write(talk)
    await database.write(compressed, 12)
    await database.write(sessions.fork, "s_1", "s_2", "agent:main:api:dm:x", title="", up_to=21, now=NOW)
    await database.write(sessions.fork, "s_1", "s_3", "agent:main:api:dm:y", title="", up_to=20, now=NOW)
    assert (await database.read(transcripts.context, "s_2")).summary == "short"
    assert (await database.read(transcripts.context, "s_3")).summary == ""
    await database.write(sessions.delete, "s_1")
    assert await database.read(revisions.newest, "s_1") is None
    assert await database.read(revisions.newest, "s_2") is not None


async def test_rows_are_made_again_from_the_lines_alone(database: Database) -> None:
    def lose(tx: Tx) -> None:
        tx.run("DELETE FROM revisions")

    await database.write(talk)
    await database.write(compressed, 8, "first")
    await database.write(exchange, 6)
    await database.write(compressed, 12, "second")
    await database.write(undo.undo, "s_1", now=NOW + 60)
    kept = await database.read(revisions.newest, "s_1")
    await database.write(lose)
    assert await summary(database) == ""
    await database.write(revisions.make_again, "s_1")
    assert await summary(database) == "first"
    assert kept is not None
    assert await database.read(revisions.newest, "s_1") == replace(kept, undone_at=NOW + 60)
