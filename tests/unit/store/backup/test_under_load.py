"""A backup is made beside a store that is written: messages do not wait for it, and the copy is whole."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench import waits
from bench.measures.retention import HELD_UP_MILLISECONDS, seed
from hermes.store.backup import archive, create, shelf
from hermes.store.backup.create import BackupRequest
from hermes.store.home import make_home
from hermes.store.open import open_database


async def test_messages_are_stored_while_a_backup_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "SYNC_BYTES", 100_000)
    home = tmp_path / "backed-up"
    make_home(home)
    await (await open_database(home / "state.db")).close()
    seed(home / "state.db", 5000)
    db = await open_database(home / "state.db")
    try:
        work = asyncio.create_task(asyncio.to_thread(create.create, BackupRequest(home, "1.0")))
        spans = await waits.until_done(db, work)
        made = (await work).path
    finally:
        await db.close()
    assert max(span.seconds for span in spans) * 1000 < 10 * HELD_UP_MILLISECONDS
    with archive.open_archive(made, shelf.read_key(home)) as reader:
        copies = {file.name: b"".join(chunks) for file, chunks in reader.files()}
    (tmp_path / "copy.db").write_bytes(copies["state.db"])
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        stored = copy.execute("SELECT count(*) FROM inbox").fetchone()[0]
    assert 2000 <= stored <= 2000 + len(spans), "the store as it was at one moment"


async def test_what_a_backup_writes_goes_to_the_disk_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    written = 0
    monkeypatch.setattr("os.fsync", lambda _: synced.append(written))
    with (tmp_path / "file").open("wb") as file:
        target = archive.SyncedWriter(file.fileno())
        for _ in range(10):
            written += target.write(bytes(1 << 20))
    assert synced == [3 << 20, 7 << 20], "before the count of the write that passed the limit"
    assert (tmp_path / "file").stat().st_size == 10 << 20
