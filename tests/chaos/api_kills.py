"""kill -9 in the middle of runs, streams and stored responses: afterwards each has an end, and says which."""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from hermes.hosting.control import client as control
from tests.chaos.world import ROOT, Victim, World, opened, until

MODEL = "hermes"
REACH_SECONDS = 20.0
END_SECONDS = 60.0
FINAL = {"completed", "failed", "cancelled", "incomplete"}
SET_ASIDE = "set_aside: client gone"


class Kind(StrEnum):
    RUN = "run"
    STREAM = "chat stream"
    RESPONSE = "stored response"


@dataclass(slots=True)
class Asked:
    """One request. ``id`` is "" until the gateway has named it: before that it has promised nothing."""

    kind: Kind
    text: str
    id: str = ""
    end: str = ""
    """How it ended, by what the gateway says afterwards; "" when it says nothing final."""
    said: str = ""
    was_told: bool = False
    """Whether its client had read the whole answer before the kill."""

    @property
    def is_right(self) -> bool:
        """Runs and responses are carried to their ends; a stream is set aside with its client, unless it was done."""
        if self.kind is not Kind.STREAM:
            return self.end == "completed" and self.said == f"echo: {self.text}"
        return self.end in ({"answered"} if self.was_told else {"answered", SET_ASIDE})


@dataclass(frozen=True, slots=True)
class Round:
    """What one kill left behind."""

    victim: Victim
    asked: Sequence[Asked]
    waiting: int
    """Requests without an end afterwards, those included that nobody was told of."""

    @property
    def named(self) -> list[Asked]:
        return [one for one in self.asked if one.id]

    @property
    def wrong(self) -> list[Asked]:
        return [one for one in self.named if not one.is_right]

    def ends(self, kind: Kind) -> str:
        counted = Counter(one.end or "no end" for one in self.named if one.kind is kind)
        return ", ".join(f"{count} {end}" for end, count in sorted(counted.items())) or "none"


