"""What was granted, and what was revoked, survives the loss of the database."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.store import grants
from hermes.store.grants import Grant
from hermes.store.open import open_database
from hermes.store.sqlite import mirror

STANDS = Grant("gr_1", "p_7", "always", "delete on local", "", 1, "p_7", 1.0, "asked as K7QP2M", None)
ENDED = Grant("gr_2", "p_7", "always", "sudo on local", "", 1, "p_7", 2.0, "asked as M3XW9D", None)


async def test_grants_come_back_as_they_were(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    database = await open_database(folder / "state.db")
    await database.write(grants.give, STANDS)
    await database.write(grants.give, ENDED)
    await database.write(grants.revoke, ENDED.id, now=3.0)
    async with asyncio.timeout(20):
        while (mirror.read(folder).rows.get(("grants", ENDED.id)) or {}).get("revoked_at") != 3.0:  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # a file gives no signal
    await database.close()
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (folder / name).unlink(missing_ok=True)

    database = await open_database(folder / "state.db")
    try:
        assert await database.read(grants.standing) == [STANDS]
        ended = await database.read(grants.get, ENDED.id)
    finally:
        await database.close()
    assert ended is not None
    assert ended.revoked_at == 3.0
