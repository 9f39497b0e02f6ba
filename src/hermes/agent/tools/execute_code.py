"""execute_code: run a piece of Python."""

from __future__ import annotations

import shlex
from typing import Literal

from hermes.agent.backends.terminals import TerminalCommand
from hermes.agent.toolkit.context import ApprovalNeed, ToolContext, ToolOutput
from hermes.agent.toolkit.schema import tool
from hermes.agent.tools.terminal import CALL_SECONDS, MAX_SECONDS, ask_before, run_and_tell
from hermes.core.errors import ToolError

PYTHON = ("python3", "-c")


def may_execute(ctx: ToolContext, code: str, **_: object) -> ApprovalNeed | None:
    """Judged as the command line that it amounts to."""
    return ask_before(ctx, shlex.join((*PYTHON, code)))


@tool(toolset="code", repeatable=False, approval=may_execute, seconds=CALL_SECONDS)
async def execute_code(
    ctx: ToolContext, code: str, language: Literal["python"] = "python", timeout: int = 0
) -> ToolOutput:
    """Run a Python script in the workspace and return what it prints.

    It runs where terminal commands run, with a small environment: no keys and no tokens. Print what you want to see.
    """
    if not code.strip():
        raise ToolError("'code' is empty.")
    if not 0 <= timeout <= MAX_SECONDS:
        raise ToolError(f"'timeout' is 1 to {MAX_SECONDS} seconds.")
    return await run_and_tell(ctx, TerminalCommand((*PYTHON, code), f"{language}: {code}"), timeout)
