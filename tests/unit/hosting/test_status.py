"""Status tells the truth: which facts lead to which state, and the words for each."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hermes.hosting.build import Build
from hermes.hosting.heartbeat import Beat
from hermes.hosting.status import Facts, State, judge, outdated
from hermes.store.sqlite.losses import Loss, Report

NOW = time.mktime((2026, 5, 1, 12, 0, 0, 0, 0, -1))
STEADY = 5000.0


def snapshot(**changes: Any) -> dict[str, Any]:
    telegram = {
        "account": "telegram",
        "state": "connected",
        "since": NOW - 900,
        "last_frame_age": 3.2,
        "in_today": 14,
        "out_today": 14,
    }
    return {
        "state": "running",
        "started_at": NOW - 273_600,
        "now": NOW,
        "kept_up_by": "systemd (hermes-gateway)",
        "heartbeat_age": 0.4,
        "rss": 71_000_000,
        "platforms": [telegram],
        "model": {"label": "openrouter / gpt-4o-mini", "last_answer_age": 125.0},
        "waiting": {"messages": 0, "approvals": 1},
        **changes,
    }


def platform(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = snapshot()["platforms"][0]
    return found | changes


def beat(age: float, **changes: Any) -> Beat:
    return Beat(**{"pid": 7, "at": NOW - age, "monotonic": STEADY - age, "ready_at": NOW - 500, **changes})


def facts(**changes: Any) -> Facts:
    return Facts(**{"now": NOW, "monotonic": STEADY, **changes})


def test_a_gateway_that_answers_and_hears_its_platforms_is_running() -> None:
    status = judge(facts(snapshot=snapshot(), is_held=True))
    assert (status.state, status.exit_code) == (State.RUNNING, 0)
    assert status.lines == (
        "✓ Gateway is running: up 3 d 4 h, kept up by systemd (hermes-gateway), heartbeat 0.4 s ago, 71 MB",
        "  telegram   connected    last frame 3 s ago    14 in, 14 out today",
        "  model      openrouter / gpt-4o-mini           last answer 2 min ago",
        "  waiting    0 messages, 1 approval",
    )


def test_what_keeps_the_gateway_up_is_a_row_of_its_own() -> None:
    words = "unsupervised: it runs by hand, so a reboot ends it → hermes gateway install"
    status = judge(facts(snapshot=snapshot(kept_up_by=""), is_held=True, service=words))
    assert status.state is State.RUNNING
    assert f"  service    {words}" in status.lines


def test_a_service_at_rest_is_named_beside_the_gateway_that_is_not_running() -> None:
    words = "systemd (hermes-gateway) is installed and inactive → hermes gateway start"
    assert f"  service    {words}" in judge(facts(service=words)).lines


def test_a_platform_that_is_signed_out_degrades_the_gateway_and_names_its_cure() -> None:
    weixin = platform(account="weixin", state="signed out", since=NOW - 10_080, cure="hermes weixin login")
    told = snapshot(platforms=[platform(), weixin], waiting={"answers": 3})
    status = judge(facts(snapshot=told, is_held=True))
    assert (status.state, status.exit_code) == (State.DEGRADED, 1)
    first = "! Gateway is degraded: weixin is signed out since 09:12. Nothing is lost: 3 answers wait."
    assert status.lines[0] == first
    assert "  weixin     signed out   → hermes weixin login" in status.lines


@pytest.mark.parametrize("age, state", [(29.0, State.RUNNING), (31.0, State.DEGRADED)])
def test_a_connection_on_which_nothing_is_heard_is_not_believed(age: float, state: State) -> None:
    told = snapshot(platforms=[platform(last_frame_age=age)])
    assert judge(facts(snapshot=told, is_held=True)).state is state


@pytest.mark.parametrize("since, state", [(NOW - 5, State.RUNNING), (NOW - 40, State.DEGRADED)])
def test_connecting_is_fine_for_half_a_minute(since: float, state: State) -> None:
    told = snapshot(platforms=[platform(state="connecting", since=since, last_frame_age=None)])
    assert judge(facts(snapshot=told, is_held=True)).state is state


def test_paused_platforms_are_told_with_their_reason() -> None:
    status = judge(facts(snapshot=snapshot(safe_reason="3 starts in a row went wrong"), is_held=True))
    assert status.state is State.DEGRADED
    assert "platforms are paused, since 3 starts in a row went wrong" in status.lines[0]


def test_a_pause_says_until_when_and_how_to_end_it() -> None:
    told = snapshot(safe_reason="3 starts in a row went wrong", paused_until=NOW + 42)
    status = judge(facts(snapshot=told, is_held=True))
    assert "platforms are paused until 12:00:42, since 3 starts in a row went wrong" in status.lines[0]
    assert "  paused     try the platforms now → hermes gateway restart, or /platform resume NAME" in status.lines


def crashes(number: int, **changes: Any) -> dict[str, Any]:
    ends = [NOW - 5 * (number - each) for each in range(number)]
    return {
        "at": NOW - 5,
        "kind": "killed",
        "how": "killed by signal 9",
        "restarted": True,
        "unasked_ends": ends,
    } | changes


def test_many_restarts_within_the_hour_are_trouble_and_few_are_mentioned() -> None:
    status = judge(facts(snapshot=snapshot(), is_held=True, last_exit=crashes(9)))
    words = "restarted 9 times in the last hour, last: killed by signal 9 5 s ago"
    assert (status.state, words in status.lines[0]) == (State.DEGRADED, True)
    assert f"  restarts   {words} → hermes logs --level warning" in status.lines
    status = judge(facts(snapshot=snapshot(), is_held=True, last_exit=crashes(1)))
    assert status.state is State.RUNNING
    assert any("restarted once in the last hour" in line for line in status.lines)


@pytest.mark.parametrize(
    "last", [crashes(9, restarted=False, kind="asked"), crashes(9, unasked_ends=[NOW - 3601] * 9), {}], ids=str
)
def test_restarts_that_are_over_are_not_told(last: dict[str, Any]) -> None:
    status = judge(facts(snapshot=snapshot(), is_held=True, last_exit=last))
    assert not any("restarted" in line for line in status.lines)


@pytest.mark.parametrize(
    "runs, words",
    [
        (Build("0.9", "a" * 40, "/code"), ""),
        (
            Build("0.9", "b" * 40, "/code"),
            "it runs Hermes 0.9 (commit bbbbbbbb), and 0.9 (commit aaaaaaaa) is installed",
        ),
        (Build("0.8", "", "/code"), "it runs Hermes 0.8, and 0.9 (commit aaaaaaaa) is installed"),
        (Build("0.9", "b" * 40, "/other"), ""),
        (Build("0.8", "", "/other"), "it runs Hermes 0.8 from /other, and this command is 0.9 (commit aaaaaaaa)"),
        (Build(""), "it runs Hermes of before, and 0.9 (commit aaaaaaaa) is installed"),
    ],
    ids=["the same", "pulled", "upgraded", "another copy", "another older copy", "from before it said so"],
)
def test_code_that_is_newer_than_the_gateway_is_named(runs: Build, words: str) -> None:
    told = snapshot(version=runs.version, commit=runs.commit, code=runs.folder)
    assert outdated(facts(snapshot=told, installed=Build("0.9", "a" * 40, "/code"))) == words


@pytest.mark.parametrize(
    "last, platforms, code",
    [
        ({"at": NOW, "kind": "crashed", "how": "ended with exit code 1"}, ("telegram",), 1),
        ({"at": NOW - 9000, "kind": "asked", "how": "stopped as asked"}, ("telegram",), 1),
        ({"at": NOW, "kind": "asked", "how": "stopped as asked"}, ("telegram",), 3),
        ({"at": NOW, "kind": "crashed", "how": "ended with exit code 1"}, (), 3),
    ],
    ids=["crashed", "killed with its supervisor", "stopped", "nobody is kept waiting"],
)
def test_a_dead_gateway_whose_platforms_nobody_hears_is_trouble(
    last: dict[str, Any], platforms: tuple[str, ...], code: int
) -> None:
    status = judge(facts(beat=beat(7200), last_exit=last, platforms=platforms))
    assert (status.state, status.exit_code) == (State.NOT_RUNNING, code)
    assert ("  Until then no message is received on telegram." in status.lines) == bool(platforms)


def test_a_pause_between_two_starts_says_when_the_next_one_is() -> None:
    last = crashes(4, kind="crashed", how="ended with exit code 1", next_start_at=NOW + 30)
    status = judge(facts(is_held=True, beat=beat(9.0), last_exit=last))
    assert "is started again at 12:00:30, in 30 s; now: hermes gateway restart." in status.lines[0]


def test_other_troubles_degrade_too() -> None:
    status = judge(facts(snapshot=snapshot(troubles=["port 8642 is taken"]), is_held=True))
    assert "degraded: port 8642 is taken. Nothing is lost." in status.lines[0]


def test_what_was_repaired_without_a_loss_is_told_and_all_is_well() -> None:
    report = str(Report("state.db", "why", NOW, "", 90, []))
    told = snapshot(troubles=[report, "port 8642 is taken"], repaired=[report])
    assert judge(facts(snapshot=told, is_held=True)).lines[0].startswith("! Gateway is degraded: port 8642 is taken.")
    status = judge(facts(snapshot=snapshot(troubles=[report], repaired=[report]), is_held=True))
    assert (status.state, status.exit_code) == (State.RUNNING, 0)
    assert f"  repaired   {report}" in status.lines


def test_a_recovery_that_lost_rows_is_not_said_to_have_lost_nothing() -> None:
    report = str(Report("state.db", "why", NOW, "", 90, [Loss("inbox", 10)]))
    status = judge(facts(snapshot=snapshot(troubles=[report]), is_held=True))
    assert "Recovered 90 of 100 rows; lost: 10 rows of inbox" in status.lines[0]
    assert "Nothing is lost" not in status.lines[0]


def test_a_heart_that_stopped_is_stalled_and_says_where() -> None:
    stopped = beat(21.0, doing="turn t_8f3k (tool: terminal)", waiting=2)
    status = judge(facts(is_held=True, beat=stopped))
    assert (status.state, status.exit_code) == (State.STALLED, 1)
    assert status.lines == (
        "✗ Gateway is stalled: the process lives, its heart stopped 21 s ago in turn t_8f3k (tool: terminal).",
        "  2 messages are safe in the inbox. The supervisor restarts it in 9 s. What happened: hermes trace t_8f3k",
    )


def test_a_gateway_that_beats_and_does_not_answer_is_stalled() -> None:
    assert judge(facts(is_held=True, beat=beat(0.4))).state is State.STALLED


def test_a_clock_that_jumps_does_not_stop_the_heart() -> None:
    jumped = Beat(pid=7, at=NOW - 7200, monotonic=STEADY - 0.4, ready_at=NOW - 7200)
    assert "the process is alive" in judge(facts(is_held=True, beat=jumped)).lines[0]


def test_before_it_is_ready_it_is_starting() -> None:
    assert "it is starting" in judge(facts(is_held=True, beat=beat(0.4, ready_at=0.0))).lines[0]
    assert "it is starting" in judge(facts(is_held=True)).lines[0]


def test_between_two_lives_the_reason_is_told() -> None:
    last = {"at": NOW - 2, "kind": "crashed", "how": "ended with exit code 1", "restarted": True}
    status = judge(facts(is_held=True, beat=beat(3.0), last_exit=last))
    assert status.state is State.DEGRADED
    assert "the worker ended 2 s ago (ended with exit code 1) and is being started again" in status.lines[0]


def test_nothing_there_is_not_running() -> None:
    status = judge(facts())
    assert (status.state, status.exit_code) == (State.NOT_RUNNING, 3)
    assert status.lines[0] == "✗ Gateway is not running: it was never started here."


def test_a_supervisor_that_wrote_nothing_was_killed_too() -> None:
    older = {"at": NOW - 90_000, "kind": "killed", "how": "killed by signal 9", "restarted": True}
    status = judge(facts(beat=beat(7200), last_exit=older))
    first = "✗ Gateway is not running: killed 2 h ago (out of memory?), and nothing kept it up."
    assert status.lines[0] == first
    assert "Start it: hermes gateway run" in status.lines[1]


def test_a_machine_that_went_down_is_told_apart() -> None:
    status = judge(facts(beat=beat(7200), booted_at=NOW - 3600))
    assert "the machine went down after 10:00, 2 h ago" in status.lines[0]


@pytest.mark.parametrize(
    "kind, how, words",
    [
        ("asked", "stopped as asked", "stopped 2 h ago, as asked."),
        (
            "configuration",
            "ended with exit code 78",
            "its configuration stopped it 2 h ago. What is wrong: hermes doctor",
        ),
        ("memory", "killed by signal 9, out of memory", "killed 2 h ago (out of memory), and nothing kept it up."),
        ("crashed", "ended with exit code 1", "ended with exit code 1 2 h ago, and nothing kept it up."),
    ],
)
def test_how_it_ended_is_said(kind: str, how: str, words: str) -> None:
    last = {"at": NOW - 7200, "kind": kind, "how": how, "restarted": False}
    assert judge(facts(beat=beat(7201), last_exit=last)).lines[0] == f"✗ Gateway is not running: {words}"
