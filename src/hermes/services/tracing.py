"""Send a trace of each turn to an OpenTelemetry collector: OTLP over HTTP, in its JSON form.

A turn is a trace; the calls of models and tools are its spans. Only names, ids, times and counts are sent, never a word
of anybody. The trace id follows from the turn's id, so that a turn which goes on after a restart, or on another node,
stays one trace. What cannot be sent is dropped: no turn waits for a collector.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
import orjson

from hermes import __version__
from hermes.config import Config
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.failures import describe_failure
from hermes.core.keys import SessionKey
from hermes.services.events import EventBus, ModelCalled, ToolEnded, ToolStarted, TurnEnded, TurnEvent, TurnStarted
from hermes.services.http import ProxyRules, make_session

log = logging.getLogger(__name__)

SEND_SECONDS = 5.0
ANSWER_SECONDS = 10.0
LAST_SECONDS = 1.0
"""For what waits when the gateway ends: shorter than the time that the supervisor gives a worker."""
MAX_WAITING = 4096
MAX_SENT = 512
MAX_OPEN = 10_000
PATH = "/v1/traces"
OK, FAILED = 1, 2
INTERNAL, SERVER, CLIENT = 1, 2, 3

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _OpenSpan:
    span_id: str
    began: float


class Tracing:
    """Watches turns and sends their spans every few seconds. ``node`` is this gateway's name among several."""

    def __init__(self, bus: EventBus, config: Callable[[], Config], node: str = "") -> None:
        self._bus = bus
        self._config = config
        self._node = node
        self._turns: dict[str, _OpenSpan] = {}
        self._calls: dict[tuple[str, str], _OpenSpan] = {}
        self._waiting: deque[Json] = deque(maxlen=MAX_WAITING)
        self._trouble = ""

    async def run(self) -> None:
        """Send until cancelled; what waits then is sent once more."""
        config = self._config()
        headers = parse_headers(config.tracing.headers.reveal() if config.tracing.headers else "")
        rules = ProxyRules.of(config.proxies)
        async with make_session(rules, headers=headers, total_seconds=ANSWER_SECONDS) as http:
            with self._bus.watch(self._saw), self._bus.watch_models(self._saw_model):
                try:
                    while True:
                        await asyncio.sleep(SEND_SECONDS)
                        await self.send(http)
                finally:
                    with contextlib.suppress(TimeoutError):  # the cancellation goes on
                        async with asyncio.timeout(LAST_SECONDS):
                            await self.send(http)

    async def send(self, http: aiohttp.ClientSession) -> None:
        """Send all spans that wait. A collector that refuses or is down loses them, and is told of once."""
        while self._waiting:
            spans = [self._waiting.popleft() for _ in range(min(MAX_SENT, len(self._waiting)))]
            url = self._config().tracing.endpoint.rstrip("/")
            url = url if url.endswith(PATH) else f"{url}{PATH}"
            try:
                async with http.post(
                    url, data=orjson.dumps(self._body(spans)), headers={"Content-Type": "application/json"}
                ) as answer:
                    trouble = f"status {answer.status}" if answer.status >= 300 else ""
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                trouble = describe_failure(error)
            if trouble and not self._trouble:
                log.warning("Traces not sent", extra={"spans": len(spans), "reason": trouble})
            elif self._trouble and not trouble:
                log.info("Traces sent again")
            self._trouble = trouble
            if trouble:
                return

    def _body(self, spans: list[Json]) -> Json:
        about = {
            "service.name": self._config().tracing.service_name,
            "service.version": __version__,
            **({"service.instance.id": self._node} if self._node else {}),
        }
        scope = {"name": "hermes", "version": __version__}
        return {
            "resourceSpans": [
                {"resource": {"attributes": attributes(about)}, "scopeSpans": [{"scope": scope, "spans": spans}]}
            ]
        }

    # What is seen

    def _saw(self, event: TurnEvent) -> None:
        if isinstance(event, TurnStarted):
            if len(self._turns) < MAX_OPEN:
                self._turns[event.turn_id] = _OpenSpan(_new_span_id(), time.time())
        elif isinstance(event, ToolStarted):
            if len(self._calls) < MAX_OPEN:
                self._calls[event.turn_id, event.call_id] = _OpenSpan(_new_span_id(), time.time())
        elif isinstance(event, ToolEnded):
            if (call := self._calls.pop((event.turn_id, event.call_id), None)) is not None:
                about = {"gen_ai.tool.name": event.name, "hermes.outcome": event.outcome}
                is_good = event.outcome != "error"
                self._add(event.turn_id, call, f"execute_tool {event.name}", INTERNAL, about, is_good=is_good)
        elif isinstance(event, TurnEnded) and (turn := self._turns.pop(event.turn_id, None)) is not None:
            about = {
                "hermes.turn_id": event.turn_id,
                "hermes.platform": _platform(event.lane),
                "hermes.state": event.state,
                "hermes.error_kind": event.result.error_kind,
            }
            self._add(event.turn_id, turn, "turn", SERVER, about, is_good=event.state != "failed", is_root=True)

    def _saw_model(self, call: ModelCalled) -> None:
        about: dict[str, str | int] = {
            "gen_ai.request.model": call.model,
            "gen_ai.usage.input_tokens": call.prompt_tokens,
            "gen_ai.usage.output_tokens": call.completion_tokens,
            "hermes.outcome": call.outcome,
        }
        span = _OpenSpan(_new_span_id(), time.time() - call.seconds)
        self._add(call.turn_id, span, f"chat {call.model}", CLIENT, about, is_good=call.outcome == "ok")

    def _add(
        self,
        turn_id: str,
        span: _OpenSpan,
        name: str,
        kind: int,
        about: Mapping[str, str | int],
        *,
        is_good: bool,
        is_root: bool = False,
    ) -> None:
        turn = self._turns.get(turn_id)
        record: Json = {
            "traceId": trace_id_of(turn_id),
            "spanId": span.span_id,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": str(int(span.began * 1e9)),
            "endTimeUnixNano": str(int(time.time() * 1e9)),
            "attributes": attributes(about),
            "status": {"code": OK if is_good else FAILED},
        }
        if not is_root and turn is not None:
            record["parentSpanId"] = turn.span_id
        self._waiting.append(record)


def trace_id_of(turn_id: str) -> str:
    """The trace of a turn: the same on every node and after every restart."""
    return hashlib.sha256(turn_id.encode()).hexdigest()[:32]


def attributes(about: Mapping[str, str | int]) -> list[Json]:
    """Attributes as OTLP writes them; empty ones are left out."""
    return [
        {"key": name, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for name, value in about.items()
        if value != ""
    ]


def parse_headers(text: str) -> dict[str, str]:
    """Read ``name=value,other=value``, as OTEL_EXPORTER_OTLP_HEADERS is written."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def _new_span_id() -> str:
    return secrets.token_hex(8)


def _platform(lane: str) -> str:
    try:
        return SessionKey.parse(lane).platform
    except ValueError:
        return ""
