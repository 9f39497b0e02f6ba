"""Platforms that count what follows a person's message: how much is sent, what waits, and what is joined."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hermes.core.keys import Target
from hermes.core.messages import Attachment, AttachmentKind, OutboundMessage, TextUnit
from hermes.store import claims, codec, outbox, outbox_quota, outbox_sending
from hermes.store.db import Database
from hermes.store.outbox import OutboxKind, OutboxRow, Outgoing
from hermes.store.outbox_quota import LateNotes, ReplyQuota
from hermes.store.outbox_sending import BegunDelivery
from tests.contract.store.rows import NOW, OWNER, TARGET

LAST, LATE = "(write for the rest)", "(late:)"
TERMS = ReplyQuota(
    text_limit=30,
    unit=TextUnit.CHARACTERS,
    note_room=30,
    parked_seconds=1000.0,
    notes=lambda _tx, _turn: LateNotes(last=LAST, late=LATE),
)


def row(name: str, text: str, kind: OutboxKind = OutboxKind.REPLY, **more: Any) -> Outgoing:
    body = OutboundMessage(Target.parse(TARGET), text, idempotency_key=name, **more)
    return Outgoing(name, TARGET, name, 0, kind, codec.dump(body), NOW + 100)


async def put(db: Database, *rows: Outgoing, sends: int | None = None) -> None:
    await db.write(outbox.enqueue, rows, now=NOW)
    if sends is not None:
        await db.write(outbox_quota.allow, TARGET, sends=sends)


async def begin(db: Database, now: float = NOW) -> BegunDelivery | None:
    return await db.write(outbox_sending.take, TARGET, owner=OWNER, now=now, terms=TERMS)


async def next_text(db: Database, now: float = NOW) -> str:
    """Send the next message there, if one may be sent; its text."""
    begun = await begin(db, now)
    if begun is None or begun.sending is None:
        return ""
    await db.write(outbox_sending.record_sent, begun.sending.id, message_id="9", note="", now=now)
    await db.write(claims.abandon, "targets", begun.claim, now=now)
    return codec.load_outbound(begun.sending.body).text


async def get(db: Database, name: str) -> OutboxRow:
    found = await db.read(outbox.get, name)
    assert found is not None
    return found


async def states(db: Database, *names: str) -> list[str]:
    return [(await get(db, name)).state for name in names]


async def test_texts_that_wait_are_joined_as_far_as_one_message_reaches(database: Database) -> None:
    await put(database, *(row(f"ob_{number}", f"number {number}") for number in range(5)), sends=9)
    assert await next_text(database) == "number 0\n\nnumber 1\n\nnumber 2"
    assert await next_text(database) == "number 3\n\nnumber 4"
    assert await next_text(database) == ""
    rows = [await get(database, f"ob_{number}") for number in range(5)]
    assert {(each.state, each.message_id) for each in rows} == {("sent", "9")}


async def test_while_it_is_on_its_way_what_was_joined_is_neither_open_nor_sent(database: Database) -> None:
    await put(database, row("ob_a", "one"), row("ob_b", "two"), sends=9)
    begun = await begin(database)
    assert begun is not None
    assert await states(database, "ob_a", "ob_b") == ["unknown", "joined"]
    await database.write(outbox_sending.record_rejected, "ob_a", reason="no", now=NOW)
    assert await states(database, "ob_a", "ob_b") == ["dead", "dead"]
    assert await database.write(outbox.retry_dead, "ob_a", expires_at=NOW + 100, now=NOW)
    assert await states(database, "ob_a", "ob_b") == ["ready", "joined"]
    await database.write(claims.abandon, "targets", begun.claim, now=NOW)
    assert await next_text(database) == "one\n\ntwo"
    assert await states(database, "ob_a", "ob_b") == ["sent", "sent"]


async def test_what_did_not_leave_takes_along_what_came_meanwhile(database: Database) -> None:
    await put(database, row("ob_a", "one"), sends=9)
    begun = await begin(database)
    assert begun is not None
    await database.write(outbox_sending.record_not_sent, "ob_a", not_before=NOW, reason="unreachable")
    await put(database, row("ob_b", "two"))
    await database.write(claims.abandon, "targets", begun.claim, now=NOW)
    assert await next_text(database) == "one\n\ntwo"
    assert await database.read(outbox_quota.sends_left, TARGET) == 8, "what did not leave was not counted"


async def test_what_was_begun_without_counting_gives_nothing_back(database: Database) -> None:
    """An account that is not up yet, or is paused, tells no terms: its letters are begun and put off, each minute."""
    await put(database, row("ob_a", "one"), sends=2)
    for _ in range(3):
        begun = await database.write(outbox_sending.take, TARGET, owner=OWNER, now=NOW)
        assert begun is not None
        assert begun.sending is not None
        await database.write(
            outbox_sending.record_not_sent, "ob_a", not_before=NOW, reason="off", was_counted=begun.sending.is_counted
        )
        await database.write(claims.abandon, "targets", begun.claim, now=NOW)
    assert await database.read(outbox_quota.sends_left, TARGET) == 2


async def test_what_may_have_arrived_is_repeated_as_it_was(database: Database) -> None:
    await put(database, row("ob_a", "one"), sends=9)
    begun = await begin(database)
    assert begun is not None
    await put(database, row("ob_b", "two"))
    await database.write(outbox_sending.record_unknown, "ob_a", not_before=NOW, reason="no answer")
    await database.write(claims.abandon, "targets", begun.claim, now=NOW)
    assert await next_text(database) == "one"
    assert await next_text(database) == "two"


async def test_a_question_a_file_and_what_must_not_be_lost_with_a_notice_stay_alone(database: Database) -> None:
    file = Attachment(AttachmentKind.DOCUMENT, path="/a.pdf")
    rows = [
        row("ob_q", "May I?", OutboxKind.QUESTION),
        row("ob_n", "busy", OutboxKind.NOTICE),
        row("ob_r", "done"),
        row("ob_f", "", attachment=file),
        row("ob_s", "so"),
        row("ob_m", "noted", OutboxKind.NOTICE),
    ]
    await put(database, *rows, sends=9)
    sent = [await next_text(database) for _ in range(5)]
    assert sent == ["May I?", "busy", "done", "", "so\n\nnoted"]


async def test_the_last_that_may_be_sent_says_so_and_the_rest_waits_for_the_next_message(database: Database) -> None:
    await put(database, *(row(f"ob_{number}", f"a text of number {number}") for number in range(4)), sends=2)
    assert await next_text(database) == "a text of number 0"
    assert await next_text(database) == f"a text of number 1\n\n{LAST}"
    assert await next_text(database) == ""
    assert await states(database, "ob_2", "ob_3") == ["parked", "parked"]
    assert (await get(database, "ob_2")).expires_at == NOW + 1000
    await database.write(outbox.unpark, TARGET, now=NOW)
    await database.write(outbox_quota.allow, TARGET, sends=2)
    assert await next_text(database) == "a text of number 2", "that it waits was said"


async def test_where_the_last_has_no_room_for_it_the_word_goes_alone(database: Database) -> None:
    file = Attachment(AttachmentKind.DOCUMENT, path="/a.pdf")
    await put(database, row("ob_f", "", attachment=file), row("ob_b", "behind"), sends=1)
    assert await next_text(database) == LAST
    assert await next_text(database) == ""
    assert await states(database, "ob_f", "ob_b") == ["parked", "parked"]


async def test_what_was_joined_is_not_lost_when_the_last_has_no_room_for_the_word(database: Database) -> None:
    terms = replace(TERMS, note_room=0)
    await put(database, row("ob_a", "some fifteen ch"), row("ob_b", "and ten ch"), row("ob_c", "behind"), sends=1)
    begun = await database.write(outbox_sending.take, TARGET, owner=OWNER, now=NOW, terms=terms)
    assert begun is not None
    assert begun.sending is not None
    assert codec.load_outbound(begun.sending.body).text == LAST
    assert codec.load_outbound((await get(database, "ob_a")).body).text == "some fifteen ch\n\nand ten ch"
    assert await states(database, "ob_a", "ob_b") == ["parked", "joined"]


async def test_a_notice_never_takes_the_last(database: Database) -> None:
    await put(database, row("ob_n", "busy", OutboxKind.NOTICE), row("ob_r", "done"), sends=1)
    assert await next_text(database) == f"done\n\n{LAST}"
    assert await states(database, "ob_n") == ["dead"]


async def test_behind_what_is_parked_everything_waits_and_comes_in_order_with_a_word(database: Database) -> None:
    await put(database, row("ob_a", "one"), sends=9)
    begun = await begin(database)
    assert begun is not None
    await database.write(outbox.record_parked, "ob_a", expires_at=NOW + 1000, reason="refused")
    await put(database, row("ob_n", "busy", OutboxKind.NOTICE), row("ob_b", "two"))
    await database.write(claims.abandon, "targets", begun.claim, now=NOW)
    assert await next_text(database) == ""
    assert await states(database, "ob_a", "ob_n", "ob_b") == ["parked", "dead", "parked"]
    await database.write(outbox.unpark, TARGET, now=NOW)
    assert await next_text(database) == f"{LATE}\none\n\ntwo"


async def test_what_may_have_arrived_keeps_its_mark_while_it_waits(database: Database) -> None:
    await put(database, row("ob_a", "one"), sends=1)
    begun = await begin(database)
    assert begun is not None
    await database.write(outbox_sending.record_unknown, "ob_a", not_before=NOW, reason="no answer")
    await database.write(claims.abandon, "targets", begun.claim, now=NOW)
    assert await next_text(database) == ""
    assert await states(database, "ob_a") == ["parked"]
    await database.write(outbox.unpark, TARGET, now=NOW)
    await database.write(outbox_quota.allow, TARGET, sends=9)
    again = await begin(database)
    assert again is not None
    assert again.sending is not None
    assert again.sending.repeats == 1
    assert LAST not in codec.load_outbound(again.sending.body).text, "a word that is no longer true is taken back"


async def test_where_nobody_has_written_nothing_is_counted(database: Database) -> None:
    for number in range(12):
        await put(database, row(f"ob_{number}", "a text that fills all of it"))
        assert await next_text(database) == "a text that fills all of it"
    assert await database.read(outbox_quota.sends_left, TARGET) is None
