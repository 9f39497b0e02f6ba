"""The tool that needs an approval and must not run twice: what it did can be counted in a file."""

from __future__ import annotations

import asyncio

from hermes.agent.toolkit import ApprovalNeed, ToolContext, tool

DONE = "danger.txt"


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