@dataclass(slots=True)
class Callers:
    """The clients of one gateway; its address and its key stay the same over every restart."""

    world: World
    http: aiohttp.ClientSession
    port: int
    asked: list[Asked] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def ask(self, each: int, label: str) -> None:
        """So many of every kind at the same time."""
        for number in range(each):
            for kind in Kind:
                verb = "read" if number % 3 == 2 else "say"  # a third calls a tool before it answers
                one = Asked(kind, f"{verb} {label}-{kind[0]}{number}")
                self.asked.append(one)
                self.tasks.append(asyncio.create_task(self._one(one)))

    async def _one(self, one: Asked) -> None:
        try:
            match one.kind:
                case Kind.RUN:
                    async with self.http.post("/v1/runs", json={"model": MODEL, "input": one.text}) as answer:
                        one.id = (await answer.json())["run_id"]
                case Kind.STREAM:
                    talk = [{"role": "user", "content": one.text}]
                    await self._stream(one, "/v1/chat/completions", {"messages": talk})
                case Kind.RESPONSE:
                    await self._stream(one, "/v1/responses", {"input": one.text})
        except (aiohttp.ClientError, OSError):
            pass  # the kill cut it off

    async def _stream(self, one: Asked, path: str, body: dict[str, Any]) -> None:
        async with self.http.post(path, json={"model": MODEL, "stream": True, **body}) as answer:
            async for line in answer.content:
                if not line.startswith(b"data: {"):
                    one.was_told = one.was_told or line.startswith(b"data: [DONE]")
                    continue
                event = orjson.loads(line[6:])
                one.id = one.id or event.get("id") or event.get("response", {}).get("id", "")
                one.was_told = one.was_told or event.get("type") == "response.completed"

    async def hung_up(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks.clear()

    # Afterwards

    async def look(self, one: Asked) -> None:
        """Ask the restarted gateway until it names a final state."""
        async with asyncio.timeout(END_SECONDS):
            while not await self._looked(one):  # noqa: ASYNC110 - another process does not set our events
                await asyncio.sleep(0.1)

    async def _looked(self, one: Asked) -> bool:
        if one.kind is Kind.STREAM:
            event = await asyncio.to_thread(trace, self.world.gateway.home, one.id)
            one.end = ": ".join(filter(None, (event["state"], event["reason"])))
            return event["state"] not in ("queued", "taken")
        path = f"/v1/runs/{one.id}" if one.kind is Kind.RUN else f"/v1/responses/{one.id}"
        async with self.http.get(path) as answer:
            body = await answer.json()
        if answer.status != 200:
            one.end = f"status {answer.status}: {body}"
            return True
        one.end, one.said = body["status"], _words(one.kind, body)
        return body["status"] in FINAL


def _words(kind: Kind, body: dict[str, Any]) -> str:
    if kind is Kind.RUN:
        return str(body["output"])
    parts = [part for item in body["output"] if item["type"] == "message" for part in item["content"]]
    return "".join(part["text"] for part in parts)


def trace(home: Path, name: str) -> dict[str, Any]:
    """The event of a request, as `hermes trace` tells it."""
    life: Any = control.call(home, "trace", {"id": name})
    event: dict[str, Any] = life["events"][0]
    return event


def trace_by_hand(home: Path, name: str) -> str:
    """`hermes trace ID`, as people type it with the id their client shows."""
    command = [str(ROOT / "scripts" / "hermes"), "trace", name]
    told = subprocess.run(
        command, env={"PATH": "/usr/bin:/bin", "HERMES_HOME": str(home)}, capture_output=True, timeout=20, check=False
    )
    return (told.stdout + told.stderr).decode()


# The rounds


async def killed_while_the_model_speaks(callers: Callers, each: int, victim: Victim) -> Round:
    """All of them are in the middle of their answers, every first word told."""
    callers.world.model.hold()
    wanted = len(Kind) * each
    callers.ask(each, f"held-{victim}")
    await until(lambda: callers.world.model.open_now >= wanted, REACH_SECONDS)
    await until(lambda: all(one.id for one in callers.asked), REACH_SECONDS)
    return await _kill(callers, victim)


async def killed_at_random(callers: Callers, each: int, victim: Victim, chance: random.Random) -> Round:
    """Some are being accepted, some answered, some done."""
    callers.ask(each, f"random-{victim}")
    await asyncio.sleep(chance.uniform(0.01, 0.008 * each + 0.02))
    return await _kill(callers, victim)


async def _kill(callers: Callers, victim: Victim) -> Round:
    world = callers.world
    await world.gateway.kill(victim)
    if victim is not Victim.WORKER:
        world.gateway.start()
    await callers.hung_up()
    world.calm()
    await world.gateway.ready()
    asked = tuple(callers.asked)
    callers.asked.clear()
    for one in asked:
        if one.id:
            await callers.look(one)
    return Round(victim, asked, await _waiting(world))


async def _waiting(world: World) -> int:
    """How many still wait when all should have ended; the last ones get a moment."""
    for _ in range(50):
        status = await asyncio.to_thread(world.gateway.status)
        if not (waiting := int(status["waiting"]["messages"])):
            return 0
        await asyncio.sleep(0.1)
    return waiting


@asynccontextmanager
async def calling(folder: Path, seed: int) -> AsyncIterator[Callers]:
    """A world whose gateway serves the API on a port of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with opened(folder, seed, API_SERVER_PORT=str(port)) as world:
        key = (world.gateway.home / "api_server.key").read_text("ascii").strip()
        headers = {"Authorization": f"Bearer {key}"}
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers, connector=connector) as http:
            callers = Callers(world, http, port)
            yield callers
            await callers.hung_up()


async def kill_and_ask(folder: Path, each: int, seed: int) -> list[Round]:
    """Every round on one home: what earlier kills left behind stays."""
    async with calling(folder, seed) as callers:
        held = [await killed_while_the_model_speaks(callers, each, victim) for victim in (Victim.WORKER, Victim.BOTH)]
        chance = callers.world.chance
        return held + [await killed_at_random(callers, each, victim, chance) for victim in [*Victim] * 2]
