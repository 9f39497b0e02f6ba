"""The short form of two hundred chats that stream at once: four times as quick, at four times the patience."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.pacing import FEW, stream_at_once


@pytest.mark.timeout(120)
async def test_two_hundred_streaming_chats_keep_to_the_limits_of_the_platform(tmp_path: Path) -> None:
    seen = await stream_at_once(tmp_path, 200, scale=4.0, deadline=30)
    assert seen.incomplete == []
    assert seen.out_of_order == []
    assert seen.overtaken <= FEW
    assert len(seen.refused) <= FEW, seen.refused[:10]
    assert seen.edits > 100
