"""An answer put together from chunks, odd ones included."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from hermes.agent.models.answer import Answer, AnswerReader, UnreadableChunkError
from hermes.agent.models.anthropic_messages import AnthropicAnswer
from hermes.agent.models.chat_completions import ChatAnswer
from hermes.agent.models.responses import ResponsesAnswer
from hermes.core.messages import Usage

ODD: tuple[Any, ...] = (None, True, 0, 7.5, "x", [], {}, [None], ["x"], [[]], {"a": 1}, {"text": ["x"]})
FULL: dict[str, Any] = {
    "model": "m",
    "choices": [
        {
            "delta": {
                "content": [{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "a"}],
                "refusal": "no",
                "reasoning": "hm",
                "reasoning_content": "hm",
                "tool_calls": [{"index": 0, "id": "x", "function": {"name": "read", "arguments": "{}"}}],
            },
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
    "x_groq": {"usage": {"prompt_tokens": 1}},
    "error": {"message": "m", "code": 500},
}


def with_one_oddity(value: Any, odd_ones: tuple[Any, ...] = ODD) -> Iterator[Any]:
    """The same value, each time with one other part of it gone odd."""
    yield from odd_ones
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for place, part in parts:
        for odd in with_one_oddity(part, odd_ones):
            changed = copy.copy(value)
            changed[place] = odd
            yield changed


def taken(*chunks: Any) -> ChatAnswer:
    answer = ChatAnswer(lambda: "made")
    for chunk in chunks:
        answer.take(orjson.dumps(chunk))
    return answer


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


def test_chunk_of_any_shape_is_read_or_said_to_be_unreadable() -> None:
    for chunk in with_one_oddity(FULL):
        try:
            answer = taken(chunk, chunk)
        except UnreadableChunkError:
            continue
        assert isinstance(answer.text, str)
        assert isinstance(answer.take_reasoning(), str)
        assert all(isinstance(call.name, str) for call in answer.tool_calls)
        assert isinstance(answer.usage, Usage)
        assert isinstance(answer.model, str)
        assert answer.finish_reason in ("stop", "tool_calls")


RECORDED = Path(__file__).parents[3] / "contract" / "models" / "recorded"
FEW: tuple[Any, ...] = (None, 7, "x", [], {}, [None])


@pytest.mark.parametrize(
    "stream, make",
    [
        ("responses_tools", lambda: ResponsesAnswer(lambda: "made", "me")),
        ("anthropic_tools", lambda: AnthropicAnswer(lambda: "made", "me")),
    ],
)
def test_event_of_any_shape_in_any_stream_is_read_or_said_to_be_unreadable(
    stream: str, make: Callable[[], Answer]
) -> None:
    lines = (RECORDED / f"{stream}.txt").read_bytes().splitlines()
    events = [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]
    for place, event in enumerate(events):
        for changed in with_one_oddity(orjson.loads(event), FEW):
            answer = make()
            try:
                for payload in (*events[:place], orjson.dumps(changed), *events[place + 1 :]):
                    answer.take(payload)
            except UnreadableChunkError:
                continue
            assert isinstance(answer.text, str)
            assert isinstance(answer.take_reasoning(), str)
            assert all(isinstance(call.name, str) for call in answer.tool_calls)
            assert isinstance(answer.thought, str)
            assert isinstance(answer.usage, Usage)


def test_bytes_that_are_not_text_become_the_replacement_mark() -> None:
    answer = ChatAnswer(lambda: "made")
    answer.take(b'{"choices":[{"delta":{"content":"caf\xe9"}}]}')
    assert answer.text == "caf�"


@pytest.mark.parametrize(
    "pieces, text",
    [
        ([rb"so \ud83d", rb"\ude00 so"], "so 😀 so"),
        ([rb"\uD83D", rb"\uDE00", rb"\ud83d", rb"\ude01"], "😀😁"),
        ([rb"\ud83d", rb"", rb"\ude00"], "😀"),
        ([rb"a\ud83d", rb"b"], "ab"),  # half a character that never became one
        ([rb"a\ude00", rb"\ude00b"], "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b"),
        ([rb"\ud83dx\ud83d\ud83d\ude00"], "\N{REPLACEMENT CHARACTER}x\N{REPLACEMENT CHARACTER}😀"),
        ([rb"\\ud83d\ud83d", rb"\ude00\\ude00\n"], "\\ud83d😀\\ude00\n"),  # some of these only look like halves
    ],
)
@pytest.mark.parametrize("is_together", [True, False])
def test_character_cut_in_half_between_two_chunks_is_put_together(
    pieces: list[bytes], text: str, is_together: bool
) -> None:
    chunks = [b'{"model":"m","choices":[{"delta":{"content":"%b"}}]}' % piece for piece in pieces]
    answer = ChatAnswer(lambda: "made")
    shown = []
    for batch in [chunks] if is_together else [[chunk] for chunk in chunks]:
        answer.take_all(batch)
        shown.append(answer.take_text())
    assert answer.text == "".join(shown) == text


def test_character_cut_in_half_is_put_together_in_every_place_that_repeats_it() -> None:
    answer = ChatAnswer(lambda: "made")
    for half in (rb"{\"a\":\"\ud83d", rb"\ude00\"}"):
        call = b'{"index":0,"id":"c","function":{"name":"read","arguments":"%b"}}' % half
        answer.take(b'{"choices":[{"delta":{"reasoning":"%b","tool_calls":[%b]}}]}' % (half, call))
    assert answer.take_reasoning() == '{"a":"😀"}'
    assert answer.tool_calls[0].arguments == '{"a":"😀"}'


@pytest.mark.parametrize(
    "payload", [b'{"choices":[{"delta":{"content":"\\ud83d"}', b'{"choices":"\\ud8"}', b'{\\ud83d"']
)
def test_chunk_with_half_a_character_that_is_no_json_is_unreadable(payload: bytes) -> None:
    with pytest.raises(UnreadableChunkError):
        ChatAnswer(lambda: "made").take(payload)


@pytest.mark.parametrize("payload", [b"ping", b"", b"null", b"7"])
def test_what_was_never_json_is_passed_over(payload: bytes) -> None:
    answer = ChatAnswer(lambda: "made")
    answer.take(payload)
    assert (answer.text, answer.error) == ("", None)


def test_last_usage_counts() -> None:
    answer = taken({"choices": [], "usage": {"prompt_tokens": 1}}, {"usage": {"prompt_tokens": 2}}, {"usage": None})
    assert answer.usage == Usage(2)


def test_what_only_one_provider_sends_may_be_null() -> None:
    assert taken({**delta(content="hello"), "x_groq": None, "usage": None}).text == "hello"


def test_an_event_that_only_counts_does_not_end_an_answer() -> None:
    answer = AnthropicAnswer(lambda: "made", "me")
    answer.take(b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hello"}}')
    answer.take(b'{"type":"message_delta","usage":{"output_tokens":3}}')
    answer.take(b'{"type":"message_delta","delta":null,"usage":{"output_tokens":4}}')
    assert (answer.text, answer.usage) == ("hello", Usage(0, 4))


def test_refusal_of_the_model_is_its_answer() -> None:
    assert taken(delta(content=None, refusal="I cannot")).text == "I cannot"


def test_only_the_first_choice_is_read() -> None:
    two = {"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}]}
    assert taken(two).text == "a"


BATCH: tuple[bytes, ...] = (
    orjson.dumps({"model": "m", **delta(role="assistant", content="")}),
    orjson.dumps({"id": "1", "object": "chunk", "model": "other", **delta(content="a"), "usage": None}),
    orjson.dumps(delta(content="b", reasoning_content="hm", reasoning=None)),
    orjson.dumps(delta(content=[{"type": "text", "text": "c"}])),
    orjson.dumps(delta(refusal="d")),
    orjson.dumps(delta(content="e", tool_calls=[{"index": 0, "id": "x", "function": {"name": "read"}}])),
    orjson.dumps({**delta(content="f"), "usage": {"prompt_tokens": 3}}),
    orjson.dumps({**delta(content="g"), "x_groq": {"usage": {"prompt_tokens": 4}}}),
    orjson.dumps({"choices": [{"delta": {}, "message": {"content": "h"}}]}),
    orjson.dumps({"choices": [{"delta": {"content": "i"}}, {"delta": {"content": "never"}}]}),
    orjson.dumps({"choices": [{"delta": {"content": "j"}, "finish_reason": "length"}]}),
    orjson.dumps({"choices": []}),
    b"",
    b"ping",
    b'{"choices": [{"delta": {"content": "k"}}]}, {"choices": []}',
    b'{"choices": [{"delta": {"content": "\xff"}}]}',
    orjson.dumps({"error": {"message": "m"}}),
    orjson.dumps({"choices": "x"}),
    b"[1]",
)


def read_so_far(answer: ChatAnswer) -> tuple[Any, ...]:
    calls = answer.tool_calls
    return answer.text, answer.fresh_reasoning, calls, answer.usage, answer.is_finished, answer.model, answer.error


@pytest.mark.parametrize("first", range(len(BATCH)))
@pytest.mark.parametrize("count", [1, 2, len(BATCH)])
def test_chunks_that_come_together_are_read_like_those_that_come_one_by_one(first: int, count: int) -> None:
    payloads = list(BATCH[first : first + count])
    together, alone = ChatAnswer(lambda: "x"), ChatAnswer(lambda: "x")
    together.model = alone.model = "m" if first else ""
    failed = []
    try:
        together.take_all(payloads)
    except UnreadableChunkError:
        failed.append(together)
    try:
        for payload in payloads:
            alone.take(payload)
    except UnreadableChunkError:
        failed.append(alone)
    assert len(failed) in (0, 2)
    assert read_so_far(together) == read_so_far(alone)


def test_the_model_named_by_a_later_chunk_of_the_same_read_is_known() -> None:
    azure = orjson.dumps({"model": "", "choices": [], "prompt_filter_results": []})
    answer = ChatAnswer(lambda: "x")
    answer.take_all([azure, *[orjson.dumps({"model": "gpt-x", **delta(content=word)}) for word in "abcd"]])
    assert answer.model == "gpt-x"
    assert answer.text == "abcd"


@pytest.mark.parametrize("last", [0, 5])
def test_a_chunk_nested_more_deeply_than_can_be_read_is_unreadable(last: int) -> None:
    text = orjson.dumps({"model": "m", **delta(content="a")})
    deep = b'{"choices":[{"delta":{"content":"b"}}],"x":%b%b}' % (b"[" * 100_000, b"]" * 100_000)
    answer = ChatAnswer(lambda: "x")
    with pytest.raises(UnreadableChunkError):
        answer.take_all([text, deep, *[text] * last])


def test_nothing_after_done_is_read() -> None:
    reader = AnswerReader(ChatAnswer(lambda: "made"))
    reader.feed(b'data: [DONE]\n\ndata: {"choices":[{"delta":{"content":"late"}}]}\n\n')
    assert reader.is_done
    assert reader.answer.text == ""
