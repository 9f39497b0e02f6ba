"""Calls that a model writes badly end as a result that it reads, never as a lost turn."""

from __future__ import annotations

import json

import pytest

from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import a_model_accepts, answered, calls, results, transcript


@pytest.mark.parametrize(
    "name, arguments, told",
    [
        (
            "todo",
            {"items": [{"id": "1", "text": "buy \ud83d"}]},
            "buy \ufffd",
        ),  # half an emoji, as a text that was cut ends with
        ("terminal", {"command": "seq 1 9000 # \udc80"}, "8999\n9000"),
    ],
)
async def test_half_a_character_in_a_call_does_not_break_the_turn(
    start: Start, telegram: FakeTelegram, model: FakeModel, name: str, arguments: dict[str, object], told: str
) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    chunk = {"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}}]}
    end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
    model.sends_next(f"data: {json.dumps(chunk)}\n\n".encode(), end)
    model.says("I see.")
    async with start() as gateway:
        telegram.user_says("go")
        await answered(telegram, "I see.")
        assert a_model_accepts(await transcript(gateway))
        [row] = await calls(gateway)
    assert (row.state, row.outcome) == ("done", "ok")
    assert told in results(model)[0]
