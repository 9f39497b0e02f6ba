"""A thousand sessions that were used and then left alone: what each of them keeps of the memory."""

from __future__ import annotations

import asyncio

from bench import machine, talk
from bench.rig import World, folder, world
from bench.rows import Plan, Row, Rows

KILOBYTES_EACH = 10.0
CALM_SECONDS = 5.0
AT_ONCE = 200
FIRST_CHAT = 2_000_000


async def measure(plan: Plan) -> Rows:
    count = plan.count(1000, 10)
    async with folder() as place, world(place / "home") as here:
        # Two bursts of as many at once, in other chats: what a burst itself makes the process keep is not theirs.
        await talk.bursts(here, range(1000, 1000 + plan.count(AT_ONCE, 5)), plan.count(4, 1))
        before = await _standing(here, plan)
        plan.say(f"{count} new chats say something, then nothing more")
        for first in range(FIRST_CHAT, FIRST_CHAT + count, AT_ONCE):
            await talk.bursts(here, range(first, min(first + AT_ONCE, FIRST_CHAT + count)), 1)
        after = await _standing(here, plan)
    grown = after - before
    note = f"{grown / machine.MEGABYTE:.1f} MB with {count} sessions"
    return [
        Row("an idle session: RSS", grown / count / 1000, "kB", KILOBYTES_EACH, note),
        Row(f"with {count} idle sessions: RSS of the process tree", after / machine.MEGABYTE, "MB"),
    ]


async def _standing(here: World, plan: Plan) -> int:
    await asyncio.sleep(0.5 if plan.short else CALM_SECONDS)
    return machine.resident(here.gateway.processes)
