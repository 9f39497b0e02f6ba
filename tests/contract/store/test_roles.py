"""Roles in the store: kept with message and turn, never raised, and noted for the whole of a shared session."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.store import inbox, outbox, pairings, people
from hermes.store.db import Database, Tx
from hermes.store.inbox import Incoming
from hermes.store.sessions import sessions
from hermes.store.turns import steps, turns
from tests.contract.store.rows import LANE, NOW, begin_next, compose, finish, incoming, letter, open_target, take

DAY = 86_400.0


def person(tx: Tx, user: str, role: str) -> None:
    made = people.ensure(tx, f"p_{user}", platform="telegram", user_id=user, name="", role=role, now=NOW)
    people.set_role(tx, made.id, role)


async def accept(database: Database, *events: Incoming) -> list[inbox.Accepted]:
    return await database.write(inbox.accept, events, now=NOW)


@pytest.mark.parametrize("later", ["owner", "user", "guest"])
async def test_a_turn_has_the_lower_of_the_role_then_and_the_role_now(database: Database, later: str) -> None:
    await database.write(person, "7", "user")
    await accept(database, incoming())
    await database.write(person, "7", later)
    begun = await database.write(take)
    assert begun is not None
    lowest = "guest" if later == "guest" else "user"
    turn = await database.read(turns.get, begun.turn.id)
    assert turn is not None
    assert begun.role == begun.turn.role == turn.role == lowest


@pytest.mark.parametrize("later, role", [("owner", "user"), ("guest", "guest")])
async def test_a_turn_that_a_process_left_goes_on_with_no_more_than_it_had(
    database: Database, later: str, role: str
) -> None:
    await database.write(person, "7", "user")
    await accept(database, incoming())
    begun = await database.write(take)
    assert begun is not None
    await database.write(person, "7", later)
    resumed = await database.write(begin_next, begun)
    assert resumed is not None
    assert (resumed.is_resumed, resumed.role) == (True, role)


async def test_a_turn_of_an_older_version_has_the_lowest_role_of_all_who_wrote_in_it(database: Database) -> None:
    for user, role in (("7", "owner"), ("8", "guest")):
        await database.write(person, user, role)
    await accept(database, incoming(), incoming())
    begun = await database.write(take)
    assert begun is not None

    def as_before(tx: Tx) -> None:
        tx.run("UPDATE turns SET role = ''")
        tx.run("UPDATE inbox SET role = '', sender_id = '8' WHERE seq = 1")

    await database.write(as_before)
    resumed = await database.write(begin_next, begun)
    assert resumed is not None
    assert resumed.role == "guest"


async def test_a_limit_that_is_given_counts_before_the_senders_role(database: Database) -> None:
    await database.write(person, "7", "owner")
    await accept(database, replace(incoming(), role="guest"))
    begun = await database.write(take)
    assert begun is not None
    assert begun.role == "guest"


@pytest.mark.parametrize("kind", ["steer", "message"])
@pytest.mark.parametrize(
    "sender, role, joins", [("7", "user", True), ("7", "guest", False), ("8", "owner", False), ("8", "guest", False)]
)
async def test_a_turn_is_steered_by_its_own_person_in_its_own_role_alone(
    database: Database, kind: str, sender: str, role: str, joins: bool
) -> None:
    await database.write(person, "7", "user")
    await accept(database, incoming())
    begun = await database.write(take)
    assert begun is not None
    await database.write(person, sender, role)
    [accepted] = await accept(database, incoming("more", sender_id=sender, kind=kind))
    assert (accepted.is_own and not accepted.is_below) == joins
    assert await database.read(steps.steering, begun.turn) == ("", joins and kind == "steer")
    added = await database.write(steps.steer, begun.claim, begun.turn, compose=compose, now=NOW)
    assert (added is not None) == joins
    assert [row.kind for row in await database.read(inbox.queued, LANE)] == ([] if joins else [kind]), (
        "it waits in line"
    )


async def test_the_next_turn_is_of_whoever_waits_longest_and_of_nobody_else(database: Database) -> None:
    for user, role in (("7", "owner"), ("8", "guest")):
        await database.write(person, user, role)
    events = [incoming("a", sender_id="8"), incoming("b"), incoming("c"), incoming("d", sender_id="8")]
    await accept(database, *events)
    begun, seen = await database.write(take), []
    while begun is not None:
        seen.append((begun.turn.person_id, begun.role, len(begun.event_ids)))
        is_over = await finish(database, begun)
        begun = None if is_over else await database.write(begin_next, begun)
    assert seen == [("p_8", "guest", 1), ("p_7", "owner", 2), ("p_8", "guest", 1)]


async def test_a_shared_session_keeps_the_lowest_role_and_so_does_its_copy(database: Database) -> None:
    await accept(database, incoming())
    begun = await database.write(take)
    assert begun is not None
    session = begun.turn.session_id
    heard = [await database.write(sessions.hear, session, role) for role in ("owner", "user", "owner")]
    assert heard == ["owner", "user", "user"]
    await database.write(sessions.fork, session, "s_copy", "agent:main:telegram:dm:9", title="", up_to=9, now=NOW)
    assert await database.read(sessions.heard, "s_copy") == "user"


async def test_of_an_older_session_the_people_of_its_turns_tell(database: Database) -> None:
    await database.write(person, "7", "guest")
    await accept(database, incoming())
    begun = await database.write(take)
    assert begun is not None
    assert await database.write(sessions.hear, begun.turn.session_id, "owner") == "guest"


async def test_a_session_that_is_taken_up_elsewhere_leaves_the_chat_where_it_was(database: Database) -> None:
    await accept(database, incoming())
    begun = await database.write(take)
    assert begun is not None
    await finish(database, begun)
    await database.write(sessions.switch, "agent:main:telegram:dm:9", begun.turn.session_id, now=NOW)
    assert await database.read(sessions.of_lane, LANE) == ""


# Strangers


async def test_what_strangers_left_goes_and_what_is_others_stays(database: Database) -> None:
    refused = [incoming(state=inbox.InboxState.REFUSED, sender_id="9") for _ in range(3)]
    kept = incoming()
    await accept(database, *refused, kept)
    told = letter(row_id=f"{pairings.STRANGER_NOTICE}_1", target="telegram:9")
    sending = await open_target(database, told)
    await database.write(outbox.enqueue, [letter(row_id="ob_other", target="telegram:7")], now=NOW)
    assert await database.write(pairings.forget_strangers, before=NOW + DAY) == 3, "what is still to be sent stays"
    assert sending.sending is not None
    await database.write(
        lambda tx: tx.run("UPDATE outbox SET state = 'sent', settled_at = 1 WHERE target = 'telegram:9'")
    )
    await database.write(lambda tx: tx.run("UPDATE targets SET owner = NULL, next_at = NULL"))
    assert await database.write(pairings.forget_strangers, before=NOW) == 0, "what is newer stays"
    assert await database.write(pairings.forget_strangers, before=NOW + DAY) == 1
    left = await database.read(lambda tx: tx.all("SELECT id FROM outbox", str))
    assert left == ["ob_other"]
    assert await database.read(lambda tx: tx.all("SELECT key FROM targets", str)) == ["telegram:7"]
    assert await database.read(inbox.get, kept.id) is not None


async def test_requests_are_counted_for_each_account_and_only_undecided_ones_are_forgotten(database: Database) -> None:
    def ask(tx: Tx, user: str, account: str, now: float) -> None:
        pairings.ask(tx, "telegram", user, account=account, chat=user, name="", now=now)

    for number, account in enumerate(("main", "main", "work")):
        await database.write(ask, str(number), account, NOW + number)
    await database.write(pairings.decide, "telegram", "0", pairings.PairingState.APPROVED, by="Ana", now=NOW)
    assert [one.user_id for one in await database.read(pairings.pending_of, "telegram", "main")] == ["1"]
    assert [one.user_id for one in await database.read(pairings.pending_of, "telegram", "work")] == ["2"]
    assert not await database.write(pairings.forget, "telegram", "0")
    assert await database.write(pairings.forget, "telegram", "1")
