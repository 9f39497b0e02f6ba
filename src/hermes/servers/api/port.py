"""The API's port follows the configuration: it is opened, moved and closed while the gateway runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from hermes.config import ApiConfig, ConfigWatch
from hermes.servers.api import security
from hermes.servers.app import HttpServer

_Address = tuple[str, int]


class ApiPort:
    """``async with port.open():`` and, beside it, ``follow()`` for as long as the block lasts."""

    def __init__(self, watch: ConfigWatch, make_app: Callable[[], web.Application]) -> None:
        self._watch = watch
        self._make_app = make_app
        self._server: HttpServer | None = None
        self._address: _Address | None = None  # as it was configured when it was opened; None: it is off
        self._stack = AsyncExitStack()

    @property
    def is_on(self) -> bool:
        return self._address is not None

    @property
    def url(self) -> str:
        return self._server.url if self._server is not None and self.is_on else ""

    @property
    def trouble(self) -> str:
        """Why the port is closed though it should be open; '' otherwise."""
        return self._server.trouble if self._server is not None else ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with self._stack:
            await self._agree(self._watch.current.api)
            yield

    async def follow(self) -> None:
        """Agree with every change until cancelled."""
        while True:
            change = self._watch.next_change()
            await self._agree(self._watch.current.api)
            await change.wait()

    async def _agree(self, api: ApiConfig) -> None:
        wanted = (api.host, api.port) if api.enabled else None
        if wanted == self._address:
            if self._server is not None:
                await self._server.close_unless_allowed()
            return
        self._address = wanted
        if self._server is None and wanted is not None:
            server = HttpServer(self._make_app(), *wanted, lambda: security.why_closed(self._watch.current.api))
            await self._stack.enter_async_context(server.listening())
            self._server = server
        elif self._server is not None and wanted is not None:
            await self._server.move(*wanted)
        elif self._server is not None:
            await self._server.shut()
