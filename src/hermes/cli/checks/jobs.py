"""Check the jobs: which fail, which were paused, which have nowhere to deliver to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.cli.checks.finding import Finding
from hermes.core.durations import count, format_duration

LATE_SECONDS = 600.0


def jobs_check(work: Mapping[str, Any] | None, command: str, *, is_running: bool) -> list[Finding]:
    """One finding for all jobs; nothing where there are none."""
    jobs = work["jobs"] if work is not None else []
    if work is None or not jobs:
        return []
    now, lines = float(work["now"]), []
    for job in jobs:
        name, history = job["name"] or job["id"], f"{command} cron history {job['id']}"
        late = now - float(job["next_at"]) if job["next_at"] else 0.0
        if job["failures"]:
            lines.append(f"{name} failed {count(int(job['failures']), 'time')} in a row → {history}")
        elif job["undelivered"]:
            lines.append(f"{name} ran, and its answer could not be delivered → {history}")
        elif job["state"] == "paused" and job["reason"]:
            lines.append(f"{name} is paused: {job['reason'].rstrip('.')} → {command} cron resume {job['id']}")
        elif is_running and late > LATE_SECONDS:
            lines.append(f"{name} was due {format_duration(late)} ago and did not run → {command} cron status")
    if lines:
        return [Finding("jobs", "hint", lines[0], tuple(lines[1:]))]
    coming = sorted(float(job["next_at"]) for job in jobs if job["next_at"])
    soon = f", the next in {format_duration(max(0.0, coming[0] - now))}" if coming else ""
    return [Finding("jobs", "good", f"{count(len(jobs), 'job')}{soon}")]
