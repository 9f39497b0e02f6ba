"""Ten thousand questions that wait for their answers: memory and threads, and that one of them is still answered."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator

from bench import machine, talk
from bench.rig import BenchError, World, folder, world
from bench.rows import Plan, Row, Rows, milliseconds
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.server import Sent
from tests.fakes.telegram import FakeTelegram

GROWTH_MEGABYTES = 30.0
CALM_SECONDS = 3.0
ANSWER_SECONDS = 120.0
AT_ONCE = 500
FIRST_CHAT = 1_000_000
ASKS = calls_tools(("terminal", {"command": "git push --force"}))  # asked about in every back end
PATIENT = {"HERMES_APPROVAL_TIMEOUT": "6h"}


async def measure(plan: Plan) -> Rows:
    count = plan.count(10_000, 20)
    async with (
        folder() as place,
        FakeModel() as model,
        world(place / "home", environ={"OPENAI_BASE_URL": model.url, **PATIENT}) as here,
    ):
        model.when("^ask", ASKS)
        await talk.warm_up(here)
        plan.say(f"{count} chats say hello, so that what they cost by themselves is not counted")
        for chats in _batches(count):
            await talk.bursts(here, chats, 1)
        await asyncio.sleep(CALM_SECONDS / 3 if plan.short else CALM_SECONDS)
        memory, threads = _standing(here)
        plan.say(f"{count} chats ask for something that needs an approval")
        spent = here.gateway.cpu()
        for chats in _batches(count):
            await _ask(here, chats)
        await asyncio.sleep(CALM_SECONDS / 3 if plan.short else CALM_SECONDS)
        spent = here.gateway.cpu() - spent
        later, waiting = _standing(here)
        took = await _answer(here.telegram, _questions(here.telegram)[-1])
    return [
        Row(
            f"{count} pending approvals: RSS grows by",
            (later - memory) / machine.MEGABYTE,
            "MB",
            GROWTH_MEGABYTES,
            f"from {memory / machine.MEGABYTE:.0f} MB",
        ),
        Row(f"{count} pending approvals: threads that wait", max(0, waiting - threads), "", 0, f"{waiting} threads"),
        Row("a message that ends in a question: CPU", milliseconds(spent / count), "ms"),
        Row("the last of them answered: from the press to the edit", milliseconds(took), "ms"),
    ]


def _batches(count: int) -> Iterator[range]:
    for first in range(FIRST_CHAT, FIRST_CHAT + count, AT_ONCE):
        yield range(first, min(first + AT_ONCE, FIRST_CHAT + count))


def _standing(here: World) -> tuple[int, int]:
    """Bytes of the process tree, and threads of the worker."""
    return machine.resident(here.gateway.processes), len(os.listdir(f"/proc/{here.gateway.worker}/task"))


def _questions(telegram: FakeTelegram) -> list[Sent]:
    return [sent for sent in telegram.sent if sent.buttons]


async def _ask(here: World, chats: range) -> None:
    telegram = here.telegram
    wanted = len(telegram.sent) + len(chats)
    for chat in chats:
        telegram.user_says("ask", chat=chat, user=chat)
    try:
        await telegram.wait_for(lambda: len(telegram.sent) >= wanted, ANSWER_SECONDS)
    except TimeoutError:
        raise BenchError(f"Not every chat was asked in time.\n{here.gateway.last_words()}") from None
    if not telegram.sent[-1].buttons:
        raise BenchError(f"It was not a question: {telegram.sent[-1].text[:200]!r}")


async def _answer(telegram: FakeTelegram, asked: Sent) -> float:
    began = time.monotonic()
    telegram.user_presses(asked, "Deny")
    await telegram.wait_for(lambda: not asked.buttons, ANSWER_SECONDS)
    return time.monotonic() - began
