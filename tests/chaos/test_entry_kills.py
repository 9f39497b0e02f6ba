"""The short form: kill -9 twice with jobs, webhooks and tasks in flight; the long one is behind ./scripts/chaos."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.entry_kills import kill_entries


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_jobs_webhooks_and_tasks_that_were_accepted_run_once_over_kills(tmp_path: Path) -> None:
    found, accepted = await kill_entries(tmp_path / "world", each=6, kills=2, seed=5)
    assert accepted == 36
    assert found.is_good, found
