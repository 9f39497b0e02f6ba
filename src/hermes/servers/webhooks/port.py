"""Open the port of webhooks while there is a route for it, and follow the configuration."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from hermes.servers.app import HttpServer
from hermes.services.gateway import Gateway


class WebhookPort:
    """``follow()`` runs as long as the gateway. Nothing is imported or opened before the first route."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._server: HttpServer | None = None
        self._address: tuple[str, int] | None = None

    @property
    def url(self) -> str:
        return self._server.url if self._server is not None and self._address is not None else ""

    @property
    def trouble(self) -> str:
        return self._server.trouble if self._server is not None else ""

    async def follow(self) -> None:
        """Agree with the routes and the configuration until cancelled."""
        async with AsyncExitStack() as stack:
            while True:
                config_change, routes_change = self._gateway.watch.next_change(), self._gateway.webhook_changes
                routes_change.clear()
                await self._agree(stack)
                waiting = [asyncio.ensure_future(each.wait()) for each in (config_change, routes_change)]
                try:
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in waiting:
                        task.cancel()

    async def _agree(self, stack: AsyncExitStack) -> None:
        settings = self._gateway.config.webhooks
        has_routes = settings.enabled and (settings.routes or await self._gateway.has_webhooks())
        wanted = (settings.host, settings.port) if has_routes else None
        if wanted is not None:
            await self._gateway.webhooks().load()
        if wanted == self._address:
            return
        self._address = wanted
        if wanted is None:
            if self._server is not None:
                await self._server.shut()
        elif self._server is not None:
            await self._server.move(*wanted)
        else:
            from hermes.servers.webhooks.app import make_webhooks_app

            app = make_webhooks_app(
                self._gateway.webhooks(),
                lambda: self._gateway.config.webhooks,
                self._gateway.clock,
                largest_body=settings.max_body_bytes,
            )
            server = HttpServer(app, *wanted)
            await stack.enter_async_context(server.listening())
            self._server = server
