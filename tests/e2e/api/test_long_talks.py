"""A talk that a client brings along is its own affair: however long, it reaches the model whole, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.model import FakeModel
from tests.integration.api.serving import served
from tests.integration.conftest import Start

DOORS = {"/v1/chat/completions": "messages", "/v1/responses": "input", "/v1/runs": "input"}


def talk(rounds: int, words: str = "word") -> list[dict[str, Any]]:
    said = [({"role": "user", "content": words}, {"role": "assistant", "content": words}) for _ in range(rounds)]
    return [*(message for both in said for message in both), {"role": "user", "content": "last"}]


@pytest.mark.parametrize("path", DOORS)
@pytest.mark.parametrize("messages", [talk(200), talk(10, "x" * 60_000)], ids=["many", "large"])
async def test_a_long_talk_reaches_the_model_whole(
    start: Start, model: FakeModel, path: str, messages: list[dict[str, Any]]
) -> None:
    async with served(start) as api:
        answer = await api.post(path, {DOORS[path]: messages})
        if path == "/v1/runs":
            async with api.http.get(f"{path}/{answer.json['run_id']}/events") as events:
                await events.read()  # it ends with the run
        assert answer.status in (200, 202)
    _system, *heard = model.last_request["messages"]
    assert heard == messages
