"""A lone message: one every 100 ms, so that nothing is shared with a neighbour."""

from __future__ import annotations

from bench import profiler, talk
from bench.rig import folder, world
from bench.rows import Plan, Rows

LONE_MILLISECONDS = 4.0
PAUSE_SECONDS = 0.1


async def measure(plan: Plan) -> Rows:
    count = plan.count(50, 3)
    known, newcomers = range(1000, 1000 + count), range(2000, 2000 + count)
    async with folder() as place, world(place / "home") as here:
        await talk.warm_up(here)
        await talk.bursts(here, known, 1)
        plan.say(f"three times {count} messages, one every {PAUSE_SECONDS * 1000:.0f} ms")
        async with profiler.watching(plan, here.gateway.worker, "lone"):
            one = await talk.paced(here, [7] * count, pause=PAUSE_SECONDS)
            many = await talk.paced(here, known, pause=PAUSE_SECONDS)
        first = await talk.paced(here, newcomers, pause=PAUSE_SECONDS)
    return [
        *one.rows("lone message, one chat", budget=LONE_MILLISECONDS),
        *many.rows("lone message, a chat each", budget=LONE_MILLISECONDS),
        *first.rows("lone message, the first of a new person"),
    ]
