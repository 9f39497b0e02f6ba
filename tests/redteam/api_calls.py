"""Requests with a key of one's own to the API, and what the model was asked meanwhile."""

from __future__ import annotations

from typing import Any

import orjson

from tests.fakes.model import FakeModel
from tests.integration.api.conftest import Answer, dashed
from tests.integration.api.others import run_is
from tests.integration.api.serving import Served

SECRET = "the tulips are blue"


async def ask(api: Served, who: dict[str, str], method: str, path: str, body: Any = None, **headers: str) -> Answer:
    """A request with this key, and with no other."""
    data = None if body is None else orjson.dumps(body)
    async with api.stranger.request(method, path, data=data, headers={**dashed(headers), **who}) as answer:
        return Answer(answer.status, dict(answer.headers), await answer.read())


async def chat(api: Served, who: dict[str, str], text: str, **headers: str) -> Answer:
    body = {"messages": [{"role": "user", "content": text}]}
    return await ask(api, who, "POST", "/v1/chat/completions", body, **headers)


async def finished(api: Served, who: dict[str, str], body: dict[str, Any], **headers: str) -> str:
    run = (await ask(api, who, "POST", "/v1/runs", body, **headers)).json["run_id"]
    await run_is(api, run, "completed")
    return str(run)


def heard(model: FakeModel, since: int) -> str:
    """Whatever models were told since then."""
    return str(model.requests[since:])


def filled(text: str, known: dict[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(f"{{{name}}}", value)
    return text
