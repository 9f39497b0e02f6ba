"""`hermes trace` as a person reads it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from hermes.cli.watch.trace import latest, timeline


def life(**parts: Any) -> dict[str, Any]:
    return {"events": [], "turn": None, "lines": [], "calls": [], "approvals": [], "letters": [], **parts}


def event(**more: Any) -> dict[str, Any]:
    return {
        "id": "ev_1",
        "kind": "message",
        "sender_id": "42",
        "text": "hi\nthere",
        "state": "answered",
        "reason": "",
        "received_at": 100.0,
        "settled_at": 102.5,
        **more,
    }


def turn(**more: Any) -> dict[str, Any]:
    return {
        "id": "t_1",
        "lane": "agent:main:telegram:dm:42",
        "session_id": "s_1",
        "state": "done",
        "attempts": 2,
        "steps": 1,
        "created_at": 100.1,
        "ended_at": 102.5,
        "model": "gpt-4o-mini",
        "prompt_tokens": 12,
        "completion_tokens": 7,
        "reason": "",
        **more,
    }


def letter(**more: Any) -> dict[str, Any]:
    return {
        "id": "ob_1",
        "kind": "reply",
        "target": "telegram:42",
        "text": "Hello.",
        "state": "sent",
        "attempts": 2,
        "message_id": "17",
        "created_at": 102.5,
        "settled_at": 103.0,
        "reason": "",
        **more,
    }


def test_a_life_is_told_in_the_order_it_happened_in() -> None:
    call = {
        "name": "read_file",
        "arguments": '{"path":"a"}',
        "state": "done",
        "outcome": "ok",
        "result": "text",
        "created_at": 100.9,
        "started_at": 101.0,
        "ended_at": 101.5,
    }
    told = timeline(life(events=[event()], turn=turn(), calls=[call], letters=[letter()]))
    assert told[0] == "Turn t_1: done in 2.400 s"
    assert "gpt-4o-mini, 12 + 7 tokens, 1 step with tools, 2 attempts" in told[1]
    rows = told[4:]
    assert [row.split()[2] for row in rows] == ["in", "turn", "tool", "tool", "turn", "in", "out", "out"]
    assert "“hi there”" in rows[0]
    assert rows[2].strip().startswith("+1.000 s")
    assert rows[-1].endswith("ob_1 sent as message 17 at attempt 2")


def test_what_has_not_ended_is_said_at_the_end() -> None:
    parked = letter(state="parked", settled_at=None, reason="nobody is looking")
    asked = {
        "code": "K7QP",
        "question": "May I?",
        "state": "pending",
        "answered_at": None,
        "answered_by": "",
        "reason": "",
        "created_at": 101.0,
    }
    waiting = turn(state="waiting", ended_at=None)
    told = timeline(
        life(events=[event(state="taken", settled_at=None)], turn=waiting, approvals=[asked], letters=[parked])
    )
    assert told[0] == "Turn t_1: waiting"
    assert told[-3:] == [
        "  still taken: ev_1",
        "  waits for an answer: /approve K7QP or /deny K7QP",
        "  still parked, 2 attempts: ob_1 (nobody is looking)",
    ]


def test_a_refused_message_has_no_turn_and_a_reason() -> None:
    told = timeline(life(events=[event(state="refused", reason="not_listed", settled_at=100.0)]))
    assert told[0] == "No turn: refused"
    assert told[-1].endswith("ev_1 refused: not_listed")


def message(**more: Any) -> dict[str, Any]:
    return {
        "id": "ev_1k4m9x2c7qf4b",
        "at": 100.0,
        "chat": "telegram:42",
        "person": "Ana",
        "sender_id": "42",
        "kind": "message",
        "outcome": "answered",
        "reason": "",
        "turn": "t_1",
        "text": "hi\nthere",
        **more,
    }


def test_the_latest_messages_are_a_table_with_what_became_of_each() -> None:
    told = [
        message(),
        message(outcome="asks first", person="Ben"),
        message(id="ev_2", outcome="not delivered", reason="the chat was deleted"),
    ]
    head, *rows, empty, closing = latest({"messages": told, "total": 512})
    assert head.split() == ["when", "chat", "person", "outcome", "id", "text"]
    assert "telegram:42  Ana     ✓ answered       ev_1k4m9x2c7qf4b  “hi there”" in rows[0]
    assert "Ben     … asks first     ev_1k4m9x2c7qf4b" in rows[1]
    assert "✗ not delivered  ev_2              “hi there” (the chat was deleted)" in rows[2]
    assert not empty
    assert closing.startswith("3 of 512 messages (all: ")
    assert "trace --limit 512). One of them: " in closing
    assert closing.endswith("trace ev_1k4m9x2c7qf4b")


def test_where_nothing_was_said_yet_it_is_told_how_to_begin() -> None:
    assert latest({"messages": [], "total": 0})[0].startswith("No messages yet. Write the first: ")


def test_where_a_recovery_lost_every_message_the_loss_is_told() -> None:
    lost = "Lost when state.db was recovered on 2026-03-01 10:00: 7 rows of inbox."
    assert latest({"messages": [], "total": 0, "lost": [lost]}) == ["No messages are left.", lost]


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_utc")
def test_a_message_of_today_is_told_by_its_time_and_an_older_one_by_its_day() -> None:
    noon = time.time() // 86400 * 86400 + 12 * 3600
    _, today, older, *_ = latest({"messages": [message(at=noon), message(at=86400.0)], "total": 2})
    assert today.startswith("12:00:00 ")
    assert older.startswith("01-02 00:00 ")
