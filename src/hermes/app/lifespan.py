"""Open a gateway: own its home, open its store, run its services, drain them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import hermes
from hermes.agent.backends.process_groups import kill_group
from hermes.agent.backends.terminals import end_leftovers
from hermes.app.startup import GatewayOptions, StartupContext
from hermes.app.wiring import Wiring
from hermes.core.errors import HomeInUseError, StoreIsDownError
from hermes.hosting import locks, paths
from hermes.services.gateway import Gateway
from hermes.services.keep_running import keep_running
from hermes.store import claims, people
from hermes.store.db import Database, Trouble, Tx
from hermes.store.home import make_home
from hermes.store.ids import new_id
from hermes.store.open import open_database
from hermes.store.turns import tool_calls

if TYPE_CHECKING:
    from hermes.services.cluster.node import ClusterNode

__all__ = ["GatewayOptions", "open_gateway"]

log = logging.getLogger(__name__)

GATEWAY_WAIT_SECONDS = 30.0
LOCK_BITE_SECONDS = 0.25
SAY_AFTER_SECONDS = 1.0  # a command that works alone leaves sooner
STORE_RETRY_SECONDS = 0.5
TURNS_DRAIN_SECONDS = 3.5
SENDS_DRAIN_SECONDS = 1.5


@asynccontextmanager
async def open_gateway(options: GatewayOptions) -> AsyncIterator[Gateway]:
    """Own the home, open the store, build every service and run them until the end of the block."""
    make_home(options.home)
    async with AsyncExitStack() as stack:
        stack.callback((await _own(options)).release)
        if (options.home / ".restore").exists():
            from hermes.store.backup import restore  # only where a restore waits for its owner

            if (aside := await asyncio.to_thread(restore.finish, options.home)) is not None:
                log.warning("Backup restored", extra={"set_aside": str(aside)})
        startup = StartupContext(options)
        db, node = await _open_store(startup)
        stack.push_async_callback(db.close)
        owner = node.id if node is not None else new_id("inc")
        if node is None:
            await db.write(_take_over, owner, now=startup.clock.now())
        else:
            stack.push_async_callback(node.leave)
            await db.write(_free_unknown)
        is_alone = node is None or not node.has_others()
        for left in await db.read(tool_calls.leftover_processes, of_all=is_alone):  # of tools whose worker died
            if kill_group(left.process_group, left.process_started):
                about = {"group": left.process_group, "call": left.call_id}
                log.warning("Killed a process left by a crash", extra=about)
        await end_leftovers(db, now=startup.clock.now(), host=node.name if node is not None else "")
        wiring = Wiring(startup, db, owner, node)
        gateway = wiring.gateway
        stack.push_async_callback(wiring.terminals.close)
        stack.push_async_callback(wiring.lazy.close_board)
        workspaces = startup.tool_factory.workspaces
        await asyncio.to_thread(workspaces.load, await db.read(people.ids))
        if is_alone:  # another node may have the client of a request that runs
            await gateway.requests.forget_gone_clients()  # before any lane is served
        await gateway.pairings.load()  # before any message is judged
        stack.push_async_callback(gateway.models.close)
        stack.push_async_callback(gateway.embedded.aclose)
        stack.push_async_callback(gateway.fetcher.aclose)
        tasks = [
            asyncio.create_task(keep_running(name, run, startup.troubles.texts), name=name)
            for name, run in wiring.background().items()
        ]
        stack.push_async_callback(_end, tasks)
        if not options.doors_first:
            gateway.begin()
        await gateway.actions.resume()
        try:
            yield gateway
        finally:
            # Stop intake, let turns finish or leave them for the next process, send what is in flight.
            await gateway.supervisor.stop_intake()
            if node is not None and (node.is_gone or node.has_others()):
                await _hand_over(gateway, node)
            else:
                await gateway.actions.close()
                await gateway.lanes.drain(TURNS_DRAIN_SECONDS)
                await gateway.delivery.drain(SENDS_DRAIN_SECONDS)
            await gateway.supervisor.close()


async def _hand_over(gateway: Gateway, node: ClusterNode) -> None:
    """Let the other nodes go on: accounts at once, turns after a moment to finish."""
    from hermes.app.cluster import HAND_OVER_SECONDS  # only in a cluster

    seconds = 0.0 if node.is_gone else HAND_OVER_SECONDS
    if not node.is_gone:
        await node.drain()
    await asyncio.gather(gateway.lanes.drain(seconds), gateway.actions.close())
    await gateway.delivery.drain(0.0 if node.is_gone else SENDS_DRAIN_SECONDS)


async def _own(options: GatewayOptions) -> locks.Lock:
    """Become the owner of the home. A gateway waits out a command that works there alone; a command does not wait."""
    path = paths.owner_lock(str(options.home))
    patience = SAY_AFTER_SECONDS if options.only is None else LOCK_BITE_SECONDS
    lock = await asyncio.to_thread(locks.take, path, options.owner_name, patience)
    if lock is None and options.only is None:
        holder = locks.holder(path) or locks.Holder()
        log.warning("Home is in use", extra={"by": holder.describe(), "waiting_seconds": GATEWAY_WAIT_SECONDS})
        options.on_wait(f"{holder.describe()} holds the home; end it{holder.how_to_end()}")
        deadline = time.monotonic() + GATEWAY_WAIT_SECONDS - SAY_AFTER_SECONDS
        while lock is None and time.monotonic() < deadline:  # in bites: a thread that waits cannot be cancelled
            lock = await asyncio.to_thread(locks.take, path, options.owner_name, LOCK_BITE_SECONDS)
        options.on_wait("")
    if lock is None:
        owner = (locks.holder(path) or locks.Holder()).describe()
        raise HomeInUseError(
            f"{options.home} is in use by {owner}. One process at a time owns a home; end that one first."
        )
    return lock


async def _open_store(startup: StartupContext) -> tuple[Database, ClusterNode | None]:
    """Open the database; on PostgreSQL, join its nodes.

    A server that comes up after us is waited for: nothing is lost meanwhile.
    """
    options = startup.options
    while True:
        try:
            db = await open_database(
                startup.config().database_url or options.home / "state.db",
                on_trouble=startup.troubles.note,
                limits=options.store_limits,
            )
            try:
                return db, await _join(startup, db) if db.dialect.name == "postgres" else None
            except BaseException:
                await db.close()
                raise
        except StoreIsDownError as error:
            if not options.store_is_down(str(error)):
                raise
            await asyncio.sleep(STORE_RETRY_SECONDS)


async def _join(startup: StartupContext, db: Database) -> ClusterNode:
    from hermes.services.cluster import node as cluster  # only where there may be others

    options = startup.options
    row = cluster.describe_this(
        options.home,
        new_id("inc"),
        name=startup.config().node_name,
        version=hermes.__version__,
        schema_version=db.schema_version,
    )
    node = cluster.ClusterNode(
        db,
        row,
        startup.clock,
        on_gone=options.on_gone,
        on_trouble=lambda text: startup.troubles.note(Trouble("old", text)),
    )
    try:
        await node.join(options.store_limits.own_seconds)
        await node.succeed(cluster.predecessor(options.home))
        await asyncio.to_thread(cluster.remember, options.home, row)
    except BaseException:
        await node.leave()
        raise
    return node


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            log.error("Background task failed", exc_info=result)


def _free_unknown(tx: Tx) -> None:
    """What belongs to no node was left by a gateway of before there were nodes, or came with a copy of a store."""
    claims.free_unknown(tx, "lanes")
    claims.free_unknown(tx, "targets")


def _take_over(tx: Tx, owner: str, *, now: float) -> None:
    """Whatever an earlier incarnation held is free: it is dead, since we hold its lock."""
    claims.free_older(tx, "lanes", owner=owner, now=now)
    claims.free_older(tx, "targets", owner=owner, now=now)
