"""terminal: run a command line."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from hermes.agent.backends.base import Backend, BackendName
from hermes.agent.backends.lease import in_shell
from hermes.agent.backends.output import as_text
from hermes.agent.backends.terminals import TerminalCommand, Terminals, check_length
from hermes.agent.toolkit.context import ApprovalNeed, ToolContext, ToolOutput
from hermes.agent.toolkit.schema import tool
from hermes.core.errors import ToolError
from hermes.core.i18n.en import Texts
from hermes.core.roles import PersonRole
from hermes.core.shell_safety.judge import Danger, Verdict, judge
from hermes.store import processes
from hermes.store.db import Tx

MAX_SECONDS = 3600
CALL_SECONDS = MAX_SECONDS + 60.0
FIRST_BYTES = 8_000
LAST_BYTES = 12_000
AT_ONCE_SECONDS = 0.5
REASON_CHARS = 200
MAX_SCRIPT_BYTES = 30_000
UNREADABLE = "\0"


def may_run(
    ctx: ToolContext, command: str, folder: str = "", outside: bool = False, reason: str = "", **_: object
) -> ApprovalNeed | None:
    """Return the question before this command; outside the sandbox each one asks."""
    check_length(command)  # before it is read word by word
    outside = outside or needs_outside(ctx, command, folder)
    return ask_before(ctx, command, folder, outside=outside, reason=reason)


def ask_before(
    ctx: ToolContext, command: str, folder: str = "", *, outside: bool = False, reason: str = ""
) -> ApprovalNeed | None:
    terminals = ctx.parts.get(Terminals)
    backend = terminals.backend(ctx, outside=outside)
    leaves_sandbox = outside and terminals.backend(ctx).name is BackendName.GUARDED
    check_length(command)
    start_in = ctx.inside(folder or ".")
    is_here = backend.touches_host and backend.shares_files
    verdict = judge(
        command,
        touches_host=backend.touches_host,
        is_shared=ctx.is_shared,
        folder=str(start_in),
        home=str(Path.home()),
        workspace=str(ctx.workspace.resolve()),
        resolve=os.path.realpath if is_here else None,
        read=read_script if is_here else None,
    )
    leaving = _leaving(ctx.words, reason) if leaves_sandbox else ""
    return need_for(ctx, backend, verdict, command, start_in, leaving)


def _leaving(words: Texts, reason: str) -> str:
    """Say that a command leaves the sandbox, with the model's own reason on one line."""
    shown = " ".join(reason.split())[:REASON_CHARS]
    return words.ASK_OUTSIDE_REASON.format(reason=shown) if shown else words.ASK_OUTSIDE


def need_for(
    ctx: ToolContext, backend: Backend, verdict: Verdict, command: str, start_in: Path, leaving: str = ""
) -> ApprovalNeed | None:
    """Return the question for a verdict in this ``approvals.mode``; ToolError for a refusal.

    ``leaving``: the sentence that the command runs outside the sandbox. No mode and no grant answers that question.
    """
    if verdict.is_refused:
        raise ToolError(f"{verdict.refusal} Do not try it in another form.")
    if backend.name is BackendName.GUARDED:
        verdict = replace(
            verdict, dangers=tuple(danger for danger in verdict.dangers if danger not in _HELD_BY_SANDBOX)
        )
    mode = ctx.parts.get(Terminals).approvals_mode()
    if mode == "off" and ctx.role is PersonRole.OWNER and not leaving:
        return None
    if mode == "all":
        verdict = verdict.with_danger(Danger.EVERY)
    elif mode == "unknown" and backend.touches_host and not verdict.only_reads and not verdict.asks:
        verdict = verdict.with_danger(Danger.NOT_ONLY_READING)
    says_home = backend.name is BackendName.LOCAL and names_home(ctx, command)
    if not verdict.asks and not says_home and not leaving:
        return None
    if says_home:
        verdict = verdict.with_danger(Danger.HERMES_HOME)
    danger = verdict.describe(ctx.words) if verdict.asks else ""
    return ApprovalNeed(
        ctx.words.GAP.join(part for part in (leaving, danger) if part),
        touches_host=backend.touches_host,
        subject="" if says_home or leaving else verdict.subject(backend.name),
        where=backend.where(start_in, ctx.words),
    )


