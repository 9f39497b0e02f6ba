"""``./scripts/bench``: measure the budgets of the design beside the machine's load, and write docs/figures.md."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench import figures
from bench.measures import (
    api,
    approvals,
    backup,
    dashboard,
    floor,
    hello,
    idle,
    idle_sessions,
    jobs,
    lag,
    lone,
    messages,
    nodes,
    platforms,
    postgres,
    retention,
    sessions,
    size,
    soak,
    start,
    streams,
    tools,
    version,
)
from bench.rig import BenchError
from bench.rows import Plan, Rows

Measure = Callable[[Plan], Awaitable[Rows]]

MEASURES: dict[str, Measure] = {
    "version": version.measure,
    "size": size.measure,
    "start": start.measure,
    "idle": idle.measure,
    "platforms": platforms.measure,
    "hello": hello.measure,
    "messages": messages.measure,
    "floor": floor.measure,
    "lone": lone.measure,
    "lag": lag.measure,
    "streams": streams.measure,
    "api": api.measure,
    "approvals": approvals.measure,
    "tools": tools.measure,
    "idle_sessions": idle_sessions.measure,
    "sessions": sessions.measure,
    "jobs": jobs.measure,
    "retention": retention.measure,
    "backup": backup.measure,
    "postgres": postgres.measure,
    "nodes": nodes.measure,
    "dashboard": dashboard.measure,
    "soak": soak.measure,
}


@dataclass(frozen=True, slots=True)
class Measured:
    """``load`` is the machine's before the measurement began, so that it does not count itself."""

    name: str
    load: float
    rows: Rows
    trouble: str = ""
    sources_changed: bool = False


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(MEASURES), metavar="NAME", help="this one; repeatable")
    parser.add_argument("--list", action="store_true", help="name the measurements")
    parser.add_argument(
        "--short", action="store_true", help="tiny counts: shows that it works, not how fast; implies --dry"
    )
    parser.add_argument("--dry", action="store_true", help="do not write docs/figures.md")
    parser.add_argument("--idle-seconds", type=float, default=30.0, help="how long idle CPU is watched")
    parser.add_argument("--history-gb", type=float, default=0.0, help="size of the history beside 10,000 sessions")
    parser.add_argument("--turns", type=int, default=100_000, help="how long the soak is")
    parser.add_argument("--profile", default="", metavar="FOLDER", help="let py-spy watch; implies --dry")
    options = parser.parse_args(arguments)
    if options.list:
        print(
            "\n".join(
                f"{name:10} {(sys.modules[of.__module__].__doc__ or '').strip().splitlines()[0]}"
                for name, of in MEASURES.items()
            )
        )
        return 0
    if options.profile:
        Path(options.profile).mkdir(parents=True, exist_ok=True)
    plan = Plan(options.short, options.idle_seconds, options.history_gb, options.profile, options.turns, say)
    names = options.only or list(MEASURES)
    keep = not (options.dry or options.short or options.profile)
    print(
        f"commit {figures.commit()}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, load {load_text()}"
    )
    try:
        measured = asyncio.run(measure_all(plan, names, keep=keep))
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("stopped", file=sys.stderr)
        return 130
    print_table(measured)
    return 1 if any(each.trouble for each in measured) else 0


async def measure_all(plan: Plan, names: Sequence[str], *, keep: bool) -> list[Measured]:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # so that every process is ended
    measured = []
    for name in names:
        measured.append(await measure_one(plan, name))
        if keep:
            write(measured[-1])  # at once: a commit that lands later did not make this figure
    return measured


async def measure_one(plan: Plan, name: str) -> Measured:
    """One that breaks is told in the table; the others go on."""
    load = os.getloadavg()[0]
    print(f"{name} … (load {load:.1f})", flush=True)
    began = time.time()
    try:
        rows = await MEASURES[name](plan)
    except (BenchError, TimeoutError, OSError) as error:
        plan.say(f"failed: {error}")
        return Measured(name, load, [], f"{type(error).__name__}: {error}")
    plan.say(f"done in {time.time() - began:.0f} s")
    changed = await asyncio.to_thread(sources_changed_since, began)
    if changed:
        plan.say("the sources changed meanwhile: measure this again")
    return Measured(name, load, rows, sources_changed=changed)


def print_table(measured: Sequence[Measured]) -> None:
    lines = [("", "figure", "budget", "", "load", "")]
    for each in measured:
        if each.trouble:
            lines.append((each.name, "not measured", "", "✗", f"{each.load:.1f}", each.trouble.splitlines()[0]))
        lines += [(row.what, row.figure, row.limit, row.verdict, f"{each.load:.1f}", row.note) for row in each.rows]
    widths = [max(len(line[column]) for line in lines) for column in range(6)]
    print()
    for line in lines:
        print("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip())


def write(each: Measured) -> None:
    """Each measurement has its own section, so that running one again leaves the others' figures as they were."""
    if not each.rows:
        return
    told = []
    for row in each.rows:
        words = (f"**{row.figure}**", f"{row.limit} {row.verdict}".strip(), row.note, f"load {each.load:.1f}")
        told.append((row.what, " · ".join(filter(None, words))))
    if each.sources_changed:
        told.append(("to be measured again", "the sources changed while this was measured"))
    figures.record(f"Bench: {each.name}", told)


def sources_changed_since(when: float) -> bool:
    return any(file.stat().st_mtime >= when for file in (figures.ROOT / "src").rglob("*.py"))


def load_text() -> str:
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def say(text: str) -> None:
    print(f"  {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
