"""process: list, read, await and kill background commands."""

from __future__ import annotations

from typing import Literal

from hermes.agent.backends.output import as_text
from hermes.agent.backends.terminals import Terminals
from hermes.agent.toolkit.context import ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.agent.tools.terminal import ending
from hermes.core.errors import ToolError
from hermes.store.processes import Process

LOG_BYTES = 20_000
MAX_WAIT_SECONDS = 600
CALL_SECONDS = MAX_WAIT_SECONDS + 30.0


@tool(toolset="terminal", seconds=CALL_SECONDS)
async def process(
    ctx: ToolContext, action: Literal["list", "log", "wait", "kill"], id: str = "", offset: int = 0, seconds: int = 60
) -> str:
    """See to commands started with terminal(background=true), and read on in long outputs.

    `list` names yours. `log` shows output from byte `offset` on. `wait` waits up to `seconds` for the end; `kill`
    ends one.
    """
    terminals = ctx.parts.get(Terminals)
    if action == "list":
        found = await terminals.listed(ctx)
        lines = []
        for each in found:
            command = each.command if len(each.command) <= 100 else f"{each.command[:100]}…"
            node = terminals.node_of(each)
            where = f"{each.backend} on node {node}" if node else each.backend
            lines.append(f"{each.id}  {_state(each)}  {where}  {' '.join(command.split())}")
        return "\n".join(lines) or "You have started nothing in the background."
    if not id:
        raise ToolError(f"{action} needs the 'id' of a process. See process(action='list').")
    wanted = await terminals.find(ctx, id)
    if action == "log":
        return await _log(terminals, wanted, offset)
    if action == "wait":
        if not 0 < seconds <= MAX_WAIT_SECONDS:
            raise ToolError(f"'seconds' is 1 to {MAX_WAIT_SECONDS}.")
        await terminals.wait(wanted, seconds)
    elif wanted.is_running:
        await terminals.kill(wanted)
    now = await terminals.find(ctx, id)
    _, size = await terminals.read(now, 0, 0)
    start = max(0, size - LOG_BYTES // 4)
    raw, _ = await terminals.read(now, start, LOG_BYTES)
    tail = as_text(raw).rstrip("\n") or "(No output.)"
    before = f"[{start:,} bytes before this; see them with action='log'.]\n" if start else ""
    return f"{now.id}: {_state(now)}.\n{before}{tail}"


def _state(process: Process) -> str:
    if process.is_running:
        return "running"
    return "ended with the gateway or its time" if process.exit_code is None else ending(process.exit_code).rstrip(".")


async def _log(terminals: Terminals, process: Process, offset: int) -> str:
    if offset < 0:
        raise ToolError("'offset' counts from 0.")
    raw, size = await terminals.read(process, offset, LOG_BYTES)
    if not raw:
        return f"(Nothing from byte {offset:,} on; there are {size:,} bytes. {process.id}: {_state(process)}.)"
    if offset + len(raw) < size:
        raw = raw[: raw.rfind(b"\n") + 1] or raw
        more = f"[{size:,} bytes in all; read on with offset={offset + len(raw)}.]"
    else:
        more = f"[That is all so far. {process.id}: {_state(process)}.]"
    return f"{as_text(raw).rstrip(chr(10))}\n{more}"