def needs_outside(ctx: ToolContext, command: str, folder: str = "") -> bool:
    """Tell whether a command can only work outside the owner's sandbox."""
    if ctx.parts.get(Terminals).backend(ctx).name is not BackendName.GUARDED:
        return False
    dangers = judge(
        command,
        folder=str(ctx.inside(folder or ".")),
        home=str(Path.home()),
        workspace=str(ctx.workspace.resolve()),
    ).dangers
    return (
        any(danger in _SYSTEM for danger in dangers)
        or {Danger.SYSTEM_FILES, Danger.OUTSIDE} <= set(dangers)  # a start file or a setting of the workspace is inside
        or (Danger.PACKAGES in dangers and _SYSTEM_PACKAGES.search(command) is not None)
    )


def read_script(path: str) -> str | None:
    """Return the text of a script that a command would run; None if there is no such file.

    A file that is too long, not text or not a plain file is returned as UNREADABLE, which always asks.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return UNREADABLE
            data = file.read(MAX_SCRIPT_BYTES + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return UNREADABLE
    if len(data) > MAX_SCRIPT_BYTES or b"\0" in data:
        return UNREADABLE
    return data.decode("utf-8", "replace")


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe would keep the judge waiting for its writer


def names_home(ctx: ToolContext, command: str) -> bool:
    """Whether a command speaks of our own folder, as far as its words tell."""
    names = {".hermes", "HERMES_HOME"}
    for folder in ctx.forbidden:
        names |= {str(folder), str(folder.resolve()), folder.name}
    return any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", command) for name in names)


@tool(toolset="terminal", repeatable=False, approval=may_run, seconds=CALL_SECONDS, is_at_hand=True)
async def terminal(
    ctx: ToolContext,
    command: str,
    background: bool = False,
    folder: str = "",
    timeout: int = 0,
    outside: bool = False,
    reason: str = "",  # noqa: ARG001 - for the person who is asked
) -> ToolOutput:
    """Run a shell command in the workspace and return its output and exit code.

    `folder` is a folder of the workspace to run it in. `timeout` is in seconds. With `background`, the command goes on
    by itself: you get its id at once, for the tool `process` (list, log, wait, kill). `outside` with a `reason`: only
    when a result tells you that the sandbox was in the way.
    """
    if not command.strip():
        raise ToolError("'command' is empty.")
    if not 0 <= timeout <= MAX_SECONDS:
        raise ToolError(f"'timeout' is 1 to {MAX_SECONDS} seconds. For more, use background=true.")
    outside = outside or needs_outside(ctx, command, folder)
    wanted = TerminalCommand(in_shell(command), command, folder, outside)
    if background:
        return await _in_background(ctx, wanted)
    return await run_and_tell(ctx, wanted, timeout)


async def run_and_tell(ctx: ToolContext, command: TerminalCommand, timeout: int) -> ToolOutput:
    terminals = ctx.parts.get(Terminals)
    seconds = float(timeout or terminals.timeout_seconds())
    finished = await terminals.finish(ctx, command, seconds)
    process, output = finished.process, finished.output
    is_long = output.size > FIRST_BYTES + LAST_BYTES
    await output.close(keep=is_long)
    notes = [_STOPPED.format(seconds=seconds) if process.exit_code is None else ending(process.exit_code)]
    if finished.had_leftovers and process.exit_code is not None:
        notes.append(_LEFTOVERS)
    notes += finished.notes
    if process.backend == BackendName.GUARDED and process.exit_code:
        last = await output.read(max(0, output.size - LAST_BYTES), LAST_BYTES)
        if _SANDBOX_SAYS.search(last):
            notes.append(_IN_SANDBOX)

    def keep(tx: Tx) -> None:
        processes.record(tx, process)

    text = await render_output(output.read, output.size, process.id)
    return ToolOutput("\n".join([*notes, text]), effect=keep if is_long else None)


async def render_output(read: Callable[[int, int], Awaitable[bytes]], size: int, process_id: str) -> str:
    """An output as the model gets it: of a long one the beginning and the end, and how to read what is between."""
    if size <= FIRST_BYTES + LAST_BYTES:
        return as_text(await read(0, size)).rstrip("\n") or "(No output.)"
    first, last = await read(0, FIRST_BYTES), await read(size - LAST_BYTES, LAST_BYTES)
    first = first[: first.rfind(b"\n") + 1] or first
    last = last[last.find(b"\n") + 1 :] or last
    left_out = size - len(first) - len(last)
    how = f"process(action='log', id='{process_id}', offset={len(first)})"
    mark = f"[… {left_out:,} of {size:,} bytes left out; read on with {how} …]"
    return f"{as_text(first)}\n{mark}\n{as_text(last)}".rstrip("\n")


def ending(code: int) -> str:
    """``Exit code 0.``; of one that a signal ended, which."""
    if 128 < code < 128 + signal.NSIG:
        with contextlib.suppress(ValueError):
            return f"Exit code {code} ({signal.Signals(code - 128).name})."
    return f"Exit code {code}."


async def _in_background(ctx: ToolContext, command: TerminalCommand) -> ToolOutput:
    if _ENDS_WITH_AND.search(command.shown):
        raise ToolError("Leave out the & at the end: with background=true the command goes on by itself.")
    terminals = ctx.parts.get(Terminals)
    process = await terminals.begin(ctx, command)
    await terminals.wait(process, AT_ONCE_SECONDS)
    process = await terminals.find(ctx, process.id)
    raw, size = await terminals.read(process, 0, FIRST_BYTES)
    output = as_text(raw).rstrip("\n")
    if process.is_running:
        notes = [f"Running in the background as {process.id}. It ends with the gateway at the latest."]
        notes += [f"It says so far:\n{output}"] if output else []
    else:
        notes = [f"{process.id} has ended already. {ending(process.exit_code or 0)}", output or "(No output.)"]
    if size > len(raw):
        notes.append(f"[Read on with process(action='log', id='{process.id}', offset={len(raw)}).]")
    return ToolOutput("\n".join(notes))


# What only the machine itself can do; files of the workspace and of a project's own packages are not among it.
_SYSTEM = frozenset(
    {Danger.FORMAT, Danger.DEVICE, Danger.SERVICES, Danger.ACCOUNTS, Danger.ROOT, Danger.POWER, Danger.KERNEL}
)  # fmt: skip
# What the sandbox holds back by itself: writes outside of the workspace, and code that may try them.
_HELD_BY_SANDBOX = frozenset({Danger.OUTSIDE, Danger.CODE})
_SYSTEM_PACKAGES = re.compile(r"\b(?:apt|apt-get|aptitude|dpkg|dnf|yum|rpm|pacman|zypper|apk|snap|flatpak|brew)\b")
# What programs say when a sandbox is in their way; some of them say it for other reasons too.
_SANDBOX_SAYS = re.compile(
    rb"[Rr]ead.only (?:file system|lock file)|Permission denied|Operation not permitted|EROFS|EACCES|EPERM"
    rb"|Failed to connect to bus|not been booted with systemd|no new privileges"
    rb"|[Aa]re you root|must be (?:run as )?root|[Pp]ermissionError"
)
_IN_SANDBOX = (
    "This ran in a sandbox: only the workspace can be written, keys are hidden, and system services are out of reach. "
    "If the command needs more, call terminal again with outside=true and a reason; the owner is asked each time."
)
_ENDS_WITH_AND = re.compile(r"(?<!&)&\s*$")
_STOPPED = "Stopped: it had not ended after {seconds:g} s. For long work use background=true or a longer timeout."
_LEFTOVERS = "What it had left running was ended with it. Use background=true for what must go on."
