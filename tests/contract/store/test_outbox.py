"""The outbox: each row until the platform took it, refused it, or its time was over; in order for each target."""

from __future__ import annotations

from hermes.store import claims, outbox, outbox_sending
from hermes.store.db import Database
from tests.contract.store.rows import NOW, OWNER, TARGET, letter, next_letter, open_target, row_of


async def test_storing_a_row_twice_stores_it_once(database: Database) -> None:
    for _ in range(2):
        await database.write(outbox.enqueue, [letter("a", row_id="ob_a")], now=NOW)
    assert len(await database.read(outbox.of_group, "ob_a")) == 1


async def test_a_parked_row_waits_for_the_person_and_then_goes_first(database: Database) -> None:
    begun = await open_target(database, letter(row_id="ob_a"))
    await database.write(outbox.record_parked, "ob_a", expires_at=NOW + 900, reason="window closed")
    assert await next_letter(database, begun.claim) is None
    assert await database.read(claims.due, "targets", now=NOW + 9999) == []
    await database.write(outbox.enqueue, [letter(row_id="ob_b")], now=NOW + 5)
    assert await database.write(outbox.unpark, TARGET, now=NOW + 10) == 1
    assert await database.write(outbox.unpark, TARGET, now=NOW + 10) == 0
    begun_again = await database.write(outbox_sending.take, TARGET, owner=OWNER, now=NOW + 10)
    assert begun_again is not None
    assert begun_again.sending is not None
    assert begun_again.sending.id == "ob_a"
    assert begun_again.sending.repeats == 0, "a closed window took nothing"


async def test_a_parked_row_dies_when_its_time_is_over(database: Database) -> None:
    await open_target(database, letter(row_id="ob_a"))
    await database.write(outbox.record_parked, "ob_a", expires_at=NOW + 900, reason="window closed")
    assert await database.alone(outbox.expire_parked, now=NOW + 899) == 0
    assert await database.alone(outbox.expire_parked, now=NOW + 900) == 1
    assert (await row_of(database, "ob_a")).state == "dead"


async def test_a_dead_letter_is_sent_again_when_somebody_asks(database: Database) -> None:
    begun = await open_target(database, letter(row_id="ob_a", expires_at=NOW + 1))
    await database.write(outbox_sending.record_rejected, "ob_a", reason="blocked", now=NOW)
    await next_letter(database, begun.claim)
    assert not await database.write(outbox.retry_dead, "ob_none", expires_at=NOW + 99, now=NOW + 5)
    assert await database.write(outbox.retry_dead, "ob_a", expires_at=NOW + 99, now=NOW + 5)
    assert not await database.write(outbox.retry_dead, "ob_a", expires_at=NOW + 99, now=NOW + 5)
    again = await database.write(outbox_sending.take, TARGET, owner=OWNER, now=NOW + 5)
    assert again is not None
    assert again.sending is not None
    assert (again.sending.id, again.sending.repeats) == ("ob_a", 0)


async def test_an_account_that_is_back_has_everything_due(database: Database) -> None:
    """What waited because nobody could be reached goes out at once; what the platform asked to wait for, waits."""
    waits = {
        "telegram:7": f"{outbox.TOLD_TO_WAIT} 60 s",
        "telegram:8": "Telegram did not answer",
        "telegram@work:9": "Telegram did not answer",
    }
    for target, reason in waits.items():
        begun = await open_target(database, letter(row_id=f"ob_{target}", target=target))
        await database.write(outbox_sending.record_not_sent, f"ob_{target}", not_before=NOW + 60, reason=reason)
        assert await next_letter(database, begun.claim) is None
    assert await database.read(claims.due, "targets", now=NOW + 1) == []
    await database.write(outbox.hasten, "telegram", now=NOW + 1)
    sent = []
    for target in await database.read(claims.due, "targets", now=NOW + 1):
        taken = await database.write(outbox_sending.take, target, owner=OWNER, now=NOW + 1)
        sent += [taken.sending.target] if taken is not None and taken.sending is not None else []
    assert sent == ["telegram:8"]
    assert await database.read(claims.next_due, "targets") == NOW + 60
