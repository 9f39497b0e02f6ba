"""What is settled and old goes, a bite at a time; what is unfinished, waits or says whose a session is stays."""

from __future__ import annotations

from hermes.store import codec, inbox, outbox, outbox_sending
from hermes.store.api import pictures
from hermes.store.db import Database, Tx
from hermes.store.inbox import InboxState
from hermes.store.reports import trace
from hermes.store.retention import deletion, pruning
from hermes.store.retention.pruning import START, Place
from hermes.store.sessions import sessions
from tests.contract.store.rows import LANE, NOW, add_calls, begun_turn, finish, incoming, letter, open_target, question

LATER = NOW + 100 * 86400.0
OLD = NOW + 10.0


async def prune_all(database: Database, *, before: float = OLD, bite: int = 3) -> dict[str, int]:
    """Prune every table to its end, in small bites."""
    gone: dict[str, int] = {}
    for table, prune in pruning.PRUNED.items():
        after: Place | None = START
        gone[table] = 0
        while after is not None:
            taken = await database.alone(prune, before=before, after=after, bite=bite)
            assert taken.pruned <= bite * 10
            gone[table] += taken.pruned
            after = taken.after
    return gone


def count(tx: Tx, table: str) -> int:
    return int(tx.value(f"SELECT COUNT(*) FROM {table}"))


async def counts(database: Database, *tables: str) -> list[int]:
    return [await database.read(count, table) for table in tables]


async def ended_turn(database: Database, text: str = "hi", *, lane: str = LANE, now: float = NOW) -> str:
    """A turn with a tool call and a delivery that was sent."""
    begun = await begun_turn(database, text, lane=lane, now=now)
    begun, _ = await add_calls(database, begun, ("search", None), now=now)
    await finish(database, begun, now=now)
    held = await open_target(database, letter(turn_id=begun.turn.id, expires_at=now + 3600), now=now)
    assert held.sending is not None
    await database.write(outbox_sending.record_sent, held.sending.id, message_id="1", note="", now=now)
    await database.write(outbox_sending.rest, held.claim)
    return begun.turn.id


async def test_settled_rows_go_with_their_age_and_the_newest_turn_of_a_person_stays(database: Database) -> None:
    for number in range(7):
        await ended_turn(database, f"old {number}", now=NOW + number)
    newest = await ended_turn(database, "new", now=LATER)
    gone = await prune_all(database)
    assert (gone["inbox"], gone["outbox"]) == (7, 7)
    assert await counts(database, "inbox", "outbox", "turns", "tool_calls") == [1, 1, 1, 1]
    assert (await database.read(trace.life_of, newest)) is not None
    assert sum((await prune_all(database)).values()) == 0, "a second pass finds nothing"


async def test_the_last_turn_of_a_person_stays_while_its_session_does(database: Database) -> None:
    for number in range(3):
        await ended_turn(database, f"old {number}", now=NOW + number)
    [session] = await database.read(sessions.newest)
    await prune_all(database)
    assert await counts(database, "turns", "tool_calls", "inbox", "outbox") == [1, 0, 0, 0]
    await database.write(sessions.delete, session.id)
    await prune_all(database)
    assert await counts(database, "turns") == [0]


async def test_nothing_that_is_unfinished_or_waits_goes(database: Database) -> None:
    queued = incoming("waits", lane="agent:main:telegram:dm:8")
    await database.write(inbox.accept, [queued], now=NOW)
    begun = await begun_turn(database, "asks")
    await add_calls(database, begun, ("danger", question()))
    await database.write(outbox.enqueue, [letter("waits", target="telegram:9")], now=NOW)
    before = await counts(database, "inbox", "turns", "tool_calls", "approvals", "outbox", "dedupe")
    assert sum((await prune_all(database, before=LATER)).values()) == 0
    assert await counts(database, "inbox", "turns", "tool_calls", "approvals", "outbox", "dedupe") == before


