"""How long a stream lets its tokens gather."""

from __future__ import annotations

from contextlib import ExitStack

from hermes.agent.models.watch import Crowd


def test_the_more_streams_there_are_the_longer_each_lets_its_tokens_gather() -> None:
    crowd = Crowd()
    pauses = [crowd.pause_seconds(0.0)]
    with ExitStack() as stack:
        for _ in range(1500):
            stack.enter_context(crowd.joined())
            pauses.append(crowd.pause_seconds(0.0))
        assert crowd.open == 1500
    assert crowd.open == 0
    assert set(pauses[:33]) == {0.0}
    assert 0 < pauses[33] < 0.01
    assert pauses == sorted(pauses)
    assert pauses[-1] == 0.25


def test_a_lone_stream_is_read_as_it_comes_at_first_and_never_held_up_for_long() -> None:
    crowd = Crowd()
    with crowd.joined():
        assert crowd.pause_seconds(0.0) == 0.0
        assert crowd.pause_seconds(0.02) == 0.01
        assert crowd.pause_seconds(1.0) == 0.05
