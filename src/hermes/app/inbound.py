"""Make the services of what comes in: people, slash commands, button presses, intake."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from hermes.app.agent import AgentServices
from hermes.app.lazy import LazyServices
from hermes.app.outbound import OutboundServices
from hermes.app.startup import ServiceContext
from hermes.app.tools import COMMANDS
from hermes.core.keys import LOCAL, SessionKey
from hermes.services.commands.base import Commands, CommandServices, collect
from hermes.services.commands.menus import Menus
from hermes.services.inbound.actions import Actions
from hermes.services.inbound.answers import Answers
from hermes.services.inbound.intake import Intake
from hermes.services.inbound.judge import EventJudge
from hermes.services.inbound.notices import Notices
from hermes.services.outbound.alerts import home_targets
from hermes.services.people.owners import Owners
from hermes.services.people.pairing import Pairings
from hermes.services.presses import Presses

Status = Callable[[], Awaitable[dict[str, Any]]]


class InboundServices:
    def __init__(
        self,
        context: ServiceContext,
        outbound: OutboundServices,
        agent: AgentServices,
        lazy: LazyServices,
        status: Status,
    ) -> None:
        self._context = context
        self._outbound = outbound
        db, clock, config, home = context.db, context.clock, context.config, context.home
        supervisor, outbox_writer = outbound.supervisor, outbound.outbox_writer
        lanes = agent.lanes
        homes, language = lambda: home_targets(config()), lambda: config().language
        self.pairings = Pairings(db, clock, outbox_writer, home, homes, language, context.startup.news.publish)
        self.owners = Owners(db, config, clock, outbox_writer, context.bus)
        notices = Notices(db, config, clock, outbox_writer, self.pairings)
        commands = collect(COMMANDS)
        self.menus = Menus(db, config, supervisor.adapter_of, commands)
        answers = Answers(db, clock, outbox_writer, lanes)
        self.actions = Actions(
            db,
            clock,
            lanes,
            outbox_writer,
            notices,
            commands=Commands(self._command_services(agent, lazy, status), commands, answers),
            presses=Presses(db, config, agent.approvals, self.pairings, self.owners, answers, supervisor.adapter_of),
            is_mine=self._is_mine if context.node is not None else None,
        )
        skills = agent.skills
        judge = EventJudge(
            config,
            clock,
            notices,
            is_paired=self.pairings.is_paired,
            calls_skill=lambda name, platform: name not in commands and skills.is_called(name, platform),
            redact=context.redact,
        )
        self.intake = Intake(
            db,
            clock,
            lanes,
            outbox_writer,
            judge=judge,
            notices=notices,
            actions=self.actions,
            owners=lambda: config().owners,
            on_arrival=supervisor.arrived,
            notice_after_seconds=context.options.pace.told_it_waits_seconds,
        )

    def _command_services(self, agent: AgentServices, lazy: LazyServices, status: Status) -> CommandServices:
        context = self._context
        return CommandServices(
            db=context.db,
            clock=context.clock,
            lanes=agent.lanes,
            approvals=agent.approvals,
            owners=self.owners,
            config=context.config,
            loaded=lambda: context.watch.loaded,
            read_again=context.watch.read_again,
            status=status,
            tool_parts=lambda: context.tool_factory.parts,
            reach_of=context.tool_factory.context,
            jobs=lambda: lazy.jobs,
        )

    def _is_mine(self, key: SessionKey) -> bool:
        """Whether this node takes up what was left undone in a chat: it has the account, or does it for all."""
        if key.platform == LOCAL:
            return self._context.node is not None and self._context.node.duties.is_held("task:janitor")
        return self._outbound.supervisor.has(key.target)
