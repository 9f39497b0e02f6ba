"""Responses, their items and their events, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.core.messages import ChatMessage, Role, ToolCall, Usage
from hermes.core.requests import TurnResult
from hermes.servers.api.errors import ApiError
from hermes.servers.api.responses import shapes
from hermes.servers.api.responses.events import ResponseEvents
from hermes.servers.api.responses.request import parse_request, read_input
from hermes.services.events import SegmentEnded, TextArrived, ToolEnded, ToolStarted

Json = dict[str, Any]

ONE, TWO = ToolCall("c1", "look", '{"a":1}'), ToolCall("c2", "weather", "{}")
LANE, TURN = "agent:main:api:dm:s", "t_1"


def said(text: str = "", *calls: ToolCall) -> ChatMessage:
    return ChatMessage(Role.ASSISTANT, text, tool_calls=calls)


def result_of(call: ToolCall, text: str) -> ChatMessage:
    return ChatMessage(Role.TOOL, text, tool_call_id=call.id)


def kinds(items: list[Json]) -> list[tuple[str, str]]:
    return [(item["type"], item.get("call_id", "")) for item in items]


def test_a_response_and_its_event_carry_one_name() -> None:
    assert shapes.event_id_of("resp_1k4m") == "ev_resp_1k4m"
    assert shapes.response_id_of("ev_resp_1k4m") == "resp_1k4m"
    assert shapes.response_id_of("ev_1k4m") == ""


@pytest.mark.parametrize(
    "result, status",
    [
        (TurnResult("t", "done"), "completed"),
        (TurnResult("t", "done", finish_reason="tool_calls"), "completed"),
        (TurnResult("t", "done", finish_reason="length"), "incomplete"),
        (TurnResult("t", "done", finish_reason="content_filter"), "incomplete"),
        (TurnResult("t", "failed", finish_reason="error"), "failed"),
        (TurnResult("t", "failed", text="half", finish_reason="error"), "failed"),
        (TurnResult("t", "set_aside", finish_reason="error"), "failed"),
        (TurnResult("t", "stopped", finish_reason="error"), "cancelled"),
        (TurnResult("t", "interrupted", finish_reason="error"), "cancelled"),
    ],
)
def test_every_end_of_a_turn_is_a_final_state(result: TurnResult, status: str) -> None:
    body = shapes.finished({"id": "resp_1"}, result, [], now=7.9)
    assert body["status"] == status
    assert (body["completed_at"] is not None) == (status == "completed")
    assert (body["error"] is not None) == (status == "failed")
    assert (body["incomplete_details"] is not None) == (status == "incomplete")


def test_the_error_of_a_response_has_one_of_the_known_codes() -> None:
    rate = TurnResult("t", "failed", reason="model rate: slow down", error_kind="rate", finish_reason="error")
    assert shapes.error_of(rate) == {"code": "rate_limit_exceeded", "message": "slow down"}
    ours = TurnResult("t", "failed", reason="KeyError: 'secret'", finish_reason="error")
    assert shapes.error_of(ours)["code"] == "server_error"
    assert "secret" not in shapes.error_of(ours)["message"]


def test_usage_has_its_details() -> None:
    assert shapes.usage_of(Usage(5, 3, 2)) == {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 8,
    }


def test_each_call_stands_before_its_result_and_the_clients_calls_come_last() -> None:
    messages = [said("Let me see.", TWO, ONE), result_of(ONE, "found")]
    items = shapes.output_of(messages, shapes.ItemIds("resp_x"))
    assert kinds(items) == [
        ("message", ""),
        ("mcp_call", "c1"),
        ("function_call", "c2"),
    ]
    assert [item["id"] for item in items] == ["msg_x_0", "mcp_x_0", "fc_x_0"]
    older = shapes.output_of(messages, shapes.ItemIds("resp_x"), form=shapes.OutputForm(has_function_items=True))
    assert kinds(older) == [
        ("message", ""),
        ("function_call", "c1"),
        ("function_call_output", "c1"),
        ("function_call", "c2"),
    ]
    assert [item["id"] for item in older] == ["msg_x_0", "fc_x_0", "fco_x_0", "fc_x_1"]


def test_a_call_of_the_gateway_has_its_result_its_error_and_the_question_asked_for_it() -> None:
    messages = [said("", ONE, TWO), result_of(ONE, "found"), result_of(TWO, "no such town")]
    outcomes = {
        "c1": shapes.CallOutcome("found", approval_id="ap_7"),
        "c2": shapes.CallOutcome("no such town", is_error=True),
    }
    first, second = shapes.output_of(messages, shapes.ItemIds("resp_x"), outcomes=outcomes)
    assert (first["output"], first["error"], first["status"]) == ("found", None, "completed")
    assert (first["approval_request_id"], second["approval_request_id"]) == ("mcpr_7", None)
    assert (second["output"], second["error"], second["status"]) == (
        None,
        shapes.execution_error("no such town"),
        "failed",
    )
    assert {first["server_label"], second["server_label"]} == {"hermes"}


def test_a_response_that_goes_on_after_a_question_begins_with_its_call() -> None:
    messages = [said("One.", ONE), result_of(ONE, "found"), said("Two.", TWO), result_of(TWO, "rain"), said("Done.")]
    items = shapes.output_of(messages, shapes.ItemIds("resp_x"), form=shapes.OutputForm(since="c2"))
    assert kinds(items) == [("mcp_call", "c2"), ("message", "")]


def test_of_an_answer_in_a_form_only_that_answer_is_a_message() -> None:
    messages = [said("Let me see.", ONE), result_of(ONE, "found"), said('{"found":true}')]
    items = shapes.output_of(messages, shapes.ItemIds("resp_x"), form=shapes.OutputForm(is_formed=True))
    assert kinds(items) == [("mcp_call", "c1"), ("message", "")]
    assert items[-1]["content"][0]["text"] == '{"found":true}'


def test_the_message_that_was_cut_off_says_so() -> None:
    items = shapes.output_of([said("one"), said("tw")], shapes.ItemIds("resp_x"), last_status="incomplete")
    assert [item["status"] for item in items] == ["completed", "incomplete"]


def test_long_arguments_are_cut_between_letters() -> None:
    long = ToolCall("c1", "look", "ä" * shapes.LONGEST_ARGUMENTS)
    response = {"output": [shapes.call_item("fc_1", long), shapes.call_output_item("fco_1", "c1", "ok")]}
    call, output = shapes.last_of_stream(response, frozenset())["output"]
    assert len(call["arguments"].encode()) == shapes.LONGEST_ARGUMENTS
    assert call["arguments_trimmed"] is True
    assert output["output"] == [{"type": "input_text", "text": "ok"}]
    assert shapes.last_of_stream(response, frozenset({"c1"}))["output"][0]["arguments"] == long.arguments
    assert response["output"][0]["arguments"] == long.arguments


def events_of(*events: Any) -> tuple[ResponseEvents, list[Json]]:
    telling = ResponseEvents({"id": "resp_x", "status": "in_progress"})
    return telling, [told for event in events for told in telling.of(event)]


def test_a_segment_that_was_never_streamed_is_told_whole() -> None:
    telling, told = events_of(SegmentEnded(LANE, TURN, "Hello."))
    assert [event["delta"] for event in told if event["type"].endswith("delta")] == ["Hello."]
    assert telling.output == [shapes.message_item("msg_x_0", "Hello.")]


def test_what_was_told_is_not_told_again_and_what_was_not_is_told_at_the_end() -> None:
    telling, _ = events_of(
        TextArrived(LANE, TURN, "I look. "),
        SegmentEnded(LANE, TURN, "I look. "),
        ToolStarted(LANE, TURN, "c1", "look", '{"a":1}'),
        ToolEnded(LANE, TURN, "c1", "look", "ok", "found"),
        TextArrived(LANE, TURN, "Done"),
    )
    refused = ToolCall("c3", "danger", "{}")
    whole = [said("I look. ", ONE, refused), result_of(ONE, "found"), result_of(refused, "denied"), said("Done")]
    items = shapes.output_of(whole, shapes.ItemIds("resp_x"))
    rest = list(telling.rest(items, last_status="completed"))
    assert [event["item"]["type"] for event in rest if event["type"] == "response.output_item.added"] == [
        "mcp_call",
    ]
    assert kinds(telling.output) == [("message", ""), ("mcp_call", "c1"), ("message", ""), ("mcp_call", "c3")]
    assert len({item["id"] for item in telling.output}) == len(telling.output)
    assert list(telling.rest(items, last_status="completed")) == []


def test_a_result_closes_the_message_before_it() -> None:
    telling, told = events_of(
        TextArrived(LANE, TURN, "Hm"),
        ToolStarted(LANE, TURN, "c1", "look", "{}"),
        ToolStarted(LANE, TURN, "c1", "look", "{}"),
    )
    done = [event["item"]["type"] for event in told if event["type"] == "response.output_item.done"]
    assert done == ["message"]
    assert [item["status"] for item in telling.output] == ["completed", "in_progress"]
    ended = list(telling.of(ToolEnded(LANE, TURN, "c1", "look", "error", "no such file")))
    assert [event["type"] for event in ended] == ["response.mcp_call.failed", "response.output_item.done"]
    assert (telling.output[-1]["status"], telling.output[-1]["error"]) == (
        "failed",
        shapes.execution_error("no such file"),
    )


def test_an_error_in_mid_stream_has_the_shape_of_the_event() -> None:
    telling, _ = events_of()
    error = ApiError(500, "Broken.", code="internal_error", extras={"response_id": "resp_x"})
    assert telling.error(error) == {
        "type": "error",
        "sequence_number": 0,
        "code": "internal_error",
        "message": "Broken.",
        "param": None,
        "response_id": "resp_x",
    }


def test_calls_of_one_answer_are_one_message() -> None:
    talk = read_input(
        [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a":1}'},
            {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": {}},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "found"}]},
            {"type": "function_call_output", "call_id": "c2", "output": "rain"},
        ]
    )
    assert talk.messages == (
        ChatMessage(Role.USER, "hi"),
        said("I look.", ONE, TWO),
        result_of(ONE, "found"),
        result_of(TWO, "rain"),
    )


def test_system_words_of_a_chain_stand_beside_the_instructions_of_the_request() -> None:
    asked = parse_request({"input": "hi", "instructions": "Be brief."})
    assert asked.with_system("Rhyme.", "").options.instructions == "Be brief.\n\nRhyme."
    assert asked.echo["instructions"] == "Be brief."


def test_input_is_shown_again_as_items() -> None:
    talk = read_input([{"role": "user", "content": [{"type": "input_image", "image_url": "https://x.test/a.png"}]}])
    [item] = shapes.input_items(talk.messages, "resp_x")
    assert item["content"] == [
        {"type": "input_image", "image_url": "https://x.test/a.png", "detail": "auto", "file_id": None}
    ]
    assert shapes.listed([]) == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
