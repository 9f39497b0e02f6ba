"""The short form of the kills during backups and restores; ./scripts/chaos --only backups is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.backups import kill_all


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_kills_during_backup_and_restore_leave_the_old_state_or_the_new(tmp_path: Path) -> None:
    counted = kill_all(tmp_path, 6, seed=4, kinds=("backup", "restore"))
    assert counted.wrong == []
    assert sum(counted.kills.values()) >= 1
