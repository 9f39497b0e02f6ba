"""End a turn that runs on another node."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from hermes.core.errors import GatewayError, StoreIsDownError
from hermes.services.cluster.calls import Json, NodeCalls, NodeUnreachableError
from hermes.services.turns.lanes import STOP_SECONDS, Lanes
from hermes.services.turns.stop import StopReason
from hermes.store.cluster import turn_progress
from hermes.store.db import Database

log = logging.getLogger(__name__)

STOP = "turn.stop"
TRY_AGAIN_SECONDS = 0.2


class RemoteTurns:
    """Passes the wish to end a turn on to the node that runs it. ``lanes`` are this node's own."""

    def __init__(self, db: Database, calls: NodeCalls, lanes: Lanes, node_id: str) -> None:
        self._db = db
        self._calls = calls
        self._lanes = lanes
        self._node_id = node_id
        self._tasks: set[asyncio.Task[bool]] = set()

    def handlers(self) -> dict[str, Callable[[Json], Any]]:
        return {STOP: self._stop_here}

    async def _stop_here(self, body: Json) -> Json:
        """``{lane, turn, reason}``: end this turn, and only this one; answer when it has ended."""
        try:
            reason = StopReason(str(body.get("reason")))
        except ValueError:
            raise GatewayError(f"{str(body.get('reason'))[:40]!r} is no reason to stop a turn.") from None
        if reason is StopReason.DRAIN:  # what a node leaves for others it decides itself
            raise GatewayError("A node drains its own turns only.")
        return {"stopped": await self._lanes.end_here(str(body.get("lane")), str(body.get("turn")), reason)}

    def interrupt(self, lane: str, turn_id: str, reason: StopReason) -> None:
        """Have the turn ended where it runs, without waiting for it."""
        task = asyncio.create_task(self._stop_quietly(lane, turn_id, reason), name="stop a turn of another node")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop_quietly(self, lane: str, turn_id: str, reason: StopReason) -> bool:
        with contextlib.suppress(StoreIsDownError):  # who asked sees it in the store, and asks again
            return await self.stop(lane, turn_id, reason)
        return False

    async def stop(self, lane: str, turn_id: str, reason: StopReason) -> bool:
        """End the turn on the node that runs it. False: no other node runs it (any more)."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + STOP_SECONDS
        body = {"lane": lane, "turn": turn_id, "reason": reason.value}
        while (seconds := deadline - loop.time()) > 0:
            found = await self._db.read(turn_progress.owners_of, [lane])
            owner = found[0].owner if found and found[0].turn_id == turn_id else None
            if owner is None or owner == self._node_id:
                return False
            try:
                answer = await self._calls.ask(owner, STOP, body, seconds=seconds)
            except NodeUnreachableError as error:
                # The node died: its lane is free in a moment, or another node goes on with the turn.
                log.info("Turn not stopped yet", extra={"turn": turn_id, "reason": str(error)})
                await asyncio.sleep(TRY_AGAIN_SECONDS)
                continue
            except StoreIsDownError:
                raise
            except GatewayError as error:
                log.warning("Turn not stopped", extra={"turn": turn_id, "reason": str(error)})
                return False
            if answer.get("stopped"):
                return True
            await asyncio.sleep(TRY_AGAIN_SECONDS)  # it moved, or is about to end
        return False
