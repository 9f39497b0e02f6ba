"""Connect the services of a gateway to the other nodes of its cluster. Imported in a cluster only."""

from __future__ import annotations

import logging

from hermes.app.agent import AgentServices
from hermes.app.inbound import InboundServices
from hermes.app.outbound import OutboundServices
from hermes.app.startup import ServiceContext
from hermes.core.errors import StoreIsDownError
from hermes.services.cluster.node import ClusterNode
from hermes.services.cluster.services import ClusterServices
from hermes.services.keep_running import Run

log = logging.getLogger(__name__)

HAND_OVER_SECONDS = 0.4
"""For turns to finish, where another node can go on with them."""


def join(
    node: ClusterNode,
    context: ServiceContext,
    outbound: OutboundServices,
    agent: AgentServices,
    inbound: InboundServices,
) -> ClusterServices:
    """Connect the parts that another node can wake, and those that stop with the lease."""
    supervisor, delivery, lanes = outbound.supervisor, outbound.delivery, agent.lanes

    def look() -> None:
        """Work may have become free: look now, and not with the next slow poll."""
        for part in (lanes.look, delivery.look):
            inbound.actions.spawn(_unless_down(part))

    async def hand_over() -> None:
        """Let other nodes go on with what runs here: accounts at once, turns after a moment to finish."""
        supervisor.hand_over()
        await lanes.drain(HAND_OVER_SECONDS)

    def wake_target(target: str) -> None:
        if outbound.served is not None and outbound.served.has(target):
            delivery.wake(target)

    context.startup.troubles.tells_for_all = lambda: node.duties.is_held("task:alerts")
    node.on_lapse(supervisor.lapse)
    node.on_change(look)
    node.carry(hand_over, lanes.resume)
    node.wakeups.on("lane", lanes.hear)
    node.wakeups.on("target", wake_target)
    return ClusterServices(
        node, context.db, context.bus, lanes, str(context.home), supervisor.status, inbound.pairings, agent.terminals
    )


async def _unless_down(look: Run) -> None:
    """Look; a store that is down is looked at again by the slow poll."""
    try:
        await look()
    except StoreIsDownError as error:
        log.warning("Store is down", extra={"while": "looking for work", "reason": str(error)})
