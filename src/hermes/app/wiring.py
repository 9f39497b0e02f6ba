"""Put a gateway together: which services there are, in which order they are made, and what runs in the background."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from hermes.agent.toolkit.toolsets import mistakes
from hermes.app.agent import AgentServices
from hermes.app.inbound import InboundServices
from hermes.app.lazy import LazyServices
from hermes.app.outbound import OutboundServices
from hermes.app.startup import ServiceContext, StartupContext
from hermes.config import EMBEDDED, Config
from hermes.services.gateway import Gateway
from hermes.services.janitor import Janitor
from hermes.services.keep_running import Run
from hermes.store.db import Database

if TYPE_CHECKING:
    from hermes.services.cluster.node import ClusterNode
    from hermes.services.cluster.services import ClusterServices

log = logging.getLogger(__name__)


class Wiring:
    """Every service of one gateway. A group is made from the groups before it; nothing runs yet."""

    def __init__(self, startup: StartupContext, db: Database, owner: str, node: ClusterNode | None = None) -> None:
        self._context = context = ServiceContext(startup, db, owner, node)
        self._outbound = OutboundServices(context)
        self._agent = AgentServices(context, self._outbound)
        self.lazy = LazyServices(context, self._outbound, self._agent)
        self._inbound = InboundServices(context, self._outbound, self._agent, self.lazy, self._status)
        self._janitor = Janitor(
            db,
            context.clock,
            self._agent.checkpoints.sweep,
            self._outbound.spool.sweep,
            self.lazy.sweep_cron,
            on_clock_set=self.lazy.clock_set,
            is_mine=context.is_mine("task:janitor"),
        )
        self.terminals = self._agent.terminals
        self.gateway = self._gateway()
        self._connect()
        self._cluster = self._join(node) if node is not None else None

    def _connect(self) -> None:
        """Connect services that need each other: no order of making gives each of them the other."""
        startup, lazy = self._context.startup, self.lazy
        startup.troubles.tell_through(self._outbound.alerts)
        startup.tool_factory.parts = self._agent.parts(lambda: lazy.jobs, lambda: lazy.board)
        startup.on_config = self._config_changed
        self._outbound.supervisor.connect(self._inbound.intake.emit_for, self._connected)

    def _join(self, node: ClusterNode) -> ClusterServices:
        from hermes.app.cluster import join  # only in a cluster

        return join(node, self._context, self._outbound, self._agent, self._inbound)

    def background(self) -> dict[str, Run]:
        """Return what runs as long as the gateway does, by the names of its tasks."""
        outbound, agent, inbound, lazy = self._outbound, self._agent, self._inbound, self.lazy
        serves_all, node = self._context.options.serves_all, self._context.node
        optional: dict[str, Run] = {}
        if node is not None and serves_all:
            optional["duties"] = node.duties.keep
        if self._cluster is not None:
            optional |= self._cluster.background()
        if serves_all:
            optional["backups"] = lazy.run_backups
        return {
            **optional,
            "menus": inbound.menus.run,
            "config": self._context.watch.run,
            "intake": inbound.actions.run,
            "lanes": agent.lanes.run,
            "delivery": outbound.delivery.run,
            "presenter": outbound.presenter.run,
            "compression": agent.compression.run,
            "janitor": self._janitor.run,
            "alerts": outbound.alerts.run,
            "owners": inbound.owners.run,
            "kanban": lazy.run_kanban,
            "recall": agent.session_search.run,
            "terminals": agent.terminals.run,
            "skills": agent.skills.run,
            "tools": self._load_tools,
            "cron": lazy.run_cron,
            "retention": lazy.run_retention,
            "tracing": lazy.run_tracing,
        }

    def _gateway(self) -> Gateway:
        context, startup, lazy = self._context, self._context.startup, self.lazy
        outbound, agent, inbound = self._outbound, self._agent, self._inbound
        return Gateway(
            home=context.home,
            db=context.db,
            clock=context.clock,
            bus=context.bus,
            watch=context.watch,
            manifests=startup.manifests,
            supervisor=outbound.supervisor,
            outbox_writer=outbound.outbox_writer,
            lanes=agent.lanes,
            delivery=outbound.delivery,
            actions=inbound.actions,
            approvals=agent.approvals,
            models=agent.models,
            embedded=agent.embedded,
            fetcher=startup.fetcher,
            hub=context.hub,
            requests=agent.requests,
            pairings=inbound.pairings,
            deletion=lambda: lazy.deletion,
            response_stores=lazy.response_stores,
            board=lambda: lazy.board,
            dispatch=lambda: lazy.dispatch,
            troubles=startup.troubles.texts,
            repaired=startup.troubles.repaired,
            note_trouble=startup.troubles.note,
            toolbox=agent.toolbox,
            skills=agent.skills,
            news=startup.news,
            last_output=agent.terminals.last_output,
            node=context.node,
            cron=lambda: lazy.cron,
            jobs=lambda: lazy.jobs,
            webhooks=lambda: lazy.webhooks,
            webhook_changes=lazy.webhook_changes,
        )

    async def _status(self) -> dict[str, Any]:
        return await self.gateway.status()

    # What changes while the gateway runs

    def _config_changed(self, config: Config) -> None:
        self._outbound.supervisor.reconcile()
        self._inbound.menus.changed()
        self._inbound.owners.changed()
        if self._agent.toolbox.are_made:  # else ``_load_tools`` logs them
            self._log_unknown_tools()
        if config.model.provider == EMBEDDED:
            self._context.startup.fetcher.begin()

    async def _load_tools(self) -> None:
        await self._agent.skills.may_begin.wait()
        await self._agent.toolbox.ready()
        self._log_unknown_tools()

    def _log_unknown_tools(self) -> None:
        """Log names of tools that no tool has, once for each configuration that names one."""
        if self._context.options.serves_all:
            for mistake in mistakes(self._context.config(), self._agent.toolbox.tools()):
                log.warning("Setting names an unknown tool", extra={"reason": mistake})

    async def _connected(self, account: str) -> None:
        await self._outbound.delivery.connected(account)
        await self._inbound.menus.connected(account)
