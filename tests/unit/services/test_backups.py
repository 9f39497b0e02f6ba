"""The hourly backup: made by a child process when something changed, and not again before its time."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from hermes.config import load
from hermes.services.backups import BackupTimer
from hermes.store.backup import restore, shelf
from tests.chaos.world import until
from tests.fakes.started_home import copy_home


@pytest.mark.timeout(120)
async def test_hourly_backup_is_made_by_a_child_once_something_changed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    copy_home(home)
    config = load(home, {}, tmp_path, ()).config
    timer = asyncio.create_task(BackupTimer(home, lambda: config, first_seconds=0, look_seconds=0.01).run())
    try:
        await until(lambda: bool(shelf.entries(shelf.default_folder(home))), 100)
    finally:
        timer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await timer
    found = shelf.entries(shelf.default_folder(home))
    assert [entry.reason for entry in found] == ["hourly"]
    assert restore.verify(found[0].path, shelf.read_key(home)).files
    assert os.stat(found[0].path).st_mode & 0o077 == 0


async def test_hourly_backup_of_an_earlier_process_counts(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "backups").mkdir(parents=True)
    archive = home / "backups" / "hermes-20260101-000000-hourly.tar.gz"
    archive.touch()
    timer = BackupTimer(home, lambda: load(home, {}, tmp_path, ()).config)
    assert 3500 < timer._seconds_left("", 3600) <= 3600
    assert timer._seconds_left(str(tmp_path), 3600) < 0
