"""The short form of N-03."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.duplicates import deliver_again


@pytest.mark.timeout(120)
async def test_a_message_delivered_four_times_makes_one_turn(tmp_path: Path) -> None:
    counted = await deliver_again(tmp_path, 500, deadline=25)
    assert counted.deliveries == 2000
    assert (counted.asked_twice, counted.answered_twice, counted.unanswered) == (0, 0, 0)
