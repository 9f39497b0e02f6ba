"""The ledger of due times on both databases: one entry for each slot, whoever fires it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.config import Config
from hermes.core.entries.job_slots import SlotState
from hermes.services.cron.firing import fire_due, follow_clock, lane_of
from hermes.store import people
from hermes.store.db import Database, Tx
from hermes.store.entries import job_slots, jobs
from hermes.store.entries.jobs import JobRow
from hermes.store.open import open_database

CONFIG = Config(Path("/nowhere"), timezone="UTC")
NOW = 1_800_000_000.0


def job(number: int, **more: object) -> JobRow:
    values: dict[str, object] = {
        "schedule": "every 1h", "kind": "every", "at": NOW, "seconds": 3600, "is_relative": 1,
        "next_slot": NOW + 3600, "next_at": NOW + 3600, **more,
    }  # fmt: skip
    return JobRow(id=f"job_{number}", name="n", person_id="p_local_local", role="owner", prompt="x", **values)  # type: ignore[arg-type]


def prepare(tx: Tx, rows: list[JobRow]) -> None:
    people.ensure(tx, "p_local_local", platform="local", user_id="local", name="", role="owner", now=NOW)
    for row in rows:
        assert jobs.insert(tx, row)
        assert not jobs.insert(tx, row), "an id is made once"


def pause(_tx: Tx, _job: JobRow, reason: str) -> None:
    raise AssertionError(reason)


def events(tx: Tx) -> list[str]:
    found: list[str] = tx.all("SELECT id FROM inbox WHERE kind = 'cron' ORDER BY id", str)
    return found


async def test_nodes_that_fire_at_once_enter_each_slot_once(database: Database, database_url: str) -> None:
    await database.write(prepare, [job(number) for number in range(40)])
    others = [await open_database(database_url) for _ in range(2)]
    try:
        nodes = [database, *others]
        for hour in (1, 2):
            await asyncio.gather(*(node.write(fire_due, CONFIG, pause, now=NOW + hour * 3600) for node in nodes * 3))
            await database.write(fire_due, CONFIG, pause, now=NOW + hour * 3600)
        assert len(await database.read(events)) == 40, "the second slot is skipped while the first run is open"
        for number in range(40):
            slots = await database.read(job_slots.slots_of, f"job_{number}")
            assert [slot.state for slot in slots] == [SlotState.SKIPPED, SlotState.RAN]
    finally:
        for other in others:
            await other.close()


async def test_a_clock_that_was_set_back_finds_the_slots_that_ran(database: Database) -> None:
    daily = job(1, schedule="0 * * * *", kind="cron", is_relative=0, next_slot=NOW, next_at=NOW)
    await database.write(prepare, [daily])
    await database.write(fire_due, CONFIG, pause, now=NOW)
    await database.write(follow_clock, CONFIG, by=-7200.0, now=NOW - 7200)
    found = await database.read(jobs.get, "job_1")
    assert found is not None
    assert found.next_slot == NOW - 3600
    for at in (NOW - 3600, NOW, NOW + 3600):
        await database.write(fire_due, CONFIG, pause, now=at)
    slots = await database.read(job_slots.slots_of, "job_1")
    assert sorted(slot.slot for slot in slots) == [NOW - 3600, NOW, NOW + 3600]
    assert len(await database.read(events)) == 1, "the others were skipped: the first run is open"


async def test_removing_a_job_removes_its_ledger_and_what_waits(database: Database) -> None:
    await database.write(prepare, [job(1)])
    await database.write(fire_due, CONFIG, pause, now=NOW + 3600)
    assert await database.write(jobs.remove, "job_1", lane=str(lane_of("job_1")), now=NOW + 3601)
    assert await database.read(job_slots.slots_of, "job_1") == []
    assert await database.read(job_slots.ended) == []


async def test_old_entries_go_and_the_newest_of_each_job_stay(database: Database) -> None:
    def fill(tx: Tx) -> None:
        for number in range(job_slots.KEPT_SLOTS + 20):
            job_slots.note_run(tx, "job_1", number, state=SlotState.RAN, event_id="", now=float(number))
        tx.run("UPDATE job_slots SET outcome = 'done'")

    await database.write(fill)
    assert await database.write(job_slots.forget_slots, before=NOW) == 20
    kept = await database.read(job_slots.slots_of, "job_1", limit=1000)
    assert len(kept) == job_slots.KEPT_SLOTS
    assert min(slot.slot for slot in kept) == 20
