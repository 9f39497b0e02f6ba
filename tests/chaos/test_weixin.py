"""The short form of ./scripts/chaos --only weixin: five kills, and some hundred failed connections."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos import weixin_kills, weixin_reconnects
from tests.chaos.kills import kill_again_and_again

KILLS = 5
FAILURES = 200


@pytest.mark.timeout(240)
async def test_five_kills_lose_only_what_was_handed_out_and_not_yet_stored(tmp_path: Path) -> None:
    killed = await kill_again_and_again(weixin_kills.opened(tmp_path / "world", seed=3), KILLS)
    verdict, caught = weixin_kills.verdict(killed.series)
    batches = len(killed.platform.uncommitted)
    print(f"{len(caught)} of {verdict.messages} caught in {batches} batches by {len(killed.kills)} kills")
    killed = replace(killed, verdict=verdict)
    assert killed.is_good, killed.story
    assert batches <= len(killed.kills)
    assert [kill for kill in killed.kills if not kill.was_reached] == []


@pytest.mark.timeout(180)
async def test_failed_connections_leave_nothing_open(tmp_path: Path) -> None:
    grown = await weixin_reconnects.fail_again_and_again(tmp_path, FAILURES)
    assert grown.failures >= FAILURES
    assert grown.is_good, f"before {grown.before}, after {grown.after}"
