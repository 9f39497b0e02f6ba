"""Services that no start imports: jobs, webhooks, the board, deletion, retention, tracing, backups.

Each is made with its first use, or by its background task when the gateway has begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from hermes.app.agent import AgentServices
from hermes.app.outbound import OutboundServices
from hermes.app.startup import ServiceContext
from hermes.store.db import Database

if TYPE_CHECKING:
    from hermes.agent.kanban import Board
    from hermes.services.cron.for_tools import ToolJobs
    from hermes.services.cron.timer import CronTimer
    from hermes.services.deletion import SessionDeletion
    from hermes.services.kanban.dispatch import Dispatch
    from hermes.services.retention import Retention
    from hermes.services.webhooks.webhooks import Webhooks

RETENTION_AFTER_SECONDS = 60.0
"""From the start to the first look at what is too old."""
BACKUPS_AFTER_SECONDS = 60.0
TRACING_LOOK_SECONDS = 10.0


class LazyServices:
    """The ``run_`` methods are background tasks. A command that works alone leaves their work to a gateway."""

    def __init__(self, context: ServiceContext, outbound: OutboundServices, agent: AgentServices) -> None:
        self._context = context
        self._outbound = outbound
        self._agent = agent
        self.webhook_changes = asyncio.Event()
        self.response_stores: list[Callable[[], Awaitable[Database]]] = []
        self._board_used = asyncio.Event()

    # Jobs

    @cached_property
    def cron(self) -> CronTimer:
        from hermes.services.cron.timer import CronTimer

        context, lanes = self._context, self._agent.lanes
        outbox_writer = self._outbound.outbox_writer
        return CronTimer(context.db, context.clock, context.config, context.bus, lanes, outbox_writer, context.home)

    @cached_property
    def jobs(self) -> ToolJobs:
        from hermes.services.cron.for_tools import ToolJobs

        context = self._context
        return ToolJobs(
            context.db,
            context.clock,
            lambda: context.watch.loaded,
            context.home,
            self._agent.skills,
            changed=self.cron.changed,
            wake=self._agent.lanes.wake,
            status=self.cron.status,
        )

    async def run_cron(self) -> None:
        await self._agent.skills.may_begin.wait()
        if self._context.options.serves_all and self._context.config().cron.enabled:
            await asyncio.to_thread(import_module, "hermes.services.cron.timer")
            await self.cron.run()

    async def sweep_cron(self) -> None:
        if "cron" in vars(self):
            await self.cron.sweep()

    def clock_set(self, by: float) -> None:
        if "cron" in vars(self):
            self.cron.clock_set(by)

    # Webhooks

    @cached_property
    def webhooks(self) -> Webhooks:
        from hermes.services.webhooks.webhooks import Webhooks

        context, changed = self._context, self.webhook_changes.set
        return Webhooks(context.db, context.clock, context.config, self._agent.lanes, context.redact, changed=changed)

    # The board of tasks

    @cached_property
    def board(self) -> Board:
        from hermes.agent.kanban import Board

        self._board_used.set()
        context = self._context
        return Board(context.db, context.home, context.clock, context.startup.troubles.note)

    @cached_property
    def dispatch(self) -> Dispatch:
        from hermes.services.kanban.dispatch import Dispatch

        context, requests = self._context, self._agent.requests
        dispatch = Dispatch(self.board, context.db, requests, context.config, context.clock, context.bus)
        self.board.on_change = dispatch.wake
        return dispatch

    async def run_kanban(self) -> None:
        await self._agent.skills.may_begin.wait()
        if self._context.options.serves_all:
            if self._context.db.dialect.name == "sqlite" and not (self._context.home / "kanban.db").exists():
                await self._board_used.wait()  # most gateways have no board, and load nothing of it
            await asyncio.to_thread(import_module, "hermes.services.kanban.dispatch")
            await self.dispatch.run()

    async def close_board(self) -> None:
        if "board" in vars(self):
            await self.board.close()

    # Deletion and retention

    @cached_property
    def deletion(self) -> SessionDeletion:
        from hermes.services.deletion import SessionDeletion

        context = self._context
        return SessionDeletion(context.db, context.home, context.clock, self.response_stores)

    @cached_property
    def retention(self) -> Retention:
        from hermes.services.retention import Retention

        context, is_mine = self._context, self._context.is_mine("task:janitor")
        return Retention(context.db, context.home, context.clock, context.config, self.deletion, is_mine)

    async def run_retention(self) -> None:
        if self._context.options.serves_all:
            await asyncio.sleep(RETENTION_AFTER_SECONDS)
            await asyncio.to_thread(import_module, "hermes.services.retention")
            await self.retention.run()

    # Backups and traces

    async def run_backups(self) -> None:
        await asyncio.sleep(BACKUPS_AFTER_SECONDS)  # the last process backed up what was stored before
        from hermes.services.backups import BackupTimer

        await BackupTimer(self._context.home, self._context.config).run()

    async def run_tracing(self) -> None:
        """Send traces while ``tracing.endpoint`` names a collector; another one is found within a few seconds."""
        config = self._context.config
        while True:
            wanted = config().tracing
            if not wanted.endpoint:
                await asyncio.sleep(TRACING_LOOK_SECONDS)
                continue
            await asyncio.to_thread(import_module, "hermes.services.tracing")
            from hermes.services.tracing import Tracing

            tracing = Tracing(self._context.bus, config, self._context.node_name)
            sending = asyncio.create_task(tracing.run(), name="traces")
            try:
                while config().tracing == wanted and not sending.done():
                    await asyncio.wait([sending], timeout=TRACING_LOOK_SECONDS)
            finally:
                sending.cancel()
                await asyncio.wait([sending])
            if not sending.cancelled() and (error := sending.exception()) is not None:
                raise error
