"""Events of a turn as one node writes them down and another reads them."""

from __future__ import annotations

import pytest

from hermes.core.messages import ToolCall, Usage
from hermes.core.requests import TurnResult
from hermes.services.cluster.progress import MAX_DETAIL_CHARS, dump_event, load_event
from hermes.services.events import (
    ApprovalRequested,
    SegmentEnded,
    TextArrived,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnStarted,
)

RESULT = TurnResult("t", "done", "yes", "", "tool_calls", (ToolCall("c", "look", "{}"),), Usage(3, 4, 1), "m")
EVENTS: list[TurnEvent] = [
    TurnStarted("lane", "t", is_resumed=True, event_ids=("ev_1", "ev_2"), tool_progress="all"),
    TextArrived("lane", "t", "Zoë 🦊"),
    SegmentEnded("lane", "t", "Zoë"),
    ToolStarted("lane", "t", "c", "look", "{}"),
    ToolEnded("lane", "t", "c", "look", "done", "seen"),
    ApprovalRequested("lane", "t", "ap_1", "ABC", "May I?"),
    TurnEnded("lane", "t", "done", "yes", "", RESULT),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_event_read_by_another_node_is_the_one_that_was_written(event: TurnEvent) -> None:
    assert load_event(dump_event(event)) == event


def test_long_details_of_tools_are_cut() -> None:
    told = dump_event(ToolEnded("lane", "t", "c", "look", "done", "x" * 100_000))
    assert len(told["result"]) == MAX_DETAIL_CHARS


@pytest.mark.parametrize("told", [{}, {"kind": "FromTheFuture"}, {"kind": "TextArrived", "lane": 7}, {"kind": None}])
def test_event_that_this_version_cannot_read_is_left_out(told: dict[str, object]) -> None:
    assert load_event(told) is None
