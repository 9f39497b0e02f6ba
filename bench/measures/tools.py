"""One tool call: CPU of the worker for reading a file, a list of steps, and a command in each kind of sandbox.

Of a command also how long it takes: `true` does nothing, so that this is the price of the shell and of the sandbox.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from statistics import median

from bench.rig import BenchError, World, folder, world
from bench.rows import Plan, Row, Rows, milliseconds
from hermes.agent.backends import bubblewrap, landlock
from hermes.hosting.control import client as control
from tests.fakes.model import FakeModel, ToolUse, calls_tools

ANSWER_SECONDS = 60.0
SETTLE_SECONDS = 0.8
CALL_MILLISECONDS = 5.0
COMMAND_MILLISECONDS = 15.0
GUARDED_MILLISECONDS = 25.0  # it looks for what is to be hidden, each time
WALL_MILLISECONDS = 250.0
CONFIG = "terminal:\n  backend: {owner}\n  others: {others}\n"
OWNER, USER = 7, 8


async def measure(plan: Plan) -> Rows:
    rows: Rows = []
    async with (
        folder() as place,
        FakeModel() as model,
        # Beside the home, not around it: Landlock could not keep that closed.
        world(place / "home", environ={"OPENAI_BASE_URL": model.url, "MESSAGING_CWD": str(place / "work")}) as here,
    ):
        for user in (OWNER, USER):
            await _turn(here, model, user, [])
        owner = {"person": f"telegram:{OWNER}", "role": "owner"}
        await asyncio.to_thread(control.call, here.gateway.home, "people.role", owner)
        (place / "work").mkdir(exist_ok=True)
        (place / "work" / "notes.txt").write_text("bread\nmilk\n", encoding="utf-8")
        count, rounds = plan.count(40, 3), plan.count(5, 1)
        for what, user, make, budget, config in _calls():
            if config:
                (here.gateway.home / "config.yaml").write_text(config, encoding="utf-8")
                await asyncio.to_thread(control.call, here.gateway.home, "config.reload")
            plan.say(f"{what}: {rounds} turns of {count} calls, each beside a turn of none")
            each = [await _each(here, model, user, [make(number) for number in range(count)]) for _ in range(rounds)]
            note = f"median of {rounds} turns of {count} calls, a turn of none taken off"
            rows.append(Row(f"{what}: CPU per call", milliseconds(median(cpu for cpu, _ in each)), "ms", budget, note))
            if config:
                took = milliseconds(median(seconds for _, seconds in each))
                rows.append(Row(f"{what}: time per call", took, "ms", WALL_MILLISECONDS, note))
    return rows


def _calls() -> list[tuple[str, int, Callable[[int], ToolUse], float, str]]:
    """Each call differs from the one before: the same again and again would be stopped."""
    command: Callable[[int], ToolUse] = lambda number: ("terminal", {"command": f"true {number}"})  # noqa: E731
    read: Callable[[int], ToolUse] = lambda number: ("read_file", {"path": "notes.txt", "count": number + 1})  # noqa: E731
    steps: Callable[[int], ToolUse] = lambda number: ("todo", {"items": [{"id": "1", "text": f"step {number}"}]})  # noqa: E731
    found = [
        ("read_file", OWNER, read, CALL_MILLISECONDS, ""),
        ("todo", OWNER, steps, CALL_MILLISECONDS, ""),
        ("terminal `true`, local", OWNER, command, COMMAND_MILLISECONDS, CONFIG.format(owner="local", others="auto")),
    ]
    sandboxes = {"bubblewrap": bubblewrap.why_not(), "landlock": landlock.why_not()}
    if not all(sandboxes.values()):
        config = CONFIG.format(owner="guarded", others="auto")
        found.append(("terminal `true`, guarded", OWNER, command, GUARDED_MILLISECONDS, config))
    for name, why_not in sandboxes.items():
        if not why_not:
            config = CONFIG.format(owner="local", others=name)
            found.append((f"terminal `true`, {name}", USER, command, COMMAND_MILLISECONDS, config))
    return found


async def _each(here: World, model: FakeModel, user: int, calls: list[ToolUse]) -> tuple[float, float]:
    """CPU and time for one call: what a turn with them asks beyond a turn with none."""
    without, with_them = await _turn(here, model, user, []), await _turn(here, model, user, calls)
    cpu, seconds = (max(0.0, more - less) / len(calls) for more, less in zip(with_them, without, strict=True))
    return cpu, seconds


async def _turn(here: World, model: FakeModel, user: int, calls: list[ToolUse]) -> tuple[float, float]:
    telegram = here.telegram
    model.script([*([calls_tools(*calls)] if calls else []), "Done."])
    before, done, began = here.gateway.cpu(), _done(here, user), time.monotonic()
    telegram.user_says("go on", chat=user, user=user)
    try:
        await telegram.wait_for(lambda: _done(here, user) > done, ANSWER_SECONDS)
    except TimeoutError:
        raise BenchError(f"The turn did not end.\n{here.gateway.last_words()}") from None
    took = time.monotonic() - began
    results = [message["content"] for message in model.last_request["messages"] if message["role"] == "tool"]
    ran = results[-len(calls) :] if calls else []
    failed = [text for text in ran if "failed" in text or "refused" in text or "There is no terminal" in text]
    if failed:
        raise BenchError(f"A call did not run: {failed[0][:200]}")
    await asyncio.sleep(SETTLE_SECONDS)
    return here.gateway.cpu() - before, took


def _done(here: World, user: int) -> int:
    return here.telegram.texts(user).count("Done.")
