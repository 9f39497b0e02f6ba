"""The heartbeat: one block of fixed size, whatever it says, written by the loop and by nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hermes.hosting import heartbeat as beat
from hermes.hosting import heartbeat_writer, paths


@given(st.text(), st.text(max_size=400), st.integers(0, 10**9))
def test_whatever_it_says_the_block_keeps_its_size_and_can_be_read(doing: str, safe: str, waiting: int) -> None:
    block = beat.encode(beat.Beat(os.getpid(), time.time(), 1.0, doing=doing, safe=safe, waiting=waiting))
    assert len(block) == beat.SIZE
    assert json.loads(block)["waiting"] == waiting


def test_a_missing_or_broken_file_is_no_beat(tmp_path: Path) -> None:
    assert beat.read(str(tmp_path / "none")) is None
    (tmp_path / "broken").write_bytes(b"{\0")
    assert beat.read(str(tmp_path / "broken")) is None
    assert beat.read(str(tmp_path)) is None


def test_age_goes_by_the_steady_clock_unless_the_machine_started_anew() -> None:
    seen = beat.Beat(1, at=1000.0, monotonic=50.0)
    assert seen.age(now=9999.0, monotonic=50.5) == 0.5
    assert seen.age(now=1090.0, monotonic=3.0) == 90.0


async def seen_when(path: str, is_so: Callable[[beat.Beat], bool]) -> beat.Beat:
    async with asyncio.timeout(20):
        while True:
            seen = await asyncio.to_thread(beat.read, path)
            if seen is not None and is_so(seen):
                return seen


async def test_the_loop_beats_and_tells_what_it_does(tmp_path: Path) -> None:
    heart = heartbeat_writer.Heartbeat(str(tmp_path), safe_reason="three bad starts")
    heart.describe = lambda: ("turn t_1", 2)
    path = paths.heartbeat(str(tmp_path))
    async with heart.beating():
        first = await seen_when(path, lambda seen: seen.doing == "turn t_1")
        assert (first.pid, first.ready_at, first.waiting, first.safe) == (os.getpid(), 0.0, 2, "three bad starts")
        heart.ready()
        heart.settle()
        later = await seen_when(path, lambda seen: seen.settled == 1)
        assert later.ready_at > 0
        assert heart.age() < 1.5
    assert os.stat(path).st_mode & 0o077 == 0


async def test_a_loop_that_hangs_does_not_beat(tmp_path: Path) -> None:
    heart = heartbeat_writer.Heartbeat(str(tmp_path))
    async with heart.beating():
        await seen_when(paths.heartbeat(str(tmp_path)), lambda seen: seen.pid > 0)
        time.sleep(1.3)  # noqa: ASYNC251 - the loop hangs: that is the case
        seen = beat.read(paths.heartbeat(str(tmp_path)))
        assert seen is not None
        assert seen.age(time.time(), time.monotonic()) > 1.2


def test_a_beat_of_a_newer_version_is_read_by_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    path.write_bytes(beat.encode(beat.Beat(7, 1.0, 2.0)).replace(b'{"pid"', b'{"later": 1, "pid"'))
    seen = beat.read(str(path))
    assert seen is not None
    assert seen.pid == 7
