"""Lines cut out of a stream of bytes."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.models.sse import DataLines, LineTooLongError

STREAM = ': ping\n\nevent: x\ndata: {"a": "ü👋"}\n\ndata:{"b": 1}\r\n\r\nid: 4\ndata: [DONE]'.encode()
VALUES = ['{"a": "ü👋"}'.encode(), b'{"b": 1}', b"[DONE]"]


@given(st.sets(st.integers(1, len(STREAM) - 1)))
def test_values_are_whole_wherever_the_network_cuts(cuts: set[int]) -> None:
    lines = DataLines()
    values: list[bytes] = []
    for start, end in itertools.pairwise([0, *sorted(cuts), len(STREAM)]):
        values += lines.feed(STREAM[start:end])
    assert values + lines.finish() == VALUES


def test_end_without_a_rest_gives_nothing() -> None:
    lines = DataLines()
    assert lines.feed(b"data: 1\n") == [b"1"]
    assert lines.finish() == []


def test_line_without_an_end_does_not_fill_the_memory() -> None:
    lines = DataLines(longest=100)
    for _ in range(10):
        lines.feed(b"data: xxxx")
    with pytest.raises(LineTooLongError):
        lines.feed(b"data: xxxx")


@pytest.mark.parametrize("line", [b"data:" + b" " * 1_000_000, b"data: x" + b" " * 1_000_000, b" data:" * 200_000])
def test_megabyte_of_a_hostile_line_is_read_in_one_pass(line: bytes) -> None:
    started = time.thread_time()
    assert DataLines().feed(line + b"\ndata: 1\n")[-1] == b"1"
    assert time.thread_time() - started < 1
