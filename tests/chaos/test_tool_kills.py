"""The short form: five times kill -9 in a batch of five calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.tool_kills import kill_in_batches


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_no_call_of_a_killed_batch_happens_twice_or_is_lost_and_no_process_is_left(tmp_path: Path) -> None:
    counted = await kill_in_batches(tmp_path / "world", 5, seed=4)
    assert counted.wrong == []
    assert counted.left == []
    assert counted.kills == counted.batches == 5
