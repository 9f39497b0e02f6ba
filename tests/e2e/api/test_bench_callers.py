"""The clients that the bench measures with read answers and streams as they are."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bench.caller import CHAT, RESPONSES, Door, Line, stream, streams
from bench.measures import api as measure
from bench.rig import BenchError
from tests.fakes.model import FakeModel, Refusal, paced
from tests.integration.api.serving import default_key, served
from tests.integration.conftest import Start


async def test_whole_answers_and_streams_are_read_to_their_ends(start: Start, model: FakeModel) -> None:
    async with served(start) as api:
        door = Door(api.server.port, default_key(api.gateway).reveal())
        async with Line(door) as line:
            assert (await line.ask(CHAT, measure.says("hi")))["choices"][0]["message"]["content"] == "echo: hi"
            assert (await line.ask(RESPONSES, {"input": "hi"}))["status"] == "completed"
        model.default = paced(30, 1000.0, is_stamped=True)
        before = time.monotonic()
        met = await streams(door, CHAT, measure.says("go", stream=True), 3, per_second=1000)
        assert measure._failed("", met, 30).value == 0
        assert all(before < measure._stamp(one) <= one.first_at for one in met)
        assert measure._stored(Path(api.gateway.home)) > 0


async def test_what_fails_is_seen(start: Start, model: FakeModel) -> None:
    model.default = Refusal(401, "wrong key")
    async with served(start) as api:
        door = Door(api.server.port, default_key(api.gateway).reveal())
        async with Line(door) as line:
            with pytest.raises(BenchError, match="502"):
                await line.ask(CHAT, measure.says("hi"))
        met = [await stream(door, CHAT, measure.says("go", stream=True))]
        assert measure._failed("", met, 30).value == 1
