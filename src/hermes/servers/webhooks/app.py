"""The HTTP application of webhooks: `POST /webhooks/{route}` and `GET /health`, and nothing else.

The order of work: route, size, body, signature, pace, parse, event filter, then one transaction, then 202.
"""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

import orjson
from aiohttp import web

from hermes.config.automation import WebhooksConfig
from hermes.core.bounded import BoundedDict
from hermes.core.errors import GatewayError
from hermes.core.ports import Clock
from hermes.servers.api import security
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.api.limits import address_of, too_many
from hermes.servers.app import json_response, make_app
from hermes.servers.webhooks.signatures import Proof, Signature, SignatureError, verify
from hermes.services.webhooks.webhooks import WebhookDelivery, WebhookRoute, Webhooks

log = logging.getLogger(__name__)

MAX_ADDRESSES = 10_000
FAILURES_PER_MINUTE = 20
MAX_ID_CHARS = 200
_IDS = ("X-GitHub-Delivery", "X-Gitlab-Event-UUID", "Svix-Id", "Webhook-Id", "X-Request-ID", "Idempotency-Key")
_EVENTS = ("X-GitHub-Event", "X-Gitlab-Event", "X-Webhook-Event")


def make_webhooks_app(
    hooks: Webhooks, config: Callable[[], WebhooksConfig], clock: Clock, *, largest_body: int
) -> web.Application:
    receiver = WebhookReceiver(hooks, config, clock)

    def add(app: web.Application) -> None:
        app.router.add_post("/webhooks/{route}", receiver.receive)

    return make_app([add], largest_body=largest_body)


class MinuteWindow:
    """Count what came within the last minute. A whole minute's worth may come at once: senders do not try again."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def wait(self, now: float, per_minute: int) -> float:
        """Count one more and return 0.0; or return after how many seconds there is room again."""
        while self._times and now - self._times[0] >= 60.0:
            self._times.popleft()
        if len(self._times) >= per_minute:
            return max(1.0, 60.0 - (now - self._times[0]))
        self._times.append(now)
        return 0.0


class WebhookReceiver:
    def __init__(self, hooks: Webhooks, config: Callable[[], WebhooksConfig], clock: Clock) -> None:
        self._hooks = hooks
        self._config = config
        self._clock = clock
        self._failures = BoundedDict[str, MinuteWindow](MAX_ADDRESSES)
        self._paces = BoundedDict[str, MinuteWindow](MAX_ADDRESSES)

    async def receive(self, request: web.Request) -> web.Response:
        route = self._hooks.routes().get(request.match_info["route"])
        if route is None:
            raise self._failed(request) or not_found("There is no such webhook.", code="unknown_route")
        if not route.enabled:
            raise ApiError(403, "This webhook is switched off.", code="route_disabled", kind="permission_error")
        await security.read_body(request, self._config().max_body_bytes)
        body = await request.read()
        proof = self._proof(request, route, body)
        self._demand_pace(route)
        payload = parse_payload(body, request.content_type)
        event = event_of(request.headers, payload)
        delivery_id = (proof.id or delivery_id_of(request.headers, payload))[:MAX_ID_CHARS]
        if challenge := _slack_challenge(payload):
            return json_response({"challenge": challenge})
        if route.events and not is_wanted(event, payload, route.events):
            return json_response({"status": "ignored", "event": event, "delivery_id": delivery_id})
        keys = (proof.key, *([f"id:{delivery_id}"] if delivery_id else []))
        delivery_id = delivery_id or hashlib.sha256(proof.key.encode()).hexdigest()[:32]
        try:
            is_new = await self._hooks.accept(route, WebhookDelivery(event, payload, keys, delivery_id))
        except GatewayError as error:
            if not route.deliver:
                raise
            log.warning("Webhook not delivered", extra={"route": route.name, "reason": str(error)})
            raise ApiError(
                502, "This webhook's target cannot be reached.", code="target_unknown", kind="server_error"
            ) from None
        if not is_new:
            return json_response({"status": "duplicate", "delivery_id": delivery_id})
        log.info("Webhook accepted", extra={"route": route.name, "event": event[:80], "delivery": delivery_id})
        return json_response({"status": "accepted", "delivery_id": delivery_id}, status=202)

    def _proof(self, request: web.Request, route: WebhookRoute, body: bytes) -> Proof:
        try:
            return verify(Signature(route.signature), route.secret, request.headers, body, self._clock.now())
        except SignatureError as error:
            log.warning("Webhook refused", extra={"route": route.name, "reason": str(error)})
            refused = self._failed(request)
            if refused is not None:
                raise refused from None
            raise ApiError(401, f"Refused ({error})", code="invalid_signature", kind="authentication_error") from None

    def _failed(self, request: web.Request) -> ApiError | None:
        """Count a failure of this address. Returns the refusal when there were too many; a right signature is taken."""
        address = address_of(request.remote or "")
        pace = self._failures.get(address)
        if pace is None:
            pace = self._failures[address] = MinuteWindow()
        seconds = pace.wait(self._clock.monotonic(), FAILURES_PER_MINUTE)
        return None if not seconds else too_many("Too many refused webhooks came from this address.", seconds)

    def _demand_pace(self, route: WebhookRoute) -> None:
        pace = self._paces.get(route.name)
        if pace is None:
            pace = self._paces[route.name] = MinuteWindow()
        seconds = pace.wait(self._clock.monotonic(), route.rate_limit)
        if seconds:
            raise too_many("Too many webhooks came for this route.", seconds)


def parse_payload(body: bytes, content_type: str) -> Any:
    """Parse JSON, also in the field ``payload`` of a form. An empty body is an empty object."""
    if content_type == "application/x-www-form-urlencoded":
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=1000)
        if "payload" not in fields:
            return {name: values[-1] for name, values in fields.items()}
        body = fields["payload"][-1].encode()
    if not body.strip():
        return {}
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise bad_request("The body is no JSON.", code="invalid_json") from None


def event_of(headers: Mapping[str, str], payload: Any) -> str:
    """Return what happened, as the sender calls it: a header, or the field type or event."""
    named = next((headers[name] for name in _EVENTS if name in headers), "")
    if named or not isinstance(payload, dict):
        return named
    inner = payload.get("event")
    found = payload.get("type") or (inner.get("type") if isinstance(inner, dict) else inner) or ""
    return found if isinstance(found, str) else ""


def delivery_id_of(headers: Mapping[str, str], payload: Any) -> str:
    for name in _IDS:
        if headers.get(name):
            return headers[name]
    if isinstance(payload, dict):  # Slack's event_id; Stripe's event.id
        found = payload.get("event_id") or (payload.get("id") if payload.get("object") == "event" else "")
        return found if isinstance(found, str) else ""
    return ""


def is_wanted(event: str, payload: Any, events: tuple[str, ...]) -> bool:
    """Tell whether the filter of a route names an event: ``push``, ``pull_request.opened``, ``invoice.*``."""
    action = payload.get("action") if isinstance(payload, dict) else ""
    names = {event, f"{event}.{action}"} if isinstance(action, str) and action else {event}
    return any(
        name == wanted or (wanted.endswith("*") and name.startswith(wanted[:-1])) for wanted in events for name in names
    )


def _slack_challenge(payload: Any) -> str:
    """Slack asks a new address to repeat a word; it is answered once the signature was right."""
    if isinstance(payload, dict) and payload.get("type") == "url_verification":
        challenge = payload.get("challenge")
        return challenge if isinstance(challenge, str) else ""
    return ""
