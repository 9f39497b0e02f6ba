"""Make the services of accounts, and of what goes out to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.app.startup import ServiceContext
from hermes.core.i18n.catalogue import words_of
from hermes.core.keys import LOCAL, AccountKey, Target
from hermes.core.messages import OutboundMessage
from hermes.services.adapters.supervisor import Supervisor
from hermes.services.news import AccountChanged
from hermes.services.outbound.alerts import Alerts
from hermes.services.outbound.approval_cards import ApprovalCards
from hermes.services.outbound.delivery import Delivery
from hermes.services.outbound.presenter import Presenter
from hermes.services.outbound.rate_limits import RateLimiter
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.outbound.spool import Spool
from hermes.store import outbox
from hermes.store.outbox import OutboxKind

if TYPE_CHECKING:
    from hermes.services.cluster.served import ServedTargets


class OutboundServices:
    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        db, clock, config, node = context.db, context.clock, context.config, context.node
        news = context.startup.news
        self.supervisor = supervisor = Supervisor(
            context.startup.manifests,
            db,
            config,
            clock,
            {LOCAL: {"hub": context.hub}},
            context.options.paused_because,
            on_signed_out=self._notify_signed_out,
            on_change=lambda account, state: news.publish(AccountChanged(str(account), state.value)),
            duties=node.duties if node is not None else None,
            check=node.check_request if node is not None else None,
        )
        self.rate_limiter = RateLimiter(supervisor.capabilities)
        self.spool = Spool(context.home, db, clock)
        self.served = self._served()
        self.delivery = Delivery(
            db,
            supervisor.adapter_of,
            config,
            clock,
            context.owner,
            self.rate_limiter,
            on_sent=supervisor.delivered,
            on_refused=supervisor.refused,
            bring_files=self.spool.bring,
            served=self.served,
        )
        self.outbox_writer = OutboxWriter(supervisor.capabilities, config, clock, self.delivery)
        self.alerts = Alerts(db, self.outbox_writer, config, clock)
        self.presenter = Presenter(
            db,
            context.bus,
            self.outbox_writer,
            supervisor.adapter_of,
            config,
            self.rate_limiter,
            context.options.pace,
        )
        self.cards = ApprovalCards(supervisor.capabilities, lambda: config().language)

    def _served(self) -> ServedTargets | None:
        if self._context.node is None:
            return None
        from hermes.services.cluster.served import ServedTargets  # only in a cluster

        return ServedTargets(self._context.node, self.supervisor, self._context.hub)

    def _notify_signed_out(self, account: AccountKey, reason: str) -> None:
        """Send the notice to other accounts only: this one cannot send."""
        words = words_of(self._context.config().language)
        self.alerts.tell(words.ACCOUNT_SIGNED_OUT.format(account=account, reason=reason), but=account)

    async def send(self, target: Target, text: str) -> None:
        rows = self.outbox_writer.rows(OutboundMessage(target, text), OutboxKind.REPLY)
        await self._context.db.write(outbox.enqueue, rows, now=self._context.clock.now())
        self.outbox_writer.due(rows)
