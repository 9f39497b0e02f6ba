"""Answer calls about webhooks: list, subscribe, remove, test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from hermes.core.errors import GatewayError
from hermes.core.text import one_line
from hermes.hosting.control.server import Handler, Reply
from hermes.services.gateway import Gateway
from hermes.services.webhooks.webhooks import WebhookRoute

TEST_SECONDS = 10.0
SAMPLE = {"action": "test", "text": "This is a test of the webhook."}


class WebhookVerbs:
    """Webhooks on the control socket. The secret is shown once, to whoever subscribes."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def mapping(self) -> Mapping[str, Handler]:
        return {
            "webhooks.list": self.listed,
            "webhooks.subscribe": self.subscribe,
            "webhooks.remove": self.remove,
            "webhooks.test": self.test,
        }

    async def listed(self, _args: Mapping[str, Any], _: Reply) -> list[dict[str, Any]]:
        hooks = self._gateway.webhooks()
        await hooks.load()
        return [self._to_dict(route) for route in hooks.routes().values()]

    async def subscribe(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        hooks = self._gateway.webhooks()
        await hooks.load()
        route = await hooks.subscribe(args)
        return {**self._to_dict(route), "secret": route.secret}

    async def remove(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        hooks = self._gateway.webhooks()
        await hooks.load()
        await hooks.remove(str(args.get("name") or ""))
        return {"name": args.get("name")}

    async def test(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{name, payload?}``: send a signed sample to our own port, and return its answer."""
        from hermes.services.webhooks.sample import sample_headers

        hooks = self._gateway.webhooks()
        await hooks.load()
        route = hooks.routes().get(str(args.get("name") or ""))
        if route is None:
            raise GatewayError(f"There is no route {one_line(str(args.get('name')), 64)}. Look: hermes webhook list")
        body = str(args.get("payload") or json.dumps(SAMPLE)).encode()
        headers = sample_headers(route, body, self._gateway.clock.now())
        try:
            async with (
                asyncio.timeout(TEST_SECONDS),
                aiohttp.ClientSession() as http,
                http.post(self._url(route.name), data=body, headers=headers) as answer,
            ):
                return {"status": answer.status, "answer": await answer.json(content_type=None)}
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            reason = str(error) or "no answer in time"
            raise GatewayError(f"The port of webhooks did not answer at {self._url(route.name)} ({reason})") from None

    def _url(self, name: str) -> str:
        settings = self._gateway.config.webhooks
        host = "127.0.0.1" if settings.host in ("0.0.0.0", "::", "") else settings.host  # noqa: S104 - not bound here
        return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}/webhooks/{name}"

    def _to_dict(self, route: WebhookRoute) -> dict[str, Any]:
        return {
            "name": route.name,
            "url": self._url(route.name),
            "signature": route.signature,
            "events": list(route.events),
            "prompt": route.prompt,
            "skills": list(route.skills),
            "deliver": route.deliver,
            "deliver_only": route.deliver_only,
            "role": route.role.value,
            "enabled": route.enabled,
            "has_secret": bool(route.secret),
            "is_configured": route.is_configured,
        }
