"""A long mixed load at full speed: memory, descriptors, threads and tasks stay level from one half to the other."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import orjson

from bench import caller, machine
from bench.caller import CHAT, RESPONSES, Door, Line, door_of
from bench.measures.api import MODEL, says
from bench.rig import BenchError, World, folder, world
from bench.rows import Plan, Row, Rows
from hermes.servers.api.watch.metrics import snapshot_of

GROWN_MEGABYTES = 3.0
ONE_SHOT_MEGABYTES = 2.0
LEVEL_FILES, LEVEL_THREADS, LEVEL_TASKS = 8, 2, 8
CALM_SECONDS = 12.0  # the gateway looks every five seconds whether it is calm, and gives memory back
CALM_CPU = 0.02  # of a core while the gateway is calm; an idle one takes a third of that
MAX_CALM_SECONDS = 90.0
PATIENCE_SECONDS = 120.0
LOOKS = 40

CLIENTS = 12
WARM_UP_CLIENTS = 4 * CLIENTS
CHATS = range(5000, 5240)
BURST = 20
RENEWED_AFTER = 10
CHAIN_LENGTH = 20
"""Conversations are as long in both halves: what a longer one needs is not growth of the gateway."""
RUNS = "/v1/runs"
MIXED = ("--mode", "mixed")

SHARES: dict[str, int] = {
    "whole": 44,
    "telegram": 20,
    "chain": 10,
    "run": 8,
    "cut": 5,
    "stream": 4,
    "response": 3,
    "tool": 3,
    "fault": 3,
}
"""Of a hundred turns. All but those of Telegram and the chains have a session of their own."""


async def measure(plan: Plan) -> Rows:
    """Two halves of the same load, each with a calm moment behind it."""
    turns = plan.count(plan.turns, 200)
    async with folder() as place, world(place / "home", model_arguments=MIXED) as here:
        soak = Soak(here, plan, turns)
        await soak.load(turns // 20)  # imports, connections and caches
        halves = []
        for _ in range(2):
            await soak.load(turns // 2)
            halves.append(await soak.calm())
        sessions = _sessions(here)
        rate = soak.turns / soak.seconds
    first, second = halves
    load = f"{soak.turns} turns over {sessions} sessions, {rate:.0f} turns/s"
    grown = (second.resident - first.resident) / machine.MEGABYTE
    return [
        Row("soak: second half's end against the first's, RSS of the tree", grown, "MB", GROWN_MEGABYTES, load),
        Row("soak: RSS of the tree, end of the first half", first.resident / machine.MEGABYTE, "MB"),
        Row("soak: RSS of the tree, end of the second half", second.resident / machine.MEGABYTE, "MB"),
        Row("soak: RSS of the tree, at most", soak.most / machine.MEGABYTE, "MB"),
        Row("soak: descriptors, second half against first", second.files - first.files, "", LEVEL_FILES),
        Row("soak: threads, second half against first", second.threads - first.threads, "", LEVEL_THREADS),
        Row("soak: tasks, second half against first", second.tasks - first.tasks, "", LEVEL_TASKS),
        Row("soak: requests answered in a way that was not expected", soak.odd, "", 0.0, soak.oddity),
        Row("soak: CPU of the worker per turn", 1000 * soak.cpu / soak.turns, "ms", note=str(dict(soak.counts))),
    ]


async def one_shots(here: World, count: int, clients: int = CLIENTS) -> None:
    """Send so many requests, each in a session of its own."""
    door, numbers = door_of(here.gateway), iter(range(count))

    async def client() -> None:
        async with Line(door) as line:
            for number in numbers:
                await line.ask(CHAT, says(f"question {number}"))

    await asyncio.gather(*(client() for _ in range(clients)))


async def one_shots_leave(
    here: World, *, warm_up: int = 1500, count: int = 5000
) -> tuple[ResourceUsage, ResourceUsage]:
    """Return what the gateway holds before and after so many one-shot sessions, each time when it is calm.

    The first sessions fill what is filled once, and are not counted. They come from more clients than the others:
    allocators keep the most that was ever needed at the same time, in every thread, and on a busy machine requests that
    are answered slowly overlap more. What leaks is seen all the same.
    """
    await one_shots(here, warm_up, WARM_UP_CLIENTS)
    before = await calm_usage(here)
    await one_shots(here, count)
    return before, await calm_usage(here)


async def calm_usage(here: World) -> ResourceUsage:
    """Wait until the gateway has had nothing to do for so long that it has given memory back; then look."""
    deadline = time.monotonic() + MAX_CALM_SECONDS
    used = machine.cpu_seconds(here.gateway.worker)
    calm_since = time.monotonic()
    while (now := time.monotonic()) - calm_since < CALM_SECONDS and now < deadline:
        await asyncio.sleep(1.0)
        before, used = used, machine.cpu_seconds(here.gateway.worker)
        if used - before > CALM_CPU * (time.monotonic() - now) + 0.05:  # what it does now and then
            calm_since = time.monotonic()
    return await resource_usage(here)


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """What the gateway holds at one moment: bytes of the tree; descriptors, threads and tasks of the worker."""

    resident: int
    files: int
    threads: int
    tasks: int


async def resource_usage(here: World) -> ResourceUsage:
    pid = here.gateway.worker
    resident = machine.resident(here.gateway.processes)  # first: the question below fills the cache of a reader
    async with Line(door_of(here.gateway)) as line:
        status, page = await line.exchange(door_of(here.gateway).request("/metrics", method="GET"))
    if status != 200:
        raise BenchError(f"/metrics answered {status}: {page[:200]!r}")
    told = snapshot_of(page.decode())
    return ResourceUsage(
        resident=resident,
        files=int(told["process_open_fds"]),  # the worker hides them from us
        threads=machine.threads(pid),
        tasks=int(told["hermes_tasks"]),
    )


class Soak:
    """The clients, and what they have met so far."""

    def __init__(self, here: World, plan: Plan, whole: int) -> None:
        self._here = here
        self._plan = plan
        self._door = door_of(here.gateway)
        self._random = random.Random(11)  # the same load each time
        self._said: Counter[int] = Counter()
        self._chains: list[tuple[str, int]] = [("", 0)] * CLIENTS
        self._whole = whole + whole // 20
        self._look_every = max(1, self._whole // LOOKS)
        self._next_look = self._look_every
        self._api_left = 0
        self._moved = asyncio.Event()  # since the last look of whoever waits for the clients
        self.counts: Counter[str] = Counter()
        self.turns = 0
        self.seconds = 0.0
        self.cpu = 0.0
        self.most = 0
        self.odd = 0
        self.oddity = ""

    async def load(self, turns: int) -> None:
        """Begin so many turns, each client its next when the last was answered."""
        began, before = time.monotonic(), self._here.gateway.cpu()
        kinds = list(SHARES)
        drawn = self._random.choices(kinds, weights=list(SHARES.values()), k=turns)
        work = iter([kind for kind in drawn if kind != "telegram"])
        self._api_left = CLIENTS
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._telegram(drawn.count("telegram")))
                for number in range(CLIENTS):
                    group.create_task(self._client(number, work))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        self.seconds += time.monotonic() - began
        self.cpu += self._here.gateway.cpu() - before

    async def calm(self) -> ResourceUsage:
        if self._plan.short:
            await asyncio.sleep(0.5)
        found = await (resource_usage(self._here) if self._plan.short else calm_usage(self._here))
        self._plan.say(f"half: {_told(found)}")
        return found

    # Clients of the API

    async def _client(self, number: int, work: Iterator[str]) -> None:
        async with Line(self._door) as line:
            for kind in work:
                await self._act(kind, number, line)
                await self._count(kind)
        self._api_left -= 1
        self._moved.set()

    async def _act(self, kind: str, number: int, line: Line) -> None:
        text = self._text()
        acts: dict[str, Callable[[], Awaitable[None]]] = {
            "whole": lambda: self._whole_answer(line, says(text)),
            "stream": lambda: self._stream(says(f"say much: {text}", stream=True)),
            "cut": lambda: caller.cut_stream(self._door, CHAT, says(f"say much: {text}", stream=True)),
            "response": lambda: self._response(line, text),
            "chain": lambda: self._chain(line, number, text),
            "run": lambda: self._run(line, text),
            "tool": lambda: self._whole_answer(line, says(f"plan it: {text}")),
            "fault": lambda: self._fault(line, text),
        }
        await acts[kind]()

    def _text(self) -> str:
        """A few words mostly, at times a page or twenty."""
        size = self._random.choices((20, 300, 3000, 60_000), weights=(60, 30, 9, 1))[0]
        return "".join(self._random.choices("abcdefgh ijklmno ", k=size))

    async def _whole_answer(self, line: Line, body: object) -> None:
        self._expect(200, await line.exchange(self._door.request(CHAT, body)))

    async def _response(self, line: Line, text: str) -> None:
        self._expect(200, await line.exchange(self._door.request(RESPONSES, {"model": MODEL, "input": text})))

    async def _stream(self, body: object) -> None:
        streamed = await caller.stream(self._door, CHAT, body)
        if not streamed.ended:
            self._note_odd("a stream broke off")

    async def _chain(self, line: Line, number: int, text: str) -> None:
        last, length = self._chains[number]
        body = {"model": MODEL, "input": text, **({"previous_response_id": last} if last else {})}
        status, raw = await line.exchange(self._door.request(RESPONSES, body))
        self._expect(200, (status, raw))
        answer = orjson.loads(raw)
        self._chains[number] = (answer["id"], length + 1) if length < CHAIN_LENGTH and "id" in answer else ("", 0)

    async def _run(self, line: Line, text: str) -> None:
        status, raw = await line.exchange(self._door.request(RUNS, {"input": text}))
        self._expect(202, (status, raw))
        if status == 202:
            await caller.stream(self._door, f"{RUNS}/{orjson.loads(raw)['run_id']}/events", method="GET")

    async def _fault(self, line: Line, text: str) -> None:
        """One of what goes wrong at the provider or at the client."""
        which = self._random.randrange(5)
        if which < 3:
            words = ("be refused", "be overloaded", "break off")[which]
            status, raw = await line.exchange(self._door.request(CHAT, says(f"{words}: {text}")))
            if status == 200:
                self._note_odd(f"{words!r} was answered {raw[:200]!r}")
        elif which == 3:
            self._expect(401, await line.exchange(Door(self._door.port, "wrong").request(CHAT, says(text))))
        else:
            self._expect(400, await line.exchange(self._door.request(CHAT, {"model": MODEL, "messages": text})))

    def _expect(self, wanted: int, met: tuple[int, bytes]) -> None:
        if met[0] != wanted:
            self._note_odd(f"{met[0]} {met[1][:200]!r}")

    def _note_odd(self, what: str) -> None:
        self.odd += 1
        self.oddity = self.oddity or what
        if self.odd <= 5:
            self._plan.say(f"not expected: {what}")

    # People on Telegram

    async def _telegram(self, turns: int) -> None:
        """Bursts in some of the chats, in turn; no further than the clients of the API have got."""
        for number, first in enumerate(range(0, turns, BURST)):
            size = min(BURST, turns - first)
            chats = [CHATS[(self.counts["telegram"] + place) % len(CHATS)] for place in range(size)]
            if long := [chat for chat in chats if self._said[chat] and self._said[chat] % RENEWED_AFTER == 0]:
                await self._burst(long, "/new")
            if number % 10 == 5:
                self._here.telegram.refuse_next("sendMessage", 500, "Internal Server Error")
            elif number % 50 == 25:
                self._here.telegram.drop_connection()
            await self._burst(chats)
            self._said.update(chats)
            for _ in range(size):
                await self._count("telegram")
            while self.counts["telegram"] * 100 > SHARES["telegram"] * (self.turns + 10 * BURST) and self._api_left:
                self._moved.clear()
                await self._moved.wait()

    async def _burst(self, chats: Sequence[int], command: str = "") -> None:
        telegram = self._here.telegram
        telegram.forget()
        for chat in chats:
            telegram.user_says(command or self._text()[:4000], chat=chat, user=chat)
        wanted = {str(chat) for chat in chats}
        try:
            await telegram.wait_for(lambda: wanted <= {sent.chat for sent in telegram.sent}, PATIENCE_SECONDS)
        except TimeoutError:
            raise BenchError(f"Telegram messages were not answered.\n{self._here.gateway.last_words()}") from None

    # Looking

    async def _count(self, kind: str) -> None:
        self.turns += 1
        self.counts[kind] += 1
        self._moved.set()
        if self.turns < self._next_look:
            return
        self._next_look += self._look_every
        found = await resource_usage(self._here)
        self.most = max(self.most, found.resident)
        self._plan.say(f"{self.turns} turns: {_told(found)}")


def _told(found: ResourceUsage) -> str:
    return (
        f"{found.resident / machine.MEGABYTE:.1f} MB, {found.files} descriptors, {found.threads} threads, "
        f"{found.tasks} tasks"
    )


def _sessions(here: World) -> int:
    with closing(sqlite3.connect(f"file:{here.gateway.home / 'state.db'}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM sessions").fetchone()[0])
