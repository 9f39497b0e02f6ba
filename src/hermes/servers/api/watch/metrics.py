"""`GET /metrics`: numbers for Prometheus, as a page of text."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from aiohttp import web

from hermes import __version__
from hermes.core.errors import StoreIsDownError
from hermes.core.keys import SessionKey
from hermes.hosting import processes
from hermes.servers.api.context import ApiParts
from hermes.servers.api.errors import ApiError
from hermes.servers.app import RouteAdder
from hermes.services.events import (
    ModelCalled,
    TextArrived,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnStarted,
)
from hermes.services.gateway import STORE_SECONDS
from hermes.store.reports import stats
from hermes.store.turns.turns import TurnState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LAG_SECONDS = 1.0

BOUNDS: Sequence[float] = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
MAX_NAMES = 200
"""Different values of one label that are counted each for itself; all others are ``other``."""
MAX_OPEN = 10_000
"""Turns and calls under way whose beginning is remembered."""

Labels = Mapping[str, str]
LabelValues = tuple[str, ...]
Sample = tuple[Labels, float]


class Histogram:
    """How often something took how long, by labels."""

    def __init__(self) -> None:
        self._counts: dict[LabelValues, list[int]] = {}
        self._sums: dict[LabelValues, float] = {}

    def add(self, labels: LabelValues, seconds: float) -> None:
        if labels not in self._counts:
            labels = self._begin(labels)
        self._counts[labels][bisect_left(BOUNDS, seconds)] += 1
        self._sums[labels] += seconds

    def _begin(self, labels: LabelValues) -> LabelValues:
        """Return the labels under which these are counted: ``other`` when there are too many."""
        if len(self._counts) >= MAX_NAMES:
            labels = tuple("other" for _ in labels)
        self._counts.setdefault(labels, [0] * (len(BOUNDS) + 1))
        self._sums.setdefault(labels, 0.0)
        return labels

    def samples(self, names: Sequence[str]) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """As Prometheus wants it: a suffix of the metric's name, labels, and a number."""
        for labels, counts in sorted(self._counts.items()):
            named = dict(zip(names, labels, strict=True))
            below = 0
            for bound, count in zip((*map(_bound, BOUNDS), "+Inf"), counts, strict=True):
                below += count
                yield "_bucket", {**named, "le": bound}, below
            yield "_sum", named, self._sums[labels]
            yield "_count", named, below


class Measures(logging.Handler):
    """Watches turns, and the log for what went wrong."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.turns = Histogram()
        self.first_words = Histogram()
        self.models = Histogram()
        self.tools = Histogram()
        self.tokens: Counter[LabelValues] = Counter()
        self.failures: Counter[LabelValues] = Counter()
        self.troubles: Counter[LabelValues] = Counter()
        self.ended: Counter[str] = Counter({state.value: 0 for state in TurnState})
        self._begun: dict[str, float] = {}
        self._silent: set[str] = set()
        self._calls: dict[tuple[str, str], float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Count warnings and errors by their words, which are always the same for one kind."""
        labels = (record.levelname.lower(), str(record.msg)[:80])
        if labels not in self.troubles and len(self.troubles) >= MAX_NAMES:
            labels = (labels[0], "other")
        self.troubles[labels] += 1

    def saw(self, event: TurnEvent) -> None:
        if isinstance(event, TextArrived):  # the most frequent by far
            if event.turn_id in self._silent:
                self._spoke(event)
        elif isinstance(event, TurnStarted):
            if len(self._begun) < MAX_OPEN:
                self._begun[event.turn_id] = time.monotonic()
                self._silent.add(event.turn_id)
        elif isinstance(event, ToolStarted):
            if len(self._calls) < MAX_OPEN:
                self._calls[event.turn_id, event.call_id] = time.monotonic()
        elif isinstance(event, ToolEnded):
            began = self._calls.pop((event.turn_id, event.call_id), None)
            if began is not None:
                self.tools.add((event.name, event.outcome), time.monotonic() - began)

    def saw_model(self, call: ModelCalled) -> None:
        self.models.add((call.model, call.outcome), call.seconds)
        if call.prompt_tokens or call.completion_tokens:
            self.tokens[call.model, "prompt"] += call.prompt_tokens
            self.tokens[call.model, "completion"] += call.completion_tokens

    def _spoke(self, event: TextArrived) -> None:
        self._silent.remove(event.turn_id)
        self.first_words.add((_platform(event.lane),), time.monotonic() - self._begun[event.turn_id])

    def saw_end(self, event: TurnEnded) -> None:
        self.ended[event.state] += 1
        self._silent.discard(event.turn_id)
        began = self._begun.pop(event.turn_id, None)
        if began is not None:
            self.turns.add((_platform(event.lane), event.state), time.monotonic() - began)
        if event.state == "failed":
            self.failures[(event.result.error_kind or "turn",)] += 1


def _platform(lane: str) -> str:
    try:
        return SessionKey.parse(lane).platform
    except ValueError:
        return "other"


def _bound(seconds: float) -> str:
    return str(int(seconds)) if seconds == int(seconds) else str(seconds)


