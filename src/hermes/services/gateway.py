"""Hold the gateway's services, for the control socket, the CLI and the servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hermes.agent.models.embedded.download import Fetcher
from hermes.agent.models.embedded.model import EmbeddedModel
from hermes.agent.skills.library import SkillLibrary
from hermes.agent.toolkit.toolbox import Toolbox
from hermes.config import EMBEDDED, Config, ConfigWatch
from hermes.core.dataclasses import dataclass
from hermes.core.errors import StoreIsDownError
from hermes.core.keys import LOCAL, AccountKey
from hermes.core.manifest import Manifest
from hermes.core.messages import OutboundMessage, Picture
from hermes.services.adapters.supervisor import Supervisor
from hermes.services.approvals import Approvals
from hermes.services.clock import SteadyClock
from hermes.services.events import EventBus
from hermes.services.inbound.actions import Actions
from hermes.services.models import Models
from hermes.services.news import News
from hermes.services.outbound.delivery import Delivery
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.people.pairing import Pairings
from hermes.services.requests.requests import Requests
from hermes.services.turns.lanes import Lanes
from hermes.store import approvals, inbox
from hermes.store.db import Database, OnTrouble, Tx
from hermes.store.reports import stats

if TYPE_CHECKING:
    from hermes.agent.kanban import Board
    from hermes.services.cluster.node import ClusterNode
    from hermes.services.cron.jobs import Jobs
    from hermes.services.cron.timer import CronTimer
    from hermes.services.deletion import SessionDeletion
    from hermes.services.kanban.dispatch import Dispatch
    from hermes.services.webhooks.webhooks import Webhooks

STORE_SECONDS = 2.0
"""So long status waits for the store; whoever asked waits five seconds for it all."""


class LocalDoor(Protocol):
    """How the CLI talks to the local platform. The platform's own hub is one."""

    async def submit(
        self,
        chat: str,
        text: str,
        key: str,
        *,
        folder: str = "",
        language: str = "",
        pictures: tuple[Picture, ...] = (),
    ) -> None:
        """Return when the message is stored."""

    def listen(self, chat: str) -> AbstractAsyncContextManager[asyncio.Queue[OutboundMessage]]:
        """What is sent to this chat while the block lasts."""


async def _no_output(_lane: str, _count: int) -> bytes:
    return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """``last_output`` returns the newest bytes of the command that a turn of a lane waits for."""

    home: Path
    db: Database
    clock: SteadyClock
    bus: EventBus
    watch: ConfigWatch
    manifests: Mapping[str, Manifest]
    supervisor: Supervisor
    outbox_writer: OutboxWriter
    lanes: Lanes
    delivery: Delivery
    actions: Actions
    approvals: Approvals
    models: Models
    embedded: EmbeddedModel
    fetcher: Fetcher
    hub: LocalDoor
    requests: Requests
    pairings: Pairings
    deletion: Callable[[], SessionDeletion]
    response_stores: list[Callable[[], Awaitable[Database]]]
    """Where a server has the store of responses open."""
    board: Callable[[], Board]
    dispatch: Callable[[], Dispatch]
    troubles: list[str] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)
    note_trouble: OnTrouble = lambda _: None
    toolbox: Toolbox = field(default_factory=lambda: Toolbox(()))
    skills: SkillLibrary = field(default_factory=lambda: SkillLibrary(Path()))
    news: News = field(default_factory=News)
    last_output: Callable[[str, int], Awaitable[bytes]] = _no_output
    cron: Callable[[], CronTimer]
    jobs: Callable[[], Jobs]
    webhooks: Callable[[], Webhooks]
    webhook_changes: asyncio.Event = field(default_factory=asyncio.Event)
    node: ClusterNode | None = None
    """In a cluster: this gateway's own node."""

    def begin(self) -> None:
        """Let accounts connect and skills and tools load, holding up no answer. Idempotent."""
        self.supervisor.reconcile()
        self.skills.may_begin.set()

    @property
    def config(self) -> Config:
        return self.watch.current

    async def has_webhooks(self) -> bool:
        """Tell whether a route was subscribed by hand."""
        from hermes.store.entries import webhooks  # loaded once the gateway answers

        return await self.db.read(webhooks.has_any)

    async def status(self) -> dict[str, Any]:
        """Return what the services know of themselves. While the store is down, ``waiting`` is empty."""
        waiting: dict[str, int] = {}
        nodes: list[dict[str, Any]] = []
        with suppress(StoreIsDownError, TimeoutError):  # the troubles say so
            async with asyncio.timeout(STORE_SECONDS):
                waiting = await self.db.read(_waiting)
                await self.supervisor.recall_today()
                if self.node is not None:
                    from hermes.store.cluster import report  # only in a cluster

                    nodes = (await self.db.read(report.report))["nodes"]
        accounts = self.supervisor.status()
        failure = self.fetcher.progress.reason if self.config.model.provider == EMBEDDED else ""
        return {
            # The terminal's own platform is always there and reaches nobody outside.
            "platforms": [state for state in accounts if AccountKey.parse(state["account"]).platform != LOCAL],
            "model": {**self.models.status(), "failure": failure},
            "waiting": waiting,
            "running": [{"lane": lane, "turn": turn} for lane, turn in self.lanes.running()],
            "troubles": list(self.troubles[-5:]),
            "repaired": list(self.repaired[-5:]),
            "safe_reason": self.supervisor.paused_because,
            **({"node": self.node.name, "nodes": nodes} if self.node is not None else {}),
        }


def _waiting(tx: Tx) -> dict[str, int]:
    return {
        "messages": inbox.waiting_count(tx),
        "approvals": approvals.pending_count(tx),
        "answers": stats.unsent_count(tx),
    }
