"""One tool call: CPU of the worker for reading a file, a list of steps, and a command, by itself and in a sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from statistics import median

from bench.rig import BenchError, World, folder, world
from bench.rows import Plan, Row, Rows, milliseconds
from hermes.agent.backends import bubblewrap
from hermes.hosting.control import client as control
from tests.fakes.model import FakeModel, ToolUse, calls_tools

ANSWER_SECONDS = 60.0
SETTLE_SECONDS = 0.8
CALL_MILLISECONDS = 5.0
COMMAND_MILLISECONDS = 15.0
OWNER, USER = 7, 8


async def measure(plan: Plan) -> Rows:
    rows: Rows = []
    async with (
        folder() as place,
        FakeModel() as model,
        world(place / "home", environ={"OPENAI_BASE_URL": model.url}) as here,
    ):
        for user in (OWNER, USER):
            await _turn(here, model, user, [])
        owner = {"person": f"telegram:{OWNER}", "role": "owner"}
        await asyncio.to_thread(control.call, here.gateway.home, "people.role", owner)
        (here.gateway.home.parent / "notes.txt").write_text("bread\nmilk\n", encoding="utf-8")
        count, rounds = plan.count(40, 3), plan.count(5, 1)
        for what, user, make, budget in _calls():
            plan.say(f"{what}: {rounds} turns of {count} calls, each beside a turn of none")
            each = [await _each(here, model, user, [make(number) for number in range(count)]) for _ in range(rounds)]
            note = f"median of {rounds} turns of {count} calls, a turn of none taken off"
            rows.append(Row(f"{what}: CPU per call", milliseconds(median(each)), "ms", budget, note))
    return rows


def _calls() -> list[tuple[str, int, Callable[[int], ToolUse], float]]:
    """Each call differs from the one before: the same again and again would be stopped."""
    command: Callable[[int], ToolUse] = lambda number: ("terminal", {"command": f"true {number}"})  # noqa: E731
    found: list[tuple[str, int, Callable[[int], ToolUse], float]] = [
        (
            "read_file",
            OWNER,
            lambda number: ("read_file", {"path": "notes.txt", "count": number + 1}),
            CALL_MILLISECONDS,
        ),
        ("todo", OWNER, lambda number: ("todo", {"items": [{"id": "1", "text": f"step {number}"}]}), CALL_MILLISECONDS),
        ("terminal `true`, local", OWNER, command, COMMAND_MILLISECONDS),
    ]
    if not bubblewrap.why_not():
        found.append(("terminal `true`, bubblewrap", USER, command, COMMAND_MILLISECONDS))
    return found


async def _each(here: World, model: FakeModel, user: int, calls: list[ToolUse]) -> float:
    """CPU for one call: what a turn with them asks beyond a turn with none."""
    without = await _turn(here, model, user, [])
    return max(0.0, await _turn(here, model, user, calls) - without) / len(calls)


async def _turn(here: World, model: FakeModel, user: int, calls: list[ToolUse]) -> float:
    telegram = here.telegram
    model.script([*([calls_tools(*calls)] if calls else []), "Done."])
    before, done = here.gateway.cpu(), _done(here, user)
    telegram.user_says("go on", chat=user, user=user)
    try:
        await telegram.wait_for(lambda: _done(here, user) > done, ANSWER_SECONDS)
    except TimeoutError:
        raise BenchError(f"The turn did not end.\n{here.gateway.last_words()}") from None
    results = [message["content"] for message in model.last_request["messages"] if message["role"] == "tool"]
    failed = [text for text in results[-len(calls) :] if "failed" in text or "refused" in text] if calls else []
    if failed:
        raise BenchError(f"A call did not run: {failed[0][:200]}")
    await asyncio.sleep(SETTLE_SECONDS)
    return here.gateway.cpu() - before


def _done(here: World, user: int) -> int:
    return here.telegram.texts(user).count("Done.")
