"""Requests as clients send them: every form that is taken, and the reason for every one that is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.config import ApiConfig
from hermes.core.messages import ChatMessage, Image, Role, ToolCall, ToolSpec
from hermes.core.requests import TurnOptions
from hermes.servers.api import parse
from hermes.servers.api.anthropic.request import chat_body
from hermes.servers.api.bodies import ChatRequestBody, PairingDecisionBody, ResponseRequestBody, RunRequestBody, decode
from hermes.servers.api.content import INPUT_LIMITS, Content, InputLimits, limits_of, read_content, read_text, summary
from hermes.servers.api.errors import ApiError
from hermes.servers.api.input.tools import read_tool_choice
from hermes.servers.api.parse import decode_input_body, read_input
from hermes.servers.api.responses.request import parse_request

PIXEL = "data:image/png;base64,iVBORw0KGgo="
TOOL = ToolSpec("weather", "", {})


def refused(call: Callable[..., Any], *args: Any, **more: Any) -> tuple[str, str | None]:
    with pytest.raises(ApiError) as caught:
        call(*args, **more)
    assert caught.value.status == 400
    assert caught.value.message.endswith((".", "…"))
    return caught.value.code, caught.value.param


def sent(**fields: Any) -> ChatRequestBody:
    """A chat request with these fields, decoded."""
    return decode({"messages": [], **fields}, ChatRequestBody)


def conversation(messages: Any, limits: InputLimits = INPUT_LIMITS) -> parse.Conversation:
    return parse.read_conversation(sent(messages=messages).messages, limits)


def tools_of(tools: Any) -> tuple[ToolSpec, ...]:
    return parse.read_tools(sent(tools=tools).tools)


def run_of(body: dict[str, Any]) -> tuple[tuple[ChatMessage, ...], TurnOptions]:
    return read_input(decode_input_body(body, RunRequestBody), INPUT_LIMITS, is_whole=True)


def nested(depth: int, inside: Any) -> Any:
    for _ in range(depth):
        inside = [inside]
    return inside


# Content


@pytest.mark.parametrize(
    "value, text",
    [
        ("hello", "hello"),
        (None, ""),
        ([], ""),
        (["a", None, "b"], "a\nb"),
        ([{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb"),
        ({"type": "text", "text": "alone"}, "alone"),
        ([{"text": "no type"}], "no type"),
        ([[{"type": "output_text", "text": "in an array"}]], "in an array"),
        ([{"type": "refusal", "refusal": "I will not."}], "I will not."),
        ("a\0b", "a\u2400b"),
    ],
)
def test_every_usual_form_of_content_becomes_plain_text(value: Any, text: str) -> None:
    assert read_content(value, "content") == Content(text)


def test_a_refusal_beside_the_content_is_what_the_model_said() -> None:
    said: dict[str, Any] = {
        "role": "assistant",
        "content": None,
        "refusal": "I will not.",
        "annotations": [],
        "audio": None,
    }
    assert conversation([said, {"role": "user", "content": "why?"}]).messages[0].text == "I will not."


@pytest.mark.parametrize(
    "part, image",
    [
        ({"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}, Image(PIXEL, "low")),
        ({"type": "image_url", "image_url": "HTTPS://example.org/a.png"}, Image("HTTPS://example.org/a.png")),
        ({"type": "input_image", "image_url": PIXEL, "detail": "high"}, Image(PIXEL, "high")),
        ({"type": "input_image", "image_url": PIXEL, "file_id": None, "detail": None}, Image(PIXEL)),
    ],
)
def test_pictures_are_taken_in_both_dialects(part: dict[str, Any], image: Image) -> None:
    assert read_content([part], "content") == Content(images=(image,))


@pytest.mark.parametrize(
    "value, code, param",
    [
        (7, "invalid_content", "c"),
        ([True], "invalid_content", "c[0]"),
        ([{}], "invalid_content", "c[0].type"),
        ([{"type": 3}], "invalid_content", "c[0].type"),
        ([{"type": "text"}], "invalid_content", "c[0].text"),
        ([{"type": "text", "text": ["x"]}], "invalid_content", "c[0].text"),
        ([{"type": "file"}], "unsupported_content_type", "c[0]"),
        ([{"type": "input_file", "file_data": "x"}], "unsupported_content_type", "c[0]"),
        ([{"type": "input_image", "file_id": "f"}], "unsupported_content_type", "c[0]"),
        ([{"type": "text", "text": "x", "file_id": "f"}], "unsupported_content_type", "c[0]"),
        ([{"type": "video_url", "video_url": {}}], "unsupported_content_type", "c[0]"),
        ([{"type": "image_url", "image_url": "data:text/html,x"}], "unsupported_content_type", "c[0].image_url"),
        ([{"type": "image_url", "image_url": "data:image/png"}], "invalid_image_url", "c[0].image_url"),
        ([{"type": "image_url", "image_url": "file:///etc/passwd"}], "invalid_image_url", "c[0].image_url"),
        ([{"type": "image_url", "image_url": "https://"}], "invalid_image_url", "c[0].image_url"),
        ([{"type": "image_url"}], "invalid_image_url", "c[0].image_url"),
        ([{"type": "image_url", "image_url": {"url": 1}}], "invalid_image_url", "c[0].image_url"),
        ([{"type": "input_image", "image_url": PIXEL, "detail": "huge"}], "invalid_image_detail", "c[0].detail"),
        ([{"type": "input_image", "image_url": PIXEL, "detail": {}}], "invalid_image_detail", "c[0].detail"),
    ],
)
def test_content_that_cannot_be_taken_is_refused_where_it_is(value: Any, code: str, param: str) -> None:
    assert refused(read_content, value, "c") == (code, param)


def test_content_has_limits_on_depth_count_and_length() -> None:
    limits = InputLimits(parts=3, text=10, depth=4)
    assert read_content(nested(4, "x"), "c", InputLimits()) == Content("x")
    assert refused(read_content, nested(11, "x"), "c")[0] == "content_too_deep"
    assert read_content(["a", "b", "c"], "c", limits) == Content("a\nb\nc")
    assert refused(read_content, ["a"] * 4, "c", limits)[0] == "too_many_parts"
    assert refused(read_content, [[], [], [], []], "c", limits)[0] == "too_many_parts"
    assert read_content("0123456789", "c", limits).text == "0123456789"
    assert refused(read_content, "0123456789a", "c", limits) == ("content_too_long", "c")
    assert refused(read_content, ["01234", "56789"], "c", limits)[0] == "content_too_long"
    assert refused(read_content, "日本語の", "c", limits)[0] == "content_too_long"


def test_the_limits_are_the_owners() -> None:
    assert limits_of(ApiConfig()) == InputLimits()
    assert limits_of(ApiConfig(max_content_parts=5)).parts == 5


def test_where_only_words_mean_something_a_picture_is_refused() -> None:
    assert refused(read_text, [{"type": "image_url", "image_url": PIXEL}], "c") == ("unsupported_content_type", "c")


def test_a_log_shows_pictures_as_a_number() -> None:
    assert summary(Content("what is it?", (Image(PIXEL),))) == "[1 image] what is it?"
    assert summary(Content("", (Image(PIXEL), Image(PIXEL)))) == "[2 images]"


# The body


@pytest.mark.parametrize("raw", [b"", b"{", b"nonsense", b'{"a":NaN}', b"\xff", b"[" * 100_000, b"[]", b"1", b"null"])
def test_what_is_no_object_of_json_is_refused(raw: bytes) -> None:
    assert refused(parse.parse_object, raw) == ("invalid_json", None)


def test_brackets_nested_too_deep_beside_half_a_character_are_refused_too() -> None:
    raw = b'{"a":"\\ud800","b":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert refused(parse.parse_object, raw) == ("invalid_json", None)


def test_half_a_character_is_replaced() -> None:
    assert parse.parse_object(b'{"a":"x\\uD83D","b":"\\ud83d\\ude00"}') == {"a": "x?", "b": "😀"}


# Messages


def test_system_and_developer_messages_are_the_instructions() -> None:
    talk = conversation(
        [
            {"role": "system", "content": [{"type": "text", "text": "one"}]},
            {"role": "user", "content": "hello"},
            {"role": "developer", "content": "two"},
            {"role": "system", "content": ""},
        ]
    )
    assert talk == parse.Conversation("one\n\ntwo", (ChatMessage(Role.USER, "hello"),))


def test_calls_and_their_results_are_read() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    talk = conversation(
        [
            {"role": "user", "content": "hi", "name": "ana"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "rain"}], "name": "a b"},
        ]
    )
    assert talk.messages == (
        ChatMessage(Role.USER, "hi", name="ana"),
        ChatMessage(Role.ASSISTANT, tool_calls=(ToolCall("c1", "weather", '{"city": "Oslo"}'),)),
        ChatMessage(Role.TOOL, "rain", tool_call_id="c1"),
    )
    assert talk.newest == talk.messages[2:]


@pytest.mark.parametrize(
    "messages, code, param",
    [
        (None, "invalid_messages", "messages"),
        ({}, "invalid_messages", "messages"),
        (["hi"], "invalid_messages", "messages[0]"),
        ([], "empty_messages", "messages"),
        ([{"role": "system", "content": " "}], "empty_messages", "messages"),
        ([{"content": "x"}], "invalid_role", "messages[0].role"),
        ([{"role": ["user"], "content": "x"}], "invalid_role", "messages[0].role"),
        ([{"role": "user", "content": " "}], "empty_message", "messages[-1]"),
        ([{"role": "user"}], "empty_message", "messages[-1]"),
        ([{"role": "assistant", "content": " "}], "empty_message", "messages[-1]"),
        (
            [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "a"}}]}],
            "invalid_last_message",
            "messages[-1]",
        ),
        ([{"role": "tool", "content": "x"}], "invalid_tool_call_id", "messages[0].tool_call_id"),
        ([{"role": "assistant", "tool_calls": {}}], "invalid_tool_calls", "messages[0].tool_calls"),
        ([{"role": "assistant", "tool_calls": [1]}], "invalid_tool_calls", "messages[0].tool_calls[0]"),
        (
            [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "a b"}}]}],
            "invalid_tool_calls",
            "messages[0].tool_calls[0].function.name",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "a", "arguments": 1}}]}],
            "invalid_tool_calls",
            "messages[0].tool_calls[0].function.arguments",
        ),
    ],
)
def test_messages_that_cannot_be_taken_are_refused_where_they_are(messages: Any, code: str, param: str) -> None:
    assert refused(conversation, messages) == (code, param)


@pytest.mark.parametrize(
    "message, code, place",
    [
        (1, "invalid_messages", ""),
        ({"content": "x"}, "invalid_role", ".role"),
        ({"role": None, "content": "x"}, "invalid_role", ".role"),
        ({"role": "assistant", "tool_calls": [1]}, "invalid_tool_calls", ".tool_calls[0]"),
        ({"role": "tool", "content": "x"}, "invalid_tool_call_id", ".tool_call_id"),
    ],
)
def test_runs_and_responses_refuse_the_same_messages(message: Any, code: str, place: str) -> None:
    body: dict[str, Any] = {"input": "x", "conversation_history": [message]}
    assert refused(run_of, body) == (code, f"input[0]{place}")
    code = "invalid_input" if message == 1 else code
    assert refused(parse_request, body) == (code, f"conversation_history[0]{place}")


def test_the_newer_name_of_a_limit_counts_and_the_older_one_may_hold_anything() -> None:
    assert run_of({"input": "x", "max_output_tokens": 5, "max_tokens": "no"})[1].max_tokens == 5
    assert run_of({"input": "x", "max_tokens": 6})[1].max_tokens == 6
    assert refused(run_of, {"input": "x", "max_output_tokens": 0}) == ("invalid_value", "max_output_tokens")
    assert refused(run_of, {"input": "x", "max_tokens": 0}) == ("invalid_value", "max_tokens")


def test_there_may_be_only_so_many_messages() -> None:
    messages = [{"role": "user", "content": "x"}] * 3
    assert refused(conversation, messages, InputLimits(messages=2))[0] == "too_many_messages"


def test_a_result_needs_its_call_just_before_it() -> None:
    call = ChatMessage(Role.ASSISTANT, tool_calls=(ToolCall("c1", "a", "{}"), ToolCall("c2", "a", "{}")))
    user, one, two = ChatMessage(Role.USER, "x"), *(ChatMessage(Role.TOOL, tool_call_id=i) for i in ("c1", "c2"))
    parse.check_results([user, call, two, one, user])
    assert refused(parse.check_results, [user, one]) == ("invalid_tool_result", "messages")
    assert refused(parse.check_results, [user, call, user, one])[0] == "invalid_tool_result"


def test_talks_that_begin_alike_have_one_label() -> None:
    def label(*messages: dict[str, str]) -> str:
        return conversation(list(messages)).label

    system, first = {"role": "system", "content": "s"}, {"role": "user", "content": "hello"}
    later = ({"role": "assistant", "content": "a"}, {"role": "user", "content": "more"})
    assert label(system, first) == label(system, first, *later)
    assert label(system, first) != label(first)
    assert len(label(first)) == 12


def test_conversation_of_system_messages_alone_asks_what_the_last_one_says() -> None:
    talk = conversation([{"role": "system", "content": "Be brief."}, {"role": "developer", "content": "Say hello."}])
    assert (talk.instructions, talk.messages) == ("Be brief.", (ChatMessage(Role.USER, "Say hello."),))


def test_last_message_of_the_assistant_is_the_beginning_of_the_answer() -> None:
    talk = conversation([{"role": "user", "content": "A story!"}, {"role": "assistant", "content": "Once"}])
    assert talk.continues_answer
    assert talk.newest == (ChatMessage(Role.USER, parse.GO_ON),)


# Tools


def test_tools_are_taken_in_both_dialects() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    chat = {"type": "function", "function": {"name": "weather", "description": "d", "parameters": schema}}
    flat = {"type": "function", "name": "time", "parameters": None, "strict": True}
    assert tools_of([chat, flat]) == (ToolSpec("weather", "d", schema), ToolSpec("time", "", {}, strict=True))
    assert tools_of([{"type": "web_search"}, flat]) == (ToolSpec("time", "", {}, strict=True),)
    assert tools_of(None) == ()


@pytest.mark.parametrize(
    "tools, code",
    [
        ({}, "invalid_tools"),
        ([1], "invalid_tools"),
        ([{"type": "function"}], "invalid_tools"),
        ([{"type": "function", "name": "a b"}], "invalid_tools"),
        ([{"type": "function", "name": "a", "description": 1}], "invalid_tools"),
        ([{"type": "function", "name": "a", "parameters": []}], "invalid_tools"),
        ([{"type": "function", "name": "a"}] * 2, "invalid_tools"),
        ([{"type": "function", "name": "a", "parameters": {"x": nested(100, 1)}}], "content_too_deep"),
    ],
)
def test_tools_that_cannot_be_taken_are_refused(tools: Any, code: str) -> None:
    assert refused(tools_of, tools)[0] == code


@pytest.mark.parametrize(
    "value, choice",
    [
        (None, ""),
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "weather"}}, "weather"),
        ({"type": "function", "name": "weather"}, "weather"),
    ],
)
def test_a_choice_of_tools_is_a_word_or_a_name(value: Any, choice: str) -> None:
    assert read_tool_choice(value, (TOOL,), None) == (choice, (TOOL,))


@pytest.mark.parametrize(
    "value", ["weather", 1, [], {}, {"type": "function"}, {"type": "function", "name": "other"}, {"type": "mcp"}]
)
def test_a_choice_of_something_else_is_refused(value: Any) -> None:
    assert refused(read_tool_choice, value, (TOOL,), None) == ("invalid_tool_choice", "tool_choice")
    assert refused(read_tool_choice, "required", (), None)[0] == "invalid_tool_choice"


# Single fields


def test_fields_that_are_null_are_as_good_as_absent() -> None:
    nothing = dict.fromkeys(("stream", "model", "temperature", "max_tokens", "stream_options", "tools", "tool_choice"))
    body = sent(**nothing)
    assert body == sent()
    options = parse.read_options(body, INPUT_LIMITS, instructions="", max_tokens=body.max_tokens)
    assert options == TurnOptions()
    assert (options.model, options.temperature, options.max_tokens) == ("", None, 0)
    assert not body.stream
    assert not body.stream_options


def test_fields_that_nobody_declared_are_left_alone() -> None:
    assert sent(made_up={"a": [1]}) == sent()


@pytest.mark.parametrize("value", ["1", True, -1, 2.1, [], {}])
def test_a_temperature_that_is_none_is_refused(value: Any) -> None:
    assert refused(sent, temperature=value) == ("invalid_value", "temperature")


@pytest.mark.parametrize("value", ["1", True, -1, 0, 1.5, 2**31])
def test_a_number_of_tokens_that_is_none_is_refused(value: Any) -> None:
    assert refused(sent, max_tokens=value) == ("invalid_value", "max_tokens")


@pytest.mark.parametrize(
    "body, kind, sentence",
    [
        (
            {"messages": [], "stream": "yes"},
            ChatRequestBody,
            "stream cannot be taken: expected `bool | null`, got `str`.",
        ),
        ({}, ChatRequestBody, "messages is missing."),
        (
            {"messages": [{"role": "bot"}]},
            ChatRequestBody,
            "messages[0].role cannot be taken: invalid value 'bot'; it is one of system, developer, user, assistant,"
            " tool.",
        ),
        (
            {"platform": "telegram", "decision": "x - at `$.code`"},
            PairingDecisionBody,
            "decision cannot be taken: invalid enum value 'x - at `$.code`'; it is one of approve, refuse, revoke.",
        ),
        (
            {"input": "x", "metadata": {"a": 1}},
            ResponseRequestBody,
            "metadata cannot be taken: expected `str`, got `int`.",
        ),
    ],
)
def test_a_refusal_is_a_sentence_that_names_the_field_and_what_it_takes(body: Any, kind: Any, sentence: str) -> None:
    with pytest.raises(ApiError) as caught:
        decode(body, kind)
    assert caught.value.message == sentence
    assert caught.value.param is not None
    assert sentence.startswith(caught.value.param)


def test_a_refusal_repeats_only_the_beginning_of_a_long_value() -> None:
    with pytest.raises(ApiError) as caught:
        sent(messages=[{"role": "x" * 100_000}])
    assert len(caught.value.message) < 400


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "user", "tool", "text", "image_url", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "image_url", "url", "tool_calls", "function", "name"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(ANY_JSON)
@settings(max_examples=60)
def test_whatever_is_sent_is_taken_or_refused_and_never_breaks_us(value: Any) -> None:
    statuses: list[int] = []
    for read in (
        conversation,
        tools_of,
        lambda v: read_tool_choice(v, (TOOL,), None),
        lambda v: chat_body({"messages": v, "tools": v, "tool_choice": v, "system": v}),
        lambda v: run_of({"input": v, "conversation_history": v}),
        lambda v: parse_request({"input": v, "conversation": v}),
    ):
        try:
            read(value)
        except ApiError as refusal:
            statuses.append(refusal.status)
    assert all(400 <= status < 500 for status in statuses)