class Metrics:
    """Counts since the start of the process."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._started = time.time()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self.open_requests = 0
        self._lag = 0.0
        self._longest_lag = 0.0
        self._measures = Measures()

    async def counted(self, request: web.Request, answer: Awaitable[web.StreamResponse]) -> web.StreamResponse:
        """Count one request by its route, its method and the status it is answered with."""
        status = 500
        self.open_requests += 1
        try:
            response = await answer
            status = response.status
        except (ApiError, web.HTTPException) as refusal:
            status = refusal.status
            raise
        finally:
            self.open_requests -= 1
            resource = request.match_info.route.resource
            route = resource.canonical.rstrip("/") if resource is not None else "other"
            self._requests[(request.method if resource is not None else "other", route, status)] += 1
        return response

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        timer = asyncio.create_task(self._watch_lag(), name="loop lag")
        bus, root = self._parts.gateway.bus, logging.getLogger()
        root.addHandler(self._measures)
        try:
            measures = self._measures
            with bus.watch(measures.saw), bus.watch_ends(measures.saw_end), bus.watch_models(measures.saw_model):
                yield
        finally:
            root.removeHandler(self._measures)
            timer.cancel()
            await asyncio.wait([timer])

    async def _watch_lag(self) -> None:
        while True:
            due = time.monotonic() + LAG_SECONDS
            await asyncio.sleep(LAG_SECONDS)
            self._lag = max(0.0, time.monotonic() - due)
            self._longest_lag = max(self._longest_lag, self._lag)

    async def page(self) -> str:
        status = await self._parts.gateway.status()
        accounts = self._parts.gateway.supervisor.status()
        return "".join(
            (
                *self._of_this(status.get("node", "")),
                *_of_accounts(accounts),
                *self._of_turns(len(status["running"]), status["waiting"]),
                *_of_queues(await self._oldest()),
                *_of_measures(self._measures),
                *_of_nodes(status.get("nodes", ())),
                *await self._of_the_store(),
                *self._of_requests(),
                *self._of_the_loop(),
                *self._of_the_process(),
            )
        )

    def _of_this(self, node: str) -> Iterator[str]:
        """Which gateway this page is of: its version, and its name among several."""
        labels = {"version": __version__, "node": node}
        yield family("hermes_info", "gauge", "1, with the version and the node of this gateway.", [(labels, 1)])

    async def _oldest(self) -> Mapping[str, float]:
        """Seconds that the oldest of each queue has waited; nothing while the store is down."""
        gateway = self._parts.gateway
        with contextlib.suppress(StoreIsDownError, TimeoutError):
            async with asyncio.timeout(STORE_SECONDS):
                return await gateway.db.read(stats.oldest_waiting, now=gateway.clock.now())
        return {}

    async def _of_the_store(self) -> tuple[str, ...]:
        gateway = self._parts.gateway
        free = (await asyncio.to_thread(shutil.disk_usage, gateway.home)).free
        disk = family("hermes_disk_free_bytes", "gauge", "Free bytes of the disk of the home.", _alone(free))
        with contextlib.suppress(StoreIsDownError, TimeoutError):
            async with asyncio.timeout(STORE_SECONDS):
                found = await gateway.db.read(stats.sizes)
                what = "Deliveries that were given up and are kept."
                return (
                    disk,
                    family("hermes_store_up", "gauge", "1 when the store answers.", _alone(1)),
                    family("hermes_store_bytes", "gauge", "Size of the database.", _alone(found["bytes"])),
                    family("hermes_store_free_bytes", "gauge", "Unused bytes in it.", _alone(found["free"])),
                    family("hermes_dead_letters", "gauge", what, _alone(found["dead_letters"])),
                )
        return disk, family("hermes_store_up", "gauge", "1 when the store answers.", _alone(0))

    def _of_turns(self, running: int, waiting: Mapping[str, int]) -> Iterator[str]:
        ended = [({"state": state}, count) for state, count in sorted(self._measures.ended.items())]
        yield family("hermes_turns_total", "counter", "Turns that ended, by state.", ended)
        yield family("hermes_turns_running", "gauge", "Turns that run now.", _alone(running))
        depths = [({"queue": name}, waiting[name]) for name in sorted(waiting)]
        what = "What waits: messages in the inbox, answers in the outbox, approvals."
        yield family("hermes_queue_depth", "gauge", what, depths)

    def _of_requests(self) -> Iterator[str]:
        answered = [
            ({"method": method, "route": route, "status": str(code)}, count)
            for (method, route, code), count in sorted(self._requests.items())
        ]
        what = "Requests answered, by route, method and status."
        yield family("hermes_http_requests_total", "counter", what, answered)
        yield family("hermes_http_requests_open", "gauge", "Requests being answered.", _alone(self.open_requests))

    def _of_the_loop(self) -> Iterator[str]:
        longest, self._longest_lag = self._longest_lag, self._lag
        what = "How late the loop was at the last look."
        yield family("hermes_event_loop_lag_seconds", "gauge", what, _alone(self._lag))
        what = "The latest it was since this page was read."
        yield family("hermes_event_loop_lag_max_seconds", "gauge", what, _alone(longest))
        yield family("hermes_tasks", "gauge", "Tasks on the loop.", _alone(len(asyncio.all_tasks())))

    def _of_the_process(self) -> Iterator[str]:
        memory, times = processes.resident_bytes(os.getpid()), os.times()
        started = float(self._parts.process().get("started_at") or self._started)
        yield family("process_resident_memory_bytes", "gauge", "Memory of the process.", _alone(memory))
        if files := processes.open_files():
            yield family("process_open_fds", "gauge", "Open descriptors.", _alone(files))
        yield family("process_cpu_seconds_total", "counter", "CPU time used.", _alone(times.user + times.system))
        yield family("process_start_time_seconds", "gauge", "When it started.", _alone(started))


def _of_accounts(accounts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    def each(count: str) -> list[Sample]:
        return [({"account": account["account"]}, account[count]) for account in accounts]

    yield family("hermes_events_in_total", "counter", "Events that arrived, by account.", each("in_total"))
    yield family("hermes_events_out_total", "counter", "Messages delivered, by account.", each("out_total"))
    connected = [
        ({"account": account["account"], "state": account["state"]}, account["state"] == "connected")
        for account in accounts
    ]
    yield family("hermes_adapter_connected", "gauge", "1 when the account is connected.", connected)
    yield family("hermes_adapter_reconnects_total", "counter", "Times an account came back.", each("reconnects"))


def _of_nodes(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Every node on the same database, as this one sees it; nothing where a gateway works alone on a file."""
    if not nodes:
        return
    shown = [({"node": str(node["name"]), "version": str(node["version"])}, node) for node in nodes]
    living = [(labels, node) for labels, node in shown if node["state"] in ("living", "draining")]
    up = [({**labels, "state": str(node["state"])}, node["state"] == "living") for labels, node in shown]
    yield family("hermes_node_up", "gauge", "1 when the node lives and takes work.", up)
    for name, what in (
        ("lease_left", "Seconds until the node's lease ends."),
        ("lanes", "Conversations that the node serves now."),
        ("turns", "Turns that the node has begun."),
        ("targets", "Chats that the node sends to now."),
    ):
        unit = "_seconds" if name == "lease_left" else ""
        yield family(f"hermes_node_{name}{unit}", "gauge", what, [(labels, node[name]) for labels, node in living])


