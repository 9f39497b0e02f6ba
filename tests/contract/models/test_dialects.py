"""What every dialect makes of a provider's bytes, however the network cuts them.

A new dialect joins by adding itself to DIALECTS, and its streams to ``recorded/`` and RECORDINGS.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.models.answer import Answer, AnswerReader
from hermes.agent.models.anthropic_messages import AnthropicAnswer, AnthropicMessages
from hermes.agent.models.chat_completions import ChatAnswer, ChatCompletions, Endpoint
from hermes.agent.models.responses import Responses, ResponsesAnswer
from hermes.core.errors import ModelError, ModelErrorKind
from hermes.core.messages import ChatMessage, Role, ToolCall, Usage
from hermes.core.ports import Model, ModelReply, ModelRequest, ReasoningDelta, TextDelta
from tests.fakes.model import FakeModel, Recorded

FOLDER = Path(__file__).parent / "recorded"
HELLO = ModelRequest([ChatMessage(Role.USER, "hello")], deadline_seconds=10)


@dataclass(frozen=True, slots=True)
class Heard:
    """All that a stream says."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()  # noqa: RUF009 - frozen
    finish: str = "stop"
    thought: Any = None


@dataclass(frozen=True, slots=True)
class Failed:
    kind: ModelErrorKind
    partial: str


def read(answer: Answer, pieces: Iterable[bytes]) -> Heard | None:
    """The pure half of a dialect, without a socket; None if the stream holds an error."""
    reader = AnswerReader(answer)
    for piece in pieces:
        if not reader.is_done:
            reader.feed(piece)
    reader.end()
    if answer.error is not None:
        return None
    reasoning = "".join(answer.fresh_reasoning)
    calls = answer.tool_calls
    thought = _thought(answer.thought) if calls else None
    return Heard(answer.text, reasoning, calls, answer.usage, answer.finish_reason, thought)


def _thought(kept: str) -> Any:
    return orjson.loads(kept)["parts"] if kept else None


@dataclass(frozen=True, slots=True)
class Dialect:
    model: Callable[[Endpoint, aiohttp.ClientSession], Model]
    answer: Callable[[], Answer]

    def read(self, pieces: Iterable[bytes]) -> Heard | None:
        return read(self.answer(), pieces)


def _ids() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"made_{next(numbers)}"


DIALECTS = {
    "chat_completions": Dialect(
        lambda endpoint, http: ChatCompletions(endpoint, http, new_id=_ids()), lambda: ChatAnswer(_ids())
    ),
    "responses": Dialect(
        lambda endpoint, http: Responses(endpoint, http, new_id=_ids()), lambda: ResponsesAnswer(_ids(), "it")
    ),
    "anthropic_messages": Dialect(
        lambda endpoint, http: AnthropicMessages(endpoint, http, new_id=_ids()), lambda: AnthropicAnswer(_ids(), "it")
    ),
}

