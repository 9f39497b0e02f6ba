"""The feed of a run: numbered, gathered, bounded, and exactly two events for each call."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from hermes.servers.api.streams.run_events import FeedLimits, RunFeed, RunFeeds
from hermes.services.events import (
    EventBus,
    SegmentEnded,
    TextArrived,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnStarted,
)
from tests.fakes.clock import FakeClock

LANE, TURN, EVENT = "agent:main:api:dm:talk", "t_1", "ev_1"


def feed_of(**more: Any) -> RunFeed:
    feed = RunFeed(EVENT, "talk", FakeClock(), batch_seconds=0.01, **more)
    feed.begin()
    return feed


def see(feed: RunFeed, *events: TurnEvent) -> None:
    for event in events:
        feed.saw(event)


def told(feed: RunFeed, after: int = 0) -> list[dict[str, Any]]:
    return [orjson.loads(event.raw.split(b"data: ")[1]) for event in feed.after(after)]


def kinds(feed: RunFeed) -> list[str]:
    return [event.kind for event in feed.after(0)]


def started(*, is_resumed: bool = False) -> TurnStarted:
    return TurnStarted(LANE, TURN, is_resumed, (EVENT,))


def text(words: str) -> TextArrived:
    return TextArrived(LANE, TURN, words)


CALL = ToolStarted(LANE, TURN, "c1", "search_files", "{}")
RESULT = ToolEnded(LANE, TURN, "c1", "search_files", "ok")
END = TurnEnded(LANE, TURN, "done", "bye")


async def test_only_the_turn_that_took_the_run_is_told() -> None:
    feed = feed_of()
    see(feed, TurnStarted(LANE, "t_0", event_ids=("ev_0",)), TextArrived(LANE, "t_0", "not ours"), started())
    see(feed, TextArrived(LANE, "t_0", "not ours"))
    assert kinds(feed) == ["run.queued", "run.started"]


async def test_the_first_words_go_at_once_and_the_next_are_gathered() -> None:
    feed = feed_of()
    see(feed, started(), text("a"), text("b"), text("c"))
    assert [event["delta"] for event in told(feed, 2)] == ["a"]
    await asyncio.sleep(0.03)
    assert [event["delta"] for event in told(feed, 2)] == ["a", "bc"]
    see(feed, text("d"), text("e"), SegmentEnded(LANE, TURN, "abcde"))
    assert kinds(feed)[-3:] == ["assistant.delta", "assistant.delta", "assistant.completed"]


async def test_a_call_has_two_events_also_when_it_runs_again_or_is_cut_off() -> None:
    feed = feed_of()
    see(feed, started(), SegmentEnded(LANE, TURN, ""), CALL, started(is_resumed=True), CALL, RESULT, RESULT)
    see(feed, ToolStarted(LANE, TURN, "c2", "danger", "{}"), END)
    feed.conclude("run.cancelled", {})
    feed.conclude("run.cancelled", {})
    assert [(event["type"], event.get("call_id"), event.get("outcome")) for event in told(feed, 2)] == [
        ("tool.started", "c1", None),
        ("run.started", None, None),
        ("tool.completed", "c1", "ok"),
        ("tool.started", "c2", None),
        ("tool.completed", "c2", "interrupted"),
        ("run.cancelled", None, None),
    ]


async def test_arguments_of_megabytes_are_trimmed() -> None:
    feed = feed_of()
    see(feed, started(), ToolStarted(LANE, TURN, "c1", "danger", "x" * 1_000_000))
    assert len(told(feed)[-1]["arguments"]) < 110_000


async def test_a_feed_keeps_a_bounded_number_of_events_and_of_bytes() -> None:
    feed = feed_of(limits=FeedLimits(events=5, event_bytes=2000))
    see(feed, started(), *(SegmentEnded(LANE, TURN, "word") for _ in range(20)))
    assert (len(feed.after(0)), feed.first) == (5, 18)
    see(feed, SegmentEnded(LANE, TURN, "x" * 5000))
    assert [event.sequence for event in feed.after(0)] == [23]
    assert feed.size == sum(len(event.raw) for event in feed.after(0))


async def test_what_happens_while_the_past_is_read_is_told_once() -> None:
    feed = RunFeed(EVENT, "talk", FakeClock())
    feed.hold(TURN)
    see(feed, SegmentEnded(LANE, TURN, "I look."), CALL, RESULT, text("Now"))
    feed.resume(TURN, {"status": "running"}, texts=["I look."], calls=["c1"])
    assert [(event["type"], event["message_id"]) for event in told(feed)] == [
        ("run.snapshot", None),
        ("assistant.delta", "msg_t_1_2"),
    ]


async def test_a_place_is_known_only_in_the_feed_that_gave_it() -> None:
    feed = feed_of()
    assert feed.place_of(f"{feed.name}-7") == 7
    assert [feed.place_of(name) for name in ("", "7", "other-7", f"{feed.name}-x", f"{feed.name}-²")] == [0] * 5


async def test_a_reader_waits_for_more_and_not_for_ever() -> None:
    feed = feed_of()
    assert await feed.changed(0, 1.0) is True
    assert await feed.changed(1, 0.01) is False
    waiting = asyncio.create_task(feed.changed(1, 1.0))
    await asyncio.sleep(0)
    see(feed, started())
    assert await waiting is True


async def test_feeds_that_nobody_reads_make_room_for_new_ones_and_stop_listening() -> None:
    bus = EventBus()
    feeds = RunFeeds(bus, FakeClock(), FeedLimits(feeds=2))
    first, second = feeds.open("ev_1", "a", "lane a"), feeds.open("ev_2", "b", "lane b")
    first.readers = 1
    feeds.open("ev_3", "c", "lane c")
    assert (feeds.find("ev_1"), feeds.find("ev_2")) == (first, None)
    bus.publish(TurnStarted("lane b", TURN, event_ids=("ev_2",)))
    assert (second.turn_id, second.is_left) == ("", True)


async def test_of_the_runs_that_ended_only_the_newest_keep_their_feeds() -> None:
    bus = EventBus()
    feeds = RunFeeds(bus, FakeClock(), FeedLimits(ended=2))
    for number in range(5):
        feeds.open(f"ev_{number}", f"s_{number}", LANE)
        bus.publish(TurnStarted(LANE, f"turn_{number}", event_ids=(f"ev_{number}",)))
    for number in (0, 2, 3, 4):
        bus.publish(TurnEnded(LANE, f"turn_{number}", "done", "bye"))
    read = feeds.find("ev_0")
    assert read is not None
    read.readers = 1
    feeds.open("ev_5", "s_5", LANE)
    left = [number for number in range(6) if feeds.find(f"ev_{number}") is not None]
    assert left == [0, 1, 3, 4, 5]  # 0 is being read, 1 still runs, 5 is new


async def test_a_feed_that_is_over_stops_listening_and_is_still_there_to_read() -> None:
    bus = EventBus()
    feeds = RunFeeds(bus, FakeClock())
    feed = feeds.open(EVENT, "talk", LANE)
    for event in (started(), END, started()):
        bus.publish(event)
    assert (kinds(feed), feed.is_over) == (["run.started"], True)
    assert feeds.find(EVENT) is feed
    feeds.close()
    assert (feeds.find(EVENT), feed.is_left) == (None, True)