def _of_queues(oldest: Mapping[str, float]) -> Iterator[str]:
    ages = [({"queue": name}, oldest[name]) for name in sorted(oldest)]
    what = "How long the oldest message, answer or approval has waited; 0 where nothing waits."
    yield family("hermes_queue_oldest_seconds", "gauge", what, ages)


def _of_measures(measures: Measures) -> Iterator[str]:
    for name, what, histogram, labels in (
        ("hermes_turn_seconds", "How long turns took, by platform and state.", measures.turns, ("platform", "state")),
        (
            "hermes_first_words_seconds",
            "From the start of a turn to its first words.",
            measures.first_words,
            ("platform",),
        ),
        ("hermes_model_seconds", "How long models took, by model and outcome.", measures.models, ("model", "outcome")),
        ("hermes_tool_seconds", "How long tools took, by tool and outcome.", measures.tools, ("tool", "outcome")),
    ):
        yield histogram_family(name, what, histogram.samples(labels))
    tokens = [({"model": model, "kind": kind}, count) for (model, kind), count in sorted(measures.tokens.items())]
    yield family("hermes_model_tokens_total", "counter", "Tokens, as the models reported them.", tokens)
    failed = [({"kind": kind}, count) for (kind,), count in sorted(measures.failures.items())]
    yield family("hermes_turn_errors_total", "counter", "Turns that failed, by the kind of the error.", failed)
    logged = [({"level": level, "kind": kind}, count) for (level, kind), count in sorted(measures.troubles.items())]
    what = "Warnings and errors of the log, by their first words."
    yield family("hermes_errors_total", "counter", what, logged)


def histogram_family(name: str, help_text: str, samples: Iterable[tuple[str, Labels, float]]) -> str:
    """One histogram, as the text format 0.0.4 wants it."""
    lines = [f"# HELP {name} {help_text}", f"# TYPE {name} histogram"]
    lines += [f"{name}{suffix}{_labels(labels)} {_number(value)}" for suffix, labels, value in samples]
    return "\n".join(lines) + "\n"


def _alone(value: float) -> list[Sample]:
    """A metric that needs no label."""
    return [({}, value)]


def family(name: str, kind: str, help_text: str, samples: Iterable[Sample]) -> str:
    """One metric with its samples, as the text format 0.0.4 wants it."""
    lines = [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def routes(counts: Metrics) -> RouteAdder:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=await counts.page(), headers={"Content-Type": CONTENT_TYPE})

    async def watching(_app: web.Application) -> AsyncIterator[None]:
        async with counts.watching():
            yield

    def add(app: web.Application) -> None:
        app.router.add_get("/metrics", answer)
        app.cleanup_ctx.append(watching)

    return add


def snapshot_of(page: str) -> dict[str, Any]:
    """The samples of a page by their names and labels, for whoever reads them in a test or a bench."""
    lines = [line for line in page.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