RECORDINGS: dict[str, tuple[str, Heard | Failed]] = {
    "openai_text": ("chat_completions", Heard("Grüße, Ana 👋 你好!", usage=Usage(2006, 9, 1920))),
    "openai_tools": (
        "chat_completions",
        Heard(
            calls=(
                ToolCall("call_Qx1", "read_file", '{"path":"notes.txt"}'),
                ToolCall("call_Qx2", "search_files", '{"query":"milk \\"and\\" 🥛"}'),
            ),
            usage=Usage(88, 41),
            finish="tool_calls",
        ),
    ),
    "openrouter": (
        "chat_completions",
        Heard("Hello there.", "The user greets me.", usage=Usage(14, 27, 0, 21, cost=3.1e-06)),
    ),
    "openrouter_error": ("chat_completions", Failed(ModelErrorKind.TRANSIENT, "Once upon a time")),
    "ollama": (
        "chat_completions",
        Heard(
            reasoning="Two files to read.",
            thought=[{"reasoning_content": "Two files to read."}],
            calls=(
                ToolCall("call_a1b2c3d4", "read_file", '{"path":"a.txt"}'),
                ToolCall("call_e5f6a7b8", "read_file", '{"path":"b.txt"}'),
            ),
            usage=Usage(171, 63),
            finish="tool_calls",
        ),
    ),
    "lm_studio": (
        "chat_completions",
        Heard(
            "Let me look.",
            calls=(ToolCall("365174485", "search_files", '{"query": "TODO"}'),),
            finish="tool_calls",
        ),
    ),
    "deepseek": (
        "chat_completions",
        Heard("9.9 is larger.", "9.11 或 9.9？ 0.9 > 0.11.", usage=Usage(22, 40, reasoning_tokens=31)),
    ),
    "relay": (
        "chat_completions",
        Heard(
            calls=(
                ToolCall("call_r1", "read_file", '{"path":"ü.txt"}'),
                ToolCall("call_r2", "search_files", '{"query":"x"}'),
            ),
            finish="tool_calls",
        ),
    ),
    "mistral": (
        "chat_completions",
        Heard(
            "Reading it.",
            "A file is asked for.",
            thought=[{"reasoning_content": "A file is asked for."}],
            calls=(
                ToolCall("D681PevKs", "read_file", '{"path":"plan.md","count":20}'),
                ToolCall("k9QWpLz2A", "read_file", '{"path": "b.md"}'),
            ),
            usage=Usage(94, 35),
            finish="tool_calls",
        ),
    ),
    "gemini": (
        "chat_completions",
        Heard(
            calls=(
                ToolCall("function-call-1", "read_file", '{"path":"a"}'),
                ToolCall("function-call-2", "read_file", '{"path":"b"}'),
            ),
            usage=Usage(71, 30),
            finish="tool_calls",
            thought=[{"extra_content": {"1": {"google": {"thought_signature": "CtEBAdHtim9"}}}}],
        ),
    ),
    "groq": ("chat_completions", Heard("Short ans", usage=Usage(40, 2), finish="length")),
    "vllm_error": ("chat_completions", Failed(ModelErrorKind.CONTEXT, "Half")),
    "responses_text": ("responses", Heard("Grüße, Ana 👋 你好!", usage=Usage(2006, 9, 1920))),
    "responses_tools": (
        "responses",
        Heard(
            "One moment.",
            "**Looking**\n\nTwo files.\n\nThen search.",
            calls=(
                ToolCall("call_Qx1", "read_file", '{"path":"notes.txt"}'),
                ToolCall("call_Qx2", "search_files", '{"query":"milk \\"and\\" 🥛"}'),
            ),
            usage=Usage(310, 122, 256, 64),
            finish="tool_calls",
            thought=[
                {
                    "type": "reasoning",
                    "summary": [
                        {"type": "summary_text", "text": "**Looking**\n\nTwo files."},
                        {"type": "summary_text", "text": "Then search."},
                    ],
                    "encrypted_content": "gAAAAABotesC7QmZ5p0-made-up",
                },
                11,
                None,
                None,
            ],
        ),
    ),
    "responses_failed": ("responses", Failed(ModelErrorKind.TRANSIENT, "Once upon a time")),
    "responses_incomplete": ("responses", Heard("Short ans", usage=Usage(40, 16), finish="length")),
    "responses_error": ("responses", Failed(ModelErrorKind.RATE, "Half")),
    "responses_relay": (
        "responses",
        Heard(
            "Let me look.",
            "a TODO",
            calls=(ToolCall("365174485", "search_files", '{"query": "TODO"}'),),
            usage=Usage(51, 20),
            finish="tool_calls",
        ),
    ),
    "anthropic_text": ("anthropic_messages", Heard("Grüße, Ana 👋 你好!", usage=Usage(2006, 9, 1920))),
    "anthropic_tools": (
        "anthropic_messages",
        Heard(
            "One moment.",
            "Two files to read. ",
            calls=(
                ToolCall("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "read_file", '{"path": "notes.txt"}'),
                ToolCall("toolu_02", "now", "{}"),
            ),
            usage=Usage(472, 89),
            finish="tool_calls",
            thought=[
                {"type": "thinking", "thinking": "Two files to read. ", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"},
                11,
                {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"},
                None,
                None,
            ],
        ),
    ),
    "anthropic_overloaded": ("anthropic_messages", Failed(ModelErrorKind.TRANSIENT, "Once upon a time")),
    "anthropic_max_tokens": ("anthropic_messages", Heard("Short ans", usage=Usage(40, 2), finish="length")),
    "anthropic_refusal": ("anthropic_messages", Heard("I will not", usage=Usage(25, 3), finish="content_filter")),
    "anthropic_relay": (
        "anthropic_messages",
        Heard(
            "Reading it.",
            "A file.",
            calls=(ToolCall("made_1", "read_file", '{"path":"ü.txt"}'),),
            usage=Usage(7, 12),
            finish="tool_calls",
        ),
    ),
}


@pytest.fixture(params=RECORDINGS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def recorded(name: str) -> bytes:
    return (FOLDER / f"{name}.txt").read_bytes()


async def hear(dialect: Dialect, pieces: Sequence[bytes]) -> Heard | Failed:
    """Ask a real server that sends exactly these bytes; the deltas must add up to the reply."""
    text, reasoning = "", ""
    async with FakeModel() as server, aiohttp.ClientSession() as http:
        server.script([Recorded(tuple(pieces))])
        model = dialect.model(Endpoint("provider", server.url, "some-model"), http)
        try:
            async for event in model.stream(HELLO):
                if isinstance(event, TextDelta):
                    text += event.text
                elif isinstance(event, ReasoningDelta):
                    reasoning += event.text
        except ModelError as error:
            return Failed(
                error.kind, error.partial if error.partial == text else f"{error.partial!r}, but shown {text!r}"
            )
    assert isinstance(event, ModelReply), "a stream ends with its reply"
    assert event.text == text
    assert event.provider == "provider"
    thought = _thought(event.thought)
    return Heard(text, reasoning, event.tool_calls, event.usage, event.finish_reason, thought)


def test_every_recorded_stream_is_expected_and_every_expected_one_is_recorded() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(RECORDINGS)


async def test_stream_becomes_what_the_provider_meant(name: str) -> None:
    dialect, expected = RECORDINGS[name]
    assert await hear(DIALECTS[dialect], [recorded(name)]) == expected


async def test_stream_that_trickles_over_the_socket_means_the_same(name: str) -> None:
    dialect, expected = RECORDINGS[name]
    body = recorded(name)
    assert await hear(DIALECTS[dialect], [body[at : at + 61] for at in range(0, len(body), 61)]) == expected


def test_stream_cut_at_every_byte_means_the_same(name: str) -> None:
    dialect, expected = RECORDINGS[name]
    body = recorded(name)
    heard = DIALECTS[dialect].read(body[at : at + 1] for at in range(len(body)))
    assert heard == (expected if isinstance(expected, Heard) else None)


@given(st.data())
def test_stream_cut_anywhere_means_the_same(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(RECORDINGS)))
    dialect, expected = RECORDINGS[name]
    body = recorded(name)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(body) - 1), max_size=12)))
    pieces = [body[start:end] for start, end in itertools.pairwise([0, *cuts, len(body)])]
    assert DIALECTS[dialect].read(pieces) == (expected if isinstance(expected, Heard) else None)
