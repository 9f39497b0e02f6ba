"""The short form of ./scripts/chaos: twenty times kill -9, and nobody notices but by a ↻."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.kills import kill_again_and_again
from tests.chaos.world import Victim, opened

KILLS = 20
BACK_SECONDS = 20.0  # the promise is 2 s; a machine shared with others is given ten times as much


@pytest.mark.timeout(300)
async def test_nothing_is_lost_or_doubled_by_twenty_kills(tmp_path: Path) -> None:
    killed = await kill_again_and_again(opened(tmp_path / "world", seed=2), KILLS)
    kills = killed.kills
    assert killed.is_good, killed.story
    assert killed.verdict.messages == KILLS * 12  # ten, one that marks what is noted, one that asks whether it is back
    assert [kill for kill in kills if not kill.was_reached] == []
    assert {kill.victim for kill in kills} == {victim.value for victim in Victim}
    assert max(kill.back_seconds for kill in kills) < BACK_SECONDS
