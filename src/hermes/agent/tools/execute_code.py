"""execute_code: run a piece of Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from hermes.agent.backends.terminals import TerminalCommand, Terminals, check_length
from hermes.agent.toolkit.context import ApprovalNeed, ToolContext, ToolOutput
from hermes.agent.toolkit.schema import tool
from hermes.agent.tools.terminal import CALL_SECONDS, MAX_SECONDS, need_for, read_script, run_and_tell
from hermes.core.errors import ToolError
from hermes.core.shell_safety.judge import judge_python

PYTHON = ("python3", "-c")


def may_execute(ctx: ToolContext, code: str, **_: object) -> ApprovalNeed | None:
    """Judge code by the rule of ``python3 -c``; one grant covers both."""
    backend = ctx.parts.get(Terminals).backend(ctx)
    check_length(code)
    start_in = ctx.inside(".")
    is_here = backend.touches_host and backend.shares_files
    verdict = judge_python(
        code,
        touches_host=backend.touches_host,
        is_shared=ctx.is_shared,
        folder=str(start_in),
        home=str(Path.home()),
        resolve=os.path.realpath if is_here else None,
        read=read_script if is_here else None,
    )
    return need_for(ctx, backend, verdict, code, start_in)


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
