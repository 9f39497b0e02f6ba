# ruff: noqa: S608, E501 - SQL of our own, with numbers of ours
"""Several gateways on one PostgreSQL: CPU and messages in a second with 1, 2 and 3 of them; a million sessions stored.

All run on this machine, beside the model and the database: more nodes do not answer more messages here, and the
figures show what a node adds. The server is the one of the tests: it does not wait for the disk.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench import machine, talk
from bench.caller import CHAT, Door, Line, door_of
from bench.measures.api import says
from bench.rig import GatewayProcess, World, folder, model, provided_by, running, settings, world
from bench.rows import Plan, Row, Rows, milliseconds
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import ChatMessage, Role
from hermes.store import codec
from tests.contract.store.servers import PostgresForTests, postgres_for_tests
from tests.fakes.telegram import FakeTelegram

NODES = (1, 2, 3)
AT_ONCE = 24
SETTLE_SECONDS = 1.0
SESSIONS = (1_000, 100_000, 1_000_000)
MORE_PERCENT = 20.0
FIRST_CHAT = 7_000_000
PAIRS = 3
SEEDERS = 4


@dataclass(frozen=True, slots=True)
class Load:
    """What some requests cost: CPU of all workers, CPU of the database, seconds by the clock."""

    count: int
    cpu: float
    database_cpu: float
    seconds: float

    def rows(self, what: str) -> Rows:
        return [
            Row(f"{what}: CPU of the gateways per message", milliseconds(self.cpu / self.count), "ms"),
            Row(f"{what}: CPU of the database per message", milliseconds(self.database_cpu / self.count), "ms"),
            Row(f"{what}: messages in a second", self.count / self.seconds, "", note=f"{self.count} messages"),
        ]


async def measure(plan: Plan) -> Rows:
    rows: Rows = []
    plan.say("one gateway on SQLite")
    async with folder() as place, world(place / "home") as here:
        rows += (await _load([here.gateway], 0, plan)).rows("SQLite")
    plan.say("starting PostgreSQL")
    with postgres_for_tests() as server:
        for number in NODES[: plan.count(3, 2)]:
            rows += await _nodes(plan, server, number)
        rows += await _sessions(plan, server)
    return rows


# Nodes


async def _nodes(plan: Plan, server: PostgresForTests, number: int) -> Rows:
    name = f"{number} node{'s' if number > 1 else ''} on PostgreSQL"
    plan.say(name)
    async with AsyncExitStack() as stack:
        url = stack.enter_context(server.schema())
        place = await stack.enter_async_context(folder())
        provider = await stack.enter_async_context(model())
        told = {**provided_by(provider, place), "HERMES_DATABASE_URL": url}
        gateways = []
        for each in range(number):
            gateway = await stack.enter_async_context(running(GatewayProcess(place / f"node-{each}", told)))
            await gateway.ready()
            gateways.append(gateway)
        return (await _load(gateways, _postmaster(url), plan)).rows(name)


async def _load(gateways: Sequence[GatewayProcess], postmaster: int, plan: Plan) -> Load:
    """Ask all of them in turn, ``AT_ONCE`` at a time, and count what it cost."""
    doors = [door_of(gateway) for gateway in gateways]
    await _ask(doors, plan.count(10 * AT_ONCE, AT_ONCE))
    count = plan.count(100, 2) * AT_ONCE
    before, of_database = sum(gateway.cpu() for gateway in gateways), _cpu_of(postmaster)
    began = time.monotonic()
    await _ask(doors, count)
    seconds = time.monotonic() - began
    await asyncio.sleep(SETTLE_SECONDS)
    cpu = sum(gateway.cpu() for gateway in gateways) - before
    return Load(count, cpu, _cpu_of(postmaster) - of_database, seconds)


async def _ask(doors: Sequence[Door], count: int) -> None:
    async def one_after_another(number: int) -> None:
        async with Line(doors[number % len(doors)]) as line:
            for _ in range(count // AT_ONCE):
                await line.ask(CHAT, says("hi"))

    await asyncio.gather(*(one_after_another(number) for number in range(AT_ONCE)))


def _postmaster(url: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert found is not None
        return int(Path(f"/proc/{found[0]}/stat").read_text("ascii").rpartition(")")[2].split()[1])


def _cpu_of(postmaster: int) -> float:
    total = 0.0
    for pid in machine.tree(postmaster) if postmaster else ():
        try:
            total += machine.cpu_seconds(pid)
        except OSError:  # a connection that ended this moment
            continue
    return total


# Sessions


async def _sessions(plan: Plan, server: PostgresForTests) -> Rows:
    """Cost per message of one node, with more and more sessions beside those that are talked in."""
    rows: Rows = []
    first = 0.0
    async with AsyncExitStack() as stack:
        url = stack.enter_context(server.schema())
        place = await stack.enter_async_context(folder())
        telegram = await stack.enter_async_context(FakeTelegram())
        provider = await stack.enter_async_context(model())
        told = {**settings(telegram, provider, place), "HERMES_DATABASE_URL": url}
        gateway = await stack.enter_async_context(running(GatewayProcess(place / "home", told)))
        await gateway.ready()
        await telegram.wait_for(lambda: telegram.polls > 0, 60)
        here, postmaster = World(gateway, telegram, provider), _postmaster(url)
        await talk.warm_up(here)
        seeded = 0
        for wanted in SESSIONS if not plan.short else (100, 1000):
            began = time.monotonic()
            await asyncio.to_thread(seed, url, seeded, wanted)
            plan.say(f"{wanted:,} sessions, seeded in {time.monotonic() - began:.0f} s")
            # Those that talk are spread over all that are stored.
            chats = range(FIRST_CHAT, FIRST_CHAT + wanted, max(1, wanted // plan.count(50, 5)))
            await talk.bursts(here, chats, 1)
            costs, of_database = [], []
            for _ in range(plan.count(PAIRS, 1)):
                before = _cpu_of(postmaster)
                met = await talk.bursts(here, chats, plan.count(4, 1))
                costs.append(met.cpu_each)
                of_database.append((_cpu_of(postmaster) - before) / met.count)
            cost, database_cost = sorted(costs)[len(costs) // 2], sorted(of_database)[len(of_database) // 2]
            name = f"{wanted:,} sessions"
            rows.append(Row(f"{name}: CPU of the gateway per message", milliseconds(cost), "ms"))
            rows.append(Row(f"{name}: CPU of the database per message", milliseconds(database_cost), "ms"))
            if first:
                more = ((cost + database_cost) / first - 1) * 100
                rows.append(Row(f"{name}: more than with the first, both", more, "%", MORE_PERCENT))
            first = first or cost + database_cost
            seeded = wanted
        with psycopg.connect(url) as connection:
            size = connection.execute(
                "SELECT SUM(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                " WHERE n.nspname = current_schema() AND c.relkind = 'r'"
            ).fetchone()
            assert size is not None
            rows.append(Row(f"{seeded:,} sessions: on the disk", float(size[0]) / 1e6, "MB", note="tables and indexes"))
    return rows


def seed(url: str, first: int, last: int) -> None:
    """Make sessions ``first`` to ``last`` by SQL, each with one answered message, as use would have left them."""
    example = SessionKey("telegram", ChatKind.DM, "CHAT")
    asked = codec.dump(ChatMessage(Role.USER, "An ordinary line of talk, as long as most of them are."))
    said = codec.dump(ChatMessage(Role.ASSISTANT, "An ordinary answer, as long as most of them are."))
    words = {"lane": str(example), "target": str(example.target), "asked": asked, "said": said, "now": time.time()}
    chats = {"first": FIRST_CHAT + first, "last": FIRST_CHAT + last - 1, **words}

    def fill(statement: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement.replace("CHATS", "generate_series(%(first)s, %(last)s) AS c").encode(), chats)

    with ThreadPoolExecutor(SEEDERS) as threads:
        list(threads.map(fill, _SEED))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")


_LANE = "replace(%(lane)s, 'CHAT', c::text)"
_TARGET = "replace(%(target)s, 'CHAT', c::text)"
_OLD = "%(now)s - 86400.0 * (1 + c %% 10)"
_SEED = (
    f"INSERT INTO sessions (id, key, seq, created_at, updated_at) SELECT 's_' || c, {_LANE}, 2, {_OLD},"
    " %(now)s FROM CHATS",  # used a moment ago: a session that was quiet for long would be renewed
    f"INSERT INTO lanes (key, seq, token, session_id) SELECT {_LANE}, 1, 1, 's_' || c FROM CHATS",
    "INSERT INTO transcript (session_id, seq, turn_id, kind, body, at)"
    f" SELECT 's_' || c, 1, 't_' || c, 'message', %(asked)s, {_OLD} FROM CHATS",
    "INSERT INTO transcript (session_id, seq, turn_id, kind, body, at)"
    f" SELECT 's_' || c, 2, 't_' || c, 'message', %(said)s, {_OLD} FROM CHATS",
    "INSERT INTO turns (id, lane, session_id, state, person_id, steps, attempts, created_at, ended_at)"
    f" SELECT 't_' || c, {_LANE}, 's_' || c, 'done', 'p_telegram_' || c, 1, 1, {_OLD}, {_OLD} FROM CHATS",
    "INSERT INTO inbox (id, lane, seq, platform, account, kind, sender_id, body, state, turn_id, received_at, ready_at,"
    f" settled_at) SELECT 'ev_' || c, {_LANE}, 1, 'telegram', 'main', 'message', c::text, %(asked)s, 'answered',"
    f" 't_' || c, {_OLD}, {_OLD}, {_OLD} FROM CHATS",
    "INSERT INTO dedupe (key, event_id, seen_at)"
    f" SELECT 'telegram/42/msg:' || c || ':0', 'ev_' || c, {_OLD} FROM CHATS",
    "INSERT INTO outbox (id, target, seq, turn_id, group_id, idx, kind, body, state, attempts, message_id, not_before,"
    f" expires_at, created_at, settled_at) SELECT 'ob_' || c, {_TARGET}, 1, 't_' || c, 'ob_' || c, 0, 'reply', %(said)s,"
    f" 'sent', 1, '1', {_OLD}, %(now)s, {_OLD}, {_OLD} FROM CHATS",
    f"INSERT INTO targets (key, seq, token) SELECT {_TARGET}, 1, 1 FROM CHATS",
    f"INSERT INTO people (id, name, role, created_at) SELECT 'p_telegram_' || c, 'Ana', 'user', {_OLD} FROM CHATS",
    "INSERT INTO person_accounts (platform, user_id, person_id) SELECT 'telegram', c::text, 'p_telegram_' || c FROM CHATS",
)
