"""The gateway's parts, put together. ``bootstrap`` builds this; the control socket, the CLI and servers use it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hermes.agent.models.embedded import EmbeddedModel
from hermes.agent.models.fetch import Fetcher
from hermes.config import Config, ConfigWatch
from hermes.core.errors import StoreIsDownError
from hermes.core.keys import Target
from hermes.core.manifest import Manifest
from hermes.core.messages import OutboundMessage
from hermes.core.ports import Clock
from hermes.services.approvals import Approvals
from hermes.services.delivery import Delivery
from hermes.services.door import Door
from hermes.services.events import EventBus
from hermes.services.intake import Intake
from hermes.services.lanes import Lanes
from hermes.services.letters import Letters
from hermes.services.models import Models
from hermes.services.supervisor import Supervisor
from hermes.store import approvals, inbox, outbox
from hermes.store.db import Database, Tx
from hermes.store.outbox import OutboxKind

log = logging.getLogger(__name__)

STORE_SECONDS = 2.0
"""So long status waits for the store; whoever asked waits five seconds for it all."""


class LocalDoor(Protocol):
    """How the CLI talks to the local platform. The platform's own hub is one."""

    async def submit(self, chat: str, text: str, key: str) -> None:
        """Return when the message is stored."""

    def listen(self, chat: str) -> AbstractAsyncContextManager[asyncio.Queue[OutboundMessage]]:
        """What is sent to this chat while the block lasts."""


@dataclass(frozen=True, slots=True)
class Gateway:
    home: Path
    db: Database
    clock: Clock
    bus: EventBus
    watch: ConfigWatch
    manifests: Mapping[str, Manifest]
    supervisor: Supervisor
    letters: Letters
    lanes: Lanes
    delivery: Delivery
    intake: Intake
    approvals: Approvals
    models: Models
    embedded: EmbeddedModel
    fetcher: Fetcher
    hub: LocalDoor
    door: Door
    troubles: list[str] = field(default_factory=list)

    @property
    def config(self) -> Config:
        return self.watch.current

    def tell_owner(self, text: str) -> None:
        """Send a word to every home channel, which is worth hearing hours later too, if that is how long it takes.

        It is also in the log and in status, so a failure here loses nothing.
        """
        alerts = [OutboundMessage(target, f"⚠️ {text}") for target in self._home_channels()]
        rows = [row for alert in alerts for row in self.letters.rows(alert, OutboxKind.REPLY)]
        if rows:
            task = asyncio.ensure_future(self._send(rows))
            task.add_done_callback(_log_failure)

    def _home_channels(self) -> list[Target]:
        return [
            Target(platform, account.home_channel, account=name)
            for platform, accounts in self.config.platforms.items()
            for name, account in accounts.items()
            if account.home_channel
        ]

    async def _send(self, rows: Sequence[outbox.Outgoing]) -> None:
        await self.db.write(outbox.enqueue, rows, now=self.clock.now())
        self.letters.due(rows)

    async def status(self) -> dict[str, Any]:
        """What the services know of themselves; whoever runs the process adds what it knows.

        Without its store the gateway still answers: what waits is then not known, and ``waiting`` is empty.
        """
        waiting: dict[str, int] = {}
        with suppress(StoreIsDownError, TimeoutError):  # the troubles say so
            async with asyncio.timeout(STORE_SECONDS):
                waiting = await self.db.read(_waiting)
        return {
            "platforms": [state for state in self.supervisor.status() if state["account"] != "local"],
            "model": self.models.status(),
            "waiting": waiting,
            "running": [{"lane": lane, "turn": turn} for lane, turn in self.lanes.running()],
            "troubles": list(self.troubles[-5:]),
        }


def _log_failure(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.warning("The home channel was not told", extra={"reason": str(task.exception())})


def _waiting(tx: Tx) -> dict[str, int]:
    return {
        "messages": inbox.waiting_count(tx),
        "approvals": approvals.pending_count(tx),
        "answers": outbox.waiting_count(tx),
    }
