"""A session of the API keeps its id through a compression (S2-14), and a talk that a client brings is left alone."""

from __future__ import annotations

import asyncio

from hermes.agent.compression import OPENING
from hermes.store.sessions import revisions
from tests.fakes.model import FakeModel
from tests.integration.api.serving import served
from tests.integration.conftest import Start
from tests.integration.watching import until

CHAT = "/v1/chat/completions"
SMALL = "1000"
LONG = ("roses and tulips " * 43).strip()


async def test_the_session_id_stays_the_same(start: Start, model: FakeModel) -> None:
    model.when_instructed("You keep the minutes", "Roses.")
    async with served(start, HERMES_CONTEXT_WINDOW=SMALL) as api, asyncio.timeout(20):

        async def say(text: str) -> str:
            body = {"model": "hermes", "messages": [{"role": "user", "content": text}]}
            answer = await api.post(CHAT, body, X_Hermes_Session_Id="garden")
            assert answer.status == 200
            return str(answer.headers["X-Hermes-Session-Id"])

        ids = [await say(f"one {LONG}"), await say(f"two {LONG}")]
        stored = str(await api.gateway.db.read(lambda tx: tx.value("SELECT id FROM sessions")))

        async def is_compressed() -> bool:
            return await api.gateway.db.read(revisions.active, stored) is not None

        await until(is_compressed)
        ids.append(await say("three"))
        assert len(set(ids)) == 1
        assert str(await api.gateway.db.read(lambda tx: tx.value("SELECT id FROM sessions"))) == stored
    texts = [message["content"] for message in model.last_request["messages"][1:]]
    assert texts[0] == f"{OPENING}\nRoses."
    assert texts[-1] == "three"


async def test_a_talk_that_a_client_brings_along_is_not_compressed(start: Start, model: FakeModel) -> None:
    model.when_instructed("You keep the minutes", "Roses.")
    async with served(start, HERMES_CONTEXT_WINDOW=SMALL) as api, asyncio.timeout(20):
        talk = [
            {"role": "user", "content": f"one {LONG}"},
            {"role": "assistant", "content": LONG},
            {"role": "user", "content": f"two {LONG}"},
        ]
        for _ in range(2):
            assert (await api.post(CHAT, {"model": "hermes", "messages": talk})).status == 200
        await asyncio.sleep(0.05)
    assert len(model.requests) == 2
