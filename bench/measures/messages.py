"""CPU of the worker per Telegram message, in to out, with a model that answers at once: 1, 50 and 200 chats."""

from __future__ import annotations

from bench import profiler, talk
from bench.rig import folder, world
from bench.rows import Plan, Rows

BURST_MILLISECONDS = 2.0
CHATS = {1: 100, 50: 8, 200: 4}  # how many at once, and how many rounds


async def measure(plan: Plan) -> Rows:
    rows: Rows = []
    async with folder() as place, world(place / "home") as here:
        await talk.warm_up(here)
        for number, (wanted, rounds) in enumerate(CHATS.items()):
            first, chats = 1000 * (number + 1), plan.count(wanted, min(wanted, 5))
            plan.say(f"{chats} {'chat' if chats == 1 else 'chats'} at once")
            async with profiler.watching(plan, here.gateway.worker, f"burst-{chats}"):
                met = await talk.bursts(here, range(first, first + chats), plan.count(rounds, 1))
            rows += met.rows(f"{chats} at once", budget=BURST_MILLISECONDS if wanted == 200 else None)
    return rows
