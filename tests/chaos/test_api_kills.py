"""The short form: kill -9 in the middle of runs, streams and stored responses, and retries after it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai import AsyncOpenAI

from tests.chaos.api_kills import (
    SET_ASIDE,
    Callers,
    Kind,
    calling,
    killed_at_random,
    killed_while_the_model_speaks,
    trace_by_hand,
)
from tests.chaos.world import Victim, until

EACH = 5


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_after_a_kill_every_request_has_an_end_and_says_which(tmp_path: Path) -> None:
    async with calling(tmp_path / "world", seed=3) as callers:
        held = await killed_while_the_model_speaks(callers, EACH, Victim.WORKER)
        assert len(held.named) == EACH * len(Kind)
        assert held.wrong == []
        streams = [one for one in held.named if one.kind is Kind.STREAM]
        assert {one.end for one in streams} == {SET_ASIDE}
        assert "client gone" in trace_by_hand(callers.world.gateway.home, streams[0].id)

        at_random = await killed_at_random(callers, EACH, Victim.BOTH, callers.world.chance)
        assert at_random.wrong == []
        assert (held.waiting, at_random.waiting) == (0, 0)


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_retry_of_the_sdk_after_a_kill_is_no_second_order(tmp_path: Path) -> None:
    """The gateway dies after the tools ran and before the model spoke; the SDK tries again by itself."""
    texts = {"chat": "deploy the chat", "response": "deploy the response", "stream": "deploy the stream"}
    async with calling(tmp_path / "world", seed=5) as callers:
        world = callers.world
        for text in texts.values():  # the pause leaves time to stop the model before it is asked again
            world.model.commands[text] = f"echo {text} >> effects.txt; sleep 2"
        written = tmp_path / "world" / "work" / "effects.txt"
        talk = [{"role": "user", "content": texts["stream"]}]
        body = {"model": "hermes", "messages": talk, "stream": True}
        url = f"http://127.0.0.1:{callers.port}/v1"
        key = (world.gateway.home / "api_server.key").read_text("ascii").strip()
        async with AsyncOpenAI(base_url=url, api_key=key, max_retries=8, timeout=60) as sdk:
            chat = asyncio.create_task(
                sdk.chat.completions.create(model="hermes", messages=[{"role": "user", "content": texts["chat"]}])
            )
            response = asyncio.create_task(sdk.responses.create(model="hermes", input=texts["response"]))
            stream = asyncio.create_task(streamed(callers, body))
            await until(lambda: written.exists() and len(written.read_text().splitlines()) == len(texts), 30.0)
            world.model.hold(silently=True)
            await until(lambda: world.model.open_now >= len(texts), 30.0)
            await world.gateway.kill(Victim.BOTH)
            world.gateway.start()
            world.calm()
            await world.gateway.ready()
            with pytest.raises(aiohttp.ClientError):
                await stream
            assert (await chat).choices[0].message.content == f"echo: {texts['chat']}"
            assert (await response).output_text == f"echo: {texts['response']}"
            again = await streamed(callers, body, **{"X-Stainless-Retry-Count": "1"})
            assert f"echo: {texts['stream']}" in again
        assert sorted(written.read_text().splitlines()) == sorted(texts.values())


async def streamed(callers: Callers, body: dict[str, Any], **headers: str) -> str:
    async with callers.http.post("/v1/chat/completions", json=body, headers=headers) as answer:
        return await answer.text()
