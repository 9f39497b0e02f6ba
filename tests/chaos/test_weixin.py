"""The short form of ./scripts/chaos --only weixin: five kills, and some hundred failed connections."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos import weixin_kills, weixin_reconnects
from tests.chaos.kills import Series
from tests.chaos.ledger import told

KILLS = 5
FAILURES = 200


@pytest.mark.timeout(120)
async def test_five_kills_lose_only_what_was_handed_out_and_not_yet_stored(tmp_path: Path) -> None:
    async with weixin_kills.opened(tmp_path / "world", seed=3) as world:
        series = Series(world)
        kills = [kill async for kill in series.run(KILLS)]
        waiting = await series.settle()
    verdict, caught = weixin_kills.verdict(series, world.platform)
    print(
        f"{len(caught)} of {verdict.messages} caught in {len(world.platform.uncommitted)} batches by {len(kills)} kills"
    )
    assert verdict.is_good, "\n".join(told(verdict, world.platform.flights, kills))
    assert [kill for kill in kills if kill.is_stuck] == []
    assert waiting == 0
    assert len(world.platform.uncommitted) <= len(kills)
    assert [kill for kill in kills if not kill.was_reached] == []


@pytest.mark.timeout(90)
async def test_failed_connections_leave_nothing_open(tmp_path: Path) -> None:
    grown = await weixin_reconnects.fail_again_and_again(tmp_path, FAILURES)
    assert grown.failures >= FAILURES
    assert grown.is_good, f"before {grown.before}, after {grown.after}"
