"""How a turn's end is told: the table, its headers, and the words."""

from __future__ import annotations

import pytest

from hermes.core.messages import ToolCall, Usage
from hermes.core.requests import TurnResult
from hermes.servers.api import results
from hermes.servers.api.context import SessionNames
from hermes.servers.api.streams.progress import ToolProgress, label
from hermes.services.events import ApprovalRequested, ToolEnded, ToolStarted

CALL = ToolCall("c1", "weather", '{"city":"Oslo"}')
NAMES = SessionNames("talk", is_named=True, memory_key="memory")
DONE = TurnResult("t_1", "done", "Hello.", usage=Usage(12, 7, 3))
CALLS = TurnResult("t_1", "done", "", finish_reason="tool_calls", tool_calls=(CALL,))
CUT = TurnResult("t_1", "done", "Hel", finish_reason="length")
FILTERED = TurnResult("t_1", "done", "…", finish_reason="content_filter")
FAILED = TurnResult("t_1", "failed", "", "model rate: Too many.", "error", error_kind="rate")
FAILED_LATE = TurnResult("t_1", "failed", "Hel", "model transient: It broke.", "error", error_kind="transient")
BROKEN = TurnResult("t_1", "failed", "", "RuntimeError: token=abc", "error")
CRASHED = TurnResult("t_1", "set_aside", "", "crashed three times while it ran", "error")
STOPPED = TurnResult("t_1", "stopped", "", "stopped", "error")
STOPPED_LATE = TurnResult("t_1", "stopped", "Hel", "stopped", "error")


@pytest.mark.parametrize(
    "result, reason, completed, partial",
    [
        (DONE, "stop", "true", "false"),
        (CALLS, "tool_calls", "true", "false"),
        (FILTERED, "content_filter", "true", "false"),
        (CUT, "length", "false", "true"),
        (FAILED_LATE, "length", "false", "true"),
        (STOPPED_LATE, "length", "false", "true"),
        (FAILED, "", "false", "false"),
        (BROKEN, "", "false", "false"),
        (CRASHED, "", "false", "false"),
        (STOPPED, "stop", "false", "false"),
    ],
)
def test_the_table_of_endings(result: TurnResult, reason: str, completed: str, partial: str) -> None:
    assert results.finish_reason(result) == reason
    headers = results.outcome_headers(result)
    assert (headers["X-Hermes-Completed"], headers["X-Hermes-Partial"]) == (completed, partial)
    assert ("X-Hermes-Error" in headers) == (completed == "false")


def test_only_what_did_not_end_well_carries_extras() -> None:
    def shape(result: TurnResult) -> set[str]:
        return set(results.completion(result, completion_id="x", created=1, model="m"))

    assert shape(DONE) == shape(CALLS) == {"id", "object", "created", "model", "choices", "usage"}
    assert shape(CUT) == shape(STOPPED) == {*shape(DONE), "hermes"}
    assert results.extras(FAILED_LATE) == {
        "completed": False,
        "partial": True,
        "failed": True,
        "state": "failed",
        "error": "It broke.",
        "error_code": "transient",
        "turn_id": "t_1",
    }


def test_a_message_always_has_content_unless_it_only_calls_tools() -> None:
    def content(result: TurnResult) -> object:
        return results.completion(result, completion_id="x", created=1, model="m")["choices"][0]["message"]["content"]

    assert (content(DONE), content(CALLS), content(STOPPED)) == ("Hello.", None, "")


def test_usage_counts_what_the_whole_turn_spent() -> None:
    assert results.usage_of(DONE.usage) == {
        "prompt_tokens": 12,
        "completion_tokens": 7,
        "total_tokens": 19,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def test_a_failure_names_its_kind_and_leaves_our_own_exceptions_to_the_log() -> None:
    rate, broken, crashed = (results.failure(result, NAMES) for result in (FAILED, BROKEN, CRASHED))
    assert (rate.status, rate.code, rate.message) == (502, "rate", "Too many.")
    assert rate.headers["X-Hermes-Session-Id"] == "talk"
    assert rate.headers["X-Hermes-Session-Key"] == "memory"
    assert (broken.code, "abc" in broken.message, "RuntimeError" in broken.message) == ("turn_failed", False, False)
    assert "crashed three times" in crashed.message


def test_a_header_is_one_line_of_ascii() -> None:
    result = TurnResult("t_1", "failed", "", "model auth: Der Schlüssel\nist falsch. " + "x" * 400, error_kind="auth")
    error = results.outcome_headers(result)["X-Hermes-Error"]
    assert error.startswith("Der Schl?ssel ist falsch.")
    assert len(error) <= 200


def test_an_approval_is_told_with_all_that_is_needed_to_answer_it() -> None:
    refusal = results.approval_required(ApprovalRequested("lane", "t_1", "ap_1", "ABCD", "May I?"), NAMES)
    error = refusal.body()["error"]
    assert (refusal.status, error["code"]) == (409, "approval_required")
    assert (error["approval_id"], error["approval_code"], error["session_id"]) == ("ap_1", "ABCD", "talk")


# Progress of tools


def started(call_id: str) -> ToolStarted:
    return ToolStarted("lane", "t_1", call_id, "read_file", '{"path":"a.txt"}')


def test_each_call_is_told_twice_whatever_happens() -> None:
    tools = ToolProgress()
    running = tools.started(started("c1"))
    assert running == {
        "tool": "read_file",
        "emoji": "📖",
        "label": "a.txt",
        "toolCallId": "c1",
        "status": "running",
        "event": {"type": "status", "data": {"description": "📖 read_file: a.txt", "done": False}},
    }
    assert tools.started(started("c1")) is None
    assert tools.ended(ToolEnded("lane", "t_1", "c1", "read_file", "ok")) == {
        **running,
        "status": "completed",
        "event": {"type": "status", "data": {"description": "📖 read_file: a.txt", "done": True}},
    }
    assert tools.ended(ToolEnded("lane", "t_1", "c1", "read_file", "ok")) is None
    tools.started(started("c2"))
    assert [(shown["toolCallId"], shown["status"]) for shown in tools.close()] == [("c2", "completed")]
    assert tools.close() == []


@pytest.mark.parametrize(
    "arguments, shown",
    [("{}", "tool"), ("nonsense", "tool"), ("[1]", "tool"), ('{"n":1,"q":"two\\nlines"}', "two lines")],
)
def test_a_label_is_the_first_text_argument_or_the_tools_name(arguments: str, shown: str) -> None:
    assert label("tool", arguments) == shown
