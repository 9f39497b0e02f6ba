"""The janitor sweeps for itself and for every part that looks after its own."""

from __future__ import annotations

from pathlib import Path

from hermes.services.clock import SteadyClock
from hermes.services.janitor import Janitor
from hermes.store import outbox
from hermes.store.db import Tx
from hermes.store.open import open_database
from hermes.store.outbox import OutboxKind, Outgoing
from tests.fakes.clock import FakeClock


async def test_a_sweep_is_everybodys(tmp_path: Path) -> None:
    swept: list[str] = []

    async def files() -> None:
        swept.append("files")

    async def processes() -> None:
        swept.append("processes")

    db = await open_database(tmp_path / "state.db")
    try:
        await Janitor(db, SteadyClock(FakeClock()), files, processes).sweep()
    finally:
        await db.close()
    assert swept == ["files", "processes"]


def kept_until(tx: Tx) -> list[float]:
    return tx.all("SELECT expires_at FROM outbox WHERE state <> 'dead'", float)


async def test_of_several_nodes_one_sweeps_and_none_moves_deadlines_with_its_own_clock(tmp_path: Path) -> None:
    system = FakeClock()
    clock = SteadyClock(system)
    now = clock.now()
    expired = Outgoing("ob_1", "telegram:7", "ob_1", 0, OutboxKind.REPLY, "{}", expires_at=now - 1)
    waiting = Outgoing("ob_2", "telegram:8", "ob_2", 0, OutboxKind.REPLY, "{}", expires_at=now + 60)
    db = await open_database(tmp_path / "state.db")
    is_mine = False
    try:
        await db.write(outbox.enqueue, [expired, waiting], now=now)
        janitor = Janitor(db, clock, is_mine=lambda: is_mine)
        await janitor.sweep()
        assert len(await db.read(kept_until)) == 2
        is_mine = True
        await janitor.sweep()
        assert await db.read(kept_until) == [now + 60]
        system.jump(3600.0)  # the machine slept, or was set: other nodes went on meanwhile
        await janitor.mind_the_clock()
        assert clock.now() == system.now()
        assert await db.read(kept_until) == [now + 60]
    finally:
        await db.close()
