"""A session deleted over the API takes its responses, its conversations and its pictures along."""

from __future__ import annotations

import base64
import random

import pytest

from hermes.servers.api import runs, sessions
from hermes.servers.api.responses import routes
from hermes.store.api import idempotency
from hermes.store.api.idempotency import StoredAnswer
from hermes.store.db import Tx
from tests.integration.api.conftest import Api, Families
from tests.integration.test_session_deletion import SENTENCE, holders

PICTURE = "data:image/png;base64," + base64.b64encode(random.Random(7).randbytes(3000)).decode()


@pytest.fixture
def families() -> Families:
    return (sessions.routes, runs.routes, routes.routes)


def asked(*, session: str, picture: str = "") -> dict[str, object]:
    parts: list[dict[str, str]] = [{"type": "input_text", "text": SENTENCE}]
    if picture:
        parts.append({"type": "input_image", "image_url": picture})
    return {"input": [{"role": "user", "content": parts}], "conversation": session}


async def test_responses_conversations_pictures_and_kept_answers_go_with_their_session(api: Api) -> None:
    first = await api.post("/v1/responses", asked(session="conv_quince", picture=PICTURE))
    assert first.status == 200, first.body
    name = first.headers["X-Hermes-Session-Id"]
    kept = StoredAnswer(
        "k", "f", 200, f'{{"X-Hermes-Session-Id":"{name}"}}', f'{{"text":"{SENTENCE}"}}', api.gateway.clock.now()
    )
    await api.gateway.db.write(idempotency.keep, kept)
    assert "response_store.db-wal" in holders(api.gateway.home)
    assert holders(api.gateway.home, PICTURE[-200:]) != []
    gone = await api.call("DELETE", f"/api/sessions/{name}")
    assert gone.status == 200, gone.body
    assert holders(api.gateway.home) == []
    assert holders(api.gateway.home, PICTURE[-200:]) == []
    assert (await api.get(f"/v1/responses/{first.json['id']}")).status == 404
    again = await api.post("/v1/responses", {"input": "hello", "conversation": "conv_quince"})
    assert again.status == 200, again.body
    assert again.json["output"][-1]["content"][0]["text"] == "echo: hello"


async def test_a_picture_that_another_session_shows_stays(api: Api) -> None:
    first = await api.post("/v1/responses", asked(session="conv_one", picture=PICTURE))
    await api.post("/v1/responses", asked(session="conv_two", picture=PICTURE))
    assert (await api.call("DELETE", f"/api/sessions/{first.headers['X-Hermes-Session-Id']}")).status == 200
    assert await api.gateway.db.read(_pictures) == 1


def _pictures(tx: Tx) -> int:
    return int(tx.value("SELECT COUNT(*) FROM pictures"))


async def test_a_run_whose_session_was_deleted_is_still_told_by_its_state(api: Api) -> None:
    run = (await api.post("/v1/runs", {"input": SENTENCE, "session_id": "talk"})).json["run_id"]
    for _ in range(500):
        if (await api.get(f"/v1/runs/{run}")).json["status"] == "completed":
            break
    assert (await api.call("DELETE", "/api/sessions/talk")).status == 200
    answer = await api.get(f"/v1/runs/{run}")
    assert answer.status == 200, answer.body
    assert answer.json["status"] == "completed"
    assert SENTENCE not in answer.body.decode()
    assert holders(api.gateway.home) == []
