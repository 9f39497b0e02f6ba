"""kill -9 at COMMIT: what was answered is there, what was not is not, and the file is sound."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.unit.store.conftest import Store, count

WRITER = """
import asyncio, sys
from hermes.store.open import open_database

def put(tx, key):
    tx.run("INSERT INTO notes (key, text) VALUES (:key, '')", key=key)

async def main():
    database = await open_database(sys.argv[1], migrations=__import__("pathlib").Path(sys.argv[2]))
    for number in range(1000):
        await database.write(put, str(number))
        print("done", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
async def test_what_was_answered_is_there_after_a_kill_at_either_side_of_commit(
    store: Store, tmp_path: Path, point: str
) -> None:
    trigger = tmp_path / "trigger"
    environment = {**os.environ, "PYTHONPATH": "src", "HERMES_TEST_PAUSE": f"{point}:20:{trigger}"}
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(store.path), str(store.migrations),
        env=environment, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert writer.stdout is not None
    answered = 0
    while answered < 5:
        answered += await writer.stdout.readline() == b"done\n"
    trigger.touch()
    # Those already on their way come through; then the writer stands at the point.
    while True:
        try:
            line = await asyncio.wait_for(writer.stdout.readline(), 0.3)
        except TimeoutError:
            break
        answered += line == b"done\n"
    writer.kill()
    await writer.wait()
    async with store.open() as database:
        stored = await database.read(count)
        assert await database.write(lambda tx: tx.value("PRAGMA integrity_check")) == "ok"
    assert stored == answered + (point == "after_commit")
    assert not store.troubles
