"""The short form of `./scripts/chaos --only qq`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.kills import kill_again_and_again
from tests.chaos.qq_kills import opened
from tests.chaos.qq_reconnects import fail_again_and_again

KILLS = 5
FAILURES = 200


@pytest.mark.timeout(240)
async def test_nothing_said_on_qq_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    killed = await kill_again_and_again(opened(tmp_path / "world", seed=3), KILLS)
    assert killed.is_good, killed.story
    assert killed.verdict.messages == KILLS * 12
    assert killed.platform.identified == 1, "each time the session was resumed"


@pytest.mark.timeout(180)
def test_connections_to_qq_that_fail_leave_nothing_open(tmp_path: Path) -> None:
    grown = fail_again_and_again(tmp_path, FAILURES)
    assert grown.failures >= FAILURES
    assert grown.is_good, f"before {grown.before}, after {grown.after}"
