"""kill -9, again and again, on one home: at random times and at each place where a message could fall through."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic

from tests.chaos.ledger import Kill, Said, Verdict, judge, told
from tests.chaos.world import AnyWorld, Victim, W, Watchful, until

MESSAGES = 10
BEFORE = 2  # of these ten are answered, and known to be noted down, before the kill
WHILE_DOWN = 3  # are said while nobody listens
REACH_SECONDS = 10.0
ANSWER_SECONDS = 30.0
CHATS = range(1000, 1040)
ONE_CHAT = 999
PROBES = 100_000
BARRIERS = 500_000


class Point(StrEnum):
    RANDOM = "at random"
    AFTER_RECEIVE = "after receive"
    BEFORE_COMMIT = "before commit"
    AFTER_COMMIT = "after commit"
    MID_MODEL = "mid-model"
    PREVIEWED = "preview shown"
    MID_TOOL = "mid-tool"
    IN_FLIGHT = "send in flight"
    NOT_RECORDED = "sent, not recorded"


RANDOM_PER_ROUND = 3


@dataclass(frozen=True, slots=True)
class Plan:
    number: int
    point: Point
    victim: Victim
    in_one_chat: bool


def plans(count: int, chance: random.Random, *, has_previews: bool = True) -> Iterator[Plan]:
    """Rounds in which each named point comes once; over three rounds it meets each victim."""
    named = [point for point in Point if has_previews or point is not Point.PREVIEWED]
    points = [*named, *[Point.RANDOM] * (RANDOM_PER_ROUND - 1)]
    victims = list(Victim)
    for first in range(0, count, len(points)):
        turn = first // len(points)
        drawn = [(point, victims[(index + turn) % 3], (index + turn) % 4 == 0) for index, point in enumerate(points)]
        chance.shuffle(drawn)
        for index, (point, victim, in_one_chat) in enumerate(drawn[: count - first]):
            yield Plan(first + index, point, victim, in_one_chat)


@dataclass(slots=True)
class Series:
    """What was said and what was killed so far."""

    world: AnyWorld[Watchful]
    said: list[Said] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)

    def verdict(self) -> Verdict:
        return judge(self.said, self.world.platform.flights, self.kills)

    async def run(self, count: int) -> AsyncIterator[Kill]:
        """Kill so many times; the first that leaves something stuck is the last, as more would tell nothing new."""
        for plan in plans(count, self.world.chance, has_previews=self.world.platform.capabilities.edits):
            kill = await self._kill_once(plan)
            self.kills.append(kill)
            yield kill
            if kill.is_stuck:
                return

    async def settle(self) -> int:
        """After the last kill: ask the gateway how many messages wait."""
        await asyncio.sleep(1.0)  # a second answer to anything would come now
        waiting = await asyncio.to_thread(self.world.gateway.status)
        return int(waiting["waiting"]["messages"])

    async def _kill_once(self, plan: Plan) -> Kill:
        messages = self._messages(plan)
        noted_until = await self._answer_and_note(plan, messages[:BEFORE])
        was_reached = await self._reach(plan.point, messages[BEFORE:-WHILE_DOWN])
        deaths = asyncio.create_task(self.world.gateway.kill(plan.victim))
        await asyncio.sleep(0)  # the signal is sent
        for message in messages[-WHILE_DOWN:]:
            self._say(message)
        probe = Said(PROBES + plan.number, f"probe{plan.number}", plan.number)
        self._say(probe)
        counted_from = self.world.gateway.start() if plan.victim is not Victim.WORKER else 0.0
        died = await deaths
        self.world.calm()
        back = await self._first_answer(probe, counted_from or died.killed_at)
        is_stuck = not await self._answered([*messages, probe])
        await self.world.gateway.ready()
        return Kill(
            plan.number,
            plan.point.value,
            plan.victim.value,
            died.killed_at,
            died.gone_at,
            noted_until,
            back,
            was_reached,
            is_stuck,
        )

    async def _answer_and_note(self, plan: Plan, messages: Sequence[Said]) -> float:
        """Until when every answer that left the fake is surely noted down.

        A gateway writes down what came first, first: when a message that was said after an answer had left has been
        answered in its turn, that answer is noted. No waiting could say so on a machine that is busy.
        """
        for message in messages:
            self._say(message)
        await self._answered(messages)
        barrier = Said(BARRIERS + plan.number, f"barrier{plan.number}", plan.number)
        said_at = time.monotonic()
        self._say(barrier)
        await self._answered([barrier])
        return said_at

    def _messages(self, plan: Plan) -> list[Said]:
        chats = [ONE_CHAT] * MESSAGES if plan.in_one_chat else self.world.chance.sample(CHATS, MESSAGES)
        verb = "read" if plan.point is Point.MID_TOOL else "say"
        return [Said(chat, f"{verb} k{plan.number}m{index}", plan.number) for index, chat in enumerate(chats)]

    def _say(self, message: Said) -> None:
        self.said.append(message)
        self.world.platform.user_says(message.text, chat=message.chat)

    # Reaching a point

    async def _reach(self, point: Point, messages: Sequence[Said]) -> bool:
        """Say the messages and come back at the point; False when it was not reached in time."""
        if point is Point.RANDOM:
            for message in messages:
                self._say(message)
                await asyncio.sleep(self.world.chance.uniform(0.0, 0.03))
            await asyncio.sleep(self.world.chance.uniform(0.0, 0.1))
            return True
        is_there = self._arm(point)
        for message in messages:
            self._say(message)
        try:
            await until(is_there, REACH_SECONDS)
        except TimeoutError:
            return False
        await asyncio.sleep(self._lingering(point))
        return True

    def _arm(self, point: Point) -> Callable[[], bool]:
        """Set the trap; the answer tells whether the gateway is in it."""
        world = self.world
        match point:
            case Point.AFTER_RECEIVE | Point.BEFORE_COMMIT | Point.AFTER_COMMIT:
                (world.after_commit if point is Point.AFTER_COMMIT else world.before_commit).touch()
                batches = world.platform.batches
                return lambda: world.platform.batches > batches
            case Point.MID_MODEL:
                world.model.hold()
                return lambda: world.model.open_now > 0
            case Point.PREVIEWED:
                world.model.hold()
                shown = len(world.platform.flights)
                return lambda: any(flight.is_preview for flight in world.platform.flights[shown:])
            case Point.MID_TOOL:
                world.model.on_tool_call = world.after_commit.touch
                calls = world.model.tool_calls
                return lambda: world.model.tool_calls > calls
            case Point.IN_FLIGHT:
                hold = world.platform.hold_sends()
                return lambda: hold.waiting > 0
            case _:
                world.platform.on_send = world.before_commit.touch
                return world.before_commit.exists

    def _lingering(self, point: Point) -> float:
        """How long after the sign from outside the gateway is surely at the point, with some chance in it."""
        match point:
            case Point.AFTER_RECEIVE:
                return self.world.chance.uniform(0.0, 0.01)
            case Point.MID_MODEL | Point.IN_FLIGHT:
                return self.world.chance.uniform(0.02, 0.2)
            case _:
                return self.world.chance.uniform(0.05, 0.12)

    # Afterwards

    async def _first_answer(self, probe: Said, since: float) -> float:
        try:
            await until(lambda: self.world.platform.has_answered(probe.chat, probe.answer), ANSWER_SECONDS)
        except TimeoutError:
            return ANSWER_SECONDS
        return time.monotonic() - since

    async def _answered(self, messages: Sequence[Said]) -> bool:
        open_ones = {(message.chat, message.answer) for message in messages}

        def all_answered() -> bool:
            done = {(chat, text) for chat, text in open_ones if self.world.platform.has_answered(chat, text)}
            open_ones.difference_update(done)
            return not open_ones

        try:
            await until(all_answered, ANSWER_SECONDS)
        except TimeoutError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Killed(Generic[W]):
    """A series that is over, in a world that is closed. ``waiting``: so many messages waited when all had settled."""

    series: Series
    platform: W
    waiting: int
    verdict: Verdict

    @property
    def kills(self) -> list[Kill]:
        return self.series.kills

    @property
    def stuck(self) -> int:
        return sum(kill.is_stuck for kill in self.kills)

    @property
    def is_good(self) -> bool:
        return self.verdict.is_good and not self.stuck and not self.waiting

    @property
    def wrong(self) -> list[str]:
        """Each message with which something happened that must not, and its story."""
        return told(self.verdict, self.platform.flights, self.kills)

    @property
    def story(self) -> str:
        return "\n".join([*self.wrong, f"stuck: {self.stuck}, waiting: {self.waiting}"])


async def kill_again_and_again(
    opened: AbstractAsyncContextManager[AnyWorld[W]], count: int, after_each: Callable[[Series], None] = lambda _: None
) -> Killed[W]:
    async with opened as world:
        series = Series(world)
        async for _ in series.run(count):
            after_each(series)
        waiting = await series.settle()
    return Killed(series, world.platform, waiting, series.verdict())
