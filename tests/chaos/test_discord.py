"""The short form of `./scripts/chaos --only discord`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.discord_kills import opened
from tests.chaos.discord_reconnects import fail_again_and_again
from tests.chaos.kills import kill_again_and_again

KILLS = 3
FAILURES = 100


@pytest.mark.timeout(240)
async def test_nothing_said_on_discord_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    killed = await kill_again_and_again(opened(tmp_path / "world", seed=4), KILLS)
    assert killed.is_good, killed.story
    assert killed.verdict.messages == KILLS * 12
    assert killed.verdict.repeats == 0, "a repeated message is known by its nonce"
    discord = killed.platform
    assert discord.forgotten > 0
    assert len(discord.resumed) > 0, "a new life asks for the session of the last one"
    assert discord.counts["GET messages"] > 0, "where it was forgotten, what was said came out of the history"


@pytest.mark.timeout(180)
async def test_connections_to_discord_that_fail_leave_nothing_open(tmp_path: Path) -> None:
    grown = await fail_again_and_again(tmp_path, FAILURES)
    assert grown.failures >= FAILURES
    assert grown.is_good, f"before {grown.before}, after {grown.after}"
