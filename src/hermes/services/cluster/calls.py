"""Ask another node, and answer what other nodes ask.

A call is a row; its notification carries the id of the node, the answer's the id of the call. A slow poll finds what a
notification missed. Only the verbs that wiring gave handlers for are answered, each with the rights of its own handler:
whoever can write into the database could write the stored rows as well, so a call allows nothing that these do not.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from hermes.core.errors import GatewayError, NodeIsGoneError, StoreIsDownError
from hermes.store.cluster import calls as node_calls
from hermes.store.cluster.calls import NodeCall
from hermes.store.db import Database
from hermes.store.ids import new_id

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
LOOK_SECONDS = 0.5
"""How often an answer is looked for that no notification told of."""
MAX_BODY_BYTES = 256 * 1024
FORGET_SECONDS = 60.0

DRAIN = "node.drain"

Json = dict[str, Any]
CallHandler = Callable[[Json], Awaitable[Json]]


class NodeUnreachableError(GatewayError):
    """The node that was asked is gone, or did not answer in time. Its text says which."""


class NodeCalls:
    """The calls of one node. ``node_id`` is its id in the store."""

    def __init__(self, db: Database, node_id: str, poll_seconds: float = POLL_SECONDS) -> None:
        self._db = db
        self._node_id = node_id
        self._poll_seconds = poll_seconds
        self._handlers: dict[str, CallHandler] = {}
        self._asked = asyncio.Event()
        self._answered: dict[str, asyncio.Event] = {}
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._forget_at = 0.0

    def add(self, handlers: Mapping[str, CallHandler]) -> None:
        """Answer these verbs. A handler's GatewayError is the caller's error; anything else is a failure of ours."""
        self._handlers.update(handlers)

    def notified(self, kind: str, key: str) -> None:
        """Look at once: a notification came."""
        if kind == "call" and key == self._node_id:
            self._asked.set()
        elif kind == "answer" and (waiter := self._answered.get(key)) is not None:
            waiter.set()

    # Asking

    async def ask(self, node: str, verb: str, body: Json, *, seconds: float) -> Json:
        """Return what the node answers. Raises its GatewayError, or NodeUnreachableError after so many seconds."""
        raw = orjson.dumps(body).decode()
        if len(raw) > MAX_BODY_BYTES:
            raise GatewayError(f"What was to be asked of another node is too long ({len(raw)} bytes).")
        call = NodeCall(new_id("nc"), node, self._node_id, verb, raw)
        waiter = self._answered[call.id] = asyncio.Event()
        try:
            async with asyncio.timeout(seconds):
                if not await self._db.write(node_calls.ask, call):
                    raise NodeUnreachableError(f"The node {node} is gone.")
                answer = await self._answer(call, waiter)
        except TimeoutError:
            raise NodeUnreachableError(f"The node {node} did not answer within {seconds:.0f} s.") from None
        finally:
            self._answered.pop(call.id, None)
            with contextlib.suppress(StoreIsDownError):  # old calls are dropped now and then
                await self._db.write(node_calls.forget, call.id)
        if error := answer.get("error"):
            raise GatewayError(str(error))
        return dict(answer.get("result") or {})

    async def _answer(self, call: NodeCall, waiter: asyncio.Event) -> Json:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await waiter.wait()
            waiter.clear()
            answer, is_alive = await self._db.read(node_calls.answer_to, call.id)
            if answer is not None:
                return _loaded(answer)
            if not is_alive:
                raise NodeUnreachableError(f"The node {call.node} is gone.")

    # Answering

    async def run(self) -> None:
        """Answer calls until cancelled."""
        try:
            while True:
                try:
                    for call in await self._db.read(node_calls.waiting, self._node_id):
                        if call.id not in self._serving:
                            task = asyncio.create_task(self._serve(call), name=f"call {call.verb}")
                            self._serving[call.id] = task
                    await self._forget_old()
                except NodeIsGoneError:
                    raise
                except StoreIsDownError as error:
                    log.warning("Store is down", extra={"while": "looking for calls", "reason": str(error)})
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._poll_seconds):
                        await self._asked.wait()
                self._asked.clear()
        finally:
            tasks = list(self._serving.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, call: NodeCall) -> None:
        try:
            answer = await self._handled(call)
            await self._db.write(node_calls.answer, call.id, orjson.dumps(answer).decode())
        except StoreIsDownError as error:
            log.warning("Call not answered", extra={"verb": call.verb, "reason": str(error)})
        finally:
            self._serving.pop(call.id, None)

    async def _handled(self, call: NodeCall) -> Json:
        handler = self._handlers.get(call.verb)
        if handler is None:
            return {"error": f"This node does not know {call.verb!r}. It may run an older version."}
        try:
            return {"result": await handler(_loaded(call.body))}
        except StoreIsDownError:
            raise
        except GatewayError as error:
            return {"error": str(error)}
        except Exception:
            log.exception("Call failed", extra={"verb": call.verb, "by": call.asked_by})
            return {"error": f"The other node failed at {call.verb}; its log says how."}

    async def _forget_old(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._forget_at:
            self._forget_at = now + FORGET_SECONDS
            await self._db.write(node_calls.forget_old)


def _loaded(text: str) -> Json:
    """Read JSON that another program wrote; what is no object is an empty one."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
