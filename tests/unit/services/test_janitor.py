"""The janitor sweeps for itself and for every part that looks after its own."""

from __future__ import annotations

from pathlib import Path

from hermes.services.clock import SteadyClock
from hermes.services.janitor import Janitor
from hermes.store.open import open_database
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
