"""A plain hello: how many bytes the model is sent, with every tool and every shipped skill there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from bench.rig import BenchError, folder, world
from bench.rows import Plan, Row, Rows
from hermes.agent.prompt import DEFAULT_PERSONA
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram

HELLO_BYTES = 6144
ANSWER_SECONDS = 20.0
TRIES = 50


async def measure(plan: Plan) -> Rows:
    async with (
        folder() as place,
        FakeModel() as model,
        world(place / "home", environ={"OPENAI_BASE_URL": model.url}) as here,
    ):
        plan.say("a hello from one new chat after the other, until the skills are told of")
        for chat in range(1000, 1000 + TRIES):
            answers = len(here.telegram.sent) + 1
            here.telegram.user_says("hello", chat=chat, user=chat)
            await here.telegram.wait_for(_count(here.telegram, answers), ANSWER_SECONDS)
            if "skill_view" in str(model.last_request["messages"][0]["content"]):
                break
        else:
            raise BenchError("The skills were never told of.")
        sent, body = len(model.newest_bodies[-1]), model.last_request
    return _rows(sent, body)


def _count(telegram: FakeTelegram, answers: int) -> Callable[[], bool]:
    return lambda: len(telegram.sent) >= answers


def _rows(sent: int, body: dict[str, Any]) -> Rows:
    tools = len(orjson.dumps(body["tools"]))
    system = len(orjson.dumps(body["messages"][0])) - len(DEFAULT_PERSONA)
    names = ", ".join(tool["function"]["name"] for tool in body["tools"])
    return [
        Row("hello: bytes sent beside the persona", sent - len(DEFAULT_PERSONA), "bytes", HELLO_BYTES),
        Row("hello: of these, tools", tools, "bytes", note=names),
        Row("hello: of these, skills, context and day", system, "bytes"),
    ]
