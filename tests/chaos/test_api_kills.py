"""The short form: kill -9 in the middle of five runs, five streams and five stored responses, twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.api_kills import (
    SET_ASIDE,
    Kind,
    calling,
    killed_at_random,
    killed_while_the_model_speaks,
    trace_by_hand,
)
from tests.chaos.world import Victim

EACH = 5


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_after_a_kill_every_request_has_an_end_and_says_which(tmp_path: Path) -> None:
    async with calling(tmp_path / "world", seed=3) as callers:
        held = await killed_while_the_model_speaks(callers, EACH, Victim.WORKER)
        assert len(held.named) == EACH * len(Kind)
        assert held.wrong == []
        streams = [one for one in held.named if one.kind is Kind.STREAM]
        assert {one.end for one in streams} == {SET_ASIDE}
        assert "client gone" in trace_by_hand(callers.world.gateway.home, streams[0].id)

        at_random = await killed_at_random(callers, EACH, Victim.BOTH, callers.world.chance)
        assert at_random.wrong == []
        assert (held.waiting, at_random.waiting) == (0, 0)
