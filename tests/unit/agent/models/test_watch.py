"""How long a stream lets its tokens gather."""

from __future__ import annotations

from contextlib import ExitStack

from hermes.agent.models.watch import Crowd


def test_few_streams_are_read_at_once_and_many_a_little_later() -> None:
    crowd = Crowd()
    pauses = [crowd.pause_seconds]
    with ExitStack() as stack:
        for _ in range(1500):
            stack.enter_context(crowd.joined())
            pauses.append(crowd.pause_seconds)
        assert crowd.open == 1500
    assert crowd.open == 0
    assert set(pauses[:33]) == {0.0}
    assert 0 < pauses[33] < 0.01
    assert pauses == sorted(pauses)
    assert pauses[-1] == 0.25
