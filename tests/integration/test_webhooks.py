"""Webhooks over a real socket: who is refused, what is stored once, and what reaches a chat."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest

from hermes.servers.webhooks.port import WebhookPort
from hermes.services.gateway import Gateway
from hermes.store.db import Tx
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start, crash
from tests.integration.watching import answered, until

WAIT_SECONDS = 30
SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ="
PULL_REQUEST = {
    "action": "opened",
    "number": 7,
    "pull_request": {"title": "Fix the boiler", "html_url": "https://github.com/o/r/pull/7", "user": {"login": "u"}},
    "repository": {"full_name": "o/r"},
    "sender": {"login": "u"},
}
STRIPE_EVENT = {
    "id": "evt_1NG8Du2eZvKYlo2CUI79vXWy",
    "object": "event",
    "api_version": "2019-02-19",
    "created": 1686089970,
    "data": {
        "object": {
            "id": "seti_1NG8Du2eZvKYlo2C9XMqbR0x",
            "object": "setup_intent",
            "application": None,
            "automatic_payment_methods": None,
            "cancellation_reason": None,
            "client_secret": "seti_1NG8Du2eZvKYlo2C9XMqbR0x_secret_O2CdhLwGFh2Aej7bCY7qp8jlIuyR8DJ",
            "created": 1686089970,
            "customer": None,
            "description": None,
            "flow_directions": None,
            "last_setup_error": None,
            "latest_attempt": None,
            "livemode": False,
            "mandate": None,
            "metadata": {},
            "next_action": None,
            "on_behalf_of": None,
            "payment_method": "pm_1NG8Du2eZvKYlo2CYzzldNr7",
            "payment_method_options": {"acss_debit": {"currency": "cad", "mandate_options": {"interval": "month"}}},
            "payment_method_types": ["acss_debit"],
            "single_use_mandate": None,
            "status": "requires_confirmation",
            "usage": "off_session",
        }
    },
    "livemode": False,
    "pending_webhooks": 0,
    "request": {"id": None, "idempotency_key": None},
    "type": "setup_intent.created",
}


class Sender:
    """Another program that posts to one route, signed or not."""

    def __init__(self, gateway: Gateway, http: aiohttp.ClientSession) -> None:
        self.gateway = gateway
        self._http = http

    async def post(self, route: str, body: bytes | Any, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        url = f"http://127.0.0.1:{self.gateway.config.webhooks.port}/webhooks/{route}"
        async with self._http.post(url, data=body, headers=headers or {}) as answer:
            return answer.status, await answer.json(content_type=None)

    async def github(
        self, route: str, payload: Any, *, delivery: str = "d-1", event: str = "pull_request"
    ) -> tuple[int, Any]:
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        signed = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        headers = {"X-Hub-Signature-256": f"sha256={signed}", "X-GitHub-Event": event, "X-GitHub-Delivery": delivery}
        return await self.post(route, body, headers)

    async def stripe(self, route: str, payload: Any, *, at: float = 0.0) -> tuple[int, Any]:
        body = json.dumps(payload).encode()
        stamp = str(int(at or self.gateway.clock.now()))
        signed = hmac.new(SECRET.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        return await self.post(route, body, {"Stripe-Signature": f"t={stamp},v1={signed}"})


@asynccontextmanager
async def receiving(gateway: Gateway) -> AsyncIterator[Sender]:
    port = WebhookPort(gateway)
    following = asyncio.create_task(port.follow())
    try:

        async def is_open() -> bool:
            return bool(port.url) or following.done()

        await until(is_open)
        async with aiohttp.ClientSession() as http:
            yield Sender(gateway, http)
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


@pytest.fixture
def ports() -> dict[str, str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return {"WEBHOOK_PORT": str(free.getsockname()[1])}


async def subscribe(gateway: Gateway, name: str = "pr", **told: Any) -> None:
    await gateway.webhooks().subscribe({"name": name, "secret": SECRET, **told})


def events(tx: Tx) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = tx.all("SELECT state, role FROM inbox WHERE kind = 'webhook'", lambda *row: row)
    return found


async def test_a_pull_request_is_stored_answered_and_told_once(
    start: Start, telegram: FakeTelegram, model: FakeModel, ports: dict[str, str]
) -> None:
    model.when("Fix the boiler", "A pull request: fix the boiler.")
    async with start(**ports) as gateway:
        await subscribe(
            gateway, signature="github", prompt="Review {pull_request.title} by {sender.login}", deliver="telegram:7"
        )
        async with receiving(gateway) as sender:
            first = await sender.github("pr", PULL_REQUEST)
            again = await sender.github("pr", PULL_REQUEST)
            replayed = await sender.github("pr", PULL_REQUEST, delivery="another id")
            await answered(telegram, "A pull request: fix the boiler.")
            stored = await gateway.db.read(events)
    assert first == (202, {"status": "accepted", "delivery_id": "d-1"})
    assert again == (200, {"status": "duplicate", "delivery_id": "d-1"})
    assert replayed[1]["status"] == "duplicate", "a recorded body is not new under another id"
    assert [role for _, role in stored] == ["guest"]
    prompt = str(model.last_request["messages"])
    assert "Review ‹Fix the boiler› by ‹u›" in prompt
    assert len(telegram.sent) == 1


async def test_what_was_answered_202_survives_a_crash(
    start: Start, telegram: FakeTelegram, model: FakeModel, ports: dict[str, str]
) -> None:
    async with start(**ports) as gateway:
        await subscribe(gateway, signature="github", prompt="say {number}", deliver="telegram:7")
        model.hold()
        async with receiving(gateway) as sender:
            assert (await sender.github("pr", PULL_REQUEST))[0] == 202
            await model.is_holding(WAIT_SECONDS)
            await crash(gateway)
    model.release()
    async with start(**ports) as gateway:
        await answered(telegram, "echo: say ‹7›")
        async with receiving(gateway) as sender:
            assert (await sender.github("pr", PULL_REQUEST))[1]["status"] == "duplicate"
    assert len(telegram.sent) == 1


async def test_stripe_as_documented_with_a_window_and_an_event_filter(
    start: Start, telegram: FakeTelegram, model: FakeModel, ports: dict[str, str]
) -> None:
    async with start(**ports) as gateway:
        prompt = "{type}: {data.object.status}"
        told = {"events": "setup_intent.*", "prompt": prompt, "deliver": "telegram:7", "deliver_only": True}
        await subscribe(gateway, "pay", signature="stripe", **told)
        async with receiving(gateway) as sender:
            accepted = await sender.stripe("pay", STRIPE_EVENT)
            again = await sender.stripe("pay", STRIPE_EVENT, at=gateway.clock.now() - 10)  # retried: signed anew
            other = await sender.stripe("pay", {**STRIPE_EVENT, "id": "evt_2", "type": "charge.failed"})
            old = await sender.stripe("pay", STRIPE_EVENT, at=gateway.clock.now() - 400)
            await answered(telegram, "setup_intent.created: requires_confirmation")
    assert accepted[0] == 202
    assert (again[0], again[1]["status"]) == (200, "duplicate"), "a retry is signed anew; the event's id is the same"
    assert (other[0], other[1]["status"]) == (200, "ignored")
    assert old[0] == 401
    assert not model.requests, "a route that only delivers asks no model"


async def test_who_cannot_prove_who_they_are_is_refused_and_stores_nothing(start: Start, ports: dict[str, str]) -> None:
    async with start(**ports) as gateway:
        await subscribe(gateway, signature="github")
        async with receiving(gateway) as sender:
            statuses = [
                (await sender.post("pr", b"{}"))[0],
                (await sender.post("pr", b"{}", {"X-Hub-Signature-256": "sha256=00"}))[0],
                (await sender.post("pr", b"{}", {"X-Hub-Signature-256": "ключ"}))[0],
                (await sender.post("nowhere", b"{}"))[0],
                (await sender.github("pr", b"no json"))[0],
            ]
            for _ in range(20):
                last = await sender.post("pr", b"{}", {"X-Hub-Signature-256": "sha256=00"})
            right = await sender.github("pr", PULL_REQUEST)
            stored = await gateway.db.read(events)
    assert statuses == [401, 401, 401, 404, 400]
    assert last[0] == 429
    assert right[0] == 202, "a right signature is taken all the same"
    assert len(stored) == 1


async def test_a_body_over_the_limit_is_refused_also_in_chunks(start: Start, ports: dict[str, str]) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 65536

    async with start(**ports) as gateway:
        await subscribe(gateway, signature="github")
        async with receiving(gateway) as sender:
            whole = await sender.post("pr", io.BytesIO(b"x" * 2_000_000))
            chunked = await sender.post("pr", chunks(), {"X-Hub-Signature-256": "sha256=00"})
    assert (whole[0], chunked[0]) == (413, 413)


async def test_more_than_the_rate_limit_is_told_to_wait(start: Start, ports: dict[str, str]) -> None:
    async with start(**ports) as gateway:
        await subscribe(gateway, signature="github", deliver_only=True, prompt="x", deliver="local")
        async with receiving(gateway) as sender:
            answers = [await sender.github("pr", {"n": number}, delivery=f"d{number}") for number in range(40)]
    statuses = [status for status, _ in answers]
    assert statuses[0] == 202
    assert statuses[-1] == 429
    assert statuses.count(202) == 30


async def test_the_port_opens_with_the_first_route_and_closes_with_the_last(
    start: Start, ports: dict[str, str]
) -> None:
    async with start(**ports) as gateway:
        port = WebhookPort(gateway)
        following = asyncio.create_task(port.follow())
        await asyncio.sleep(0)
        assert port.url == ""
        await subscribe(gateway)

        async def is_open() -> bool:
            return bool(port.url)

        await until(is_open)
        await gateway.webhooks().remove("pr")

        async def is_closed() -> bool:
            return not port.url

        await until(is_closed)
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
