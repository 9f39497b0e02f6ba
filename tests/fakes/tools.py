"""Tools for tests: one that needs an approval and must not run twice, one that breaks, one that takes its time."""

from __future__ import annotations

import asyncio
import json
import time

from hermes.agent.toolkit.context import ApprovalNeed, ToolContext, ToolOutput
from hermes.agent.toolkit.schema import tool
from hermes.core.errors import ToolError
from hermes.core.roles import PersonRole
from hermes.store.db import Tx

DONE = "danger.txt"
GO_ON = "go-on.txt"
REVEALED = "revealed.txt"
DEPLOYED = "deployed.txt"
NEVER = "never"


def ask_first(_: ToolContext, text: str) -> ApprovalNeed:
    return ApprovalNeed(f"May I write {text!r} into {DONE}?")


@tool(toolset="test", repeatable=False, approval=ask_first)
async def danger(ctx: ToolContext, text: str) -> str:
    """Append a line to danger.txt in the workspace. Somebody has to allow it first."""

    def append() -> None:
        with ctx.inside(DONE).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    await asyncio.to_thread(append)
    return f"Wrote {text!r}."


def ask_by_kind(_: ToolContext, text: str, host: bool = True) -> ApprovalNeed:
    if text == NEVER:
        raise ToolError("That is refused to everybody.")
    where = "on local in the workspace"
    return ApprovalNeed(f"May I write {text!r}?", touches_host=host, subject="test: write", where=where)


@tool(toolset="test", repeatable=False, approval=ask_by_kind)
async def scribble(ctx: ToolContext, text: str, host: bool = True) -> str:
    """Append a line to danger.txt in the workspace. Its kind can be allowed for longer."""

    def append() -> None:
        with ctx.inside(DONE).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    await asyncio.to_thread(append)
    return f"Wrote {text!r}."


def ask_gently(_: ToolContext, text: str) -> ApprovalNeed:
    return ApprovalNeed(f"May I note {text!r}?", touches_host=False)


@tool(toolset="test", approval=ask_gently, role=PersonRole.GUEST)
async def note(_: ToolContext, text: str) -> str:
    """Note something. Whoever asked may allow it."""
    return f"Noted {text!r}."


@tool(toolset="test")
async def boom(_: ToolContext) -> str:
    """Break."""
    raise RuntimeError("the wheel came off")


@tool(toolset="test")
async def linger(ctx: ToolContext) -> str:
    """Work until go-on.txt is in the workspace."""
    while not await asyncio.to_thread(ctx.inside(GO_ON).exists):  # noqa: ASYNC110 - a file tells nobody
        await asyncio.sleep(0.01)
    return "Done lingering."


@tool(toolset="test")
async def dawdle(_: ToolContext) -> str:
    """Work for ever, and take as long to come to an end when told to."""
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.Event().wait()
    return "Never."


@tool(toolset="test", repeatable=False)
async def deploy(ctx: ToolContext, name: str) -> str:
    """Append a line to deployed.txt in the workspace, without a question."""

    def append() -> None:
        with ctx.inside(DEPLOYED).open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")

    await asyncio.to_thread(append)
    return f"Deployed {name}."


@tool(toolset="test", repeatable=False)
async def ponder(_: ToolContext, question: str) -> ToolOutput:
    """Put a question to the person. It ends the turn."""
    return ToolOutput(question, asks=True)


@tool(toolset="test", repeatable=False)
async def tally(ctx: ToolContext, name: str) -> ToolOutput:
    """Count something in our own store."""

    def count(tx: Tx) -> None:
        tx.run("INSERT INTO meta (key, value) VALUES (:key, :call)", key=f"tally.{name}", call=ctx.call_id)

    return ToolOutput(f"Counted {name}.", effect=count)


def think_long(_: ToolContext, seconds: float) -> ApprovalNeed | None:
    time.sleep(seconds)
    return None


@tool(toolset="test", approval=think_long)
async def weigh(_: ToolContext, seconds: float) -> str:
    """Do something whose rule takes long to decide."""
    return f"Weighed for {seconds} s."


@tool(toolset="test", repeatable=False, role=PersonRole.GUEST)
async def reveal(ctx: ToolContext, text: str) -> str:
    """Note with whose rights this turn runs."""

    def append() -> None:
        with ctx.inside(REVEALED).open("a", encoding="utf-8") as file:
            file.write(json.dumps([text, ctx.role.value, ctx.person_id]) + "\n")

    await asyncio.to_thread(append)
    return "Revealed."
