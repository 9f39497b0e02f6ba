"""The people at this machine, for the contract suite: terminals that write and listen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Self

import aiohttp

from hermes.core.errors import StoreIsDownError, UnreachableError
from hermes.core.keys import Target
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Capabilities, OutboundMessage
from hermes.core.ports import Adapter, Alive
from hermes.platforms.local import MANIFEST
from hermes.platforms.local.adapter import LocalAdapter
from hermes.platforms.local.hub import LocalHub
from tests.fakes.server import Changes, Said, Sent
from tests.fakes.site import Unplayed


class FakeLocal(Unplayed):
    """One terminal at chat ``desk``. It submits what was not taken again with the same key, as the CLI does."""

    platform = "local"
    capabilities: Capabilities = LocalAdapter.capabilities
    identity = "local"
    plays: frozenset[str] = frozenset({"replies"})
    secrets: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.menus: dict[str, dict[str, str]] = {}
        self.hub: LocalHub
        self._texts: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changes = Changes()
        self._open = AsyncExitStack()

    async def start(self) -> None:
        self.hub = LocalHub()
        queue = await self._open.enter_async_context(self.hub.listen("desk"))
        self._do(self._listen(queue))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._open.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @asynccontextmanager
    async def adapter(
        self, *, alive: Alive = lambda: None, http: aiohttp.ClientSession | None = None
    ) -> AsyncIterator[Adapter]:
        yield MANIFEST.build(AdapterParts("main", {"hub": self.hub}, http, alive, {}))

    def target(self) -> Target:
        return Target("local", "desk")

    def user_says(self, text: str) -> Said:
        key = f"desk-{len(self._texts) + 1}"
        self._texts[key] = text
        self._do(self._submit(key))
        return Said(key, key, chat="desk")

    def redeliver(self, said: Said) -> None:
        self._do(self._submit(said.key))

    @property
    def open_connections(self) -> int:
        return 0

    async def wait_for(self, predicate: Callable[[], bool], deadline: float = 20.0) -> None:
        await self._changes.wait_for(predicate, deadline)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)

    async def _submit(self, key: str) -> None:
        while True:
            with suppress(StoreIsDownError, UnreachableError):
                return await self.hub.submit("desk", self._texts[key], key, within_seconds=1.0)

    async def _listen(self, queue: asyncio.Queue[OutboundMessage]) -> None:
        while True:
            message = await queue.get()
            earlier = next((sent for sent in self.sent if sent.message_id == message.replaces), None)
            if earlier is None:
                number = message.idempotency_key or f"local-{len(self.sent) + 1}"
                self.sent.append(Sent("desk", message.text, number, reply_to=message.reply_to))
            else:
                earlier.edits.append(earlier.text)
                earlier.text = message.text
            self._changes.tell()
