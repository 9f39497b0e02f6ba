"""P8: a process that is there and does nothing is not called running."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.chaos.world import opened, until


@pytest.mark.timeout(180)
async def test_a_stopped_worker_is_seen_by_status_and_goes_on_when_continued(tmp_path: Path) -> None:
    async with opened(tmp_path / "world", seed=1) as world:
        world.gateway.signal_worker(signal.SIGSTOP)
        world.telegram.user_says("hello", chat=8)
        code, words = await world.gateway.look()
        world.gateway.signal_worker(signal.SIGCONT)
        assert code == 1
        assert "Gateway is stalled" in words
        await until(lambda: world.telegram.has_answered(8, "echo: hello"), 20)
