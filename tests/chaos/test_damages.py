"""Random damages of a store with rows of every kind, in short; ./scripts/chaos --only damages is the long form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.damages import Damager, make_template

ROWS = 60
DAMAGES = 40


@pytest.mark.timeout(240)
async def test_after_random_damages_no_row_is_invented_no_role_changed_and_every_loss_told(tmp_path: Path) -> None:
    template = await make_template(tmp_path, ROWS, seed=11)
    assert all(len(rows) >= 0.9 * ROWS for rows in template.content.values())
    tally = await Damager(template, tmp_path, seed=11).play(DAMAGES)
    assert (tally.damages, tally.invented, tally.roles) == (DAMAGES, [], [])
    assert (tally.untold, tally.untrue) == ([], [])
    assert tally.recovered > DAMAGES // 2
    assert tally.lost > 0
