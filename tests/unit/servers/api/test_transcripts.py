"""Lines of a transcript as a client may see them."""

from __future__ import annotations

from hermes.core.messages import ChatMessage, Image, Role, ToolCall
from hermes.servers.api.transcripts import LONGEST_TEXT, answer_of, message_to_dict
from hermes.store import codec
from hermes.store.sessions.transcripts import TranscriptLine

CALL = ToolCall("c1", "danger", '{"text":"x"}')


def line(seq: int, message: ChatMessage) -> TranscriptLine:
    return TranscriptLine(seq, "t_1", "message", codec.dump(message), 1.0)


def test_a_call_and_its_result_have_the_shapes_of_openai() -> None:
    assert message_to_dict(ChatMessage(Role.ASSISTANT, "", tool_calls=(CALL,))) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "danger", "arguments": '{"text":"x"}'}}],
    }
    assert message_to_dict(ChatMessage(Role.TOOL, "done", tool_call_id="c1", name="danger")) == {
        "role": "tool",
        "content": "done",
        "tool_call_id": "c1",
        "name": "danger",
    }


def test_arguments_and_results_of_megabytes_are_trimmed_and_words_are_not() -> None:
    long = "x" * 1_000_000
    result = message_to_dict(ChatMessage(Role.TOOL, long, tool_call_id="c1", name="danger"))["content"]
    assert result == "x" * LONGEST_TEXT + "\n[897,600 more characters]"
    asked = message_to_dict(ChatMessage(Role.ASSISTANT, long, tool_calls=(ToolCall("c1", "danger", long),)))
    assert asked["content"] == long
    assert len(asked["tool_calls"][0]["function"]["arguments"]) < LONGEST_TEXT + 50


def test_a_picture_is_its_address_or_its_kind_and_size() -> None:
    data = "data:image/png;base64," + "A" * 1000
    shown = message_to_dict(
        ChatMessage(Role.USER, "look", images=(Image("https://example.org/a.png", "low"), Image(data)))
    )
    assert shown["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
        {
            "type": "image_url",
            "image_url": {"url": "data:image/png;base64", "detail": "auto"},
            "omitted_characters": len(data),
        },
    ]


def test_an_answer_begins_after_what_the_request_brought_and_leaves_out_what_cannot_be_read() -> None:
    lines = [
        line(1, ChatMessage(Role.USER, "earlier")),
        line(2, ChatMessage(Role.ASSISTANT, "brought along")),
        line(3, ChatMessage(Role.USER, "do it")),
        line(4, ChatMessage(Role.ASSISTANT, "I do.", tool_calls=(CALL,))),
        TranscriptLine(5, "t_1", "message", "not json", 1.0),
        line(6, ChatMessage(Role.TOOL, "done", tool_call_id="c1")),
        line(7, ChatMessage(Role.USER, "steered")),
        line(8, ChatMessage(Role.ASSISTANT, "Done.")),
    ]
    assert [(name, message.text) for name, message in answer_of(lines, "t_1", 3)] == [
        ("msg_t_1_1", "I do."),
        ("msg_t_1_1", "done"),
        ("msg_t_1_2", "Done."),
    ]
