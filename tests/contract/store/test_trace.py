"""The life of a message is found by whatever belongs to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.store import inbox, outbox, outbox_sending, people
from hermes.store.db import Database
from hermes.store.inbox import InboxState
from hermes.store.reports import trace
from tests.contract.store.rows import DONE, NOW, add_calls, begun_turn, finish, incoming, letter, question


async def test_a_turn_is_found_by_its_event_its_letter_and_its_approval(database: Database) -> None:
    begun = await begun_turn(database)
    asked = question()
    begun, _ = await add_calls(database, begun, ("danger", asked))
    sent = letter(turn_id=begun.turn.id)
    await finish(database, begun, replace(DONE, replies=[sent]))
    life = await database.read(trace.life_of, begun.turn.id)
    assert life is not None
    assert [call.name for call in life.calls] == ["danger"]
    assert [line.seq for line in life.lines] == [1, 2, 3, 4]
    for name in (life.events[0].id, f"run_{life.events[0].id}", sent.id, asked.id):
        assert await database.read(trace.life_of, name) == life


async def test_a_command_is_found_with_its_reply(database: Database) -> None:
    event = incoming("/status", kind="command", state=InboxState.ACTING)
    await database.write(inbox.accept, [event], now=NOW)
    reply = letter(row_id=f"ob_{event.id}")
    await database.write(outbox.enqueue, [reply], now=NOW)
    life = await database.read(trace.life_of, event.id)
    assert life is not None
    assert (life.turn, [row.id for row in life.letters]) == (None, [reply.id])
    assert await database.read(trace.life_of, reply.id) == life


@pytest.mark.parametrize(
    "event_id, name",
    [("ev_1", "chatcmpl-ev_1"), ("ev_1", "run_ev_1"), ("ev_resp_1", "resp_1"), ("ev_resp_1", "ev_resp_1")],
)
async def test_a_request_is_found_by_the_id_its_client_shows(database: Database, event_id: str, name: str) -> None:
    await database.write(inbox.accept, [incoming(event_id=event_id)], now=NOW)
    life = await database.read(trace.life_of, name)
    assert life is not None
    assert life.events[0].id == event_id


@pytest.mark.parametrize("name", ["telegram/77/msg:7:1001", "msg:7:1001", "7:1001", "m-17"])
async def test_a_message_is_found_by_its_platforms_own_id(database: Database, name: str) -> None:
    event = incoming(keys=("telegram/77/msg:7:1001",), event_id="ev_mine")
    sent = letter(row_id="ob_ev_mine")
    await database.write(inbox.accept, [event, incoming(keys=("telegram/77/msg:17:2001",))], now=NOW)
    await database.write(outbox.enqueue, [sent], now=NOW)
    await database.write(outbox_sending.record_sent, sent.id, message_id="m-17", note="", now=NOW)
    life = await database.read(trace.life_of, name)
    assert life is not None
    assert life.events[0].id == event.id


@pytest.mark.parametrize("name", ["", "nobody", "t_nobody", "%", "_", "\\", "ev_'; DROP TABLE inbox"])
async def test_what_nobody_knows_is_not_found(database: Database, name: str) -> None:
    await database.write(inbox.accept, [incoming(keys=("telegram/77/msg:7:1001",))], now=NOW)
    assert await database.read(trace.life_of, name) is None


async def test_the_latest_messages_come_newest_first_with_who_wrote_and_how_far_each_is(database: Database) -> None:
    begun = await begun_turn(database, "first")
    sent = letter(turn_id=begun.turn.id)
    await finish(database, begun, replace(DONE, replies=[sent]))
    await database.write(people.ensure, "p_7", platform="telegram", user_id="7", name="Ana", role="user", now=NOW)
    command = incoming("/status", kind="command", state=InboxState.ACTING, sender_id="8")
    refused = incoming("let me in", state=InboxState.REFUSED, sender_id="9")
    for later, event in enumerate((command, refused), 1):
        await database.write(inbox.accept, [event], now=NOW + later)
    reply = letter(row_id=f"ob_{command.id}")
    await database.write(outbox.enqueue, [reply], now=NOW)
    found = await database.read(trace.newest, limit=10)
    assert [(one.event.id, one.person, one.turn and one.turn.state) for one in found] == [
        (refused.id, "", None),
        (command.id, "", None),
        (found[2].event.id, "Ana", "done"),
    ]
    assert [[row.id for row in one.letters] for one in found] == [[], [reply.id], [sent.id]]
    assert [one.event.id for one in await database.read(trace.newest, limit=1)] == [refused.id]
    assert await database.read(inbox.count) == 3
