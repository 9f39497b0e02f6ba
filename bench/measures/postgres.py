"""The same messages on a real PostgreSQL. Only the gateway's CPU counts, not the server's."""

from __future__ import annotations

from bench import talk
from bench.measures.lone import LONE_MILLISECONDS, PAUSE_SECONDS
from bench.measures.messages import BURST_MILLISECONDS
from bench.rig import folder, world
from bench.rows import Plan, Rows
from tests.contract.store.servers import postgres_for_tests

MORE_MILLISECONDS = 2.5


async def measure(plan: Plan) -> Rows:
    chats = range(1000, 1000 + plan.count(200, 5))
    lone = plan.count(50, 3)
    plan.say("starting PostgreSQL")
    with postgres_for_tests() as server, server.schema() as url:
        async with folder() as place, world(place / "home", environ={"HERMES_DATABASE_URL": url}) as here:
            await talk.warm_up(here)
            plan.say(f"{len(chats)} chats at once, then {lone} lone messages")
            together = await talk.bursts(here, chats, plan.count(4, 1))
            alone = await talk.paced(here, [7] * lone, pause=PAUSE_SECONDS)
    return [
        *together.rows(f"PostgreSQL, {len(chats)} at once", budget=BURST_MILLISECONDS + MORE_MILLISECONDS),
        *alone.rows("PostgreSQL, lone message", budget=LONE_MILLISECONDS + MORE_MILLISECONDS),
    ]
