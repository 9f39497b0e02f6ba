"""The pager: its inbox is asked for news, and a page is one request."""

from __future__ import annotations

import aiohttp

from hermes.core.messages import Capabilities, OutboundMessage, Receipt
from hermes.core.ports import Alive, Emit
from hermes_pager import wire
from hermes_pager.config import PagerConfig

POLL_SECONDS = 15


class PagerAdapter:
    capabilities = Capabilities(text_limit=wire.TEXT_LIMIT, idempotent_sends=True, progress_notices=0)

    def __init__(self, config: PagerConfig, http: aiohttp.ClientSession, alive: Alive) -> None:
        self._account = config.account
        self._alive = alive
        self._service = wire.Service(config, http)
        self._identity = ""

    @property
    def identity(self) -> str:
        return self._identity

    async def run(self, emit: Emit) -> None:
        """Receive until cancelled or broken; starting again is the gateway's work, not ours."""
        self._identity = str((await self._service.me())["id"])
        after, wait = 0, 0  # the first question is answered at once: that we are connected shows itself now
        while True:
            pages = await self._service.inbox(after, wait)
            self._alive()  # an empty inbox is a good frame too
            if pages:
                # Asking for what comes after them makes the service forget these pages, so they are stored first.
                await emit([wire.understand(page, self._account) for page in pages])
                after = max(page["number"] for page in pages)
            wait = POLL_SECONDS

    async def send(self, message: OutboundMessage) -> Receipt:
        return Receipt(str((await self._service.page(wire.render(message)))["id"]))

    async def describe(self) -> str:
        """How `gateway setup` tries a token, and `gateway test` an account."""
        return str((await self._service.me())["name"])
