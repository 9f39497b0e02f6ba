"""Reach background commands that run on another node: their output, their end."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from hermes.agent.backends.terminals import Terminals
from hermes.core.errors import GatewayError, StoreIsDownError, ToolError
from hermes.services.cluster.calls import Json, NodeCalls
from hermes.services.cluster.node import ClusterNode
from hermes.store import processes
from hermes.store.db import Database
from hermes.store.processes import Process

READ, WAIT, KILL = "process.read", "process.wait", "process.kill"
ASK_SECONDS = 10.0
MAX_READ_BYTES = 64 * 1024
MAX_WAIT_SECONDS = 60.0
"""A longer wait asks again: a call is kept for two minutes."""


class RemoteProcesses:
    """Asks the node that a process belongs to. Whose process it is was judged by the node that asks."""

    def __init__(self, db: Database, calls: NodeCalls, node: ClusterNode, terminals: Terminals) -> None:
        self._db = db
        self._calls = calls
        self._node = node
        self._terminals = terminals

    def handlers(self) -> dict[str, Callable[[Json], Any]]:
        return {READ: self._read_here, WAIT: self._wait_here, KILL: self._kill_here}

    # Asking

    async def read(self, process: Process, offset: int, count: int) -> tuple[bytes, int]:
        answer = await self._ask(process, READ, {"offset": offset, "count": min(count, MAX_READ_BYTES)}, ASK_SECONDS)
        return base64.b64decode(str(answer.get("data") or "")), int(answer.get("size") or 0)

    async def wait(self, process: Process, seconds: float) -> None:
        while seconds > 0:
            bite = min(seconds, MAX_WAIT_SECONDS)
            answer = await self._ask(process, WAIT, {"seconds": bite}, bite + ASK_SECONDS)
            if not answer.get("runs"):
                return
            seconds -= bite

    async def kill(self, process: Process) -> None:
        await self._ask(process, KILL, {}, ASK_SECONDS + 5)

    async def _ask(self, process: Process, verb: str, body: Json, seconds: float) -> Json:
        node = next((candidate for candidate in self._node.view.nodes if candidate.name == process.host), None)
        if node is None:
            raise ToolError(f"{process.id} belongs to the node {process.host}, which is not there now.")
        try:
            return await self._calls.ask(node.id, verb, {**body, "id": process.id}, seconds=seconds)
        except StoreIsDownError:
            raise
        except GatewayError as error:
            raise ToolError(f"{process.id} belongs to the node {process.host}: {error}") from error

    # Answering

    async def _read_here(self, body: Json) -> Json:
        data, size = await self._terminals.read(
            await self._process(body),
            max(0, int(body.get("offset") or 0)),
            min(int(body.get("count") or 0), MAX_READ_BYTES),
        )
        return {"data": base64.b64encode(data).decode("ascii"), "size": size}

    async def _wait_here(self, body: Json) -> Json:
        process = await self._process(body)
        await self._terminals.wait(process, min(float(body.get("seconds") or 0.0), MAX_WAIT_SECONDS))
        return {"runs": (await self._process(body)).is_running}

    async def _kill_here(self, body: Json) -> Json:
        await self._terminals.kill(await self._process(body))
        return {}

    async def _process(self, body: Json) -> Process:
        found = await self._db.read(processes.of_host, str(body.get("id")), host=self._node.name)
        if found is None:
            raise GatewayError("There is no such process at this node.")
        return found
