"""`GET /metrics`: numbers for Prometheus, as a page of text."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from aiohttp import web

from hermes.hosting import processes
from hermes.servers.api.context import ApiParts
from hermes.servers.api.errors import ApiError
from hermes.servers.app import RouteAdder
from hermes.services.events import TurnEnded, TurnEvent
from hermes.store.turns.turns import TurnState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LAG_SECONDS = 1.0

Labels = Mapping[str, str]
Sample = tuple[Labels, float]


class Metrics:
    """Counts since the start of the process."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._started = time.time()
        self._turns: Counter[str] = Counter({state.value: 0 for state in TurnState})
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self.open_requests = 0
        self._lag = 0.0
        self._longest_lag = 0.0

    @contextlib.contextmanager
    def request(self, request: web.Request) -> Iterator[_Counting]:
        """Count one request by its route, its method and the status it is answered with."""
        counting = _Counting()
        self.open_requests += 1
        try:
            yield counting
        except ApiError as refusal:
            counting.status = refusal.status
            raise
        except web.HTTPException as refusal:
            counting.status = refusal.status
            raise
        finally:
            self.open_requests -= 1
            resource = request.match_info.route.resource
            route = resource.canonical.rstrip("/") if resource is not None else "other"
            self._requests[(request.method if resource is not None else "other", route, counting.status)] += 1

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        timer = asyncio.create_task(self._watch_lag(), name="loop lag")
        try:
            with self._parts.gateway.bus.watch(self._saw):
                yield
        finally:
            timer.cancel()
            await asyncio.wait([timer])

    def _saw(self, event: TurnEvent) -> None:
        if isinstance(event, TurnEnded):
            self._turns[event.state] += 1

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
                *_of_accounts(accounts),
                *self._of_turns(len(status["running"]), status["waiting"]),
                *_of_nodes(status.get("nodes", ())),
                *self._of_requests(),
                *self._of_the_loop(),
                *self._of_the_process(),
            )
        )

    def _of_turns(self, running: int, waiting: Mapping[str, int]) -> Iterator[str]:
        ended = [({"state": state}, count) for state, count in sorted(self._turns.items())]
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


class _Counting:
    def __init__(self) -> None:
        self.status = 500

    def saw(self, response: web.StreamResponse) -> web.StreamResponse:
        self.status = response.status
        return response


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
