"""The short form of `./scripts/chaos --only slack`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.kills import kill_again_and_again
from tests.chaos.slack_kills import opened
from tests.chaos.slack_reconnects import fail_again_and_again

KILLS = 5
FAILURES = 200


@pytest.mark.timeout(240)
async def test_nothing_said_on_slack_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    killed = await kill_again_and_again(opened(tmp_path / "world", seed=4), KILLS)
    assert killed.is_good, killed.story
    assert killed.verdict.messages == KILLS * 12
    assert killed.platform.nowhere > 0, "something was said while nobody listened, and came out of the history"
    assert killed.platform.late_acks == []


@pytest.mark.timeout(180)
async def test_connections_to_slack_that_fail_leave_nothing_open(tmp_path: Path) -> None:
    grown = await fail_again_and_again(tmp_path, FAILURES)
    assert grown.failures >= FAILURES
    assert grown.is_good, f"before {grown.before}, after {grown.after}"