async def test_a_pruned_message_that_comes_again_is_still_known(database: Database) -> None:
    refused = incoming("let me in", state=InboxState.REFUSED, keys=["telegram/1/msg:1"])
    await database.write(inbox.accept, [refused], now=NOW)
    await prune_all(database)
    assert await counts(database, "inbox", "dedupe") == [0, 1]
    [again] = await database.write(inbox.accept, [incoming("let me in", keys=["telegram/1/msg:1"])], now=LATER)
    assert not again.is_new


async def test_a_text_that_was_joined_to_one_still_waiting_stays(database: Database) -> None:
    await database.write(outbox.enqueue, [letter("one", row_id="ob_1"), letter("two", row_id="ob_2")], now=NOW)
    join = "UPDATE outbox SET state = 'joined', joined_to = 'ob_2' WHERE id = 'ob_1'"
    await database.write(lambda tx: tx.run(join))
    assert (await prune_all(database))["outbox"] == 0
    await database.write(lambda tx: tx.run("UPDATE outbox SET state = 'sent' WHERE id = 'ob_2'"))
    assert (await prune_all(database))["outbox"] == 2


async def test_pictures_go_when_no_request_has_brought_them_for_long(database: Database) -> None:
    for name in ("a", "b"):
        await database.write(pictures.keep, {name * 64: "data:image/png;base64,AAAA"}, now=NOW)
    await database.write(pictures.keep, {"b" * 64: "data:image/png;base64,AAAA"}, now=LATER)
    await prune_all(database)
    assert list(await database.read(pictures.load, {"a" * 64, "b" * 64})) == ["b" * 64]


async def test_sessions_of_single_requests_are_told_from_named_ones_and_from_chats(database: Database) -> None:
    def put(tx: Tx) -> None:
        for name, key in (
            ("s_1", "agent:main:api:dm:s_abc"),
            ("s_2", "agent:main:api:dm:notes"),
            ("s_3", "agent:main:telegram:dm:7"),
            ("s_4", "agent:main:task:dm:call.0"),
            ("s_5", "agent:main:api:dm:s_busy"),
            ("s_6", "agent:main:api:dm:s_titled"),
        ):
            sessions.start(tx, name, key, now=NOW)
        tx.run("INSERT INTO lanes (key, turn_id) VALUES ('agent:main:api:dm:s_busy', 't_1')")
        sessions.rename(tx, "s_6", "Plans for the garden")

    await database.write(put)
    found, after = await database.read(pruning.old_requests, before=OLD)
    assert (found, after) == (["s_1", "s_4"], None)
    assert (await database.read(pruning.old_requests, before=NOW - 1))[0] == []


async def test_a_deleted_session_keeps_ids_and_states_and_no_words(database: Database) -> None:
    turn_id = await ended_turn(database, "quince")
    [session] = await database.read(sessions.newest)
    command = incoming("/title quince", state=InboxState.ACTING)
    await database.write(inbox.accept, [command], now=NOW + 1)
    await database.write(inbox.settle, command.id, state=InboxState.ANSWERED, now=NOW + 1)
    assert await database.write(deletion.delete, session.id, now=NOW + 2)
    await database.alone(deletion.blank_turns, session.id)
    gone = await database.read(deletion.get, session.id)
    assert gone is not None
    found, after = await database.read(deletion.commands_in, [gone], after=(NOW, ""), until=gone.until)
    assert (found, after) == ([(session.id, command.id)], None)
    await database.alone(deletion.blank_commands, session.id, [command.id])
    await database.alone(deletion.blank_rest, session.id)
    assert await database.alone(deletion.finish, session.id)
    life = await database.read(trace.life_of, turn_id)
    assert life is not None
    assert life.turn is not None
    assert life.turn.state == "done"
    assert [codec.load_message(event.body).text for event in life.events] == [""]
    assert [(call.state, call.arguments, call.result) for call in life.calls] == [("done", "{}", "")]
    assert [(row.state, codec.load_outbound(row.body).text) for row in life.letters] == [("sent", "")]
    row = await database.read(inbox.get, command.id)
    assert row is not None
    assert (row.state, codec.load_message(row.body).text) == ("answered", "")
    assert await database.alone(deletion.forget_blank, deleted_until=NOW + 2) == 1
    assert await database.read(deletion.unfinished) == []
