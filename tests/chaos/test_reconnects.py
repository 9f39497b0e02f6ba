"""S2-02: a connection that fails leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.reconnects import fail_again_and_again


@pytest.mark.timeout(180)
async def test_a_thousand_failed_connections_leave_nothing_open(tmp_path: Path) -> None:
    grown = await fail_again_and_again(tmp_path, 1000)
    assert grown.failures >= 1000
    assert grown.is_good, f"before {grown.before}, after {grown.after}"
