"""A lone message: one every 100 ms, so that nothing is shared with a neighbour."""

from __future__ import annotations

from bench import profiler, talk
from bench.rig import folder, world
from bench.rows import Plan, Rows

LONE_MILLISECONDS = 4.0
PAUSE_SECONDS = 0.1


async def measure(plan: Plan) -> Rows:
    count = plan.count(50, 3)
    async with folder() as place, world(place / "home") as here:
        await talk.warm_up(here)
        plan.say(f"{count} messages, one every {PAUSE_SECONDS * 1000:.0f} ms, in one chat and over {count} chats")
        async with profiler.watching(plan, here.gateway.worker, "lone"):
            one = await talk.paced(here, [7] * count, pause=PAUSE_SECONDS)
            many = await talk.paced(here, range(1000, 1000 + count), pause=PAUSE_SECONDS)
    return [
        *one.rows("lone message, one chat", budget=LONE_MILLISECONDS),
        *many.rows("lone message, a chat each", budget=LONE_MILLISECONDS),
    ]
